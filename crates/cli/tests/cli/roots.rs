//! The folders with sessions that commands read.

use std::{fs, path::Path};

use amplifier_session_testkit::AmplifierHome;
use serde_json::Value;

use crate::{
    call::Ran,
    support::{Home, copy},
};

const SYNC: [&str; 3] = ["sync", "--embedding", "none"];
const TRANSCRIPT: &str = "{\"role\":\"user\",\"content\":\"Which flour is left?\"}\n";

/// Puts the session `chat-42` of Amplifier's agent into this folder.
fn put_agent(folder: &Path) {
    copy(AmplifierHome::of_fixture("agent").unwrap().path(), folder);
}

/// Home folders with a session of Amplifier and one of its agent.
fn both() -> Home {
    let home = Home::new();
    home.write_session("-home-mira-bakery", "own", TRANSCRIPT);
    put_agent(&home.path().join(".amplifier-agent"));
    home
}

fn run_with(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    variables.iter().fold(home.call(arguments), |call, (name, value)| call.env(name, value)).run()
}

/// The ids of the stored sessions.
fn sessions(home: &Home, arguments: &[&str]) -> Vec<String> {
    let found = home.json(&[&["sessions", "--no-refresh"], arguments].concat());
    let mut ids: Vec<String> = found["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["session_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn of_status(home: &Home) -> Vec<String> {
    let status = home.json(&["watch", "status"]);
    let roots = status["roots"].as_array().unwrap();
    let folder = |root: &Value| root["root"].as_str().unwrap().to_owned();
    let backlog = |root: &Value| root["backlog"]["sessions"].clone();
    let prefix = format!("{}/", home.path().display());
    roots
        .iter()
        .map(|root| format!("{} {}", folder(root).trim_start_matches(&prefix), backlog(root)))
        .collect()
}

#[test]
fn the_folders_of_amplifier_and_of_its_agent_are_read() {
    let home = both();
    home.ok(&SYNC);
    assert_eq!(sessions(&home, &[]), ["chat-42", "own"]);
    assert_eq!(sessions(&home, &["--source", "amplifier-agent"]), ["chat-42"]);
    assert_eq!(sessions(&home, &["--source", "amplifier"]), ["own"]);
    let wrong = home.run(&["sessions", "--source", "claude"]);
    assert_eq!(wrong.code, 2, "{}", wrong.all());
    assert!(wrong.stderr.contains("amplifier, amplifier-agent"), "{}", wrong.stderr);
    let shown = home.ok(&["show", "chat-42"]);
    assert!(shown.contains("source") && shown.contains("amplifier-agent"), "{shown}");
    assert_eq!(home.json(&["show", "own"])["session"]["source"], "amplifier");

    assert_eq!(of_status(&home), [".amplifier 0", ".amplifier-agent 0"]);
    let verified = home.json(&["verify"]);
    assert_eq!((&verified["on_disk"], &verified["difference_count"]), (&2.into(), &0.into()));
    let doctor = home.json(&["doctor", "--embedding", "none"]);
    let checks = doctor["checks"].as_array().unwrap();
    assert_eq!(checks.iter().filter(|check| check["name"] == "root" && check["status"] == "ok").count(), 2);

    // A search reads what has changed in either.
    let agent =
        home.path().join(".amplifier-agent/state/workspaces/-srv-bakery/sessions/chat-42/transcript.jsonl");
    let more = fs::read_to_string(&agent).unwrap() + "\n{\"role\":\"user\",\"content\":\"zwieback\"}\n";
    fs::write(agent, more).unwrap();
    assert_eq!(of_status(&home), [".amplifier 0", ".amplifier-agent 1"]);
    let found = home.json(&["search", "zwieback", "--embedding", "none"]);
    assert_eq!(found["results"][0]["session_id"], "chat-42", "{found}");

    let to = home.path().join("restored");
    home.ok(&["restore", "--to", to.to_str().unwrap()]);
    for folder in ["projects/-home-mira-bakery/sessions/own", "state/workspaces/-srv-bakery/sessions/chat-42"]
    {
        assert!(to.join(folder).join("transcript.jsonl").is_file(), "{folder}");
    }
}

#[test]
fn variables_and_the_configuration_name_other_folders() {
    let home = both();
    fs::rename(home.amplifier().join("projects"), home.path().join("projects")).unwrap();
    fs::rename(home.path().join(".amplifier-agent"), home.path().join("agent")).unwrap();
    let ran = home.run(&SYNC);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(
        ran.stderr.contains("no folder `projects` in") && ran.stderr.contains(".amplifier"),
        "{}",
        ran.stderr
    );

    let own = home.path().to_str().unwrap();
    let agent = home.path().join("agent");
    let ran = run_with(&home, &SYNC, &[("AMPLIFIER_AGENT_HOME", agent.to_str().unwrap())]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(sessions(&home, &[]), ["chat-42"]);
    let ran = run_with(&home, &SYNC, &[("AMPLIFIER_HOME", own)]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert_eq!(sessions(&home, &[]), ["chat-42", "own"]);

    home.configure(
        "root = [\"~\", \"~/agent/state\", \"~/missing\"]\n".replace("\"~\"", &format!("{own:?}")).as_str(),
    );
    let ran = home.run_json(&[&SYNC[..], &["--store", "sqlite:~/other.sqlite"]].concat());
    assert_eq!((ran.code, &ran.json()["sessions"]["new"]), (0, &2.into()), "{}", ran.all());
    assert!(ran.stderr.contains("missing: it is left out"), "{}", ran.stderr);
    assert_eq!(of_status(&home).len(), 3);
}

#[test]
fn only_named_roots_are_read() {
    let home = both();
    let (third, agent) = (home.path().join("third"), home.path().join(".amplifier-agent"));
    let folder = third.join("projects/p/sessions/third");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("transcript.jsonl"), TRANSCRIPT).unwrap();
    let named = ["--root", third.to_str().unwrap(), "--root", agent.to_str().unwrap()];
    home.ok(&[&SYNC[..], &named].concat());
    assert_eq!(sessions(&home, &[]), ["chat-42", "third"]);
    let verified = home.json(&[&["verify"], &named[..]].concat());
    assert_eq!((&verified["on_disk"], &verified["difference_count"]), (&2.into(), &0.into()));
    let missing = home.run(&[&SYNC[..], &named, &["--root", "/nowhere"]].concat());
    assert_eq!(missing.code, 1, "{}", missing.all());
    assert!(missing.stderr.contains("no folder `projects` in /nowhere"), "{}", missing.stderr);
}

#[test]
fn captures_that_were_moved_are_read() {
    let home = both();
    let captures = home.path().join("captures");
    let (from, to) = (home.path().join(".amplifier-agent/state/workspaces"), "-srv-bakery/sessions/chat-42");
    fs::create_dir_all(captures.join(to)).unwrap();
    let capture = "context-intelligence";
    fs::rename(from.join(to).join(capture), captures.join(to).join(capture)).unwrap();
    let variables = [("AMPLIFIER_CONTEXT_INTELLIGENCE_BASE_PATH", captures.to_str().unwrap())];
    let ran = run_with(&home, &SYNC, &variables);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let session = home.json(&["show", "chat-42"])["session"].clone();
    assert_eq!((&session["event_count"], &session["bundle"]), (&20.into(), &"foundation".into()));
    let ran = run_with(&home, &["doctor"], &[(variables[0].0, "/nowhere")]);
    assert!(ran.stdout.contains("there is no folder /nowhere"), "{}", ran.all());
}

#[test]
fn a_session_that_was_moved_shows_where() {
    let home = Home::new();
    let folder = home.write_session("p", "gone", TRANSCRIPT);
    let fence = r#"{"version":1,"destination_host":"desk","role":"source","phase":"committed"}"#;
    fs::write(folder.join("transfer-fence.json"), fence).unwrap();
    home.ok(&SYNC);
    assert_eq!(home.json(&["sessions"])["sessions"][0]["moved_to"], "desk");
    let shown = home.ok(&["show", "gone"]);
    assert!(shown.contains("to desk, where it goes on"), "{shown}");
}
