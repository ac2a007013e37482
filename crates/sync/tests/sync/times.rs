//! Times of messages and sessions.

use std::{fs, path::Path, sync::Arc};

use amplifier_session_core::{
    backend::{SessionChange, SessionQuery, StoredSyncState, prelude::*},
    model::{Retimed, SessionId, TimeSource, Timestamp},
    storage::EventDetail,
};
use amplifier_session_testkit::{FakeEmbedding, Operation, lines, lines::Line};
use serde_json::{Value, json};

use super::fixture::{Fixture, scope, set_modified};

fn event(name: &str, ts: &str, data: Value) -> Line {
    lines::logger_event(name).at(format!("2026-01-05T08:00:{ts}Z")).with("data", data)
}

/// A prompt, a tool call, its result and an answer, without times.
fn conversation() -> [Line; 4] {
    let call = json!([{"type": "tool_call", "id": "toolu_1", "name": "bash", "input": {}}]);
    [
        lines::user("Why does it fail?"),
        lines::message("assistant", call),
        lines::message("tool", json!("exit 1")).with("tool_call_id", json!("toolu_1")),
        lines::assistant("It is the fixture."),
    ]
}

/// The log of the conversation.
fn log() -> [Line; 7] {
    let call = json!({"tool_call_id": "toolu_1", "tool_name": "bash"});
    [
        event("session:start", "01", json!({})),
        event("prompt:submit", "02", json!({"prompt": "Why does it fail?"})),
        event("llm:response", "03", json!({"model": "m1"})),
        event("tool:pre", "04", call.clone()),
        event("tool:post", "05", call),
        event("llm:response", "06", json!({"model": "m1"})),
        event("session:end", "09", json!({})),
    ]
}

/// The seconds of the times, with their sources.
async fn times(fixture: &Fixture, session: &str) -> Vec<(String, TimeSource)> {
    let messages = fixture.messages(session).await;
    messages.iter().map(|message| (message.ts.to_string()[17..19].to_owned(), message.ts_source)).collect()
}

/// The times when a session began and last changed.
async fn dates(fixture: &Fixture, session: &str) -> [String; 2] {
    let session = fixture.stored(session).await.unwrap().session;
    [session.created, session.updated].map(|ts| ts.to_string()[..19].to_owned())
}

fn touch(folder: &Path, time: &str) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            touch(&entry.path(), time);
        } else {
            set_modified(&entry.path(), time);
        }
    }
}

#[tokio::test]
async fn a_later_log_corrects_only_times() {
    let embedding = Arc::new(FakeEmbedding::new());
    let fixture = Fixture::new().with_embedding(embedding.clone());
    let folder = fixture.folder();
    folder.transcript(conversation()).unwrap();
    fixture.sync().await;
    assert!(times(&fixture, "s").await.iter().all(|(_, source)| *source == TimeSource::File));
    let (before, asked) = (fixture.messages("s").await, embedding.calls());

    folder.events(log().into_iter().take(4)).unwrap();
    fixture.sync().await;
    folder.events(log()).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.vectors.len()), (0, 0));
    assert_eq!(report.messages.retimed, 2, "the result and the last answer");
    let expected = ["02", "04", "05", "06"].map(|second| (second.to_owned(), TimeSource::Event));
    assert_eq!(times(&fixture, "s").await, expected);
    assert_eq!(dates(&fixture, "s").await, ["2026-01-05T08:00:01", "2026-01-05T08:00:09"]);
    assert_eq!(fixture.stored("s").await.unwrap().session.model.as_deref(), Some("m1"));
    assert_eq!(embedding.calls(), asked, "nothing is embedded again");
    let mut after = fixture.messages("s").await;
    for (after, before) in after.iter_mut().zip(&before) {
        (after.ts, after.ts_source) = (before.ts, before.ts_source);
    }
    assert_eq!(after, before);
    assert_eq!(fixture.sync().await.sessions.unchanged, 1);
}

#[tokio::test]
async fn appended_messages_get_times_of_stored_events() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript(conversation().into_iter().take(2)).unwrap().events(log()).unwrap();
    fixture.sync().await;
    folder.append_transcript(conversation().into_iter().skip(2)).unwrap();
    fixture.sync().await;
    let expected = ["02", "04", "05", "06"].map(|second| (second.to_owned(), TimeSource::Event));
    assert_eq!(times(&fixture, "s").await, expected);
}

#[tokio::test]
async fn logs_give_times_even_if_no_events_are_stored() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::None);
    let folder = fixture.folder();
    let expected = ["02", "04", "05", "06"].map(|second| (second.to_owned(), TimeSource::Event));
    folder.transcript(conversation().into_iter().take(2)).unwrap().events(log()).unwrap();
    fixture.sync().await;
    assert_eq!(times(&fixture, "s").await, expected[..2]);
    assert_eq!(dates(&fixture, "s").await, ["2026-01-05T08:00:01", "2026-01-05T08:00:09"]);
    assert_eq!(fixture.stored("s").await.unwrap().session.model.as_deref(), Some("m1"));
    assert!(fixture.events("s").await.is_empty());
    assert_eq!(fixture.sync_and_count().await.1, 0, "nothing changed");
    // New messages find their events in the log, which did not change.
    folder.append_transcript(conversation().into_iter().skip(2)).unwrap();
    fixture.sync().await;
    assert_eq!(times(&fixture, "s").await, expected);
    // With events turned on later, all are stored.
    fixture.keep_events(EventDetail::Full);
    assert_eq!(fixture.sync().await.events.written, 7);
    assert_eq!(times(&fixture, "s").await, expected);
    // Stored events and those of the log are the same and count once.
    fixture.keep_events(EventDetail::None);
    folder.append_events([event("session:end", "10", json!({}))]).unwrap();
    fixture.sync().await;
    assert_eq!(times(&fixture, "s").await, expected);
    assert_eq!(dates(&fixture, "s").await[1], "2026-01-05T08:00:10");
    assert_eq!(fixture.events("s").await.len(), 7);
    assert_eq!(fixture.sync_and_count().await.1, 0);
}

#[tokio::test]
async fn times_stay_if_a_log_without_stored_events_is_gone() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::None);
    let folder = fixture.folder();
    folder.transcript(conversation()).unwrap().events(log()).unwrap();
    fixture.sync().await;
    fs::remove_file(folder.path().join("events.jsonl")).unwrap();
    folder.append_transcript([lines::user("And now?")]).unwrap();
    fixture.sync().await;
    let times = times(&fixture, "s").await;
    assert!(times[..4].iter().all(|(_, source)| *source == TimeSource::Event), "{times:?}");
    assert!(times[4].1.is_estimated());
}

/// Sessions whose files state different things.
fn shapes(fixture: &Fixture) {
    let session = |name: &str| fixture.session("p", name);
    session("events").transcript(conversation()).unwrap().events(log()).unwrap();
    session("sparse").metadata(r#"{"last_turn":"completed"}"#).unwrap();
    session("sparse")
        .transcript(conversation())
        .unwrap()
        .file(
            "context-intelligence/metadata.json",
            r#"{"started_at":"2026-01-05T07:00:00Z","status":"completed"}"#,
        )
        .unwrap();
    session("metadata-only")
        .metadata(r#"{"created":"2026-01-04T07:00:00Z","updated_at":"2026-01-04T09:00:00Z"}"#)
        .unwrap();
    session("ended").metadata(r#"{"ended_at":"2026-01-03T09:00:00Z"}"#).unwrap();
    session("ended").transcript(conversation()).unwrap();
    let [first, second, third, fourth] = conversation();
    let partly = [first, second.at("2026-01-02T08:00:00Z"), third, fourth];
    session("partly").transcript(partly).unwrap();
    let untimed = |line: Line| line.with("ts", json!("not a time"));
    session("log-only").events([log()[0].clone(), untimed(log()[5].clone()), log()[6].clone()]).unwrap();
}

#[tokio::test]
async fn a_copy_of_the_tree_has_the_same_dates() {
    let (original, copy) = (Fixture::new(), Fixture::new());
    for (fixture, modified) in [(&original, "2026-02-01T00:00:00Z"), (&copy, "2026-07-01T00:00:00Z")] {
        shapes(fixture);
        touch(fixture.home.path(), modified);
        fixture.sync().await;
    }
    let list = async |fixture: &Fixture| {
        let sessions = fixture.storage.sessions().search_sessions(&SessionQuery::new(scope())).await.unwrap();
        let dates = sessions.into_iter().map(|s| (s.session_id.to_string(), s.created, s.updated));
        dates.collect::<Vec<_>>()
    };
    let sessions = list(&original).await;
    assert_eq!(sessions.len(), 6);
    assert_eq!(list(&copy).await, sessions);
    for (session, created, updated) in sessions {
        assert!([created, updated].iter().all(|ts| ts.to_string().as_str() < "2026-01-06"));
        assert_eq!(times(&copy, &session).await, times(&original, &session).await, "{session}");
        let sources = times(&copy, &session).await;
        assert!(sources.iter().all(|(_, source)| *source != TimeSource::File), "{session}: {sources:?}");
    }
    assert_eq!(dates(&copy, "metadata-only").await, ["2026-01-04T07:00:00", "2026-01-04T09:00:00"]);
    assert_eq!(dates(&copy, "partly").await, ["2026-01-02T08:00:00"; 2].map(str::to_owned));
}

#[tokio::test]
async fn without_a_stated_time_the_first_seen_dates_stay() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript(conversation()).unwrap();
    fixture.session("p", "empty").metadata(r#"{"last_turn":"completed"}"#).unwrap();
    touch(fixture.home.path(), "2026-02-01T00:00:00Z");
    fixture.sync().await;
    touch(fixture.home.path(), "2026-07-01T00:00:00Z");
    fixture.sync().await;
    for session in ["s", "empty"] {
        assert_eq!(
            dates(&fixture, session).await,
            ["2026-02-01T00:00:00"; 2].map(str::to_owned),
            "{session}"
        );
    }
}

#[tokio::test]
async fn dates_from_files_are_estimates() {
    let fixture = Fixture::new();
    shapes(&fixture);
    let session = |name: &str| fixture.session("p", name);
    session("silent").transcript(conversation()).unwrap();
    session("silent").metadata(r#"{"last_turn":"completed"}"#).unwrap();
    session("empty").metadata("{}").unwrap();
    session("log-without-times").events([lines::logger_event("e").with("ts", json!(null))]).unwrap();
    fixture.sync().await;
    // A session is created with a time.
    let mut said = fixture.stored("silent").await.unwrap().session;
    said.session_id = SessionId::new("said").unwrap();
    (said.message_count, said.event_count) = (0, 0);
    fixture.storage.ingestion().create_session(said).await.unwrap();
    let estimated = async || {
        let sessions = fixture.storage.sessions().search_sessions(&SessionQuery::new(scope())).await.unwrap();
        assert_eq!(sessions.len(), 10);
        let estimated = fixture.storage.sessions().estimated_dates(&sessions).await.unwrap();
        let mut ids: Vec<_> = estimated.into_iter().map(|key| key.session_id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(estimated().await, ["empty", "log-without-times", "silent"]);
    session("silent").events(log()).unwrap();
    session("empty").metadata(r#"{"started_at":"2026-01-05T08:00:00Z"}"#).unwrap();
    fixture.sync().await;
    assert_eq!(estimated().await, ["log-without-times"]);
}

/// SQLite writes a long line again if its time changes: one transaction for all of them made its log as long as the
/// transcript.
#[tokio::test]
async fn many_times_are_corrected_in_several_writes() {
    const MESSAGES: usize = 1_201;
    let log = || {
        let at = |n: usize| format!("2026-01-05T{:02}:{:02}:{:02}Z", n / 3_600, n / 60 % 60, n % 60);
        let prompt = |n: usize| json!({"prompt": format!("question {n}")});
        (0..MESSAGES).map(move |n| lines::logger_event("prompt:submit").at(at(n)).with("data", prompt(n)))
    };
    let mut expected = None;
    // A write fails, and the next sync completes it.
    for failing in [None, Some(0), Some(1), Some(2)] {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.transcript((0..MESSAGES).map(|n| lines::user(&format!("question {n}")))).unwrap();
        fixture.sync().await;
        folder.events(log()).unwrap();
        fixture.backend.reset_counts();
        if let Some(writes) = failing {
            fixture.backend.fail_after(Operation::Write, writes);
            let _ = fixture.try_sync().await;
            fixture.backend.recover();
            fixture.sync().await;
        } else {
            assert_eq!(fixture.sync().await.messages.retimed, MESSAGES as u64);
            assert_eq!(fixture.backend.calls(Operation::Write), 3);
        }
        let found = (times(&fixture, "s").await, fixture.stored("s").await.unwrap().session);
        assert!(found.0.iter().all(|(_, source)| *source == TimeSource::Event), "{failing:?}");
        assert_eq!(&found, expected.get_or_insert_with(|| found.clone()), "{failing:?}");
        assert_eq!(fixture.sync_and_count().await.1, 0, "{failing:?}");
    }
}

/// A session as an earlier version stored it.
async fn make_earlier(fixture: &Fixture) {
    let stored = fixture.stored("s").await.unwrap();
    let mut state: Value = serde_json::from_str(&stored.sync_state.unwrap().files).unwrap();
    state["version"] = json!(2);
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    let wrong = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    (change.session.created, change.session.updated) = (wrong, wrong);
    change.session.first_prompt = Some("<system-reminder>".to_owned());
    change.session.turn_count = 99;
    change.sync_state = Some(StoredSyncState::of(state.to_string()));
    change.retimed =
        (0..4).map(|sequence| Retimed { sequence, ts: wrong, ts_source: TimeSource::File }).collect();
    fixture.backend.write_one(change).await.unwrap();
}

#[tokio::test]
async fn sessions_read_by_an_earlier_version_are_read_again() {
    let embedding = Arc::new(FakeEmbedding::new());
    let fixture = Fixture::new().with_embedding(embedding.clone());
    fixture.folder().transcript(conversation()).unwrap().events(log()).unwrap();
    fixture.sync().await;
    let expected = (fixture.stored("s").await.unwrap().session, fixture.messages("s").await);
    make_earlier(&fixture).await;
    let asked = embedding.calls();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.messages.retimed), (0, 4));
    assert_eq!((fixture.stored("s").await.unwrap().session, fixture.messages("s").await), expected);
    assert_eq!(embedding.calls(), asked);
    assert_eq!(fixture.sync_and_count().await.1, 0, "once");
}

#[tokio::test]
async fn unreadable_values_in_a_line_are_warnings() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let transcript = [
        lines::user("one").with("timestamp", json!("yesterday")),
        lines::user("two").with("turn", json!(0)),
        lines::user("three").with("ts", json!("x")).at("2026-01-05T08:00:00Z"),
    ];
    let events = [event("e", "01", json!({})), lines::logger_event("e").with("ts", json!("soon"))];
    folder.transcript(transcript).unwrap().events(events).unwrap();
    let report = fixture.sync().await;
    let places: Vec<_> =
        report.warnings.iter().map(|warning| (warning.file.as_deref().unwrap(), warning.line)).collect();
    let expected = [("transcript.jsonl", Some(1)), ("transcript.jsonl", Some(2)), ("events.jsonl", Some(2))];
    assert_eq!(places, expected);
    assert_eq!((report.warning_count, report.skipped_count, report.failures.len()), (3, 0, 0));
    assert_eq!((report.messages.written, report.events.written), (3, 2));
    assert!(report.warnings[0].reason.contains("timestamp"), "{:?}", report.warnings);
    assert!(report.warnings[1].reason.contains("turn 0"), "{:?}", report.warnings);
}

#[tokio::test]
async fn without_a_stated_model_the_most_frequent_one_of_events_is_used() {
    let fixture = Fixture::new();
    let model = |model: &str| event("llm:response", "03", json!({"model": model}));
    let folder = fixture.folder();
    let named = async || fixture.stored("s").await.unwrap().session.model;
    folder.events([model("a"), model("b"), model("b")]).unwrap();
    fixture.sync().await;
    assert_eq!(named().await.as_deref(), Some("b"));
    folder.append_events([model("a"), model("a")]).unwrap();
    fixture.sync().await;
    assert_eq!(named().await.as_deref(), Some("a"));
    folder.metadata(r#"{"model":"c"}"#).unwrap();
    fixture.sync().await;
    assert_eq!(named().await.as_deref(), Some("c"));
    folder.metadata("{}").unwrap();
    fixture.sync().await;
    assert_eq!(named().await.as_deref(), Some("a"));
}
