//! `sync --push`, `watch --push`, and what is taken from a server.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{call::Ran, serve::Server, support::Home};

pub(crate) const TOKEN: &str = "AMPLIFIER_SESSIONS_TOKEN";

/// A server with an empty store, and its token.
pub(crate) struct Other {
    pub(crate) home: Home,
    pub(crate) server: Server,
    pub(crate) token: String,
}

impl Other {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let server = Server::start(&home, &[]);
        let token = fs::read_to_string(home.amplifier().join("server-token")).unwrap().trim().to_owned();
        Self { home, server, token }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Runs the program with the token of the server.
    pub(crate) fn run(&self, home: &Home, arguments: &[&str]) -> Ran {
        home.call(arguments).env(TOKEN, &self.token).run()
    }

    /// The number of sessions that the server has.
    pub(crate) fn sessions(&self) -> usize {
        let (status, body) = self.server.get("/v1/sessions?limit=1000", &self.token);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["sessions"].as_array().unwrap().len()
    }
}

pub(crate) fn sync(push: &str) -> [&str; 5] {
    ["sync", "--embedding", "none", "--push", push]
}

#[test]
fn a_sync_sends_what_the_server_lacks() {
    let (home, other) = (Home::with_samples(), Other::start());
    let url = other.url();
    let plan = other.run(&home, &[&sync(&url)[..], &["--dry-run"]].concat());
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    let first = other.run(&home, &sync(&url));
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stderr.contains(&format!("note: first push to {url}: ")), "{}", first.stderr);
    let local = home.json(&["sessions", "--limit", "1000", "--source", "amplifier", "--no-refresh"]);
    let count = local["sessions"].as_array().unwrap().len();
    assert_eq!(other.sessions(), count);
    let note = format!("dry run: up to {count} sessions would be read, and then sent to {url}");
    assert!(plan.stderr.contains(&note), "{}", plan.stderr);
    let again = other.run(&home, &[&sync(&url)[..], &["--json"]].concat());
    let pushed = &again.json()["push"][0];
    assert_eq!(
        (&pushed["to"], &pushed["sessions"], &pushed["unchanged"]),
        (&json!(url), &json!(0), &json!(count))
    );
    assert!(!again.stderr.contains("first push"), "{}", again.stderr);
    let transcript = "{\"role\":\"user\",\"content\":\"a new question\"}\n";
    home.write_session("-srv-new", "new-1", transcript);
    home.run(&["sync", "--embedding", "none"]);
    let unread = home.write_session("-srv-new", "new-2", transcript);
    let plan = other.run(&home, &[&sync(&url)[..], &["--dry-run"]].concat());
    assert!(plan.stdout.ends_with(&format!("push new\t-srv-new\tnew-1\t1\t0\t{url}\n")), "{}", plan.stdout);
    let note = format!("1 stored session would be sent to {url}, and up to 1 that would be read first");
    assert!(plan.stderr.contains(&note), "{}", plan.stderr);
    fs::remove_dir_all(unread).unwrap();
    let text = other.run(&home, &sync(&url));
    assert!(
        text.stdout.contains(&format!("1 session, 1 message, 0 events ({count} unchanged) to {url}")),
        "{}",
        text.stdout
    );
    assert_eq!(other.sessions(), count + 1);
    drop(other.home);
}

#[test]
fn what_was_deleted_there_is_sent_again_on_request() {
    let (home, other) = (Home::with_samples(), Other::start());
    let url = other.url();
    assert_eq!(other.run(&home, &sync(&url)).code, 0);
    let count = other.sessions();
    let local = home.json(&["sessions", "--limit", "1", "--source", "amplifier", "--no-refresh"]);
    let id = local["sessions"][0]["session_id"].as_str().unwrap();
    let token = other.home.ok(&["token", "create", "--rights", "read,write,delete"]).trim().to_owned();
    let deleted = home.call(&["--store", &url, "delete", id, "--yes"]).env(TOKEN, &token).run();
    assert_eq!(deleted.code, 0, "{}", deleted.stderr);
    let hint = format!("sync --include-deleted --push {url}` sends deleted sessions again");
    assert!(deleted.stderr.contains(&hint), "{}", deleted.stderr);
    let again = other.run(&home, &sync(&url));
    assert!(again.stderr.contains("sync --include-deleted --push"), "{}", again.stderr);
    assert_eq!(other.sessions(), count - 1);
    let again = other.run(&home, &[&sync(&url)[..], &["--include-deleted"]].concat());
    assert_eq!((again.code, other.sessions()), (0, count), "{}", again.stderr);
}

#[test]
fn the_configuration_names_servers_and_leaves_folders_out() {
    let (home, other) = (Home::with_samples(), Other::start());
    home.configure(&format!("[push]\nto = [\"{}\"]\nsources = [\"amplifier-agent\"]\n", other.url()));
    let folder = home.path().join(".config/amplifier-sessions");
    let credentials = folder.join("credentials.toml");
    fs::write(&credentials, format!("[\"{}\"]\ntoken = \"{}\"\n", other.server.address, other.token))
        .unwrap();
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = home.run(&["sync", "--embedding", "none"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("other users can read the tokens") && refused.stderr.contains("chmod 600")
    );
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).unwrap();
    home.ok(&["sync", "--embedding", "none"]);
    assert_eq!(other.sessions(), 0);
    home.configure(&format!("[push]\nto = [\"{}\"]\nexclude = [\"private\"]\n", other.url()));
    let refused = home.run(&["sync", "--embedding", "none"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("push.exclude must be an absolute folder"), "{}", refused.stderr);
    home.configure(&format!("[push]\nto = [\"{}\"]\nexclude = [\"/srv/private\"]\n", other.url()));
    home.write_session("-srv-private", "private-1", "{\"role\":\"user\",\"content\":\"a secret\"}\n");
    let report = home.json(&["sync", "--embedding", "none"]);
    assert!(report["push"][0]["excluded"].as_u64().unwrap() > 0, "{report}");
    assert!(other.sessions() > 0);
    assert_eq!(other.server.get("/v1/sessions/private-1", &other.token).0, 404);
}

#[test]
fn a_server_that_is_not_there_does_not_keep_the_others_from_their_sessions() {
    let (home, other) = (Home::with_samples(), Other::start());
    let none = home.run(&sync("http://127.0.0.1:9"));
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains(TOKEN) && none.stderr.contains("credentials.toml"), "{}", none.stderr);
    let wrong = home.call(&sync(&other.url())).env(TOKEN, "ams_wrong").run();
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("the server does not know the token"), "{}", wrong.stderr);
    // The same host, so the token belongs to both.
    let gone = format!("{}/nothing/here", other.url());
    let ran = other.run(&home, &[&sync(&gone)[..], &["--push", &other.url()]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("a server did not get all sessions"), "{}", ran.stderr);
    assert!(other.sessions() > 0);
    let insecure = other.run(&home, &sync("http://192.0.2.1"));
    assert!(insecure.code == 1 && insecure.stderr.contains("--allow-http"), "{}", insecure.stderr);
    assert_eq!(home.run(&sync("example.com")).code, 2);
}

#[test]
fn sessions_come_back_from_a_server() {
    let (home, other) = (Home::with_samples(), Other::start());
    let url = other.url();
    assert_eq!(other.run(&home, &sync(&url)).code, 0);
    let second = Home::new();
    let store = format!("sqlite:{}", second.path().join("second.sqlite").display());
    let copy = ["copy", "--from", &url, "--to", &store, "--embedding", "none"];
    let copied = other.run(&second, &[&copy[..], &["--json"]].concat());
    assert_eq!(copied.code, 0, "{}", copied.stderr);
    let count = other.sessions();
    assert_eq!((&copied.json()["sessions"], &copied.json()["from"]), (&json!(count), &json!(url)));
    let again = other.run(&second, &copy);
    assert!(again.stdout.contains(&format!("0 copied, {count} already there")), "{}", again.stdout);
    assert_eq!(other.run(&second, &[&copy[..], &["--replace"]].concat()).code, 2);
    let to = second.path().join("restored");
    let restored = other.run(&second, &["restore", "--store", &url, "--to", to.to_str().unwrap()]);
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    let (first, _) = transcript_of(&home);
    let relative = first.strip_prefix(home.amplifier()).unwrap();
    assert_eq!(fs::read(to.join(relative)).unwrap(), fs::read(&first).unwrap());
}

/// The first transcript of Amplifier in a home, and its session.
fn transcript_of(home: &Home) -> (std::path::PathBuf, String) {
    let local = home.json(&["sessions", "--limit", "1000", "--source", "amplifier", "--no-refresh"]);
    let folder = home.amplifier().join("projects");
    local["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|session| {
            let (project, id) = (session["project_slug"].as_str()?, session["session_id"].as_str()?);
            let file = folder.join(project).join("sessions").join(id).join("transcript.jsonl");
            file.exists().then(|| (file, id.to_owned()))
        })
        .unwrap()
}

#[test]
fn a_watcher_sends_lines_while_they_are_written() {
    let (home, other) = (Home::with_samples(), Other::start());
    let (url, errors) = (other.url(), home.path().join("messages"));
    let mut process = home
        .process(&["watch", "--embedding", "none", "--push", &url])
        .env(TOKEN, &other.token)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let said = |text: &str| fs::read_to_string(&errors).unwrap().contains(text);
    let wait_for = |what: &str, is_true: &dyn Fn() -> bool| {
        for _ in 0..600 {
            if is_true() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what}: {}", fs::read_to_string(&errors).unwrap());
    };
    wait_for("the first push", &|| said("pushed: "));
    home.write_session("-srv-new", "new-1", "{\"role\":\"user\",\"content\":\"a new question\"}\n");
    wait_for("the new session", &|| other.server.get("/v1/sessions/new-1", &other.token).0 == 200);
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
