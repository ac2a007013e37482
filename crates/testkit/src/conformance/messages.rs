//! Messages: lines in and out, what a sync changes and what it leaves alone, turns.

use amplifier_session_core::{
    ErrorKind,
    backend::prelude::*,
    model::{ContentType, RawJson, Role, Timestamp, VectorState},
    storage::SyncLines,
};
use serde_json::json;

use super::{
    Subject, samples,
    store::{Store, kind, raw, scope, target},
};
use crate::lines::{self, Line};

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn numbered(count: u32) -> Vec<Line> {
    (0..count).map(|n| lines::user(&format!("message number{n}")).at("2026-01-05T08:00:00Z")).collect()
}

/// Lines come back byte for byte, and their text can be searched.
pub async fn lines_come_back_byte_for_byte(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let samples = samples::awkward_messages();
    let lines: Vec<RawJson> = samples.iter().map(|(_, line)| line.clone()).collect();
    store.sync(&target("s"), lines).await;
    for handle in [store, Store::open_again(subject).await] {
        let messages = handle.messages(&target("s")).await;
        assert_eq!(messages.len(), samples.len());
        for (message, (name, line)) in messages.iter().zip(&samples) {
            assert_eq!(message.raw, *line, "{name}");
            assert_eq!((message.role, message.content()), (Role::User, json!("hello")), "{name}");
        }
        assert_eq!(handle.find(&target("s"), "hello").await.len(), samples.len());
    }
}

/// What is not valid Unicode is kept in the line; in the text that is searched, U+FFFD stands for it.
pub async fn broken_unicode_is_kept_and_searched_around(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = [
        RawJson::new(b"{\"role\":\"user\",\"content\":\"before\xff after\"}".to_vec()),
        RawJson::from(r#"{"role":"user","content":"before\ud800 after"}"#),
        RawJson::from(r#"{"role":"user","content":"before\u0000 after"}"#),
    ];
    store.sync(&target("s"), lines.to_vec()).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| &message.raw).eq(&lines));
    assert_eq!(messages[0].content(), json!("before\u{FFFD} after"));
    assert_eq!(messages[1].content(), json!("before\u{FFFD} after"));
    assert_eq!(messages[2].content(), json!("before\0 after"));
    assert_eq!(store.find(&target("s"), "before").await, [0, 1, 2]);
    assert_eq!(store.find(&target("s"), "after").await, [0, 1, 2]);
    assert!(store.owing(&target("s")).await.is_empty());
}

/// A large message is kept whole, and its last word is found.
pub async fn a_large_message_is_kept_whole(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let text = format!("{} lastword", "filler text, ".repeat(160_000));
    store.sync(&target("s"), vec![lines::tool(&text), lines::user("small")]).await;
    let messages = store.messages(&target("s")).await;
    assert_eq!(messages[0].content(), json!(text));
    assert_eq!(store.find(&target("s"), "lastword").await, [0]);
}

/// Times are brought to UTC, from wherever they stand in a line.
pub async fn times_are_brought_to_utc(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::user("in metadata").at("2026-01-05T10:00:00+02:00"),
        lines::user("at the top").with("timestamp", json!("2026-01-05T08:00:00Z")),
        lines::user("short").with("ts", json!("2026-01-05T03:00:00.000001-05:00")),
        lines::user("both").with("ts", json!("1999-01-01T00:00:00Z")).at("2026-01-05T08:00:00"),
    ];
    store.sync(&target("s"), lines).await;
    let messages = store.messages(&target("s")).await;
    let eight = time("2026-01-05T08:00:00Z");
    let times: Vec<_> = messages.iter().map(|message| message.ts).collect();
    assert_eq!(times, [eight, eight, time("2026-01-05T08:00:00.000001Z"), eight]);
    assert!(messages.iter().all(|message| !message.ts_estimated()));
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.created, session.updated), (eight, time("2026-01-05T08:00:00.000001Z")));
}

/// A line without a time gets the one at which it was first seen, is marked so, and keeps it.
pub async fn a_missing_time_is_estimated_once(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let sync = async |lines: Vec<Line>, seen: &str| {
        let lines = SyncLines::whole(raw(lines)).with_seen(time(seen));
        store.storage.sync_transcript_lines(&target("s"), lines).await.unwrap();
    };
    let line = || lines::user("no time here");
    sync(vec![line(), line().with("timestamp", json!("yesterday"))], "2026-01-05T08:00:00Z").await;
    sync(vec![line(), line().with("timestamp", json!("yesterday")), line()], "2026-01-06T08:00:00Z").await;
    let messages = store.messages(&target("s")).await;
    let times: Vec<_> = messages.iter().map(|message| (message.ts, message.ts_estimated())).collect();
    let (first, second) = (time("2026-01-05T08:00:00Z"), time("2026-01-06T08:00:00Z"));
    assert_eq!(times, [(first, true), (first, true), (second, true)]);

    // A line that moves, and whose turn changes, was still first seen when it was.
    sync(vec![lines::user("new"), line(), lines::user("newer"), line()], "2026-01-07T08:00:00Z").await;
    let messages = store.messages(&target("s")).await;
    let times: Vec<_> = messages.iter().map(|message| message.ts).collect();
    let third = time("2026-01-07T08:00:00Z");
    assert_eq!(times, [third, first, third, second]);
}

/// The same sync a second time changes nothing: no write, no embedding, no version, no time.
pub async fn the_same_sync_twice_changes_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = || {
        vec![
            lines::user("no time"),
            lines::thinking("hm", "an answer"),
            lines::tool("out"),
            lines::system("rules"),
            lines::tool_call("bash", serde_json::json!({"command": "ls"})),
        ]
    };
    let report = store.sync(&target("s"), lines()).await;
    assert_eq!((report.created, report.messages_written), (true, 5));
    let counted: Vec<_> = report.messages_by_content_type.into_iter().collect();
    assert_eq!(counted, ContentType::ALL.map(|content_type| (content_type, 1)));
    let (stored, messages) = (store.stored(&target("s")).await, store.messages(&target("s")).await);
    let vectors = store.vectors(&target("s")).await;
    store.backend.reset_counts();
    store.embedding.reset_counts();

    assert_eq!(store.sync(&target("s"), lines()).await, Default::default());
    assert_eq!(store.sync_from(&target("s"), 0, lines()).await.unwrap(), Default::default());
    assert_eq!(store.sync_from(&target("s"), 2, lines().split_off(2)).await.unwrap(), Default::default());
    assert_eq!(store.sync_from(&target("s"), 4, Vec::<Line>::new()).await.unwrap(), Default::default());
    assert_eq!((store.backend.writes(), store.embedding.calls()), (0, 0));
    assert_eq!(store.stored(&target("s")).await, stored);
    assert_eq!(store.messages(&target("s")).await, messages);
    assert_eq!(store.vectors(&target("s")).await, vectors);
}

/// A changed line changes that message, what full text finds of it, and its vectors; all others stay.
pub async fn a_changed_line_changes_that_message_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut lines = numbered(9);
    store.sync(&target("s"), lines.clone()).await;
    let (before, vectors) = (store.messages(&target("s")).await, store.vectors(&target("s")).await);
    store.embedding.reset_counts();

    lines[4] = lines::user("something else").at("2026-01-05T08:00:00Z");
    let report = store.sync(&target("s"), lines).await;
    assert_eq!((report.created, report.messages_written, report.messages_removed), (false, 1, 0));
    assert_eq!(store.embedding.texts(), ["something else"]);
    let after = store.messages(&target("s")).await;
    for (sequence, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before == after, sequence != 4, "{sequence}");
    }
    assert_eq!(after[4].content(), json!("something else"));
    assert!(after[4].synced_at > before[4].synced_at);
    let mut expected = vectors;
    expected[4].1.vector = store.embedding.vector("something else");
    let found = store.vectors(&target("s")).await;
    assert!(found.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && a.1.vector == b.1.vector));
    assert!(store.find(&target("s"), "number4").await.is_empty());
    assert_eq!(store.find(&target("s"), "something").await, [4]);
    assert_eq!(store.find(&target("s"), "message").await, [0, 1, 2, 3, 5, 6, 7, 8]);
}

/// The whole transcript removes the tail, with its vectors and from every search.
pub async fn the_whole_transcript_removes_the_tail(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), numbered(20)).await;
    let before = store.messages(&target("s")).await;
    let report = store.sync(&target("s"), numbered(6)).await;
    assert_eq!((report.messages_written, report.messages_removed), (0, 14));
    assert_eq!(store.messages(&target("s")).await, before[..6]);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (6, 6));
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, 6);
    assert!(store.find(&target("s"), "number6 number19").await.is_empty());
    assert_eq!(store.find(&target("s"), "message").await, [0, 1, 2, 3, 4, 5]);
    let near = super::store::meaning("message number19").with_limit(100);
    assert_eq!(store.search(&target("s"), &near).await.results.len(), 6);

    // What was removed is new when it comes back.
    let report = store.sync(&target("s"), numbered(8)).await;
    assert_eq!((report.messages_written, report.messages_removed), (2, 0));
    assert_eq!(store.find(&target("s"), "number7").await, [7]);
}

/// Lines from a start sequence on remove nothing behind them.
pub async fn lines_from_a_start_remove_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), numbered(10)).await;
    let changed = vec![lines::user("changed three"), lines::user("changed four")];
    let report = store.sync_from(&target("s"), 3, changed).await.unwrap();
    assert_eq!((report.messages_written, report.messages_removed), (2, 0));
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (10, 10));
    assert_eq!(store.find(&target("s"), "changed").await, [3, 4]);
    assert_eq!(store.find(&target("s"), "message").await, [0, 1, 2, 5, 6, 7, 8, 9]);
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, 10);
}

/// Lines may follow on the last one; beyond that there would be a gap, which is refused.
pub async fn a_gap_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let refused = async |start: u32| {
        let error = store.sync_from(&target("s"), start, vec![lines::user("x")]).await.unwrap_err();
        assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some("start_sequence")));
    };
    refused(1).await;
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
    store.sync_from(&target("s"), 0, numbered(3)).await.unwrap();
    refused(4).await;
    refused(u32::MAX).await;
    store.sync_from(&target("s"), 3, vec![lines::user("follows on")]).await.unwrap();
    let sequences: Vec<_> =
        store.messages(&target("s")).await.iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, [0, 1, 2, 3]);
}

/// A bad line is named, and the call stores nothing.
pub async fn a_bad_line_is_named_and_nothing_is_stored(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for bad in [
        "",
        "{",
        "[]",
        "null",
        "{\"content\":\"x\"}",
        "{\"role\":\"robot\"}",
        "{\"role\":1}",
        "{\"role\":\"USER\"}",
    ] {
        let lines = vec![lines::user("good").raw(), RawJson::from(bad), lines::user("good").raw()];
        let error = store.sync_from(&target("s"), 0, lines).await.unwrap_err();
        assert_eq!((error.kind(), error.context("line")), (ErrorKind::Validation, Some("2")), "{bad:?}");
    }
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
    store.sync(&target("s"), numbered(2)).await;
    let stored = store.stored(&target("s")).await;
    let lines = vec![lines::user("changed").raw(), RawJson::from("{")];
    assert_eq!(kind(store.sync_from(&target("s"), 0, lines).await), ErrorKind::Validation);
    assert_eq!(store.stored(&target("s")).await, stored);
    assert!(store.find(&target("s"), "changed").await.is_empty());
}

/// Every role of the schema is taken.
pub async fn every_role_is_taken(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines: Vec<Line> =
        Role::ALL.iter().map(|role| lines::message(role.as_str(), json!("text"))).collect();
    store.sync(&target("s"), lines).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.role).eq(Role::ALL));
    let embedded = messages.iter().map(|message| message.vectors == VectorState::Stored);
    assert!(embedded.eq([true, true, true, false, false]));
    assert_eq!(messages[3].id(), "s_msg_3");
}

/// Messages that hold nothing to embed are stored and owe nothing.
pub async fn messages_without_text_owe_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::assistant(""),
        lines::user("  \n"),
        lines::message("assistant", json!(null)),
        lines::user_blocks(json!([{"type": "image", "source": {"data": "aGVsbG8="}}])),
        lines::message("assistant", json!([{"type": "redacted_thinking", "data": "c2VjcmV0"}])),
        lines::message("user", json!(42)),
        lines::message("user", json!({"text": {"a": 1}})),
    ];
    let count = lines.len();
    store.sync(&target("s"), lines).await;
    let messages = store.messages(&target("s")).await;
    assert_eq!(messages.len(), count);
    assert!(messages.iter().all(|message| message.vectors == VectorState::Nothing));
    assert_eq!((store.embedding.calls(), store.owing(&target("s")).await.len()), (0, 0));
    assert!(store.find(&target("s"), "aGVsbG8 c2VjcmV0").await.is_empty());
    assert_eq!(store.find(&target("s"), "bash ls").await, [0]);
}

/// Turns begin at 1 with the first real user message; what a tool or a hook says in the user's name begins
/// none.
pub async fn turns_are_numbered(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::system("rules"),
        lines::user("first"),
        lines::tool_call("bash", json!({})),
        lines::tool("output"),
        lines::tool_result("output"),
        lines::user("<system-reminder>be brief</system-reminder>"),
        lines::assistant("answer"),
        lines::user("second"),
        lines::assistant("answer"),
    ];
    store.sync(&target("s"), lines).await;
    let turns =
        async || store.messages(&target("s")).await.iter().map(|message| message.turn).collect::<Vec<_>>();
    let mut expected = vec![None, Some(1), Some(1), Some(1), Some(1), Some(1), Some(1), Some(2), Some(2)];
    assert_eq!(turns().await, expected);
    assert_eq!(store.stored(&target("s")).await.session.turn_count, 2);

    // Appended lines go on counting; a turn that is given is believed, unless it is none.
    let more = vec![
        lines::user("third"),
        lines::user("seventh").with("turn", json!(7)),
        lines::assistant("zero is no turn").with("turn", json!(0)),
        lines::user("eighth"),
    ];
    store.sync_from(&target("s"), 9, more).await.unwrap();
    expected.extend([Some(3), Some(7), Some(7), Some(8)]);
    assert_eq!(turns().await, expected);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.turn_count, session.first_prompt.as_deref()), (5, Some("first")));
}

/// When a turn is inserted, the messages behind it are counted anew.
pub async fn a_new_turn_moves_those_behind_it(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let reminder = lines::user("<system-reminder>not a turn</system-reminder>");
    let lines = |first: Line| vec![first, lines::user("a question"), lines::assistant("an answer")];
    store.sync(&target("s"), lines(reminder)).await;
    store.sync(&target("s"), lines(lines::user("a turn"))).await;
    let turns: Vec<_> = store.messages(&target("s")).await.iter().map(|message| message.turn).collect();
    assert_eq!(turns, [Some(1), Some(2), Some(2)]);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.turn_count, session.first_prompt.as_deref()), (2, Some("a turn")));
    assert!(store.owing(&target("s")).await.is_empty());
    assert_eq!(store.vectors(&target("s")).await.len(), 3);
}

/// Messages are read behind a sequence and up to a limit, however small the store's pages.
pub async fn messages_are_read_in_parts(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), numbered(40)).await;
    let read = async |after: Option<u32>, limit: usize| {
        let session = target("s").key.session_id;
        let messages =
            store.storage.get_transcript_lines(&scope(&target("s")), &session, after, limit).await.unwrap();
        messages.iter().map(|message| message.sequence).collect::<Vec<_>>()
    };
    assert_eq!(read(None, 25).await, (0..25).collect::<Vec<_>>());
    assert_eq!(read(Some(24), 100).await, (25..40).collect::<Vec<_>>());
    assert_eq!(read(Some(0), 1).await, [1]);
    assert!(read(Some(39), 10).await.is_empty());
    assert!(read(Some(u32::MAX), 10).await.is_empty());
    assert!(read(None, 0).await.is_empty());
}

/// A transcript that has become empty leaves a session without messages.
pub async fn an_empty_transcript_removes_all_messages(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), numbered(3)).await;
    let report = store.sync(&target("s"), Vec::<Line>::new()).await;
    assert_eq!(report.messages_removed, 3);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (0, 0));
    assert!(store.messages(&target("s")).await.is_empty());
    assert!(store.find(&target("s"), "message").await.is_empty());
}

/// A session goes by its first prompt, also when that has changed.
pub async fn the_first_prompt_follows_the_transcript(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store
        .sync(
            &target("s"),
            vec![lines::system("rules"), lines::user("How do I\n bake bread?"), lines::user("b")],
        )
        .await;
    assert_eq!(store.stored(&target("s")).await.session.title(), "How do I bake bread?");
    store.sync_from(&target("s"), 3, vec![lines::user("later")]).await.unwrap();
    assert_eq!(store.stored(&target("s")).await.session.title(), "How do I bake bread?");
    store.sync(&target("s"), vec![lines::user("How do I bake a cake?")]).await;
    assert_eq!(store.stored(&target("s")).await.session.title(), "How do I bake a cake?");
    store.sync(&target("s"), vec![lines::assistant("nobody asked")]).await;
    assert_eq!(store.stored(&target("s")).await.session.title(), "s");
}

/// Messages and vectors of a session of many messages are all there, once.
pub async fn a_long_session_is_complete(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), numbered(700)).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.sequence).eq(0..700));
    let vectors = store.vectors(&target("s")).await;
    assert!(vectors.iter().map(|(sequence, _)| *sequence).eq(0..700));
    assert!(vectors.iter().all(|(_, record)| record.content_type == ContentType::UserQuery));
    assert_eq!(store.find(&target("s"), "number699").await, [699]);
}
