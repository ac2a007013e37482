//! Copies of sessions to another store.

use std::sync::Arc;

use amplifier_session_testkit::prelude::*;

use super::Atomic;

on_both_stores![
    copies_are_equal_in_every_kind_of_store,
    an_interrupted_copy_is_completed_by_the_next_one,
    a_long_session_is_written_in_parts_and_continued,
    vectors_of_another_space_are_left_out,
    sessions_that_differ_are_left_alone_or_replaced,
    missing_vectors_are_added_to_sessions_that_are_there,
    deleted_sessions_stay_deleted,
    a_wrong_copy_is_noticed_and_made_anew,
    a_store_that_masks_secrets_refuses_lines_with_secrets,
    filters_choose_sessions,
];

/// Empty stores, one with batched and one with atomic writes.
async fn targets() -> [Store; 2] {
    let atomic = Atomic(MemoryBackend::new());
    [Store::open(Arc::new(MemoryBackend::new())).await, Store::open(Arc::new(atomic)).await]
}

async fn copied(from: &Store, to: &Store, options: &CopyOptions) -> Result<CopyReport> {
    from.storage.copying().copy_to(&to.storage, options, &|_| {}).await
}

/// Copies everyone's sessions.
async fn copy(from: &Store, to: &Store) -> CopyReport {
    copied(from, to, &CopyOptions::new(Scope::Everyone)).await.unwrap()
}

/// The records of an archive.
#[derive(Default)]
struct Records(Vec<String>);

impl ArchiveWriter for Records {
    fn put(&mut self, record: Record) -> Result<()> {
        // A store can't forget a sync state, but an empty one means the same as none.
        let record = serde_json::to_string(&record).unwrap();
        self.0.push(record.replace(r#","sync_state":"""#, ""));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// All that a store has of sessions, except vectors.
async fn content(store: &Store) -> Vec<String> {
    let mut records = Records::default();
    store
        .storage
        .archive()
        .export_sessions(&Scope::Everyone, SessionFilter::default(), &mut records)
        .await
        .unwrap();
    records.0
}

/// Whether a session has the same vectors in two stores, up to rounding.
async fn have_same_vectors(one: &Store, other: &Store, target: &IngestTarget) -> bool {
    let (ours, theirs) = (one.vectors(target).await, other.vectors(target).await);
    let place = |(sequence, record): &(u32, VectorRecord)| {
        (*sequence, record.text, record.chunk_index, record.span_start, record.span_end)
    };
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(a, b)| place(a) == place(b) && is_kept(&a.1.vector, &b.1.vector))
}

/// A session with a bit of everything.
async fn fill(store: &Store) {
    let awkward = target("awkward");
    let mut lines: Vec<RawJson> = samples::awkward_messages().into_iter().map(|(_, line)| line).collect();
    lines.push(RawJson::new(b"{\"role\":\"user\",\"content\":\"nul \\u0000 and caf\xe9\"}"));
    lines.push(lines::user(&"a long text about the nightly import. ".repeat(400)).raw());
    store.sync(&awkward, lines).await;
    let mut events: Vec<RawJson> = samples::awkward_events().into_iter().map(|(_, line)| line).collect();
    for size in [10_000, 900_000] {
        let text: String = (0..size).map(|n| char::from(b'a' + (n % 997 * (n % 991) % 23) as u8)).collect();
        events.push(RawJson::new(format!(r#"{{"event":"tool:post","data":{{"result":"{text}"}}}}"#)));
    }
    store.sync_events(&awkward, events).await;
    let mut ingest = store.storage.ingestion().ingest(awkward.clone()).await.unwrap();
    let (_, metadata) = samples::awkward_metadata().swap_remove(0);
    ingest.set_metadata(vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }]).unwrap();
    let skipped = SkippedLine::new("events.jsonl", 7, "broken");
    ingest.set_skipped(vec![skipped]);
    ingest.commit().await.unwrap();
    let state = StoredSyncState {
        settled: Some("{}".to_owned()),
        rewound: Some(RewoundTo { messages: 3, events: 0 }),
        ..StoredSyncState::of("as far as this")
    };
    store.write(&awkward, |change| change.sync_state = Some(state)).await;
    let edit = SessionEdit::default().set_name("By hand");
    store.storage.sessions().update_session(&awkward.key, &edit).await.unwrap();

    // Two users with a session of the same id, one of them shared.
    for user in ["ana", "ben"] {
        let same = target_of(user, "shop", "same");
        store.sync(&same, vec![lines::user(&format!("hello from {user}")), lines::assistant("hello")]).await;
        store.sync_events(&same, vec![lines::logger_event("tool:post")]).await;
    }
    store
        .write(&target("same"), |change| {
            change.session.visibility = Visibility::Public;
            change.session.tags = vec!["b".to_owned(), "a".to_owned()];
        })
        .await;

    super::superseded::lossy(store, &target("lossy")).await;
    store.embedding.refuse(Some("unspeakable"));
    store.sync(&target("refused"), vec![lines::user("unspeakable"), lines::user("fine")]).await;
    store.embedding.refuse(None);
    store.sync(&target("outdated"), vec![lines::user("one"), lines::user("two")]).await;
    store.backend.mark_pending(&target("outdated").key, MessagesToEmbed::At(vec![1])).await.unwrap();
    store.sync(&target("gone"), vec![lines::user("deleted later")]).await;
    store.backend.delete_session(&target("gone").key).await.unwrap();
}

const SESSIONS: [&str; 5] = ["awkward", "same", "lossy", "refused", "outdated"];

/// Copies to stores of other kinds and back are the same, and nothing is embedded.
async fn copies_are_equal_in_every_kind_of_store(store: Store) {
    fill(&store).await;
    let wanted = content(&store).await;
    let [memory, sqlite] = targets().await;
    for (from, to) in [(&store, &sqlite), (&sqlite, &memory)] {
        let report = copy(from, to).await;
        assert!(report.is_complete() && report.not_copied.is_empty(), "{report:?}");
        assert_eq!((report.sessions, report.unchanged, report.deletions), (6, 0, 1), "{report:?}");
        assert!(report.vectors > 5 && report.superseded == 2, "{report:?}");
        assert_eq!(content(to).await, wanted);
        for session in SESSIONS {
            let target = target(session);
            assert!(have_same_vectors(&store, to, &target).await, "{session}");
            assert_eq!(store.rows(&target).await.pending_vectors, to.rows(&target).await.pending_vectors);
        }
        assert_eq!(to.pending(&target("outdated")).await, [1]);
        let failures = to.backend.vector_failures(0, &target("refused").key).await.unwrap();
        assert_eq!(failures.len(), 1);
        let ana = &target("x").key.user_id;
        assert_eq!(to.backend.deleted_sessions(ana).await.unwrap(), [target("gone").key.session_id]);
        assert_eq!(to.embedding.calls(), 0);
        assert!(!to.find(&target("x"), "nightly").await.is_empty());

        let writes = to.backend.calls(Operation::Write);
        let again = copy(from, to).await;
        assert_eq!(
            (again.sessions, again.unchanged, again.vectors, again.deletions),
            (0, 6, 0, 0),
            "{again:?}"
        );
        assert_eq!(to.backend.calls(Operation::Write), writes);
    }
}

/// Wherever a copy breaks off, the next one makes both stores equal.
async fn an_interrupted_copy_is_completed_by_the_next_one(store: Store) {
    fill(&store).await;
    let wanted = content(&store).await;
    for step in 0.. {
        let [memory, sqlite] = targets().await;
        let to = if step % 2 == 0 { memory } else { sqlite };
        to.backend.fail_any_after(step * 5);
        let broken = copied(&store, &to, &CopyOptions::new(Scope::Everyone)).await;
        to.backend.recover();
        let report = copy(&store, &to).await;
        assert!(report.not_copied.is_empty(), "{step}: {report:?}");
        assert_eq!(report.sessions + report.unchanged, 6, "{step}: {report:?}");
        assert!(content(&to).await == wanted, "{step}");
        for session in SESSIONS {
            assert!(have_same_vectors(&store, &to, &target(session)).await, "{step}: {session}");
        }
        if broken.is_ok() {
            break;
        }
    }
}

/// A session of many megabytes is written in several parts, and continued where it stopped.
async fn a_long_session_is_written_in_parts_and_continued(store: Store) {
    let long = target("long");
    let text = "word ".repeat(200_000);
    let line = |n: usize| lines::user(&format!("{n} {text}")).raw();
    store.sync_text(&long, (0..40).map(line).collect()).await;
    let [memory, sqlite] = targets().await;
    for to in [memory, sqlite] {
        to.backend.fail_after(Operation::Write, 2);
        assert!(copied(&store, &to, &CopyOptions::new(ana())).await.is_err());
        let part = to.stored(&long).await;
        assert!((1..40).contains(&part.session.message_count), "{part:?}");
        assert!(part.sync_state.is_some_and(|state| state.files.starts_with("copying ")));
        let before = to.backend.calls(Operation::Write);
        assert_eq!(copy(&store, &to).await.sessions, 1);
        assert!(to.backend.calls(Operation::Write) - before <= 3);
        assert!(content(&to).await == content(&store).await);

        // A half-written session is no source.
        let other = Store::open(Arc::new(MemoryBackend::new())).await;
        to.write(&long, |change| change.sync_state = Some(StoredSyncState::of("copying x 1"))).await;
        let report = copy(&to, &other).await;
        assert_eq!(report.not_copied[0].because, NotCopiedBecause::Damaged, "{report:?}");
        assert!(!report.is_complete());
    }
}

/// A store has vectors of one space. If the target has another one, messages are pending there.
async fn vectors_of_another_space_are_left_out(store: Store) {
    store.sync(&target("s"), vec![lines::user("hello"), lines::system("rule")]).await;
    for to in targets().await {
        let to = to.with_embedding(FakeEmbedding::new().with_model("another"));
        to.sync(&target("t"), vec![lines::user("something else")]).await;
        let report = copy(&store, &to).await;
        assert_eq!((report.sessions, report.vectors), (1, 0));
        assert_eq!(report.other_space.unwrap().model, "another");
        assert!(report.space.is_some());
        assert_eq!(to.pending(&target("s")).await, [0]);
        assert_eq!(copy(&store, &to).await.unchanged, 1);
    }
}

/// A session of the target with other content is left alone, unless it shall be replaced.
async fn sessions_that_differ_are_left_alone_or_replaced(store: Store) {
    let (changed, ours) = (target("s"), target("ours"));
    super::superseded::lossy(&store, &ours).await;
    store.sync(&changed, vec![lines::user("first"), lines::assistant("second")]).await;
    for to in targets().await {
        assert_eq!(copy(&store, &to).await.sessions, 2);
        super::superseded::lossy(&to, &changed).await;
        let before = content(&to).await;
        let report = copy(&store, &to).await;
        assert_eq!((report.sessions, report.unchanged, report.not_copied.len()), (0, 1, 1));
        let left = &report.not_copied[0];
        assert_eq!((left.session_id.as_str(), left.because), ("s", NotCopiedBecause::Conflict));
        assert!(left.reason.contains("messages and superseded lines; "), "{}", left.reason);
        assert!(left.reason.contains("messages: 1 in the target, 2 in the source"), "{}", left.reason);
        assert!(!report.is_complete());
        assert_eq!(content(&to).await, before);

        let replace = CopyOptions::new(Scope::Everyone).with_replace(true);
        let report = copied(&store, &to, &replace).await.unwrap();
        assert_eq!((report.sessions, report.replaced, report.unchanged), (1, 1, 1), "{report:?}");
        assert_eq!(content(&to).await, content(&store).await);
        assert!(have_same_vectors(&store, &to, &changed).await);
    }
}

/// Vectors that were made after a copy are added by the next one.
async fn missing_vectors_are_added_to_sessions_that_are_there(store: Store) {
    let target = target("s");
    store.sync_text(&target, vec![lines::user("hello"), lines::assistant("world")]).await;
    for to in targets().await {
        let without = store.rows(&target).await.vectors == 0;
        copy(&store, &to).await;
        store.embed().await;
        let report = copy(&store, &to).await;
        assert_eq!((report.sessions, report.unchanged), (0, 1), "{report:?}");
        assert_eq!(report.vectors, if without { 2 } else { 0 });
        assert!(have_same_vectors(&store, &to, &target).await);
        assert!(to.pending(&target).await.is_empty());
    }
}

/// A session that was deleted from the target does not come back unasked, and only whole copies copy deletions.
async fn deleted_sessions_stay_deleted(store: Store) {
    store.sync(&target("s"), vec![lines::user("hello")]).await;
    store.sync(&target("t"), vec![lines::user("hello")]).await;
    store.backend.delete_session(&target("t").key).await.unwrap();
    for to in targets().await {
        to.sync(&target("t"), vec![lines::user("mine")]).await;
        copy(&store, &to).await;
        // It is not deleted from the target.
        assert_eq!(to.messages(&target("t")).await.len(), 1);
        to.backend.delete_session(&target("s").key).await.unwrap();
        let report = copy(&store, &to).await;
        assert_eq!(report.not_copied[0].because, NotCopiedBecause::Deleted);
        assert!(report.is_complete());
        let include = CopyOptions::new(ana()).with_include_deleted(true);
        assert_eq!(copied(&store, &to, &include).await.unwrap().sessions, 1);
    }
    let [to, _] = targets().await;
    let some = CopyOptions::new(ana()).with_since(Some(day(1)));
    assert_eq!(copied(&store, &to, &some).await.unwrap().deletions, 0);
}

/// What an interrupted copy left is verified too. If it is wrong, this is reported, and the next copy starts over.
async fn a_wrong_copy_is_noticed_and_made_anew(store: Store) {
    let target = target("s");
    store.sync(&target, vec![lines::user("hello"), lines::assistant("world")]).await;
    for to in targets().await {
        // The state of a session whose rows are written, but not verified.
        to.backend.fail_after(Operation::Write, 1);
        assert!(copied(&store, &to, &CopyOptions::new(ana())).await.is_err());
        let mut wrong = to.messages(&target).await;
        wrong[1].raw = lines::assistant("another world").raw();
        wrong[1].digest = Digest::of(wrong[1].raw.as_bytes());
        to.write(&target, |change| change.messages.put = wrong.split_off(1)).await;
        let report = copy(&store, &to).await;
        assert_eq!(report.not_copied[0].because, NotCopiedBecause::Different, "{report:?}");
        assert_eq!(copy(&store, &to).await.sessions, 1);
        assert_eq!(content(&to).await, content(&store).await);
    }
}

/// Lines are copied as they are, so a store that masks secrets can't take them. A new store masks if the source does.
async fn a_store_that_masks_secrets_refuses_lines_with_secrets(store: Store) {
    store.sync(&target("s"), vec![lines::user("hello")]).await;
    for to in targets().await {
        to.backend.put_meta_if_absent(meta::SECRETS, "mask").await.unwrap();
        assert_eq!(kind(copied(&store, &to, &CopyOptions::new(ana())).await), ErrorKind::Unsupported);
        assert!(to.backend.get_session(&target("s").key).await.unwrap().is_none());
    }
    let same = store.storage.copying().copy_to(&store.storage, &CopyOptions::new(ana()), &|_| {}).await;
    assert_eq!(kind(same), ErrorKind::Validation);
}

/// The scope, the project and the time of the last change choose sessions.
async fn filters_choose_sessions(store: Store) {
    for (user, project, session, day_of) in
        [("ana", "shop", "a", 1), ("ana", "bakery", "b", 3), ("ben", "shop", "c", 3)]
    {
        store.create(&target_of(user, project, session), |session| session.updated = day(day_of)).await;
    }
    let bakery = SessionFilter::default().with_project(Some(ProjectSlug::new("bakery").unwrap()));
    for (options, sessions) in [
        (CopyOptions::new(ana()), 2),
        (CopyOptions::new(Scope::Everyone), 3),
        (CopyOptions::new(Scope::Everyone).with_since(Some(day(2))), 2),
        (CopyOptions::new(ana()).with_filter(bakery), 1),
    ] {
        let [to, _] = targets().await;
        assert_eq!(copied(&store, &to, &options).await.unwrap().sessions, sessions, "{options:?}");
    }
}
