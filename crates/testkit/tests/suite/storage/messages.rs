//! Messages: what a sync changes and keeps, times and turns.

use amplifier_session_testkit::{conformance::messages::numbered, prelude::*};

on_both_stores![
    times_are_converted_to_utc,
    a_changed_line_changes_only_its_message,
    the_whole_transcript_removes_the_tail,
    lines_from_a_start_sequence_remove_nothing,
    messages_without_text_need_no_vectors,
    turns_are_numbered,
    lines_that_nobody_typed_start_no_turn_and_are_no_title,
    titles_of_other_rules_are_remade,
];

/// The titles of a store that were found by other rules are found again before it is written to. Names stay.
async fn titles_of_other_rules_are_remade(store: Store) {
    let plan = "Implement the following plan:\n\n# Bake faster\n\n## Context\n\nOvens are cold.";
    store.sync(&target("s"), vec![lines::user("hi"), lines::assistant("Yes?"), lines::user(plan)]).await;
    store.sync(&target("greeting"), vec![lines::user("hi")]).await;
    for (session, old) in [("s", "hi"), ("greeting", "an older title")] {
        let change = |change: &mut SessionChange| {
            change.session.first_prompt = Some(old.to_owned());
            change.session.name = Some("Ovens".to_owned());
        };
        store.write(&target(session), change).await;
    }
    let now = amplifier_session_core::content::TITLES.to_string();
    assert!(store.backend.replace_meta(meta::TITLES, &now, "1").await.unwrap());

    SessionStorage::new(store.backend.clone()).rederivation().rederive().await.unwrap();
    for (session, title) in [("s", "Bake faster"), ("greeting", "hi")] {
        let found = store.stored(&target(session)).await.session;
        assert_eq!((found.first_prompt.as_deref(), found.title()), (Some(title), "Ovens"));
    }
    assert_eq!(store.backend.meta().await.unwrap().get(meta::TITLES), Some(&now));
    // A session that so far only has a greeting gets a title from its next message.
    store.sync(&target("greeting"), vec![lines::user("hi"), lines::user("Why is the oven cold?")]).await;
    let found = store.stored(&target("greeting")).await.session;
    assert_eq!(found.first_prompt.as_deref(), Some("Why is the oven cold?"));
}

/// A line that a program wrote according to its metadata starts no turn and is no title.
async fn lines_that_nobody_typed_start_no_turn_and_are_no_title(store: Store) {
    let with = |metadata: Value| lines::user("Check the state of the job.").with("metadata", metadata);
    let lines = vec![
        with(json!({"ephemeral": true})),
        lines::user("Why is the oven cold?"),
        lines::assistant("The door is open."),
        with(json!({"amplifier_input": {"version": 1, "kind": "service", "id": "7"}})),
        lines::assistant("The job is done."),
        with(json!({"amplifier_visible_reference": true})),
        lines::message("human", json!("And the mixer?")),
    ];
    store.sync(&target("s"), lines).await;
    let turns: Vec<_> = store.messages(&target("s")).await.iter().map(|message| message.turn).collect();
    assert_eq!(turns, [None, Some(1), Some(1), Some(1), Some(1), Some(1), Some(2)]);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.turn_count, session.first_prompt.as_deref()), (2, Some("Why is the oven cold?")));
}

/// Times are converted to UTC, from any field of a line.
async fn times_are_converted_to_utc(store: Store) {
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

/// A changed line changes only its message, its full-text entries and its vectors.
async fn a_changed_line_changes_only_its_message(store: Store) {
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
    assert!(found.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && is_kept(&a.1.vector, &b.1.vector)));
    assert!(store.find(&target("s"), "number4").await.is_empty());
    assert_eq!(store.find(&target("s"), "something").await, [4]);
    assert_eq!(store.find(&target("s"), "message").await, [0, 1, 2, 3, 5, 6, 7, 8]);
}

/// Syncing the whole transcript removes messages after its end, their vectors and their search results.
async fn the_whole_transcript_removes_the_tail(store: Store) {
    store.sync(&target("s"), numbered(20)).await;
    let before = store.messages(&target("s")).await;
    let report = store.sync(&target("s"), numbered(6)).await;
    assert_eq!((report.messages_written, report.messages_removed), (0, 14));
    assert_eq!(store.messages(&target("s")).await, before[..6]);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (6, 6));
    assert_eq!(store.rows(&target("s")).await.vectors, 6);
    assert!(store.find(&target("s"), "number6 number19").await.is_empty());
    assert_eq!(store.find(&target("s"), "message").await, [0, 1, 2, 3, 4, 5]);
    let near = meaning("message number19").with_limit(100);
    assert_eq!(store.search(&target("s"), &near).await.results.len(), 6);

    // A removed message that comes back is new.
    let report = store.sync(&target("s"), numbered(8)).await;
    assert_eq!((report.messages_written, report.messages_removed), (2, 0));
    assert_eq!(store.find(&target("s"), "number7").await, [7]);
    let report = store.sync(&target("s"), Vec::<Line>::new()).await;
    assert_eq!(report.messages_removed, 8);
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (0, 0));
    assert!(store.messages(&target("s")).await.is_empty());
}

/// Syncing from a start sequence removes nothing after the given lines.
async fn lines_from_a_start_sequence_remove_nothing(store: Store) {
    store.sync(&target("s"), numbered(10)).await;
    let changed = vec![lines::user("changed three"), lines::user("changed four")];
    let report = store.sync_from(&target("s"), 3, changed).await.unwrap();
    assert_eq!((report.messages_written, report.messages_removed), (2, 0));
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.turn_count), (10, 10));
    assert_eq!(store.find(&target("s"), "changed").await, [3, 4]);
    assert_eq!(store.rows(&target("s")).await.vectors, 10);
}

/// Messages without text to embed are stored without pending vectors.
async fn messages_without_text_need_no_vectors(store: Store) {
    let lines = vec![
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::assistant(""),
        lines::user("  \n"),
        lines::message("assistant", json!(null)),
        lines::message("user", json!([{"type": "image", "source": {"data": "aGVsbG8="}}])),
        lines::message("assistant", json!([{"type": "redacted_thinking", "data": "c2VjcmV0"}])),
        lines::message("user", json!(42)),
        lines::message("user", json!({"text": {"a": 1}})),
    ];
    let count = lines.len();
    store.sync(&target("s"), lines).await;
    let messages = store.messages(&target("s")).await;
    assert_eq!(messages.len(), count);
    assert!(messages.iter().all(|message| message.vectors == VectorState::Nothing));
    assert_eq!((store.embedding.calls(), store.pending(&target("s")).await.len()), (0, 0));
    assert!(store.find(&target("s"), "aGVsbG8 c2VjcmV0").await.is_empty());
    assert_eq!(store.find(&target("s"), "bash ls").await, [0]);
}

/// Turns start at 1 with the first message that the user wrote. User messages written by tools and hooks start no turn.
/// The title of a session is its first prompt.
async fn turns_are_numbered(store: Store) {
    let mut lines = vec![
        lines::system("rules"),
        lines::user("How do I\n bake bread?"),
        lines::tool_call("bash", json!({})),
        lines::tool("output"),
        lines::tool_result("output"),
        lines::user("<system-reminder>be brief</system-reminder>"),
        lines::assistant("answer"),
        lines::user("second"),
        lines::assistant("answer"),
    ];
    let turns = async || {
        let messages = store.messages(&target("s")).await;
        messages.iter().map(|message| message.turn.unwrap_or(0)).collect::<Vec<_>>()
    };
    let session = async || store.stored(&target("s")).await.session;
    store.sync(&target("s"), lines.clone()).await;
    assert_eq!((turns().await, session().await.turn_count), (vec![0, 1, 1, 1, 1, 1, 1, 2, 2], 2));

    // Appended lines continue the count. A turn in the line is used, unless it is zero.
    let more = [
        lines::user("third"),
        lines::user("seventh").with("turn", json!(7)),
        lines::assistant("zero is no turn").with("turn", json!(0)),
        lines::user("eighth"),
    ];
    store.sync_from(&target("s"), 9, more.to_vec()).await.unwrap();
    assert_eq!((turns().await, session().await.turn_count), (vec![0, 1, 1, 1, 1, 1, 1, 2, 2, 3, 7, 7, 8], 5));
    assert_eq!(session().await.title(), "How do I bake bread?");

    // If a turn is inserted, the following messages are renumbered and keep their vectors.
    lines[0] = lines::user("How do I bake a cake?");
    store.sync(&target("s"), lines).await;
    assert_eq!((turns().await, session().await.turn_count), (vec![1, 2, 2, 2, 2, 2, 2, 3, 3], 3));
    assert_eq!(session().await.title(), "How do I bake a cake?");
    assert!(store.pending(&target("s")).await.is_empty());
    store.sync(&target("s"), vec![lines::assistant("nobody asked")]).await;
    assert_eq!(session().await.title(), "s");
}
