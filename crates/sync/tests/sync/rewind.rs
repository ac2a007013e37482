//! Rewinds of sessions whose files still contain the removed turns.

use amplifier_session_core::{
    backend::{RewoundTo, SessionChange, prelude::*},
    model::{SessionId, SessionKey},
    storage::{EventDetail, RewindOptions, RewindReport},
};
use amplifier_session_testkit::lines::{self, Line};
use serde_json::{Value, json};

use crate::fixture::{Fixture, NOW, set_modified, user};

async fn rewind_to(fixture: &Fixture, turn: u32) -> RewindReport {
    let key = SessionKey::new(user(), SessionId::new("s").unwrap());
    fixture.storage.ingestion().rewind(&key, &RewindOptions::to_turn(turn)).await.unwrap()
}

fn at(turn: u32) -> String {
    format!("2026-01-05T08:{turn:02}:00Z")
}

fn turns(range: std::ops::RangeInclusive<u32>) -> Vec<Line> {
    range.map(|n| lines::user(&format!("turn {n}")).at(at(n))).collect()
}

fn log(range: std::ops::RangeInclusive<u32>) -> Vec<Line> {
    let prompt = |n| {
        let data = json!({"prompt": format!("turn {n}")});
        lines::logger_event("prompt:submit").data(data).at(at(n))
    };
    range.flat_map(|n| [prompt(n), lines::logger_event(&format!("e:{n}")).at(at(n))]).collect()
}

/// A synced session with four turns. Its files were modified just before, so that their stamps are not trusted yet.
async fn synced() -> Fixture {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.metadata("{}").unwrap().transcript(turns(1..=4)).unwrap().events(log(1..=4)).unwrap();
    for file in ["metadata.json", "transcript.jsonl", "events.jsonl"] {
        set_modified(&folder.path().join(file), NOW);
    }
    fixture.sync().await;
    fixture
}

async fn counts(fixture: &Fixture) -> (usize, usize) {
    (fixture.messages("s").await.len(), fixture.events("s").await.len())
}

#[tokio::test]
async fn removed_turns_stay_away_while_the_files_are_unchanged() {
    let fixture = synced().await;
    let report = rewind_to(&fixture, 2).await;
    assert_eq!((report.turns, report.messages, report.events), (2, 2, 4));
    let before = fixture.stored("s").await.unwrap();
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.unchanged, read), (1, 0));
    assert_eq!((counts(&fixture).await, fixture.stored("s").await.unwrap()), ((2, 4), before));
    // The metadata is another file.
    fixture.folder().metadata(r#"{"name":"later"}"#).unwrap();
    let rewound = async || fixture.stored("s").await.unwrap().sync_state.unwrap().rewound;
    assert_eq!(rewound().await, Some(RewoundTo { messages: 2, events: 4 }));
    fixture.sync().await;
    assert_eq!((counts(&fixture).await, rewound().await), ((2, 4), None));
    assert_eq!(fixture.stored("s").await.unwrap().session.name.as_deref(), Some("later"));
    assert_eq!((fixture.sync_and_count().await.1, counts(&fixture).await), (0, (2, 4)));
}

/// A session that an earlier version synced is not read again, as others are, to derive its data by the current rules, if
/// this version has rewound it, or the earlier one. That one stored the rows that were left in the state of the files.
#[tokio::test]
async fn turns_that_were_removed_from_an_earlier_session_stay_away() {
    for is_rewound_by_earlier in [false, true] {
        let fixture = synced().await;
        rewind_to(&fixture, 2).await;
        let stored = fixture.stored("s").await.unwrap();
        let mut state = stored.sync_state.unwrap();
        let mut files: Value = serde_json::from_str(&state.files).unwrap();
        files["version"] = json!(2);
        if is_rewound_by_earlier {
            state.rewound = None;
            files["rewound"] = json!({"metadata.json": 2, "transcript.jsonl": 2, "events.jsonl": 4});
            files["files"]
                .as_object_mut()
                .unwrap()
                .values_mut()
                .for_each(|file| file["settled"] = json!(true));
        }
        state.files = files.to_string();
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.sync_state = Some(state);
        fixture.backend.write_one(change).await.unwrap();
        fixture.sync().await;
        assert_eq!(counts(&fixture).await, (2, 4));
        fixture.folder().append_transcript(turns(5..=5)).unwrap().append_events(log(5..=5)).unwrap();
        fixture.sync().await;
        assert_eq!(counts(&fixture).await, (5, 10));
    }
}

#[tokio::test]
async fn removed_turns_return_if_the_files_change() {
    let fixture = synced().await;
    rewind_to(&fixture, 2).await;
    fixture.folder().append_transcript(turns(5..=5)).unwrap().append_events(log(5..=5)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.events.written), (3, 6));
    assert_eq!(fixture.texts().await, ["turn 1", "turn 2", "turn 3", "turn 4", "turn 5"]);
    assert_eq!(fixture.event_types().await.len(), 10);
    let session = fixture.stored("s").await.unwrap().session;
    assert_eq!((session.turn_count, session.message_count, session.event_count), (5, 5, 10));
}

#[tokio::test]
async fn a_rewind_of_the_files_afterwards_changes_no_row() {
    let fixture = synced().await;
    rewind_to(&fixture, 2).await;
    let before = (fixture.messages("s").await, fixture.events("s").await);
    fixture.folder().transcript(turns(1..=2)).unwrap().events(log(1..=2)).unwrap();
    let report = fixture.sync().await;
    assert_eq!((report.messages.written, report.messages.removed, report.events.written), (0, 0, 0));
    assert_eq!((fixture.messages("s").await, fixture.events("s").await), before);
    fixture.folder().append_transcript([lines::user("other").at(at(3))]).unwrap();
    fixture.sync().await;
    assert_eq!(fixture.texts().await, ["turn 1", "turn 2", "other"]);
}

#[tokio::test]
async fn a_rewind_of_the_files_before_leaves_nothing_to_remove() {
    let fixture = synced().await;
    fixture.folder().transcript(turns(1..=2)).unwrap();
    fixture.sync().await;
    let report = rewind_to(&fixture, 2).await;
    assert!(report.is_empty());
    assert_eq!((report.last_turn, counts(&fixture).await), (Some(2), (2, 8)), "the log was not rewound");
}

#[tokio::test]
async fn a_rewind_counts_the_rows_that_damage_has_kept() {
    let fixture = synced().await;
    fixture.folder().file("transcript.jsonl", "").unwrap();
    assert_eq!(fixture.sync().await.kept_rows, 4);
    rewind_to(&fixture, 3).await;
    assert_eq!((fixture.sync().await.kept_rows, counts(&fixture).await), (3, (3, 6)));
    rewind_to(&fixture, 0).await;
    let report = fixture.sync().await;
    assert_eq!((report.kept_rows, report.kept.len(), counts(&fixture).await), (0, 0, (0, 0)));
}

#[tokio::test]
async fn a_store_without_events_is_rewound_by_its_transcript() {
    let mut fixture = Fixture::new();
    fixture.keep_events(EventDetail::None);
    fixture.folder().transcript(turns(1..=4)).unwrap().events(log(1..=4)).unwrap();
    fixture.sync().await;
    let report = rewind_to(&fixture, 1).await;
    assert_eq!((report.messages, report.events), (3, 0));
    assert_eq!((fixture.sync_and_count().await.1, counts(&fixture).await), (0, (1, 0)));
}
