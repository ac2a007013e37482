//! The program with a store in Azure Cosmos DB, a server that the test runs.

use std::collections::BTreeSet;

use amplifier_session_testkit::cosmos::{AccountOptions, CosmosAccount};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{
    call::{Call, Ran},
    support::{Home, SYNCED},
};

/// An account and its runtime.
struct Account {
    account: CosmosAccount,
    _runtime: Runtime,
}

impl Account {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let account = runtime.block_on(CosmosAccount::start(AccountOptions::default())).unwrap();
        Self { account, _runtime: runtime }
    }

    /// A call with a database of this account as its store.
    fn call(&self, home: &Home, arguments: &[&str]) -> Call {
        let store = format!("{}team", self.account.endpoint().replace("http:", "cosmos:"));
        let call = home.call(arguments).env("AMPLIFIER_SESSIONS_STORE", store);
        call.env("AMPLIFIER_COSMOS_AUTH_METHOD", "key").env("AMPLIFIER_COSMOS_KEY", self.account.key())
    }

    fn run(&self, home: &Home, arguments: &[&str]) -> Ran {
        self.call(home, arguments).run()
    }

    #[track_caller]
    fn json(&self, home: &Home, arguments: &[&str]) -> Value {
        let ran = self.run(home, &[arguments, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    }
}

/// The messages of the results. Scores differ slightly, because Cosmos DB knows the exact lengths of texts, so that
/// neighbours in the order may change places.
fn places(found: &Value) -> BTreeSet<(String, u64)> {
    let place =
        |hit: &Value| (hit["session_id"].as_str().unwrap().to_owned(), hit["sequence"].as_u64().unwrap());
    found["results"].as_array().unwrap().iter().map(place).collect()
}

#[test]
fn a_cosmos_account_finds_the_same_as_a_file() {
    let (account, home) = (Account::start(), Home::with_samples());
    let first = account.json(&home, &["sync"]);
    assert_eq!(first["sessions"]["new"], 12, "{first}");
    let again = account.json(&home, &["sync"]);
    assert_eq!(again["sessions"]["unchanged"], 12, "{again}");
    let verified = account.json(&home, &["verify"]);
    assert_eq!((&verified["on_disk"], &verified["difference_count"]), (&12.into(), &0.into()), "{verified}");
    for query in ["two workers taking the same row", "outbox", "why is the job killed"] {
        for mode in ["hybrid", "semantic", "full-text"] {
            let arguments = ["search", query, "--mode", mode, "--limit", "5"];
            let found = account.json(&home, &arguments);
            assert_eq!(places(&found), places(&SYNCED.json(&arguments)), "{query} {mode}");
            assert_eq!(found["notices"], serde_json::json!([]), "{query} {mode}");
        }
    }
}

#[test]
fn sessions_are_copied_to_an_account_and_back() {
    let (account, home) = (Account::start(), Home::with_samples());
    home.ok(&["sync"]);
    let team = format!("{}team", account.account.endpoint().replace("http:", "cosmos:"));
    let files = ["sqlite:~/.amplifier/sessions.sqlite", "sqlite:~/back.sqlite"];
    let there = account.json(&home, &["copy", "--from", files[0], "--to", &team]);
    assert_eq!((&there["sessions"], &there["vectors"]), (&12.into(), &203.into()), "{there}");
    let again = account.json(&home, &["copy", "--from", files[0], "--to", &team]);
    assert_eq!((&again["sessions"], &again["unchanged"]), (&0.into(), &12.into()), "{again}");
    let back = account.json(&home, &["copy", "--to", files[1]]);
    assert_eq!((&back["sessions"], &back["vectors"]), (&12.into(), &203.into()), "{back}");
    let [before, after] = files.map(|store| {
        let file = home.path().join("archive.jsonl");
        home.ok(&["export", "--out", file.to_str().unwrap(), "--store", store]);
        let archive = std::fs::read_to_string(file).unwrap();
        // The bytes may differ, and so may their checksums.
        let records = archive.lines().filter(|record| !record.contains(r#","checksum":"#));
        records.map(|record| with_floats(serde_json::from_str(record).unwrap())).collect::<Vec<_>>()
    });
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
}

/// Every number as a float: Cosmos DB writes whole numbers as integers.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, with_floats(value))).collect(),
        plain => plain,
    }
}

#[test]
fn the_cost_is_reported() {
    let (account, home) = (Account::start(), Home::with_samples());
    let synced = account.run(&home, &["sync"]);
    assert!(synced.stderr.contains(" request units, "), "{}", synced.stderr);
    let found = account.json(&home, &["sessions"]);
    let usage = &found["service_usage"];
    assert!(usage["request_units"].as_f64().unwrap() > 0.0, "{usage}");
    assert!(usage["requests"].as_u64().unwrap() > 0 && usage["throttled_requests"] == 0, "{usage}");
    // Files cost nothing.
    assert!(SYNCED.json(&["sessions"]).get("service_usage").is_none());
}

#[test]
fn reading_creates_no_database() {
    let (account, home) = (Account::start(), Home::new());
    for arguments in [&["sessions"][..], &["search", "x"]] {
        let ran = account.run(&home, arguments);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains("no store"), "{}", ran.stderr);
    }
    // Databases are created at one address, containers at the other.
    let calls = account.account.calls();
    let makes = |path: &str| ["dbs", "colls"].contains(&path.trim_matches('/').rsplit('/').next().unwrap());
    assert!(!calls.iter().any(|call| makes(&call.path)), "{calls:?}");
}

#[test]
fn a_wrong_key_is_reported_at_once() {
    let (account, home) = (Account::start(), Home::new());
    let call = account.call(&home, &["sessions"]);
    let ran = call.env("AMPLIFIER_COSMOS_KEY", "c29tZXRoaW5nIGVsc2U=").run();
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("AMPLIFIER_COSMOS_KEY"), "{}", ran.stderr);
    assert!(!ran.all().contains("c29tZXRoaW5nIGVsc2U="), "{}", ran.all());
    assert_eq!(account.account.calls().len(), 1, "{:?}", account.account.calls());
}
