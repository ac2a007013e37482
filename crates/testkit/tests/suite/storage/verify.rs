//! What a check of a session finds, and what a repair derives again.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    a_line_that_is_not_what_was_written_is_found,
    ids_that_lines_do_not_state_are_found_and_corrected,
    wrong_counts_are_found_and_counted_again,
    wrong_turns_are_found_in_synced_sessions,
    missing_vectors_are_made_again,
    vectors_of_nothing_are_removed,
    missing_rows_are_listed,
    a_mending_ingest_writes_damaged_rows_and_no_others,
];

fn places(check: &SessionCheck) -> Vec<String> {
    check.differences.iter().map(|difference| format!("{:?} {difference}", difference.kind)).collect()
}

async fn check(store: &Store) -> SessionCheck {
    store.storage.verification().check_session(&store.stored(&target("s")).await).await.unwrap()
}

async fn repair(store: &Store) -> SessionCheck {
    let found = check(store).await;
    store.storage.verification().repair_session(&target("s").key, &found).await.unwrap();
    store.embed().await;
    check(store).await
}

fn three() -> Vec<Line> {
    vec![lines::user("one"), lines::assistant("two"), lines::user("three")]
}

/// Writes messages that were changed by `change`.
async fn put(store: &Store, sequences: &[usize], change: impl Fn(&mut Message)) {
    let mut messages = store.messages(&target("s")).await;
    for message in &mut messages {
        message.vectors = VectorState::Pending;
        change(message);
    }
    let put = sequences.iter().map(|at| messages[*at].clone()).collect();
    store.write(&target("s"), |of| of.messages = RowChange { put, truncate: None }).await;
}

async fn a_line_that_is_not_what_was_written_is_found(store: Store) {
    store.sync(&target("s"), three()).await;
    store.sync_events(&target("s"), vec![lines::logger_event("a"), lines::logger_event("b")]).await;
    assert!(check(&store).await.is_clean());
    put(&store, &[1], |message| {
        message.raw = RawJson::from(r#"{"role":"assistant","content":"twp"}"#);
        message.vectors = VectorState::Nothing;
    })
    .await;
    let line = store.events(&target("s")).await.remove(1);
    let payload = Payload::Plain(b"{\"event\":\"c\"}".to_vec());
    let event = StoredEvent { event: line.event, payload };
    store.write(&target("s"), |of| of.events.put = vec![event]).await;
    let found = check(&store).await;
    assert_eq!(found.damaged.clone().map(|rows| rows.into_iter().collect::<Vec<_>>()), [vec![1], vec![1]]);
    assert_eq!(found.difference_count, 2, "{:?}", places(&found));
    // The lines are nowhere else.
    assert_eq!(repair(&store).await.damaged, found.damaged);
}

/// An event whose line states an id has this id, and no other; a derived one if another event had the id before.
async fn ids_that_lines_do_not_state_are_found_and_corrected(store: Store) {
    let event = |id: &str| lines::logger_event("a").with("event_id", json!(id)).with("n", json!(id.len()));
    store.sync_events(&target("s"), vec![event("e-1"), event("e-2"), event("e-1").with("x", json!(1))]).await;
    let right = store.events(&target("s")).await.into_iter().map(|line| line.event.event_id);
    let right: Vec<String> = right.collect();
    assert_eq!(right, ["e-1", "e-2", "s_evt_2"]);
    let line = store.events(&target("s")).await.remove(1);
    let payload = Payload::Plain(line.raw.unwrap().as_bytes().to_vec());
    let event = StoredEvent { event: Event { event_id: "e-6".to_owned(), ..line.event }, payload };
    store.write(&target("s"), |of| of.events.put = vec![event]).await;
    // In a session that was not synced, the ids that the library was given are right.
    assert!(check(&store).await.is_clean());
    store.write(&target("s"), |of| of.sync_state = Some(StoredSyncState::of("{}"))).await;
    let found = check(&store).await;
    assert_eq!(places(&found), ["Damaged event 1: its id is e-6; its line states e-2"]);
    assert!(repair(&store).await.is_clean());
    let repaired: Vec<String> =
        store.events(&target("s")).await.into_iter().map(|line| line.event.event_id).collect();
    assert_eq!(repaired, right);
}

async fn wrong_counts_are_found_and_counted_again(store: Store) {
    store.sync(&target("s"), three()).await;
    store
        .write(&target("s"), |of| {
            (of.session.message_count, of.session.event_count, of.session.turn_count) = (7, 1, 5);
        })
        .await;
    let found = places(&check(&store).await);
    assert_eq!(
        found,
        [
            "Count the session states 7 messages; its messages end after 3",
            "Count the session states 5 turns; its messages have 2",
            "Count the session states 1 events; its events end after 0",
        ]
    );
    assert!(repair(&store).await.is_clean());
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.event_count, session.turn_count), (3, 0, 2));
}

async fn wrong_turns_are_found_in_synced_sessions(store: Store) {
    store.sync(&target("s"), three()).await;
    put(&store, &[1], |message| message.turn = Some(2)).await;
    // In a session that was not synced, the turns that the library was given are right.
    assert!(check(&store).await.is_clean());
    store.write(&target("s"), |of| of.sync_state = Some(StoredSyncState::of("{}"))).await;
    let found = check(&store).await;
    assert_eq!(places(&found), ["Turn message 1: it is stored with turn 2; its line belongs to turn 1"]);
    assert!(repair(&store).await.is_clean());
    let turns: Vec<_> = store.messages(&target("s")).await.iter().map(|message| message.turn).collect();
    assert_eq!(turns, [Some(1), Some(1), Some(2)]);
}

async fn missing_vectors_are_made_again(store: Store) {
    store.sync(&target("s"), three()).await;
    // Their state says that they are stored.
    put(&store, &[0, 2], |message| message.vectors = VectorState::Stored).await;
    let found = check(&store).await;
    let reason = "it has no vector of its user_query";
    assert_eq!(places(&found), [0, 2].map(|at| format!("Vectors message {at}: {reason}")));
    assert!(repair(&store).await.is_clean());
    assert_eq!(store.vectors(&target("s")).await.len(), 3);
}

async fn vectors_of_nothing_are_removed(store: Store) {
    store.sync(&target("s"), vec![lines::user("one"), lines::system("be kind")]).await;
    let system = &store.messages(&target("s")).await[1];
    let vector = store.vectors(&target("s")).await.remove(0).1;
    let vectors = MessageVectors::new(1, system.digest, day(1), vec![vector]);
    store.backend.write_vectors(&target("s").key, 0, vec![vectors]).await.unwrap();
    let found = check(&store).await;
    // The vector made it look like a message with something to embed.
    assert!(found.is_clean() || found.differences.len() == 1, "{:?}", places(&found));
    assert!(repair(&store).await.is_clean());
}

async fn missing_rows_are_listed(store: Store) {
    let lines: Vec<Line> = (0..30).map(|n| lines::user(&format!("text {n}"))).collect();
    store.sync(&target("s"), lines).await;
    assert!(
        store
            .storage
            .verification()
            .missing_rows(&store.stored(&target("s")).await.session)
            .await
            .unwrap()
            .is_empty()
    );
    // Rows 20 to 29 come back as 25 to 29.
    let mut later = store.messages(&target("s")).await.split_off(25);
    later.iter_mut().for_each(|message| message.vectors = VectorState::Nothing);
    let messages = RowChange { put: later, truncate: Some(20) };
    store
        .write(&target("s"), |of| {
            of.messages = messages;
            of.session.message_count = 32;
        })
        .await;
    let session = store.stored(&target("s")).await.session;
    let gaps = store.storage.verification().missing_rows(&session).await.unwrap();
    assert_eq!((gaps.messages.as_slice(), gaps.count()), (&[(20, 24), (30, 31)][..], (7, 0)));
    let found = check(&store).await;
    assert_eq!(places(&found)[0], "Gap messages 20-24: they are missing");
    assert_eq!(found.gaps.messages, [(20, 24)]);
}

async fn a_mending_ingest_writes_damaged_rows_and_no_others(store: Store) {
    let all: Vec<Line> = (0..30).map(|n| lines::user(&format!("text {n}"))).collect();
    store.sync(&target("s"), all.clone()).await;
    put(&store, &[3], |message| {
        message.raw = RawJson::from(r#"{"role":"user","content":"x"}"#);
        message.vectors = VectorState::Nothing;
    })
    .await;
    let later = store
        .storage
        .reading()
        .readable_transcript_lines(&ana(), &target("s").key.session_id, Some(20), 100)
        .await;
    let mut later = later.unwrap().rows;
    later.iter_mut().for_each(|message| message.vectors = VectorState::Pending);
    let messages = RowChange { put: later, truncate: Some(20) };
    store.write(&target("s"), |of| of.messages = messages).await;
    store.embed().await;
    let found = check(&store).await;
    assert_eq!((found.damaged[0].len(), &found.gaps.messages[..]), (1, &[(20, 20)][..]));

    let mut ingest = store.storage.ingestion().ingest(target("s")).await.unwrap();
    ingest.repair(IngestRepair::new(found.damaged[0].clone(), false, found.gaps.clone()));
    ingest.begin_transcript(0).await.unwrap();
    for line in all {
        ingest.transcript_line(line.raw(), day(1)).await.unwrap();
    }
    ingest.end_transcript(Extent::Whole);
    let report = ingest.commit().await.unwrap();
    assert_eq!((report.messages_written, report.messages_removed), (2, 0));
    assert_eq!(store.pending(&target("s")).await, [3, 20]);
    store.embed().await;
    assert_eq!(places(&check(&store).await), Vec::<String>::new());
}
