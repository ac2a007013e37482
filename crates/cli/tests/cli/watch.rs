//! `watch` in a process of its own, `status`, and `service`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::Value;

use crate::{output::text, support::Home};

const LINE: &str = "{\"role\":\"user\",\"content\":\"Where is the heliograph?\"}\n";

/// A process that is killed if the test fails.
struct Watch {
    process: Child,
    log: BufReader<ChildStderr>,
}

impl Watch {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let arguments = [&["watch", "--embedding", "none", "--log-format", "json"], arguments].concat();
        let mut process = home.process(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        Self { process, log }
    }

    /// Waits for a message that satisfies the condition.
    fn until(&mut self, message: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let mut passed = String::new();
        loop {
            let mut line = String::new();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "it ended after {passed}");
            let entry: Value = serde_json::from_str(&line).unwrap();
            if entry["message"] == message && is_expected(&entry) {
                return entry;
            }
            passed += &line;
        }
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Tells it to stop, and checks that it ends well.
    fn stop(mut self, signal: &str) {
        self.signal(signal);
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0), "{rest}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_complete(entry: &Value) -> bool {
    entry["complete"] == true
}

#[test]
fn help() {
    text("help_watch", &["watch", "--help"]);
    text("help_status", &["watch", "status", "--help"]);
    text("help_service_install", &["watch", "service", "install", "--help"]);
}

#[test]
fn invalid_options_are_usage_errors() {
    let home = Home::new();
    for arguments in [&["--metrics", "0.0.0.0:9187"][..], &["--poll", "0"], &["--also-store", "nothing:x"]] {
        let ran = home.run(&[&["watch"], arguments].concat());
        assert_eq!(ran.code, 2, "{}", ran.all());
    }
}

#[cfg(unix)]
#[test]
fn a_change_is_stored_while_it_runs() {
    let home = Home::with_samples();
    let other = home.path().join("other.sqlite");
    let other = format!("sqlite:{}", other.display());
    let mut watch = Watch::start(&home, &["--also-store", &other]);
    for _ in 0..2 {
        assert_eq!(watch.until("synced", is_complete)["failed"], 0);
    }
    home.write_session("shop", "new", LINE);
    for _ in 0..2 {
        assert_eq!(watch.until("synced", |entry| entry["messages"] == 1)["sessions"], 1);
    }
    let found = ["search", "heliograph", "--no-refresh", "--embedding", "none"];
    for store in [&[][..], &["--store", &other]] {
        let found = home.json(&[&found, store].concat());
        assert_eq!(found["results"][0]["session_id"], "new", "{found}");
    }
    watch.stop("TERM");
}

#[cfg(all(unix, feature = "duckdb-system"))]
#[test]
fn several_roots_are_stored_in_sqlite_and_duckdb() {
    let home = Home::with_samples();
    let write = |root: &str, session: &str| {
        let folder = home.path().join(root).join("projects/shop/sessions").join(session);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("transcript.jsonl"), LINE).unwrap();
    };
    write("second", "before");
    let roots = [".amplifier", "second"].map(|root| home.path().join(root).display().to_string());
    let duckdb = format!("duckdb:{}", home.path().join("other.duckdb").display());
    let mut watch = Watch::start(&home, &["--root", &roots[0], "--root", &roots[1], "--also-store", &duckdb]);
    // Both roots, for each store.
    for _ in 0..4 {
        assert_eq!(watch.until("synced", is_complete)["failed"], 0);
    }
    write(".amplifier", "first");
    write("second", "second");
    for _ in 0..4 {
        assert_eq!(watch.until("synced", |entry| entry["messages"] == 1)["sessions"], 1);
    }
    watch.stop("TERM");
    for store in [&[][..], &["--store", &duckdb]] {
        let arguments = ["sessions", "--no-refresh", "--project", "shop", "--limit", "1000"];
        let listed = home.json(&[&arguments, store].concat());
        let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|of| &of["session_id"]).collect();
        for id in ["before", "first", "second"] {
            assert!(ids.contains(&&Value::from(id)), "{id} is not in {ids:?}");
        }
        let found =
            home.json(&[&["search", "heliograph", "--no-refresh", "--embedding", "none"], store].concat());
        // All have the same text, so they are one result.
        assert_eq!(found["results"][0]["also_in"].as_array().unwrap().len(), 2, "{found}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_watch_is_refused_and_searches_rely_on_the_first() {
    let home = Home::with_samples();
    let mut watch = Watch::start(&home, &[]);
    watch.until("synced", is_complete);
    let second = home.run(&["watch", "--embedding", "none"]);
    assert_eq!(second.code, 1, "{}", second.all());
    let expected = format!("process {} on ", watch.process.id());
    assert!(second.stderr.contains(&expected) && second.stderr.contains("hint: "), "{}", second.all());
    let status = home.json(&["watch", "status"]);
    let root = &status["roots"][0];
    assert_eq!((&root["watching"], &root["backlog"]["sessions"]), (&Value::from(true), &Value::from(0)));
    assert_eq!(root["watcher"]["process"], watch.process.id());
    // As long as it counts as running, other commands do not read the folders themselves.
    let count = || home.json(&["sessions", "--limit", "1000"])["sessions"].as_array().unwrap().len();
    let before = count();
    watch.signal("STOP");
    home.write_session("shop", "new", LINE);
    assert_eq!(count(), before);
    let status = home.json(&["watch", "status"]);
    assert_eq!(status["roots"][0]["backlog"]["sessions"], 1);
    watch.signal("CONT");
    watch.until("synced", |entry| entry["messages"] == 1);
    assert_eq!(count(), before + 1);
    watch.stop("INT");
    assert_eq!(home.json(&["watch", "status"])["roots"][0]["watching"], false);
    home.write_session("shop", "newer", LINE);
    assert_eq!(count(), before + 2);
}

#[cfg(unix)]
#[test]
fn a_killed_watch_does_not_keep_another_from_starting() {
    let home = Home::with_samples();
    for _ in 0..2 {
        let mut watch = Watch::start(&home, &[]);
        watch.until("synced", is_complete);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_stops() {
    let home = Home::with_samples();
    let path = home.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    let mut command = home.process(&["watch", "--embedding", "none"]);
    let mut process = command.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().unwrap();
    let received = || {
        let mut buffer = [0; 100];
        let read = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    };
    assert_eq!(received(), "READY=1");
    let kill = format!("kill -TERM {}", process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(received(), "STOPPING=1");
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn messages_have_the_time() {
    let home = Home::with_samples();
    let mut command = home.process(&["watch", "--embedding", "none"]);
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let shape: String = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let starts = ["watching: ", "synced: "].map(|label| format!("0000-00-00 00:00:00 {label}"));
    assert!(starts.iter().any(|start| shape.starts_with(start)), "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_does_not_depend_on_the_current_folder() {
    let home = Home::new();
    let folder = home.path().join("current");
    fs::create_dir(&folder).unwrap();
    home.configure("root = \"~/there\"\n");
    let options =
        ["watch", "service", "install", "--print", "--root", "logs", "--also-store", "sqlite:b.sqlite"];
    let mut command = home.process(&options);
    command.current_dir(&folder).env("AMPLIFIER_SESSIONS_STORE", "sqlite:a.sqlite");
    let unit = crate::call::Ran::from(command.output().unwrap()).stdout;
    let path = |name: &str| folder.join(name).display().to_string();
    assert!(!unit.contains("WorkingDirectory"), "{unit}");
    assert!(unit.contains(&format!("AMPLIFIER_SESSIONS_STORE=sqlite:{}\"", path("a.sqlite"))), "{unit}");
    let command =
        format!("\"--root\" \"{}\" \"--also-store\" \"sqlite:{}\"\n", path("logs"), path("b.sqlite"));
    assert!(unit.contains(&command), "{unit}");
    // The configuration file may have a relative path, too.
    home.configure("store = \"sqlite:c.sqlite\"\n");
    let mut command = home.process(&["watch", "service", "install", "--print"]);
    let unit = crate::call::Ran::from(command.current_dir(&folder).output().unwrap()).stdout;
    assert!(unit.contains(&format!("\"watch\" \"--store\" \"sqlite:{}\"\n", path("c.sqlite"))), "{unit}");
}

/// With a `systemctl` that answers what it is told.
#[cfg(target_os = "linux")]
#[test]
fn an_installed_service_is_private_and_has_a_status() {
    use std::os::unix::fs::PermissionsExt as _;

    use crate::call::Ran;

    let home = Home::new();
    let programs = home.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let systemctl = |answer: &str| {
        let file = programs.join("systemctl");
        fs::write(&file, format!("#!/bin/sh\n[ \"$2\" = is-active ] && echo {answer}\nexit 0\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let run =
        |arguments: &[&str]| Ran::from(home.process(arguments).env("PATH", &programs).output().unwrap());
    assert!(run(&["watch", "service", "status"]).stderr.contains("not installed"));
    systemctl("active");
    let unit = home.path().join(".config/systemd/user/amplifier-sessions-watch.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "from an earlier version").unwrap();
    fs::set_permissions(&unit, fs::Permissions::from_mode(0o644)).unwrap();
    let installed = run(&["watch", "service", "install"]);
    assert_eq!(installed.code, 0, "{}", installed.all());
    assert!(installed.stderr.contains("loginctl enable-linger"), "{}", installed.all());
    assert_eq!(fs::metadata(&unit).unwrap().permissions().mode() & 0o777, 0o600);
    let status = run(&["watch", "service", "status"]);
    assert_eq!(status.code, 0, "{}", status.all());
    assert!(status.stdout.contains("active") && status.stdout.contains("journalctl"), "{}", status.all());
    systemctl("failed");
    let status = run(&["watch", "service", "status", "--json"]);
    assert_eq!((status.code, &status.json()["state"]), (1, &"failed".into()), "{}", status.all());
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_runs_watch_with_the_same_options() {
    let home = Home::new();
    let arguments = [
        "watch",
        "service",
        "install",
        "--root",
        "/a b",
        "--print",
        "--store",
        "sqlite:/x.sqlite",
        "--poll",
        "5",
    ];
    let unit = home.ok(&arguments);
    let command = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let expected = r#"" "watch" "--root" "/a b" "--store" "sqlite:/x.sqlite" "--poll" "5""#;
    assert!(command.ends_with(expected), "{unit}");
    assert!(unit.contains("Type=notify\n"), "{unit}");
    assert!(!home.path().join(".config").exists());
    // Nothing is installed.
    let ran = home.run(&["watch", "service", "uninstall"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
}

#[test]
fn status_without_a_watcher() {
    let home = Home::without_vectors();
    let status = home.json(&["watch", "status"]);
    let root = &status["roots"][0];
    assert_eq!((&root["watching"], &root["watcher"]), (&Value::from(false), &Value::Null));
    assert_eq!((&root["backlog"]["sessions"], &root["lag_seconds"]), (&Value::from(0), &Value::from(0.0)));
    assert!(root["last_sync"].is_string());
    fs::remove_dir_all(home.amplifier().join("projects")).unwrap();
    let shown = home.ok(&["watch", "status"]);
    assert!(shown.contains("there is no folder `projects`") && !shown.contains("lag"), "{shown}");
    assert!(home.json(&["watch", "status"])["roots"][0]["lag_seconds"].is_null());
}
