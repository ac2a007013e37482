//! `mcp --store http://…`: an agent gets from a server what it gets from a store.

use std::{fs, os::unix::fs::PermissionsExt as _};

use amplifier_session_testkit::hostile::{HOSTILE_WORD, hostile_transcript, leaked_key};
use serde_json::{Value, json};

use crate::{
    mcp::{Agent, by_words},
    remote::{TOKEN, Twins},
    serve::Server,
    support::Home,
};

/// A call of each tool in its forms, also of wrong ones.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("search", json!({"query": "how do we keep two workers from taking the same row"})),
        ("search", json!({"query": "row", "mode": "full_text", "limit": 2, "format": "json"})),
        ("search", json!({"query": "deadlock", "unit": "turn"})),
        ("search", json!({"query": "row", "session": "c1d84e7a"})),
        ("search", json!({"query": "row", "since": "no date"})),
        ("read", json!({"address": "c1d84e7a#12"})),
        ("read", json!({"address": "c1d84e7a", "from": "end", "budget": 400})),
        ("read", json!({"address": "c1d84e7a", "from": 3, "format": "json"})),
        ("read", json!({"address": "c1d84e7a", "turn": 2})),
        ("read", json!({"address": "no-such"})),
        ("read", json!({"address": "c1d84e7a_evt_2"})),
        ("list", json!({"limit": 3})),
        ("list", json!({"project": "no-such"})),
        ("events", json!({"level": "error"})),
        ("statistics", json!({"by": "project"})),
    ]
}

#[test]
fn an_agent_gets_from_a_server_what_it_gets_from_the_store() {
    let twins = Twins::new();
    let agent = |store: &str| {
        let call = twins.home.call(&["mcp", "--store", store]).env("TZ", "Europe/Berlin");
        Agent::initialized(call.env(TOKEN, &twins.token).env("AMPLIFIER_SESSION_ID", "7f3c9a52"))
    };
    let (mut here, mut there) = (agent(&twins.file), agent(&twins.url()));
    for (tool, arguments) in calls() {
        let (here, there) = (here.call(tool, arguments.clone()), there.call(tool, arguments.clone()));
        assert_eq!(here, there, "{tool} {arguments}");
    }
    let (code, rest, stderr) = there.end();
    assert_eq!((code, rest.as_str(), stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn secrets_are_masked_for_agents_in_the_users_own_sessions_too() {
    let home = Home::new();
    let text: String = hostile_transcript().iter().map(|line| line.to_text().into_owned() + "\n").collect();
    home.write_session("-home-dana-evil", "66666666-0000-4000-8000-000000000001", &text);
    home.ok(&["sync", "--embedding", "none"]);
    let server = Server::start(&home, &[]);
    let url = format!("http://{}", server.address);
    let token = fs::read_to_string(home.amplifier().join("server-token")).unwrap();
    let shown = home.call(&["show", "66666666", "--full", "--store", &url]).env(TOKEN, &token).run();
    assert!(shown.stdout.contains(&leaked_key()), "{}", shown.all());
    let mut agent = Agent::initialized(home.call(&["mcp", "--store", &url]).env(TOKEN, &token));
    let found = agent.text("search", by_words(HOSTILE_WORD));
    let read = agent.text("read", json!({"address": "66666666", "budget": 12_000, "format": "json"}));
    for text in [&found, &read] {
        assert!(text.contains("66666666") && !text.contains(&leaked_key()[4..12]), "{text}");
    }
}

/// Puts the token of a server into the file of tokens.
fn know(home: &Home, server: &str, token: &str) {
    let file = home.path().join(".config/amplifier-sessions/credentials.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, format!("[\"{server}\"]\ntoken = \"{token}\"\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Calls a tool, which fails with this text.
fn failed(agent: &mut Agent, with: &str) {
    let result = agent.call("list", json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(result["isError"] == true && text.starts_with("error: ") && text.contains(with), "{text}");
}

#[test]
fn a_server_that_is_gone_or_does_not_know_the_token_is_an_error_of_the_call() {
    let home = Home::without_vectors();
    let server = Server::start(&home, &[]);
    let address = server.address.clone();
    let token = fs::read_to_string(home.amplifier().join("server-token")).unwrap();
    let mut agent = Agent::initialized(home.call(&["mcp", "--store", &format!("http://{address}")]));
    failed(&mut agent, "hint for the user: `token create` on the server makes one");
    know(&home, &address, "ams_x");
    failed(&mut agent, "the server does not know the token");
    know(&home, &address, token.trim());
    assert!(agent.text("list", json!({})).contains("c1d84e7a"));
    drop(server);
    failed(&mut agent, "hint for the user: check the address, the network, and whether `serve` runs there");
    let _server = Server::start_at(&home, &address, &[]);
    assert!(agent.text("list", json!({})).contains("c1d84e7a"));
}

#[test]
fn a_client_is_connected_to_a_server_without_its_token() {
    let home = Home::new();
    let url = "https://sessions.example.com";
    let install = |more: &[&str]| {
        let arguments = [&["mcp", "install", "codex", "--store", url], more].concat();
        home.call(&arguments).env(TOKEN, "ams_x").run_process()
    };
    let wrong = install(&["--user", "ben"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("--user can't be used with a server"),
        "{}",
        wrong.all()
    );
    assert_eq!(install(&["--scope", "visible", "--team", "web"]).code, 2);
    let installed = install(&["--scope", "visible"]);
    assert!(installed.code == 0 && installed.stdout.starts_with("installed\tcodex\t"), "{}", installed.all());
    for said in
        ["warning: no file has a token for sessions.example.com", "credentials.toml, which only you may"]
    {
        assert!(installed.stderr.contains(said), "{}", installed.all());
    }
    let entry = fs::read_to_string(home.path().join(".codex/config.toml")).unwrap();
    assert!(entry.contains(&format!("\"--store\", \"{url}\", \"--scope\", \"visible\", \"mcp\"")), "{entry}");
    assert!(!entry.contains("ams_x"), "{entry}");
    know(&home, "sessions.example.com", "ams_y");
    let again = install(&["--scope", "visible"]);
    assert!(again.code == 0 && again.stderr.is_empty(), "{}", again.all());
    let plain =
        home.call(&["mcp", "install", "cursor", "--print", "--allow-http", "--store", "http://192.0.2.1"]);
    let plain = plain.run_process();
    assert!(plain.code == 0 && plain.stdout.contains("\"--allow-http\""), "{}", plain.all());
}
