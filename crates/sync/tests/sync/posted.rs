//! Events that the hook of context intelligence posts to the store into which its log is synced later.

use amplifier_session_core::{
    model::{ProjectSlug, SessionId, SessionKey},
    storage::{PostResult, PostedEvent},
};
use serde_json::{Value, json};

use crate::fixture::{Fixture, user};

const LOG: &str = "context-intelligence/events.jsonl";

fn timestamp(number: u32) -> String {
    format!("2026-09-01T08:00:{:02}.{:03}+00:00", number / 20, number % 20 * 50)
}

fn data(number: u32) -> Value {
    json!({"n": number, "session_id": "s", "size": 1e22, "text": "Größe", "timestamp": timestamp(number)})
}

/// The line of the hook's log, as Python writes it.
fn logged(number: u32) -> String {
    let at = timestamp(number);
    format!(
        r#"{{"event": "tool:pre", "timestamp": "{at}", "workspace": "p", "data": {{"n": {number}, "session_id": "s", "#,
    ) + &format!(r#""size": 1e+22, "text": "Gr\u00f6\u00dfe", "timestamp": "{at}"}}}}"#)
        + "\n"
}

/// The line of Amplifier's own log.
fn of_amplifier(number: u32) -> String {
    let ts = timestamp(number).replace("+00:00", "001+00:00");
    json!({"ts": ts, "lvl": "INFO", "event": "tool:pre", "session_id": "s", "data": {"n": number}})
        .to_string()
        + "\n"
}

fn log(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().map(logged).collect()
}

impl Fixture {
    async fn post(&self, number: u32) -> PostResult {
        let Value::Object(data) = data(number) else { panic!("no object") };
        let posted = PostedEvent {
            session: SessionKey::new(user(), SessionId::new("s").unwrap()),
            project_slug: ProjectSlug::new("workspace").unwrap(),
            working_dir: None,
            event: "tool:pre".to_owned(),
            data,
        };
        self.storage.exchange().post_event(&posted).await.unwrap()
    }

    async fn post_all(&self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            assert_eq!(self.post(number).await, PostResult::Stored);
        }
    }

    /// Syncs without replacing anything but posted events, and again, without any change. Returns the numbers of the
    /// events.
    async fn synced_numbers(&self) -> Vec<u64> {
        let report = self.sync().await;
        assert_eq!((report.sessions.failed, report.events.superseded), (0, 0), "{report:?}");
        assert_eq!(self.sync().await.events.written, 0);
        let verified = self.sync_with(self.options().with_verify(true)).await;
        assert_eq!((verified.events.written, verified.events.superseded), (0, 0));
        let found = self.verify().await;
        assert_eq!(found.difference_count, 0, "{:?}", found.differences);
        let events = self.events("s").await;
        let lines = events.iter().map(|line| line.raw.as_ref().unwrap().parse_object().unwrap());
        lines.map(|line| line["data"]["n"].as_u64().unwrap()).collect()
    }
}

#[tokio::test]
async fn the_log_replaces_what_was_posted() {
    let fixture = Fixture::new();
    // One overtook another, one got lost, and two are ahead of the log.
    fixture.post_all([1, 0, 2, 4, 6, 7]).await;
    let folder = fixture.folder();
    folder.file(LOG, log(0..6)).unwrap();
    assert_eq!(fixture.synced_numbers().await, [0, 1, 2, 3, 4, 5, 6, 7]);
    let session = fixture.stored("s").await.unwrap().session;
    assert_eq!((session.host_id.as_str(), session.project_slug.as_str()), ("host", "p"));
    for number in 0..8 {
        assert_eq!(fixture.post(number).await, PostResult::Known);
    }
    fixture.post_all([8, 9]).await;
    folder.append(LOG, log(6..9)).unwrap();
    assert_eq!(fixture.synced_numbers().await, (0..10).collect::<Vec<_>>());
    folder.append(LOG, log(9..10)).unwrap();
    assert_eq!(fixture.synced_numbers().await, (0..10).collect::<Vec<_>>());
    let stored = fixture.stored("s").await.unwrap();
    assert_eq!(stored.events_of_logs(), 10);
}

#[tokio::test]
async fn one_of_two_logs_has_what_was_posted() {
    let fixture = Fixture::new();
    fixture.post_all([0, 20, 40, 60, 80]).await;
    let folder = fixture.folder();
    folder.file("events.jsonl", [0, 20].map(of_amplifier).concat()).unwrap();
    folder.file(LOG, log([0, 20, 40])).unwrap();
    assert_eq!(fixture.synced_numbers().await, [0, 20, 40, 60, 80]);
    folder.append("events.jsonl", of_amplifier(60)).unwrap();
    folder.append(LOG, log([60])).unwrap();
    let mut numbers = fixture.synced_numbers().await;
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 20, 40, 60, 80]);
    assert_eq!(fixture.stored("s").await.unwrap().events_of_logs(), 4);
}

#[tokio::test]
async fn an_event_whose_line_is_skipped_stays_posted() {
    let fixture = Fixture::new();
    fixture.post_all(0..4).await;
    let folder = fixture.folder();
    let broken = logged(1).replace("\"data\": {", "\"data\": ");
    folder.file(LOG, log([0]) + &broken + &log(2..4)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.skipped_count, report.events.superseded), (1, 0), "{report:?}");
    let events = fixture.events("s").await;
    let numbers =
        events.iter().map(|line| line.raw.as_ref().unwrap().parse_object().unwrap()["data"]["n"].clone());
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 2, 3, 1]);
    assert_eq!(fixture.post(1).await, PostResult::Known);
    folder.append(LOG, log(4..6)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.events.written > 0, report.events.superseded), (true, 0), "{report:?}");
    assert_eq!(fixture.events("s").await.len(), 6);
}
