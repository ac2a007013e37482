//! The program with an embedding service, a server that the test runs.

use std::process::{Command, Stdio};

use amplifier_session_testkit::{
    AmplifierHome,
    http::{Fault, MockEmbeddings, MockOptions},
    lines,
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{
    call::{Call, Ran},
    support::Home,
};

const MODEL: &str = "text-embedding-3-small";

/// A service and its runtime.
struct Service {
    mock: MockEmbeddings,
    runtime: Runtime,
}

impl Service {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let mock = runtime.block_on(MockEmbeddings::start(MockOptions::default())).unwrap();
        Self { mock, runtime }
    }

    /// A call with this service and vectors of 64 numbers.
    fn call(&self, home: &Home, arguments: &[&str]) -> Call {
        let call = home.call(arguments).env("AMPLIFIER_SESSIONS_EMBEDDING", "openai");
        call.env("OPENAI_BASE_URL", self.mock.openai_url())
            .env("OPENAI_EMBEDDING_MODEL", MODEL)
            .env("OPENAI_EMBEDDING_DIMENSIONS", "64")
            .env("OPENAI_EMBEDDING_BATCH_TEXTS", "10")
    }

    fn run(&self, home: &Home, arguments: &[&str]) -> Ran {
        self.call(home, arguments).run()
    }

    #[track_caller]
    fn json(&self, home: &Home, arguments: &[&str]) -> Value {
        json(self.call(home, &[arguments, &["--json"]].concat()))
    }

    /// The number of messages with pending vectors.
    fn pending(&self, home: &Home) -> u64 {
        self.json(home, &["embeddings"])["current"]["owing"].as_u64().unwrap()
    }
}

/// The JSON of a run that is expected to succeed.
#[track_caller]
fn json(call: Call) -> Value {
    checked(call.run())
}

#[track_caller]
fn checked(ran: Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

/// Without the cache of vectors, so that each one is requested.
fn uncached(call: Call) -> Call {
    call.env("AMPLIFIER_SESSIONS_CACHE_MAX_MEGABYTES", "0")
}

#[test]
fn no_text_is_embedded_twice() {
    let (service, home) = (Service::start(), Home::with_samples());
    service.json(&home, &["sync"]);
    assert!(service.mock.calls() > 10 && service.pending(&home) == 0);
    let vectors = |arguments: &[&str]| service.json(&home, arguments)["current"]["vectors"].clone();
    let made = vectors(&["embeddings"]);

    service.mock.reset_counts();
    let second = format!("sqlite:{}", home.path().join("second.sqlite").display());
    service.json(&home, &["--store", &second, "sync"]);
    assert_eq!(vectors(&["--store", &second, "embeddings"]), made);
    service.json(&home, &["embeddings", "rebuild"]);
    assert_eq!(vectors(&["embeddings"]), made);
    assert_eq!(service.mock.calls(), 0);

    // Without the cache, the service is called again.
    json(uncached(service.call(&home, &["embeddings", "rebuild", "--json"])));
    assert!(service.mock.calls() > 10);
}

#[test]
fn two_programs_fill_the_cache_at_the_same_time() {
    let (service, home) = (Service::start(), Home::with_samples());
    let store = |name: &str| format!("sqlite:{}", home.path().join(name).display());
    let sync = |name: &str| {
        let mut command = service.call(&home, &["--store", &store(name), "sync", "--json"]).process();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [sync("a"), sync("b")] {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
    // A program that waits too long for the other one leaves vectors out of the cache: this adds them.
    service.json(&home, &["--store", &store("c"), "sync"]);
    service.mock.reset_counts();
    service.json(&home, &["--store", &store("d"), "sync"]);
    assert_eq!(service.mock.calls(), 0);
    let search = |name: &str| {
        let search = ["search", "outbox table", "--mode", "semantic", "--limit", "50"];
        service.json(&home, &[&["--store", &store(name)], &search[..]].concat())
    };
    assert!(search("a")["results"].as_array().unwrap().len() > 10);
    assert_eq!(search("a"), search("b"));
    assert_eq!(search("a"), search("d"));
}

#[test]
fn no_vector_is_lost_or_repeated_if_a_third_of_the_calls_fails() {
    let (service, well, ill) = (Service::start(), Home::with_samples(), Home::with_samples());
    json(uncached(service.call(&well, &["sync", "--json"])));
    let wanted = service.json(&well, &["embeddings"]);

    let answered = service.mock.calls();
    service.mock.reset_counts();
    service.mock.fail_share(0.3, 5);
    json(uncached(service.call(&ill, &["sync", "--json"])));
    let most = (0..20).find(|_| {
        json(uncached(service.call(&ill, &["embeddings", "backfill", "--json"])));
        service.pending(&ill) == 0
    });
    assert!(most.is_some(), "20 times was not enough");
    assert!(service.mock.calls() > answered, "no call has failed");
    service.mock.fail_share(0.0, 0);
    assert_eq!(service.json(&ill, &["embeddings"]), wanted);
    for query in ["charged twice", "outbox table", "flaky test", "release notes"] {
        let search = ["search", query, "--mode", "semantic", "--limit", "50"];
        assert_eq!(service.json(&ill, &search), service.json(&well, &search), "{query}");
    }
}

/// A home folder with one session of `messages` messages.
fn one_session(messages: usize) -> Home {
    let home = Home::new();
    let folders = AmplifierHome::new().unwrap();
    let folder = folders.session("notes", "a-long-one").unwrap();
    let line = |n| lines::user(&format!("What about harbour number {n}?")).at("2026-01-02T03:04:05Z").raw();
    folder.transcript((0..messages).map(line)).unwrap();
    std::fs::rename(folders.path(), home.amplifier()).unwrap();
    home
}

#[test]
fn a_killed_rebuild_continues_and_old_vectors_serve_until_it_ends() {
    const MESSAGES: usize = 1_100;
    let (service, other, home) = (Service::start(), Service::start(), one_session(MESSAGES));
    let call = |service: &Service, arguments: &[&str]| {
        uncached(service.call(&home, arguments)).env("OPENAI_EMBEDDING_BATCH_TEXTS", "256")
    };
    let rebuild =
        || call(&service, &["embeddings", "rebuild", "--json"]).env("OPENAI_EMBEDDING_DIMENSIONS", "32");
    let found = || {
        let search = ["search", "harbour", "--mode", "semantic", "--json"];
        json(call(&other, &search))["results"].as_array().unwrap().len()
    };
    json(call(&service, &["sync", "--json"]));
    assert_eq!(found(), 10);

    service.mock.reset_counts();
    // Vectors are stored 512 messages at a time, while those after the next 512 are not yet requested.
    service.mock.hold_after(4);
    let mut child = rebuild().process().stdout(Stdio::null()).spawn().unwrap();
    service.runtime.block_on(service.mock.until_calls(5));
    assert_eq!(found(), 10);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found(), 10);
    let status = json(call(&service, &["embeddings", "--json"]));
    assert_eq!((&status["current"]["dimensions"], &status["next"]["dimensions"]), (&64.into(), &32.into()));
    assert!(status["next"]["vectors"].as_u64().unwrap() >= 512);

    service.mock.release();
    service.mock.reset_counts();
    json(rebuild());
    assert!(service.mock.texts() <= MESSAGES - 512, "{} texts were made again", service.mock.texts());
    let status = json(call(&service, &["embeddings", "--json"]));
    assert_eq!((&status["current"]["dimensions"], &status["next"]), (&32.into(), &Value::Null));
    assert_eq!(status["current"]["vectors"], MESSAGES);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sync_says_what_is_stored_and_the_next_one_continues() {
    let (service, home) = (Service::start(), one_session(3));
    service.mock.hold();
    let mut command = uncached(service.call(&home, &["sync"])).process();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    service.runtime.block_on(service.mock.until_calls(1));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    crate::output::check("sync_interrupted", &home, &ran.all());
    service.mock.release();
    let synced = json(uncached(service.call(&home, &["sync", "--json"])));
    assert_eq!((&synced["sessions"]["unchanged"], &synced["messages"]["written"]), (&1.into(), &0.into()));
    assert_eq!(service.pending(&home), 0);
}

#[test]
fn secrets_are_not_sent_to_other_machines() {
    let (service, home) = (Service::start(), Home::new());
    let folders = AmplifierHome::new().unwrap();
    let folder = folders.session("notes", "with-a-key").unwrap();
    // In two parts, so that no scanner takes it for a real one.
    let secret = format!("ghp_{}", "v3Jx0QmT8sKp2RbY7nLcW5dHf1ZgA9eUoX4i");
    folder.transcript([lines::user(&format!("Why is {secret} refused?")).raw()]).unwrap();
    std::fs::rename(folders.path(), home.amplifier()).unwrap();
    // A service on another machine, which a proxy on this machine replaces. The proxy is that of a process.
    let remote = |arguments: &[&str]| {
        let call = uncached(service.call(&home, arguments))
            .env("OPENAI_BASE_URL", "http://embeddings.example.com/v1")
            .env("http_proxy", service.mock.azure_endpoint());
        checked(call.run_process())
    };
    let sent = || {
        let texts: Vec<String> = service.mock.recorded().into_iter().flat_map(|call| call.texts).collect();
        service.mock.reset_counts();
        texts.concat()
    };
    let report = remote(&["sync", "--json"]);
    let text = sent();
    assert!(text.contains("Why is") && text.contains("refused?") && !text.contains(&secret), "{text}");
    assert_eq!(report["secrets_masked"], 1);
    remote(&["embeddings", "rebuild", "--redact", "off", "--json"]);
    assert!(sent().contains(&secret));
    // The stored text is not masked.
    assert!(home.ok(&["--embedding", "none", "search", &secret]).contains("refused"));
}

#[test]
fn messages_are_stored_and_found_while_the_service_is_down() {
    let (service, home) = (Service::start(), Home::with_samples());
    service.json(&home, &["sync"]);
    let before = service.json(&home, &["embeddings"])["current"]["vectors"].as_u64().unwrap();

    service.mock.fail_always(Some(Fault::CutBefore));
    let folder = AmplifierHome::new().unwrap();
    let session = folder.session("notes", "written-meanwhile").unwrap();
    session.transcript([lines::user("Is the lighthouse lit?").raw()]).unwrap();
    let root = folder.path().to_str().unwrap();
    let ran = service.run(&home, &["sync", "--root", root]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("vectors are still missing"), "{}", ran.stderr);
    assert_eq!(service.pending(&home), 1);
    let found = service.json(&home, &["search", "lighthouse"]);
    assert_eq!(
        (&found["mode"], &found["results"][0]["session_id"]),
        (&"full_text".into(), &"written-meanwhile".into())
    );

    service.mock.fail_always(None);
    service.json(&home, &["embeddings", "backfill"]);
    let after = service.json(&home, &["embeddings"]);
    assert_eq!(
        (after["current"]["vectors"].as_u64(), after["current"]["owing"].as_u64()),
        (Some(before + 1), Some(0))
    );
    assert_eq!(service.json(&home, &["search", "lighthouse"])["mode"], "hybrid");
}

#[test]
fn a_wrong_key_is_reported_at_once_and_not_shown() {
    let (service, home) = (Service::start(), Home::with_samples());
    service.mock.fail_always(Some(Fault::status(401)));
    let call = uncached(service.call(&home, &["sync"])).env("OPENAI_API_KEY", "sk-made-up-4f9c2e71");
    let ran = call.env("OPENAI_EMBEDDING_CONCURRENT_CALLS", "1").run();
    assert_eq!((ran.code, service.mock.calls()), (0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("401") && !ran.all().contains("4f9c2e71"), "{}", ran.stderr);
}
