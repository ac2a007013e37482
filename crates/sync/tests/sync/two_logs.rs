//! A session with two event logs: each event is stored once, whichever log has it.

use std::fs;

use amplifier_session_core::storage::EventDetail;
use amplifier_session_sync::{NoProgress, RestoreOptions, restore};

use crate::fixture::{Fixture, scope, set_modified};

const ROOT: &str = "events.jsonl";
const CAPTURE: &str = "context-intelligence/events.jsonl";

/// An event as it stands in the session folder's log; the number is its second.
fn root(number: u32) -> String {
    format!(
        r#"{{"ts":"2026-09-01T08:{:02}:{:02}.000001+00:00","lvl":"INFO","event":"tool:pre","session_id":"s","data":{{"n":{number}}}}}"#,
        number / 60,
        number % 60
    ) + "\n"
}

/// The same event in the capture.
fn capture(number: u32) -> String {
    format!(
        r#"{{"event":"tool:pre","workspace":"w","timestamp":"2026-09-01T08:{:02}:{:02}.001Z","data":{{"n":{number}}}}}"#,
        number / 60,
        number % 60
    ) + "\n"
}

fn lines(events: impl IntoIterator<Item = u32>, line: impl Fn(u32) -> String) -> String {
    events.into_iter().map(line).collect()
}

impl Fixture {
    /// The numbers of the stored events.
    async fn numbers(&self) -> Vec<u64> {
        let events = self.events("s").await;
        let number = |line: &amplifier_session_core::storage::EventLine| {
            line.raw.as_ref().unwrap().parse_object().unwrap()["data"]["n"].as_u64().unwrap()
        };
        events.iter().map(number).collect()
    }

    async fn sorted(&self) -> Vec<u64> {
        let mut numbers = self.numbers().await;
        numbers.sort_unstable();
        numbers
    }

    /// The store has the events 0 to `end`, once, a sync changes nothing, and nothing was superseded.
    async fn has_each_once(&self, end: u64) {
        assert_eq!(self.sorted().await, (0..end).collect::<Vec<u64>>());
        assert_eq!(self.verify().await.difference_count, 0, "{:?}", self.verify().await.differences);
        let state = self.stored("s").await.unwrap().sync_state;
        let again = self.sync().await;
        assert_eq!((again.sessions.unchanged, again.events.written), (1, 0));
        let verified = self.sync_with(self.options().with_verify(true)).await;
        assert_eq!((verified.events.written, verified.events.superseded), (0, 0));
        assert_eq!(self.stored("s").await.unwrap().sync_state, state);
    }
}

#[tokio::test]
async fn the_capture_continues_where_the_first_log_ends() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..4, root)).unwrap().file(CAPTURE, lines(0..4, capture)).unwrap();
    fixture.sync().await;
    fixture.has_each_once(4).await;
    folder.append(CAPTURE, lines(4..6, capture)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.events.written, report.events.superseded), (2, 0));
    fixture.has_each_once(6).await;
    let (report, read) = {
        folder.append(CAPTURE, lines(6..7, capture)).unwrap();
        fixture.sync_and_count().await
    };
    assert_eq!((report.events.written, read), (1, capture(6).len() as u64), "only the new line is read");
    fixture.has_each_once(7).await;
    // The first log gets an event of its own, and one that the capture already had.
    folder.append(ROOT, lines([6, 7], root)).unwrap();
    let report = fixture.sync().await;
    assert_eq!(report.events.superseded, 0);
    fixture.has_each_once(8).await;
}

#[tokio::test]
async fn both_logs_are_read_even_if_one_lacks_events_of_the_other() {
    let cases: [(Vec<u32>, Vec<u32>); 6] = [
        ((0..9).collect(), (0..9).collect()),
        ((0..9).collect(), vec![]),
        (vec![], (0..9).collect()),
        ((0..5).collect(), (3..9).collect()),
        ((5..9).collect(), (0..7).collect()),
        (vec![0, 1, 2, 5, 8], vec![2, 3, 4, 6, 7, 8]),
    ];
    for (first, second) in cases {
        let fixture = Fixture::with_atomic_writes();
        let folder = fixture.folder();
        folder.file(ROOT, lines(first.clone(), root)).unwrap();
        folder.file(CAPTURE, lines(second.clone(), capture)).unwrap();
        fixture.sync().await;
        fixture.has_each_once(9).await;
        let to = tempfile::tempdir().unwrap();
        let options = RestoreOptions::new(to.path(), scope());
        restore(&fixture.storage, &options, &NoProgress).await.unwrap();
        // The restored files have all of them again.
        let other = Fixture::with_atomic_writes();
        let (from, into) = (to.path().join("projects/p/sessions/s"), other.folder());
        for name in [ROOT, CAPTURE] {
            if let Ok(content) = fs::read(from.join(name)) {
                into.file(name, content).unwrap();
            }
        }
        other.sync().await;
        other.has_each_once(9).await;
    }
}

#[tokio::test]
async fn a_log_that_is_gone_is_replaced_by_the_other_one() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..4, root)).unwrap();
    fixture.sync().await;
    folder.remove(ROOT).unwrap().file(CAPTURE, lines(2..6, capture)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.events.written, report.events.superseded), (2, 0));
    fixture.has_each_once(6).await;
    folder.append(CAPTURE, lines(6..8, capture)).unwrap();
    fixture.sync().await;
    fixture.has_each_once(8).await;
    // Now the second one is gone, and the first one is back.
    folder.remove(CAPTURE).unwrap().file(ROOT, lines(0..4, root)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.events.written, report.events.superseded), (0, 0));
    assert_eq!(fixture.sorted().await, (0..8).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_event_that_one_log_gets_a_moment_later_is_waited_for() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..2, root)).unwrap().file(CAPTURE, lines(0..3, capture)).unwrap();
    for name in [ROOT, CAPTURE] {
        set_modified(&folder.path().join(name), "2026-09-01T08:00:03Z");
    }
    fixture.clock.set("2026-09-01T08:00:04Z");
    fixture.sync().await;
    assert_eq!(fixture.numbers().await, [0, 1]);
    assert_eq!(fixture.verify().await.difference_count, 0);
    fixture.clock.set("2026-09-01T08:02:00Z");
    assert_eq!(fixture.verify().await.difference_count, 1);
    fixture.sync().await;
    assert_eq!(fixture.numbers().await, [0, 1, 2]);
    assert_eq!(fixture.verify().await.difference_count, 0);
}

#[tokio::test]
async fn a_damaged_log_is_not_waited_for() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..2, root)).unwrap().file(CAPTURE, lines(0..3, capture)).unwrap();
    fixture.clock.set("2026-09-01T08:02:00Z");
    fixture.sync().await;
    folder
        .file(ROOT, lines(0..2, root) + "\0\0\n")
        .unwrap()
        .file(CAPTURE, lines([0, 1, 2, 180], capture))
        .unwrap();
    for name in [ROOT, CAPTURE] {
        set_modified(&folder.path().join(name), "2026-09-01T08:03:05Z");
    }
    fixture.clock.set("2026-09-01T08:03:08Z");
    fixture.sync().await;
    assert_eq!(fixture.numbers().await, [0, 1, 2, 180]);
    let verified = fixture.verify().await;
    assert_eq!(verified.difference_count, 0, "{:?}", verified.differences);
}

#[tokio::test]
async fn a_compacted_log_takes_nothing_from_the_other_one() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..6, root)).unwrap().file(CAPTURE, lines(0..6, capture)).unwrap();
    fixture.sync().await;
    folder.file(ROOT, lines([0, 5], root)).unwrap();
    fixture.sync().await;
    fixture.has_each_once(6).await;
}

#[tokio::test]
async fn lines_of_both_logs_that_are_no_events_are_kept() {
    let fixture = Fixture::with_atomic_writes();
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..2, root) + "one\n").unwrap();
    folder.file(CAPTURE, lines(0..3, capture) + "two\n" + &capture(3)).unwrap();
    let report = fixture.sync().await;
    assert_eq!(report.skipped_count, 2);
    let to = tempfile::tempdir().unwrap();
    restore(&fixture.storage, &RestoreOptions::new(to.path(), scope()), &NoProgress).await.unwrap();
    let restored = |name| fs::read_to_string(to.path().join("projects/p/sessions/s").join(name)).unwrap();
    assert_eq!(restored(ROOT), lines(0..2, root) + "one\n");
    assert_eq!(restored(CAPTURE), capture(2) + "two\n" + &capture(3));
}

#[tokio::test]
async fn more_of_each_event_is_stored_from_both_logs() {
    let mut fixture = Fixture::with_atomic_writes();
    fixture.keep_events(EventDetail::Summary);
    let folder = fixture.folder();
    folder.file(ROOT, lines(0..3, root)).unwrap().file(CAPTURE, lines(1..5, capture)).unwrap();
    fixture.sync().await;
    fixture.keep_events(EventDetail::Full);
    fixture.sync().await;
    fixture.has_each_once(5).await;
}
