//! Sessions: creation, lookup, deletion and metadata.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    session_ids_must_be_uuids_if_configured,
    creating_an_existing_session_is_refused,
    an_unknown_session_is_not_found,
    metadata_sets_the_fields_of_a_session,
    metadata_changes_no_identity,
    metadata_that_is_not_an_object_is_refused,
    an_id_of_several_users_is_ambiguous,
    deleting_in_another_project_deletes_nothing,
    the_first_user_is_pinned,
    a_synced_session_has_no_gaps,
    skipped_lines_are_reported_and_leave_no_gap,
];

/// If the settings require UUIDs, a new session with another id is refused and nothing is stored.
async fn session_ids_must_be_uuids_if_configured(store: Store) {
    let strict = store.storage.clone().with_settings(StorageSettings::default().with_uuid_session_ids(true));
    let sync =
        async |id: &str| strict.ingestion().sync_session_metadata(&target(id), RawJson::from("{}")).await;
    let error = sync("span_agent").await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::SessionId)));
    sync("3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01").await.unwrap();
    assert_eq!(store.listed(&SessionQuery::new(ana())).await.len(), 1);
}

/// Creating a session that exists is refused and changes nothing.
async fn creating_an_existing_session_is_refused(store: Store) {
    let session = store.create(&target("s"), |session| session.name = Some("first".to_owned())).await;
    let other = Session { name: Some("other".to_owned()), ..session.clone() };
    assert_eq!(kind(store.storage.ingestion().create_session(other).await), ErrorKind::SessionExists);
    assert_eq!(store.stored(&target("s")).await.session, session);
}

/// Reading an unknown session is `SessionNotFound`. Searching for it returns nothing.
async fn an_unknown_session_is_not_found(store: Store) {
    let (storage, unknown) = (&store.storage, target("unknown"));
    let (scope, id) = (ana(), &unknown.key.session_id);
    assert_eq!(storage.sessions().get_session(&scope, id).await.unwrap(), None);
    let kinds = [
        kind(storage.sessions().find_session(&scope, "unknown").await),
        kind(storage.reading().get_transcript_lines(&scope, id, None, 10).await),
        kind(storage.reading().get_event_lines(&scope, id, EventLines::default()).await),
        kind(storage.reading().get_turn_context(&scope, id, 1, 0, 0).await),
        kind(storage.reading().get_message_context(&scope, id, 0, 0, 0).await),
        kind(storage.statistics().get_sync_statistics(&scope, id).await),
        kind(storage.vectors().vector_content_types(&scope, id).await),
        kind(storage.sessions().session_tree(&scope, id).await),
    ];
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::SessionNotFound), "{kinds:?}");
    assert!(
        !storage.sessions().delete_session(&unknown.key.user_id, &unknown.project_slug, id).await.unwrap()
    );
}

/// The fields of a session are set from its metadata. Syncing the same metadata again writes nothing.
async fn metadata_sets_the_fields_of_a_session(store: Store) {
    let metadata = r#"{"session_id":"s","created":"2026-01-05T10:00:00+02:00","name":"Fix it","bundle":"b","model":"m",
        "description":"d","parent_id":"p","forked_from_turn":2,"tags":["x","y"],"working_dir":"/w","turn_count":99}"#;
    assert!(store.sync_metadata(&target("s"), metadata).await.created);
    let session = store.stored(&target("s")).await.session;
    let mut expected = Session::new(
        target("s").key,
        target("s").host_id,
        target("s").project_slug,
        time("2026-01-05T08:00:00Z"),
    );
    let text = |text: &str| Some(text.to_owned());
    (expected.name, expected.bundle, expected.model) = (text("Fix it"), text("b"), text("m"));
    (expected.description, expected.working_dir) = (text("d"), text("/w"));
    expected.parent_id = Some(target("p").key.session_id);
    expected.forked_from_turn = Some(2);
    expected.tags = ["x", "y"].map(str::to_owned).to_vec();
    assert_eq!(session, expected);
    store.backend.reset_counts();
    assert_eq!(store.sync_metadata(&target("s"), metadata).await, IngestReport::default());
    assert_eq!(store.backend.writes(), 0);
}

/// Metadata does not change the host or the key of a session.
async fn metadata_changes_no_identity(store: Store) {
    let metadata =
        r#"{"session_id":"other","user_id":"ben","host_id":"h2","project_slug":"p2","visibility":"public"}"#;
    store.sync_metadata(&target("s"), metadata).await;
    let session = store.stored(&target("s")).await.session;
    let IngestTarget { key, host_id, project_slug } = target("s");
    assert_eq!((session.key(), session.host_id, session.project_slug), (key, host_id, project_slug));
    assert_eq!(session.visibility, Visibility::Private);
}

/// Metadata that is not a JSON object is refused and changes nothing.
async fn metadata_that_is_not_an_object_is_refused(store: Store) {
    for text in ["", "{", "[]", "\"name\"", "null"] {
        let result = store.storage.ingestion().sync_session_metadata(&target("s"), RawJson::from(text)).await;
        assert_eq!(kind(result), ErrorKind::Validation, "{text:?}");
    }
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
}

/// In the scope of everyone, an id that several users have is ambiguous.
async fn an_id_of_several_users_is_ambiguous(store: Store) {
    for (user, session) in [("ana", "same"), ("ben", "same"), ("ben", "samet")] {
        store.create(&target_of(user, "p", session), |_| {}).await;
    }
    let get = async |id: &str| {
        let id = SessionId::new(id).unwrap();
        store.storage.sessions().get_session(&Scope::Everyone, &id).await
    };
    assert_eq!(kind(get("same").await), ErrorKind::Validation);
    assert_eq!(get("samet").await.unwrap().unwrap().user_id.as_str(), "ben");
    assert_eq!(store.storage.sessions().find_session(&ana(), "sam").await.unwrap().user_id.as_str(), "ana");
}

/// A deletion that names the wrong project or user deletes nothing.
async fn deleting_in_another_project_deletes_nothing(store: Store) {
    let IngestTarget { key, project_slug, .. } = target("s");
    store.sync(&target("s"), vec![lines::user("still here")]).await;
    let delete = async |key: &SessionKey, project: &str| {
        let project = ProjectSlug::new(project).unwrap();
        store.storage.sessions().delete_session(&key.user_id, &project, &key.session_id).await.unwrap()
    };
    for project in ["other", "Shop", "default", "%"] {
        assert!(!delete(&key, project).await, "{project}");
    }
    assert!(!delete(&target_of("ben", "shop", "s").key, "shop").await);
    assert_eq!(
        (store.find(&target("s"), "here").await, store.messages(&target("s")).await.len()),
        (vec![0], 1)
    );
    assert!(delete(&key, project_slug.as_str()).await && !delete(&key, project_slug.as_str()).await);
}

/// The store remembers the first user who writes to it.
async fn the_first_user_is_pinned(store: Store) {
    assert_eq!(store.storage.users().pinned_user().await.unwrap(), None);
    let (ana, ben) = (UserId::new("ana").unwrap(), UserId::new("ben").unwrap());
    assert_eq!(store.storage.users().pin_user(&ana).await.unwrap(), ana);
    assert_eq!(store.storage.users().pin_user(&ben).await.unwrap(), ana);
    assert_eq!(store.again().await.storage.users().pinned_user().await.unwrap(), Some(ana));
}

async fn sync_statistics(store: &Store) -> SyncStatistics {
    store.storage.statistics().get_sync_statistics(&ana(), &target("s").key.session_id).await.unwrap()
}

/// A synced session has every sequence up to its last, however it was synced.
async fn a_synced_session_has_no_gaps(store: Store) {
    let messages =
        |range: std::ops::Range<u32>| range.map(|n| lines::user(&n.to_string())).collect::<Vec<_>>();
    let events =
        |range: std::ops::Range<u32>| range.map(|n| lines::logger_event(&n.to_string())).collect::<Vec<_>>();
    store.sync_metadata(&target("s"), "{}").await;
    assert_eq!(sync_statistics(&store).await.rows, RowCounts::default());
    store.sync(&target("s"), messages(0..40)).await;
    store.sync_events(&target("s"), events(0..40)).await;
    store.sync_from(&target("s"), 30, messages(100..125)).await.unwrap();
    store.sync_events_from(&target("s"), 40, events(40..60)).await.unwrap();
    store.sync_events(&target("s"), events(0..33)).await;
    let statistics = sync_statistics(&store).await;
    assert!(statistics.missing_messages.is_empty() && statistics.missing_events.is_empty());
    assert_eq!((statistics.rows.messages.count, statistics.rows.events.count), (55, 33));
    assert_eq!(statistics.rows, store.rows(&target("s")).await);
}

/// Skipped lines are reported with a reason and leave no gap.
async fn skipped_lines_are_reported_and_leave_no_gap(store: Store) {
    let skipped = [(2, "it's \"broken\""), (9, "é")]
        .map(|(line, reason)| SkippedLine::new("transcript.jsonl", line, reason));
    let mut ingest = store.storage.ingestion().ingest(target("s")).await.unwrap();
    ingest.begin_transcript(0).await.unwrap();
    for line in [lines::user("one"), lines::user("two")] {
        ingest.transcript_line(line.raw(), store.storage.now()).await.unwrap();
    }
    ingest.set_skipped(skipped.to_vec());
    ingest.commit().await.unwrap();
    let statistics = sync_statistics(&store).await;
    assert_eq!((&statistics.skipped[..], statistics.rows.messages.count), (&skipped[..], 2));
    assert!(statistics.missing_messages.is_empty());
}
