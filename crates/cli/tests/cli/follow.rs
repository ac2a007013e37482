//! `copy --from https://… --follow`.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    push::{Other, TOKEN, sync},
    serve::Server,
    support::Home,
};

/// A process that follows a server.
struct Following {
    process: Child,
    events: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(home: &Home, other: &Other, options: &[&str]) -> Self {
        let (url, store) = (other.url(), store_of(home));
        let copy = ["copy", "--from", &url, "--to", &store, "--embedding", "none", "--follow", "--json"];
        let mut process = home
            .process(&[&copy[..], options].concat())
            .env(TOKEN, &other.token)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, events }
    }

    /// The next event of this kind.
    fn next(&mut self, kind: &str) -> Value {
        loop {
            let line = self.events.next().unwrap_or_else(|| panic!("it has ended before {kind}")).unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            assert!(event["time"].is_string() && event["from"].is_string(), "{event}");
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Ends it with a signal.
    fn stop(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.next("stopped");
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
    }
}

fn store_of(home: &Home) -> String {
    format!("sqlite:{}", home.path().join("second.sqlite").display())
}

/// The sessions of the followed store, and their numbers of messages and events.
fn sessions(home: &Home) -> Vec<(String, u64, u64)> {
    let store = store_of(home);
    let listed = home.json(&["sessions", "--limit", "1000", "--store", &store, "--no-refresh"]);
    let mut sessions: Vec<_> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| {
            let count = |field: &str| session[field].as_u64().unwrap();
            let id = session["session_id"].as_str().unwrap().to_owned();
            (id, count("message_count"), count("event_count"))
        })
        .collect();
    sessions.sort();
    sessions
}

fn write(home: &Home, lines: usize) {
    let line = |n| format!("{{\"role\":\"user\",\"content\":\"question {n}\"}}\n");
    home.write_session("-srv-new", "new-1", &(0..lines).map(line).collect::<String>());
}

fn push(home: &Home, other: &Other) {
    let pushed = other.run(home, &sync(&other.url()));
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
}

#[test]
fn a_second_machine_follows_a_server() {
    let (home, other, second) = (Home::with_samples(), Other::start(), Home::new());
    push(&home, &other);
    let mut following = Following::start(&second, &other, &[]);
    let first = following.next("pulled");
    assert_eq!((&first["complete"], &first["sessions"]), (&json!(true), &json!(other.sessions())), "{first}");
    // Only what is new.
    write(&home, 3);
    push(&home, &other);
    let new = following.next("pulled");
    assert_eq!(
        (&new["complete"], &new["sessions"], &new["messages"]),
        (&json!(false), &json!(1), &json!(3)),
        "{new}"
    );
    write(&home, 4);
    push(&home, &other);
    let appended = following.next("pulled");
    assert_eq!((&appended["sessions"], &appended["messages"]), (&json!(1), &json!(1)), "{appended}");
    // Tags travel both ways.
    other.home.ok(&["tag", "new-1", "there"]);
    following.next("pulled");
    let store = store_of(&second);
    second.ok(&["tag", "new-1", "here", "--store", &store]);
    let root = second.path().join("empty");
    std::fs::create_dir_all(root.join("projects")).unwrap();
    let root = root.to_str().unwrap();
    let pushed =
        other.run(&second, &[&sync(&other.url())[..], &["--root", root, "--store", &store]].concat());
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    let shown: Value = serde_json::from_str(&other.server.get("/v1/sessions/new-1", &other.token).1).unwrap();
    assert_eq!(shown["session"]["tags"], json!(["there", "here"]), "{shown}");
    // It goes on where it was.
    following.stop(Signal::INT);
    write(&home, 5);
    push(&home, &other);
    let mut following = Following::start(&second, &other, &[]);
    let next = following.next("pulled");
    assert_eq!((&next["complete"], &next["messages"]), (&json!(false), &json!(1)), "{next}");
    // A removed session is hidden.
    other.home.ok(&["delete", "new-1", "--yes"]);
    assert_eq!(following.next("pulled")["hidden"], json!(["new-1"]));
    let here = sessions(&second);
    assert_eq!(here.iter().find(|(id, ..)| id == "new-1").unwrap().1, 0);
    following.stop(Signal::TERM);
}

#[test]
fn removed_sessions_are_deleted_on_request_and_a_server_that_vanishes_comes_back() {
    let (home, mut other, second) = (Home::with_samples(), Other::start(), Home::new());
    write(&home, 2);
    push(&home, &other);
    let mut following = Following::start(&second, &other, &["--mirror-deletes"]);
    following.next("pulled");
    let address = other.server.address.clone();
    drop(std::mem::replace(&mut other.server, Server::start(&Home::new(), &[])));
    let down = following.next("down");
    assert!(
        down["retry_seconds"].is_number() && down["error"].as_str().unwrap().contains(&address),
        "{down}"
    );
    other.home.ok(&["delete", "new-1", "--yes"]);
    other.server = Server::start_at(&other.home, &address, &[]);
    following.next("back");
    assert_eq!(following.next("pulled")["removed"], json!(["new-1"]));
    assert!(sessions(&second).iter().all(|(id, ..)| id != "new-1"));
    following.stop(Signal::TERM);
}

#[test]
fn what_can_not_be_followed_is_refused() {
    let (home, other) = (Home::new(), Other::start());
    let store = store_of(&home);
    let local = home.run(&["copy", "--to", &store, "--follow"]);
    assert!(local.code == 2 && local.stderr.contains("needs a server"), "{}", local.stderr);
    assert_eq!(home.run(&["copy", "--to", &store, "--mirror-deletes"]).code, 2);
    let url = other.url();
    let wrong = home.call(&["copy", "--from", &url, "--to", &store, "--follow"]).env(TOKEN, "ams_x").run();
    assert!(wrong.code == 1 && wrong.stderr.contains("does not know the token"), "{}", wrong.stderr);
}
