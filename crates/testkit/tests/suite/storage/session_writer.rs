//! The rules for everything that writes sessions: import, copy, upgrade, salvage, masking and repair.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    fields_and_vector_states_come_from_the_rows,
    a_large_session_is_incomplete_until_it_is_finished,
    a_session_is_replaced_with_all_its_rows,
    an_id_of_another_event_is_not_used_again,
    only_one_of_two_writers_succeeds,
    nothing_is_written_if_nothing_changed,
    a_stated_summary_is_stored_with_its_line,
    vectors_need_a_generation,
];

/// Lines of each kind: a prompt, an answer with only a tool call, its result, a text of the system, and another turn.
fn transcript() -> Vec<Line> {
    vec![
        lines::user("list the files"),
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::tool("a.txt"),
        lines::system("be brief"),
        lines::user("thanks"),
    ]
}

/// The rows of a session with this transcript and events, as those of the session `id`, which does not exist.
async fn rows(
    store: &Store,
    id: &str,
    transcript: Vec<Line>,
    events: Vec<Line>,
) -> (Session, Vec<Message>, Vec<StoredEvent>) {
    store.sync(&target("source"), transcript).await;
    store.sync_events(&target("source"), events).await;
    let source = target("source").key;
    let session_id = SessionId::new(id).unwrap();
    let session = store.stored(&target("source")).await.session;
    let messages = messages(store, &source).await;
    let mut events = Vec::new();
    for event in read_events(store, &source).await {
        let payloads = store.backend.event_payloads(&source, &[event.sequence]).await.unwrap();
        events.extend(payloads.into_iter().map(|(_, payload)| (event.clone(), payload)));
    }
    store.storage.backend().delete_session(&source).await.unwrap();
    let moved = |event: Event| Event { session_id: session_id.clone(), ..event };
    let session = Session::new(
        SessionKey::new(session.user_id, session_id.clone()),
        session.host_id,
        session.project_slug,
        session.created,
    );
    let messages =
        messages.into_iter().map(|message| Message { session_id: session_id.clone(), ..message }).collect();
    let events = events.into_iter().map(|(event, payload)| StoredEvent::new(moved(event), payload));
    (session, messages, events.collect())
}

/// All messages of a session. The backend returns small pages.
async fn messages(store: &Store, key: &SessionKey) -> Vec<Message> {
    let mut messages = Vec::new();
    loop {
        let page = store.backend.read_messages(key, range(messages.len() as u32, 100)).await.unwrap();
        if page.is_empty() {
            return messages;
        }
        messages.extend(page);
    }
}

/// All events of a session.
async fn read_events(store: &Store, key: &SessionKey) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let page = store.backend.read_events(key, range(events.len() as u32, 100)).await.unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

fn writer(store: &Store, session: &Session, replaced: Option<&StoredSession>) -> SessionWriter {
    SessionWriter::new(store.storage.backend().clone(), session.clone(), replaced, "half written")
}

/// Adds a message with what its line says.
fn add(writer: &mut SessionWriter, message: Message) {
    let line = message.line();
    let texts = line.texts();
    writer.line(message, line.fields(), &texts);
}

/// Counts, title and turns are those of the rows. Only messages with a text that is embedded have pending vectors.
async fn fields_and_vector_states_come_from_the_rows(store: Store) {
    let events = vec![lines::logger_event("session:start")];
    let (session, source, events) = rows(&store, "s", transcript(), events).await;
    let mut writer = writer(&store, &session, None);
    for mut message in source {
        // The state that a source states does not matter.
        message.vectors = VectorState::Stored;
        add(&mut writer, message);
    }
    events.into_iter().for_each(|event| writer.event(event));
    assert_eq!((writer.title(), writer.turns()), (Some("list the files"), 2));
    let Finished { rows, .. } = writer.finish(None).await.unwrap();
    assert_eq!((rows.messages, rows.events), (5, 1));
    let stored = store.stored(&target("s")).await;
    assert_eq!((stored.session.message_count, stored.session.event_count, stored.sync_state), (5, 1, None));
    let states = messages(&store, &target("s").key).await;
    let states: Vec<VectorState> = states.into_iter().map(|message| message.vectors).collect();
    let (pending, nothing) = (VectorState::Pending, VectorState::Nothing);
    assert_eq!(states, [pending, nothing, pending, nothing, pending]);
}

/// Between two parts, the session has the rows that are written and a state that no sync recognises.
async fn a_large_session_is_incomplete_until_it_is_finished(store: Store) {
    let (session, messages, _) = rows(&store, "s", transcript(), Vec::new()).await;
    let mut writer = writer(&store, &session, None).with_part_bytes(1);
    let count = messages.len() as u32;
    for (written, message) in (1..).zip(messages) {
        add(&mut writer, message);
        writer.flush_when_full().await.unwrap();
        let stored = store.stored(&target("s")).await;
        assert_eq!(stored.session.message_count, written);
        assert_eq!(stored.sync_state, Some(StoredSyncState::of("half written")));
    }
    let finished = writer.finish(None).await.unwrap();
    let stored = store.stored(&target("s")).await;
    assert_eq!((stored.session.message_count, stored.sync_state), (count, Some(StoredSyncState::default())));
    assert_eq!(finished.version, Some(stored.version));
}

/// Rows of the replaced session do not remain after shorter ones, and neither does its state.
async fn a_session_is_replaced_with_all_its_rows(store: Store) {
    let (session, messages, _) = rows(&store, "s", transcript(), Vec::new()).await;
    store.sync(&target("s"), [transcript(), transcript()].concat()).await;
    store.sync_events(&target("s"), vec![lines::logger_event("session:start")]).await;
    let mut change = SessionChange::new(store.stored(&target("s")).await.session, None);
    change.expected = Some(store.stored(&target("s")).await.version);
    change.sync_state = Some(StoredSyncState::of("read"));
    store.backend.write_one(change).await.unwrap();
    let before = store.stored(&target("s")).await;
    let mut writer = writer(&store, &session, Some(&before));
    messages.into_iter().for_each(|message| add(&mut writer, message));
    writer.finish(None).await.unwrap();
    let rows = store.backend.session_rows(&target("s").key).await.unwrap();
    assert_eq!((rows.messages.count, rows.events.count), (5, 0));
    assert_eq!(store.stored(&target("s")).await.sync_state, Some(StoredSyncState::default()));
}

/// An event whose id another session has gets its derived id, if the writer allows that.
async fn an_id_of_another_event_is_not_used_again(store: Store) {
    let event = || lines::logger_event("session:start").with("event_id", json!("e1"));
    let (session, _, events) = rows(&store, "s", transcript(), vec![event(), event(), event()]).await;
    store.sync_events(&target("other"), vec![event()]).await;
    let mut writer = writer(&store, &session, None).with_frees_event_ids(true);
    for (StoredEvent { event, payload }, id) in events.into_iter().zip(["e1", "e2", "e2"]) {
        writer.event(StoredEvent::new(Event { event_id: id.to_owned(), ..event }, payload));
    }
    writer.finish(None).await.unwrap();
    let stored = read_events(&store, &target("s").key).await;
    let ids: Vec<String> = stored.into_iter().map(|event| event.event_id).collect();
    assert_eq!(ids, ["s_evt_0", "e2", "s_evt_2"]);
}

/// A writer that another one has overtaken fails with a conflict.
async fn only_one_of_two_writers_succeeds(store: Store) {
    let (session, messages, _) = rows(&store, "s", transcript(), Vec::new()).await;
    let mut writers = [writer(&store, &session, None), writer(&store, &session, None)];
    for writer in &mut writers {
        messages.iter().for_each(|message| add(writer, message.clone()));
    }
    let [first, second] = writers;
    first.finish(None).await.unwrap();
    assert_eq!(second.finish(None).await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Rows of a stored session are changed without its other rows and its state.
async fn nothing_is_written_if_nothing_changed(store: Store) {
    store.sync(&target("s"), transcript()).await;
    let stored = store.stored(&target("s")).await;
    let of_stored = || SessionWriter::of_stored(store.storage.backend().clone(), &stored);
    let with_same_files = of_stored().with_files(stored.metadata_files.clone(), stored.skipped.clone());
    for writer in [of_stored(), with_same_files] {
        let finished = writer.finish(stored.sync_state.clone()).await.unwrap();
        assert_eq!(finished.version.as_ref(), Some(&stored.version));
    }
    assert_eq!(store.stored(&target("s")).await, stored);
    let mut writer = of_stored();
    writer.message(messages(&store, &target("s").key).await.remove(1));
    writer.finish(None).await.unwrap();
    let now = store.stored(&target("s")).await;
    assert_eq!((&now.session, &now.sync_state), (&stored.session, &stored.sync_state));
}

/// The summary that a line states is stored, but it does not replace one that a user set for the same line.
async fn a_stated_summary_is_stored_with_its_line(store: Store) {
    let prompt = || lines::user("Why?").with("metadata", json!({"turn_summary": "stated"}));
    let (session, messages, _) =
        rows(&store, "s", vec![prompt(), lines::assistant("so"), prompt()], Vec::new()).await;
    let summaries = async || {
        let query = SummaryQuery::new(session.user_id.clone());
        let summaries = store.backend.list_summaries(&query).await.unwrap();
        summaries.into_iter().map(|of| (of.user_sequence, of.text, of.is_stated)).collect::<Vec<_>>()
    };
    let mut first = writer(&store, &session, None);
    messages.iter().for_each(|message| add(&mut first, message.clone()));
    first.finish(None).await.unwrap();
    let stated = |sequence| (sequence, "stated".to_owned(), true);
    assert_eq!(summaries().await, [stated(0), stated(2)]);
    let of_user = TurnSummary {
        session: session.key(),
        user_sequence: 0,
        digest: messages[0].digest,
        text: "mine".to_owned(),
        is_stated: false,
        set_at: session.created,
    };
    store.backend.write_summaries(&session.key(), vec![of_user]).await.unwrap();
    let stored = store.stored(&target("s")).await;
    let mut again = writer(&store, &session, Some(&stored));
    messages.into_iter().for_each(|message| add(&mut again, message));
    again.finish(None).await.unwrap();
    assert_eq!(summaries().await, [(0, "mine".to_owned(), false), stated(2)]);
}

/// Vectors are written with their generation; without one, they are left out and counted.
async fn vectors_need_a_generation(store: Store) {
    let (session, messages, _) = rows(&store, "s", transcript(), Vec::new()).await;
    let space = store.embedding.space().clone();
    let first = messages.into_iter().next().unwrap();
    let record = VectorRecord {
        text: ContentType::UserQuery.into(),
        chunk_index: 0,
        total_chunks: 1,
        span_start: 0,
        span_end: 14,
        token_count: 3,
        vector: store.embedding.vector("list the files"),
        turn: None,
    };
    record.validate(&space).unwrap();
    let vectors = MessageVectors::new(0, first.digest, first.synced_at, vec![record]);
    let mut writer = writer(&store, &session, None);
    add(&mut writer, first);
    writer.vectors(vectors);
    assert!(writer.lacks_generation());
    let Finished { rows, .. } = writer.finish(None).await.unwrap();
    assert_eq!((rows.vectors, rows.vectors_left_out), (0, 1));
}
