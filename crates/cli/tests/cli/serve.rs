//! `serve` and `token`, with the program as a process where it listens.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::Home;

/// A server that runs.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(home: &Home, options: &[&str]) -> Self {
        Self::start_at(home, "127.0.0.1:0", options)
    }

    /// Starts it at an address, with a port that must be free.
    pub(crate) fn start_at(home: &Home, address: &str, options: &[&str]) -> Self {
        Self::run(home, &[&["serve", "--listen", address, "--embedding", "none"][..], options].concat())
    }

    /// A server that makes vectors of queries with the compiled-in model.
    pub(crate) fn with_model(home: &Home) -> Self {
        Self::run(home, &["serve", "--listen", "127.0.0.1:0", "--embedding", "local"])
    }

    fn run(home: &Home, arguments: &[&str]) -> Self {
        let mut process =
            home.process(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { process, address }
    }

    /// The status and the body of an answer.
    pub(crate) fn get(&self, path: &str, token: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Ends it with a signal. Returns the exit code, and what it has printed since.
    fn end(mut self) -> (i32, String) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        let code = self.process.wait().unwrap().code().unwrap();
        let mut rest = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        (code, rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_first_start_makes_a_token_for_the_user() {
    let home = Home::without_vectors();
    let server = Server::start(&home, &[]);
    let path = home.amplifier().join("server-token");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path).unwrap();
    let (status, body) = server.get("/v1/sessions?limit=2", token.trim());
    let listed: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, listed["sessions"].as_array().unwrap().len()), (200, 2));
    // The command line prints the same.
    let printed = home.json(&["sessions", "--limit", "2", "--no-refresh"]);
    assert_eq!(listed["sessions"], printed["sessions"]);
    assert_eq!(server.end(), (0, String::new()));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let home = Home::new();
    assert_eq!(home.run(&["token", "list"]).code, 3);
    let create = [
        "token",
        "create",
        "--user",
        "ben",
        "--reach",
        "visible",
        "--team",
        "web",
        "--expires",
        "90d",
        "--name",
        "ci",
        "--quota-sessions",
        "50",
    ];
    let made = home.ok(&create);
    let token = made.trim();
    assert!(token.starts_with("ams_") && token.len() == 65 && made.lines().count() == 1, "{made}");
    let listed = home.json(&["token", "list"]);
    let one = &listed["tokens"][0];
    assert_eq!(
        (&one["user_id"], &one["reach"], &one["teams"]),
        (&json!("ben"), &json!("visible"), &json!(["web"]))
    );
    assert_eq!((&one["rights"], &one["expired"]), (&json!(["read", "write"]), &json!(false)));
    assert_eq!((&one["quota_sessions"], one.get("quota_rows")), (&json!(50), None));
    assert!(!listed.to_string().contains(token));
    let id = one["id"].as_str().unwrap();
    assert!(home.ok(&["token", "list"]).starts_with(&format!("{id}\tben\tvisible\tread,write\t")));
    home.ok(&["token", "revoke", id]);
    assert_eq!(home.run(&["token", "revoke", id]).code, 3);
    assert_eq!(home.run(&["token", "create", "--expires", "yesterday"]).code, 2);
}

#[test]
fn a_revoked_token_ends_while_the_server_runs() {
    let home = Home::without_vectors();
    let token = home.ok(&["token", "create"]);
    let token = token.trim();
    let server = Server::start(&home, &[]);
    assert_eq!(server.get("/v1/me", token).0, 200);
    let id = home.json(&["token", "list"])["tokens"][0]["id"].as_str().unwrap().to_owned();
    home.ok(&["token", "revoke", &id]);
    // Each answer is a request; the server looks at its file once a second.
    while server.get("/v1/me", token).0 != 401 {}
    server.end();
}

#[test]
fn other_machines_need_a_name_and_tls() {
    let home = Home::without_vectors();
    let ran = home.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("--public-url"), "{}", ran.stderr);
    let named = ["serve", "--listen", "0.0.0.0:0", "--public-url", "https://sessions.example.com"];
    assert!(home.run(&named).stderr.contains("--tls-cert"));
    assert_eq!(home.run(&["serve", "--public-url", "http://sessions.example.com"]).code, 2);
    // Nobody is told an address that does not answer.
    let without =
        home.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "none.pem", "--tls-key", "none.pem"]);
    assert_eq!((without.code, without.stdout.as_str()), (1, ""), "{}", without.stderr);
}

#[test]
fn metrics_are_only_for_this_machine() {
    let home = Home::without_vectors();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:9464"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("127.0.0.1:9464"), "{}", ran.stderr);
}

#[test]
fn a_server_that_watches_stores_what_is_written() {
    let home = Home::new();
    let line = "{\"role\":\"user\",\"content\":\"why is the cart empty\"}\n";
    home.write_session("-home-ana-shop", "watched-1", line);
    let server = Server::start(&home, &["--watch"]);
    let token = std::fs::read_to_string(home.amplifier().join("server-token")).unwrap();
    let get = |path: &str| server.get(path, token.trim());
    let is_stored = || get("/v1/sessions/watched-1").0 == 200;
    let begun: Value = serde_json::from_str(&get("/v1/changes").1).unwrap();
    if !is_stored() {
        get(&format!("/v1/changes?after={}&wait=60", begun["cursor"].as_str().unwrap()));
    }
    assert!(is_stored());
    let (status, found) = get("/v1/search?q=cart");
    assert_eq!((status, found.contains("why is the cart empty")), (200, true));
    // It ends with the server.
    assert_eq!(server.end(), (0, String::new()));
}
