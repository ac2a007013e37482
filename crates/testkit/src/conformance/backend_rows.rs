//! The rules of the [`StorageBackend`] trait about rows.

use amplifier_session_core::{
    ErrorKind,
    backend::{RowChange, SessionChange, SkippedLine, Version, meta, prelude::*},
    model::{ContentType, MetadataFile, Place, ProjectSlug, RawJson, SessionKey, StoredEvent},
};

use super::{
    Subject,
    store::{Store, kind, range, target, target_of},
};
use crate::lines;

pub(super) fn three_messages() -> Vec<lines::Line> {
    vec![lines::user("where is the basket"), lines::assistant("on the table"), lines::user("thanks a lot")]
}

/// What is unknown is an empty answer or `None`, never an error.
pub async fn what_is_unknown_is_empty_and_no_error(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("there"), three_messages()).await;
    let (backend, unknown) = (&store.backend, target("unknown").key);
    let place = Place::new(unknown.clone(), 0);
    assert!(backend.get_session(&unknown).await.unwrap().is_none());
    assert!(!backend.delete_session(&unknown).await.unwrap());
    assert!(backend.message_states(&unknown).await.unwrap().is_empty());
    assert!(backend.read_messages(&unknown, range(0, 10)).await.unwrap().is_empty());
    assert!(backend.messages_at(std::slice::from_ref(&place)).await.unwrap().is_empty());
    assert!(backend.messages_at(&[]).await.unwrap().is_empty());
    let session = Some(&unknown.session_id);
    assert!(
        backend
            .messages_owing_vectors(&super::store::owing_query(&unknown.user_id, session, None, 10))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(backend.vectors_of(0, &[(place, ContentType::UserQuery)]).await.unwrap().is_empty());
    assert_eq!(backend.session_rows(&unknown).await.unwrap().vectors, 0);
    assert!(backend.event_digests(&unknown, range(0, 10)).await.unwrap().is_empty());
    assert!(backend.read_events(&unknown, range(0, 10)).await.unwrap().is_empty());
    assert!(backend.event_payloads(&unknown, &[0, 1]).await.unwrap().is_empty());
    assert!(backend.find_events(&unknown.user_id, &["e".to_owned()]).await.unwrap().is_empty());
    assert!(backend.find_events(&unknown.user_id, &[]).await.unwrap().is_empty());
    assert!(
        backend.sync_states(&target_of("nobody", "p", "s").key.user_id, None, 10).await.unwrap().is_empty()
    );
    backend.update_index().await.unwrap();
    backend.update_index().await.unwrap();
}

/// A new store says which schema it has and who made it.
pub async fn meta_names_the_version_and_the_writer(subject: &dyn Subject) {
    let entries = subject.open().await.meta().await.unwrap();
    assert_eq!(entries.get(meta::VERSION).map(String::as_str), Some("4"));
    assert!(entries.get(meta::WRITER).is_some_and(|writer| writer.starts_with(meta::WRITER_NAME)));
}

/// A value of the meta table is put once; every handle is told the one that is there.
pub async fn meta_values_are_put_once(subject: &dyn Subject) {
    let backend = subject.open().await;
    let again = subject.open_again().await;
    assert_eq!(backend.put_meta_if_absent("k", "first 'one'").await.unwrap(), "first 'one'");
    assert_eq!(again.put_meta_if_absent("k", "second").await.unwrap(), "first 'one'");
    assert_eq!(again.meta().await.unwrap().get("k").map(String::as_str), Some("first 'one'"));
}

/// A meta value is replaced only where it is the expected one.
pub async fn meta_values_are_replaced_when_expected(subject: &dyn Subject) {
    let backend = subject.open().await;
    assert!(!backend.replace_meta("k", "", "new").await.unwrap());
    backend.put_meta_if_absent("k", "old").await.unwrap();
    assert!(!backend.replace_meta("k", "other", "new").await.unwrap());
    assert!(backend.replace_meta("k", "old", "new").await.unwrap());
    assert_eq!(backend.meta().await.unwrap().get("k").map(String::as_str), Some("new"));
}

/// A write that was computed from another state than the stored one is a conflict, worth retrying, without
/// effect.
pub async fn a_write_of_a_stale_version_is_a_conflict(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    let stale = store.stored(&target).await;
    store.sync_from(&target, 3, vec![lines::user("one more")]).await.unwrap();
    let (before, messages) = (store.stored(&target).await, store.messages(&target).await);

    let mut change = SessionChange::new(stale.session.clone(), Some(stale.version));
    change.session.name = Some("from a stale state".to_owned());
    change.messages.truncate = Some(0);
    change.events.truncate = Some(0);
    let new = SessionChange { expected: None, ..change.clone() };
    let other = SessionChange { expected: Some(Version("unheard of".to_owned())), ..change.clone() };
    for change in [change, new, other] {
        let error = store.backend.write_one(change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.is_retryable());
    }
    assert_eq!(store.stored(&target).await, before);
    assert_eq!(store.messages(&target).await, messages);

    let mut missing = SessionChange::new(stale.session, Some(before.version));
    missing.session.session_id = super::store::target("missing").key.session_id;
    assert_eq!(kind(store.backend.write_one(missing).await), ErrorKind::Conflict);
    assert_eq!(store.backend.get_session(&super::store::target("missing").key).await.unwrap(), None);
}

/// Sessions that are written together are written as each alone: one that meets a conflict changes nothing and hinders
/// no other, and the answers are in their order.
pub async fn sessions_are_written_together_as_each_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let names = ["first", "second", "third"].map(target);
    for target in &names {
        store.sync(target, three_messages()).await;
    }
    let mut changes = Vec::new();
    for target in &names {
        let stored = store.stored(target).await;
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.session.name = Some("written together".to_owned());
        change.messages.truncate = Some(1);
        changes.push(change);
    }
    let mut stale = changes.clone();
    stale[1].expected = Some(Version("unheard of".to_owned()));
    let written = store.backend.write(stale).await;
    assert_eq!(written[1].as_ref().unwrap_err().kind(), ErrorKind::Conflict);
    for (target, written) in names.iter().zip(&written) {
        let stored = store.stored(target).await;
        let is_new = written.is_ok();
        assert_eq!(written.as_ref().is_ok_and(|version| *version == stored.version), is_new);
        assert_eq!(
            (stored.session.name.is_some(), store.messages(target).await.len() == 1),
            (is_new, is_new)
        );
    }
    let again = store.backend.write(vec![changes.remove(1)]).await;
    assert_eq!(*again[0].as_ref().unwrap(), store.stored(&names[1]).await.version);
    assert_eq!(store.messages(&names[1]).await.len(), 1);
    assert!(store.backend.write(Vec::new()).await.is_empty());
}

/// Every write gives the session another version: the one that the call returns.
pub async fn every_write_changes_the_version(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), three_messages()).await;
    let mut versions = vec![store.stored(&target("s")).await.version];
    for _ in 0..3 {
        let stored = store.stored(&target("s")).await;
        let written =
            store.backend.write_one(SessionChange::new(stored.session, Some(stored.version))).await.unwrap();
        assert_eq!(store.stored(&target("s")).await.version, written);
        assert!(!versions.contains(&written), "{written:?}");
        versions.push(written);
    }
}

/// A change replaces what it names, and leaves everything else as it is.
pub async fn what_a_change_does_not_name_stays(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    store.sync_events(&target, vec![lines::logger_event("session:start")]).await;
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    let file = |name: &str, text: &str| MetadataFile { name: name.to_owned(), raw: RawJson::from(text) };
    let files = vec![file("metadata.json", "{\"a\":1}"), file("context-intelligence/metadata.json", "{}")];
    let skipped =
        SkippedLine { file: "transcript.jsonl".to_owned(), line: 7, reason: "it's \"broken\"".to_owned() };
    change.metadata_files = Some(files.clone());
    change.skipped = Some(vec![skipped.clone()]);
    change.sync_state = Some("state 'one'".to_owned());
    store.backend.write_one(change).await.unwrap();

    let (messages, events, vectors) =
        (store.messages(&target).await, store.events(&target).await, store.vectors(&target).await);
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.session.name = Some("renamed".to_owned());
    store.backend.write_one(change.clone()).await.unwrap();
    let stored = store.stored(&target).await;
    assert_eq!(stored.session, change.session);
    assert_eq!((stored.metadata_files, stored.skipped), (files, vec![skipped]));
    assert_eq!(stored.sync_state.as_deref(), Some("state 'one'"));
    assert_eq!(store.messages(&target).await, messages);
    assert_eq!(store.events(&target).await, events);
    assert_eq!(store.vectors(&target).await, vectors);

    change.expected = Some(stored.version);
    change.skipped = Some(Vec::new());
    change.metadata_files = Some(Vec::new());
    store.backend.write_one(change).await.unwrap();
    let stored = store.stored(&target).await;
    assert!(stored.skipped.is_empty() && stored.metadata_files.is_empty());
}

/// Rows are cut to the wanted length first, then new ones are put: also at and beyond that length.
pub async fn rows_are_cut_before_they_are_put(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, (0..20).map(|n| lines::user(&format!("message {n}"))).collect()).await;
    store.sync_events(&target, (0..20).map(|n| lines::logger_event(&format!("event:{n}"))).collect()).await;
    let (messages, events) = (store.messages(&target).await, store.events(&target).await);
    let stored = store.stored(&target).await;

    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.messages = RowChange { put: messages[5..7].to_vec(), truncate: Some(5) };
    let payloads = store.backend.event_payloads(&target.key, &[5, 6]).await.unwrap();
    let put = payloads
        .into_iter()
        .map(|(sequence, payload)| StoredEvent { event: events[sequence as usize].event.clone(), payload });
    change.events = RowChange { put: put.collect(), truncate: Some(5) };
    change.session.message_count = 7;
    change.session.event_count = 7;
    store.backend.write_one(change).await.unwrap();
    let raws = store.messages(&target).await.into_iter().map(|m| (m.sequence, m.raw));
    assert!(raws.eq(messages[..7].iter().map(|m| (m.sequence, m.raw.clone()))));
    assert_eq!(store.events(&target).await, events[..7]);
    assert_eq!(store.vectors(&target).await.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(store.backend.session_rows(&target.key).await.unwrap().vectors, 5);
}

/// Messages are read by their places, from several sessions; those that do not exist are left out.
pub async fn messages_are_read_by_their_places(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for session in ["a", "b"] {
        store.sync(&target(session), (0..12).map(|n| lines::user(&format!("{session}{n}"))).collect()).await;
    }
    let places: Vec<Place> = [("a", 11), ("b", 0), ("a", 0), ("a", 12), ("c", 0)]
        .into_iter()
        .map(|(session, sequence)| Place::new(target(session).key, sequence))
        .collect();
    let mut found = store.backend.messages_at(&places).await.unwrap();
    found.sort_by_key(|message| message.place());
    let contents: Vec<_> = found.iter().map(|message| message.content()).collect();
    assert_eq!(contents, ["a0", "a11", "b0"]);
}

/// Rows are read in order from a sequence on; a page may be shorter than asked for, the end alone is empty.
pub async fn rows_are_read_in_order_from_a_sequence_on(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (target, count) = (target("s"), 25);
    store.sync(&target, (0..count).map(|n| lines::user(&n.to_string())).collect()).await;
    store.sync_events(&target, (0..count).map(|n| lines::logger_event(&n.to_string())).collect()).await;
    let all = store.events(&target).await;
    assert_eq!(store.backend.message_states(&target.key).await.unwrap().len(), 25);
    for start in [0, 1, 7, 24, 25, 1_000] {
        let expected: Vec<u32> = (start..count).take(10).collect();
        let messages = store.backend.read_messages(&target.key, range(start, 10)).await.unwrap();
        let events = store.backend.read_events(&target.key, range(start, 10)).await.unwrap();
        let digests = store.backend.event_digests(&target.key, range(start, 10)).await.unwrap();
        assert!(expected.starts_with(&messages.iter().map(|m| m.sequence).collect::<Vec<_>>()));
        assert!(expected.starts_with(&events.iter().map(|e| e.sequence).collect::<Vec<_>>()));
        let digest = |sequence: &u32| all[*sequence as usize].event.digest;
        assert!(expected.iter().map(digest).collect::<Vec<_>>().starts_with(&digests));
        assert!(
            [messages.len(), events.len(), digests.len()].iter().all(|n| (*n == 0) == expected.is_empty())
        );
    }
}

/// Payloads are given for the events that were asked for; missing ones are left out.
pub async fn payloads_of_missing_events_are_left_out(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store
        .sync_events(
            &target,
            vec![lines::logger_event("a"), lines::hook_event("b"), lines::context_event("c")],
        )
        .await;
    let mut payloads = store.backend.event_payloads(&target.key, &[2, 0, 99]).await.unwrap();
    payloads.sort_by_key(|(sequence, _)| *sequence);
    assert_eq!(payloads.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [0, 2]);
    assert!(store.backend.event_payloads(&target.key, &[]).await.unwrap().is_empty());
}

/// Events are found by their ids, wherever the user has them.
pub async fn events_are_found_by_id(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let event = |id: &str| lines::logger_event("e").with("event_id", id.into());
    store.sync_events(&target("a"), vec![event("one"), event("two")]).await;
    store.sync_events(&target("b"), vec![event("three")]).await;
    store.sync_events(&target_of("ben", "p", "a"), vec![event("four")]).await;
    let ids = ["one", "three", "four", "b_evt_0", "%"].map(str::to_owned);
    let mut found = store.backend.find_events(&target("a").key.user_id, &ids).await.unwrap();
    found.sort();
    let at = |key: SessionKey, sequence| Place::new(key, sequence);
    let expected = [("one".to_owned(), at(target("a").key, 0)), ("three".to_owned(), at(target("b").key, 0))];
    assert_eq!(found, expected);
}

/// How far files were read is listed by session id, within a user, a page at a time.
pub async fn sync_states_are_listed_in_order(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for n in (0..20).rev() {
        for user in ["ana", "ben"] {
            let mut ingest = store.storage.ingest(target_of(user, "p", &format!("s{n:02}"))).await.unwrap();
            if n % 4 != 0 {
                ingest.set_sync_state(format!("{user} {n}"));
            }
            ingest.commit().await.unwrap();
        }
    }
    let ana = target("x").key.user_id;
    let mut listed: Vec<(_, String)> = Vec::new();
    loop {
        let page = store.backend.sync_states(&ana, listed.last().map(|(id, _)| id), 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    let listed: Vec<_> = listed.iter().map(|(id, state)| (id.as_str().to_owned(), state.clone())).collect();
    let expected = (0..20).filter(|n| n % 4 != 0).map(|n| (format!("s{n:02}"), format!("ana {n}")));
    assert_eq!(listed, expected.collect::<Vec<_>>());
}

/// When the project of a session changes, its messages, vectors and events follow.
pub async fn rows_follow_their_session_to_another_project(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, (0..12).map(|n| lines::user(&format!("message {n}"))).collect()).await;
    store.sync_events(&target, (0..12).map(|n| lines::logger_event(&format!("e:{n}"))).collect()).await;
    let vectors = store.vectors(&target).await;
    let stored = store.stored(&target).await;
    let mut change = SessionChange::new(stored.session, Some(stored.version));
    change.session.project_slug = ProjectSlug::new("moved").unwrap();
    store.backend.write_one(change).await.unwrap();
    let moved = |project: &ProjectSlug| project.as_str() == "moved";
    let (messages, events) = (store.messages(&target).await, store.events(&target).await);
    assert_eq!((messages.len(), events.len()), (12, 12));
    assert!(messages.iter().all(|message| moved(&message.project_slug)));
    assert!(events.iter().all(|event| moved(&event.event.project_slug)));
    assert_eq!(store.vectors(&target).await, vectors);
}
