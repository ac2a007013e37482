//! Sessions: fields, metadata files, sync states and writes.

use crate::prelude::*;

pub(super) fn three_messages() -> Vec<Line> {
    vec![lines::user("where is the basket"), lines::assistant("on the table"), lines::user("thanks a lot")]
}

/// Sets every field.
fn fill(session: &mut Session) {
    let text = |text: &str| Some(text.to_owned());
    session.created = time("2026-01-05T10:00:00.123456+02:00");
    session.updated = time("2026-01-06T00:00:00Z");
    session.name = text("It's \"done\"; -- 100% café 👍\u{2028}");
    session.description = text("multi\nline\0");
    session.bundle = text("bundle:foundation");
    session.model = text("m-1");
    session.turn_count = 3;
    session.parent_id = Some(SessionId::new("parent-1").unwrap());
    session.forked_from_turn = Some(2);
    session.tags = ["a,b", "quo\"te", ""].map(str::to_owned).to_vec();
    session.edited = [SessionField::Name, SessionField::Tags].into();
    session.visibility = Visibility::Team;
    session.org_id = text("org");
    session.team_ids = ["t1", "t2"].map(str::to_owned).to_vec();
    session.shared_at = Some(time("2026-01-05T08:00:01Z"));
    session.working_dir = text("/home/ana/o'brien");
    session.first_prompt = text("hello");
    session.source = SessionSource::AmplifierAgent;
    session.moved_to = text("other-host");
    session.repository = Repository::of_address("git@github.com:acme/app.git");
}

/// All fields of a session come back as they were stored, through every handle.
pub async fn all_fields_of_a_session_come_back(store: Store) {
    let full = store.create(&target("full"), fill).await;
    let bare = target_of("ana", ProjectSlug::unnamed().as_str(), "bare");
    let early = time("1969-07-20T20:17:40Z");
    let bare = store.create(&bare, |session| (session.created, session.updated) = (early, early)).await;
    let again = store.again().await;
    for session in [&full, &bare] {
        let read = again.storage.sessions().get_session(&ana(), &session.session_id).await.unwrap();
        assert_eq!(read.as_ref(), Some(session));
    }
    assert_eq!(
        store.storage.sessions().search_sessions(&SessionQuery::new(ana())).await.unwrap(),
        [full, bare]
    );
}

/// Metadata files come back byte for byte.
pub async fn metadata_comes_back_byte_for_byte(store: Store) {
    for (name, metadata) in samples::awkward_metadata() {
        store.storage.ingestion().sync_session_metadata(&target("s"), metadata.clone()).await.unwrap();
        let files = vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }];
        assert_eq!(store.stored(&target("s")).await.metadata_files, files, "{name}");
    }
}

/// A change replaces the values that it names and nothing else.
pub async fn a_change_leaves_everything_else_alone(store: Store) {
    let target = target("s");
    store.sync(&target, three_messages()).await;
    store.sync_events(&target, vec![lines::logger_event("session:start")]).await;
    let file = |name: &str, text: &str| MetadataFile { name: name.to_owned(), raw: RawJson::from(text) };
    let files = vec![file("metadata.json", "{\"a\":1}"), file("context-intelligence/metadata.json", "{}")];
    let reason = "it's \"broken\"";
    let skipped = vec![SkippedLine::new("transcript.jsonl", 7, reason)];
    let state = sync_state("state 'one'", 7);
    let beside = |change: &mut SessionChange| {
        change.metadata_files = Some(files.clone());
        change.skipped = Some(skipped.clone());
        change.sync_state = Some(state.clone());
    };
    store.write(&target, beside).await;
    let mut expected = store.everything(&target).await;
    assert_eq!((&expected.0.metadata_files, &expected.0.skipped), (&files, &skipped));
    assert_eq!(expected.0.sync_state, Some(state));

    let name = Some("renamed".to_owned());
    expected.0.session.name.clone_from(&name);
    expected.0.version = store.write(&target, |change| change.session.name = name).await;
    assert_eq!(store.everything(&target).await, expected);

    let emptied = |change: &mut SessionChange| {
        (change.skipped, change.metadata_files) = (Some(Vec::new()), Some(Vec::new()));
    };
    store.write(&target, emptied).await;
    let stored = store.stored(&target).await;
    assert!(stored.skipped.is_empty() && stored.metadata_files.is_empty() && stored.sync_state.is_some());
}

/// A sync state with the facts that depend on it.
fn sync_state(files: &str, messages: u32) -> StoredSyncState {
    let rewound = Some(RewoundTo { messages, events: u32::MAX });
    StoredSyncState { files: files.to_owned(), settled: Some(format!("{{\"of\":{messages}}}")), rewound }
}

/// A sync state is replaced together with the facts that depend on it.
pub async fn a_sync_state_is_replaced_as_a_whole(store: Store) {
    store.create(&target("s"), |_| {}).await;
    let whole = sync_state("first", 0);
    let without_settled = StoredSyncState { settled: None, ..sync_state("second", 2) };
    let without_rewound = StoredSyncState { rewound: None, ..sync_state("third", 3) };
    for state in [whole, without_settled, without_rewound, StoredSyncState::of("last")] {
        store.write(&target("s"), |change| change.sync_state = Some(state.clone())).await;
        store.sync(&target("s"), three_messages()).await;
        assert_eq!(store.stored(&target("s")).await.sync_state, Some(state.clone()));
        let listed = store.backend.sync_states(&target("s").key.user_id, None, 10).await.unwrap();
        assert_eq!(listed, [(target("s").key.session_id, state)]);
    }
}

/// A write based on an outdated version is a retryable conflict and changes nothing.
pub async fn a_write_of_a_stale_version_is_a_conflict(store: Store) {
    store.sync(&target("s"), three_messages()).await;
    let stale = store.stored(&target("s")).await;
    store.sync_from(&target("s"), 3, vec![lines::user("one more")]).await.unwrap();
    let before = store.everything(&target("s")).await;

    let mut change = SessionChange::new(stale.session, Some(stale.version));
    change.session.name = Some("from a stale state".to_owned());
    (change.messages.truncate, change.events.truncate) = (Some(0), Some(0));
    let new = SessionChange { expected: None, ..change.clone() };
    let other = SessionChange { expected: Some(Version("unheard of".to_owned())), ..change.clone() };
    let mut missing = SessionChange { expected: Some(before.0.version.clone()), ..change.clone() };
    missing.session.session_id = target("missing").key.session_id;
    for change in [change, new, other, missing] {
        let error = store.backend.write_one(change).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
    }
    assert_eq!(store.everything(&target("s")).await, before);
    assert_eq!(store.backend.get_session(&target("missing").key).await.unwrap(), None);
}

/// Writing several sessions equals writing each alone. A conflict in one does not affect the others, and results are in
/// the order of the changes.
pub async fn batched_writes_equal_single_writes(store: Store) {
    let names = ["first", "second", "third"].map(target);
    let mut changes = Vec::new();
    for target in &names {
        store.sync(target, three_messages()).await;
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
        let (stored, is_new) = (store.stored(target).await, written.is_ok());
        assert_eq!(written.as_ref().is_ok_and(|version| *version == stored.version), is_new);
        let is_written = (stored.session.name.is_some(), store.messages(target).await.len() == 1);
        assert_eq!(is_written, (is_new, is_new));
    }
    let again = store.backend.write(vec![changes.remove(1)]).await;
    assert_eq!(*again[0].as_ref().unwrap(), store.stored(&names[1]).await.version);
    assert_eq!(store.messages(&names[1]).await.len(), 1);
    assert!(store.backend.write(Vec::new()).await.is_empty());
}

/// Every write gives the session a new version and returns it.
pub async fn every_write_changes_the_version(store: Store) {
    store.sync(&target("s"), three_messages()).await;
    let mut versions = vec![store.stored(&target("s")).await.version];
    for _ in 0..3 {
        let written = store.write(&target("s"), |_| {}).await;
        assert_eq!(store.stored(&target("s")).await.version, written);
        assert!(!versions.contains(&written), "{written:?}");
        versions.push(written);
    }
}

/// If the project of a session changes, reads and searches find its messages, vectors and events in the new project.
pub async fn rows_follow_their_session_to_another_project(store: Store) {
    let (old, new) = (target_of("ana", "old", "s"), target_of("ana", "new", "s"));
    store.sync(&old, (0..12).map(|n| lines::user(&format!("basket {n}"))).collect()).await;
    store.sync_events(&old, (0..12).map(|n| lines::logger_event(&format!("e:{n}"))).collect()).await;
    let vectors = store.vectors(&old).await;
    store.write(&old, |change| change.session.project_slug = new.project_slug.clone()).await;
    let (messages, events) = (store.messages(&new).await, store.events(&new).await);
    assert_eq!((messages.len(), events.len()), (12, 12));
    assert!(messages.iter().all(|message| message.project_slug == new.project_slug));
    assert!(events.iter().all(|event| event.event.project_slug == new.project_slug));
    assert_eq!(store.vectors(&new).await, vectors);
    for (target, count) in [(&old, 0), (&new, 12)] {
        let sessions = SessionFilter::default().with_project(target.project_slug.clone());
        for options in [words("basket"), meaning("basket")] {
            let filter = SearchFilter::default().with_sessions(sessions.clone());
            let options = options.with_filter(filter).with_limit(100);
            assert_eq!(store.search(target, &options).await.results.len(), count);
        }
        let listed = store.listed(&SessionQuery::new(ana()).with_filter(sessions)).await;
        assert_eq!(listed.len(), usize::from(count > 0));
    }
}

/// Writes are visible through other handles at once.
pub async fn writes_are_visible_through_other_handles_at_once(store: Store) {
    let again = store.again().await;
    let target = target("s");
    store.sync(&target, three_messages()).await;
    store.sync_events(&target, vec![lines::logger_event("e").data("x".repeat(500_000).into())]).await;
    assert_eq!(again.everything(&target).await, store.everything(&target).await);
    assert_eq!(again.find(&target, "basket").await, [0]);
    again.sync(&target, vec![lines::user("find the cup")]).await;
    assert_eq!(store.messages(&target).await, again.messages(&target).await);
    assert_eq!((store.find(&target, "basket").await, store.find(&target, "cup").await), (vec![], vec![0]));
}

/// Checks that reads of an unknown session return nothing or `None`, not an error.
pub(super) async fn check_unknown(backend: &dyn StorageBackend, key: &SessionKey) {
    let message_ref = MessageRef::new(key.clone(), 0);
    assert_eq!(backend.get_session(key).await.unwrap(), None);
    assert!(!backend.delete_session(key).await.unwrap());
    assert_eq!(backend.message_states(key).await.unwrap(), []);
    assert_eq!(backend.read_messages(key, range(0, 10)).await.unwrap(), []);
    assert_eq!(backend.messages_at(std::slice::from_ref(&message_ref)).await.unwrap(), []);
    let pending = pending_query(&key.user_id, Some(&key.session_id), None, 10);
    assert_eq!(backend.messages_pending_vectors(&pending).await.unwrap(), []);
    let texts = VectorText::ALL.map(|text| (message_ref.clone(), text));
    assert_eq!(backend.vectors_of(0, &texts).await.unwrap(), []);
    assert_eq!(backend.vector_texts(0, key, range(0, 10)).await.unwrap(), []);
    assert_eq!(backend.session_rows(key).await.unwrap(), RowCounts::default());
    for with_times in [false, true] {
        assert_eq!(backend.event_states(key, range(0, 10), with_times).await.unwrap(), []);
    }
    assert_eq!(backend.read_events(key, range(0, 10)).await.unwrap(), []);
    assert_eq!(backend.event_payloads(key, &[0, 1, 2]).await.unwrap(), []);
}

/// Reads of unknown rows return nothing or `None`, not an error.
pub async fn reads_of_unknown_rows_return_nothing(store: Store) {
    store.sync(&target("there"), three_messages()).await;
    let (backend, nobody) = (&store.backend, target_of("nobody", "p", "s").key);
    for key in [&target("unknown").key, &nobody] {
        check_unknown(&**backend, key).await;
        assert_eq!(backend.find_events(&key.user_id, &["e".to_owned()]).await.unwrap(), []);
    }
    assert_eq!(backend.messages_at(&[]).await.unwrap(), []);
    assert_eq!(backend.event_payloads(&target("there").key, &[]).await.unwrap(), []);
    assert_eq!(backend.find_events(&nobody.user_id, &[]).await.unwrap(), []);
    assert_eq!(backend.sync_states(&nobody.user_id, None, 10).await.unwrap(), []);
    for update in [IndexUpdate::Now, IndexUpdate::Now, IndexUpdate::IfDue, IndexUpdate::Rebuild] {
        backend.update_index(update).await.unwrap();
    }
}

/// Sync states of a user are listed by session id, in pages.
pub async fn sync_states_are_listed_in_order(store: Store) {
    for n in (0..20).rev() {
        for user in ["ana", "ben"] {
            let state = (n % 4 != 0).then(|| format!("{user} {n}"));
            let target = target_of(user, "p", &format!("s{n:02}"));
            store.create(&target, |_| {}).await;
            store.write(&target, |change| change.sync_state = state.map(StoredSyncState::of)).await;
        }
    }
    let ana = target("x").key.user_id;
    let mut listed: Vec<(SessionId, StoredSyncState)> = Vec::new();
    loop {
        let page = store.backend.sync_states(&ana, listed.last().map(|(id, _)| id), 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    let listed: Vec<_> = listed.iter().map(|(id, state)| format!("{id} {}", state.files)).collect();
    let expected: Vec<_> = (0..20).filter(|n| n % 4 != 0).map(|n| format!("s{n:02} ana {n}")).collect();
    assert_eq!(listed, expected);
}

/// The ids of all sessions of a scope are listed with their parents, however many there are.
pub async fn session_ids_are_listed_with_their_parents(store: Store) {
    let parent = |n: usize| (n > 0).then(|| SessionId::new(format!("s{:03}", n - 1)).unwrap());
    for n in 0..120 {
        store.create(&target(&format!("s{n:03}")), |session| session.parent_id = parent(n)).await;
    }
    store.create(&target_of("ben", "p", "of-ben"), |session| session.visibility = Visibility::Public).await;
    let names = async |scope: Scope| {
        let mut names = store.backend.session_names(&scope).await.unwrap();
        names.sort();
        names
    };
    let name = |n: usize| SessionName::new(target(&format!("s{n:03}")).key.session_id, parent(n));
    let own: Vec<SessionName> = (0..120).map(name).collect();
    assert_eq!(names(ana()).await, own);
    let visible = Scope::Visible(Viewer::new(target("x").key.user_id));
    for scope in [visible, Scope::Everyone] {
        assert_eq!(names(scope).await.len(), 121);
    }
    assert!(names(scope(&target_of("nobody", "p", "s"))).await.is_empty());
}

/// The row counts of a session include the last sequence and the earliest and latest times.
pub async fn rows_of_a_session_are_counted(store: Store) {
    for target in [target("s"), target_of("ben", "shop", "s")] {
        let lines = [lines::user("q"), lines::thinking("thought", "answer"), lines::system("rules")];
        let at = [3, 1, 2].map(day).into_iter();
        store.sync(&target, lines.into_iter().zip(at).map(|(line, at)| line.at(at)).collect()).await;
        let events = [5, 4].map(|n| lines::logger_event("e").at(day(n)));
        store.sync_events(&target, events.to_vec()).await;
    }
    let span = |count: u64, first: u32, last: u32| RowSpan {
        count,
        last_sequence: Some(count as u32 - 1),
        first_ts: Some(day(first)),
        last_ts: Some(day(last)),
    };
    let synced_at = store.messages(&target("s")).await.iter().map(|message| message.synced_at).max();
    let (messages, events) = (span(3, 1, 3), span(2, 4, 5));
    let expected = RowCounts { messages, events, vectors: 3, turn_vectors: 0, pending_vectors: 0, synced_at };
    assert_eq!(store.rows(&target("s")).await, expected);
    store.sync_text(&target("s"), vec![lines::user("another").at(day(9))]).await;
    let rows = store.rows(&target("s")).await;
    assert_eq!((rows.messages, rows.events), (span(1, 9, 9), events));
    assert_eq!((rows.vectors, rows.pending_vectors), (0, 1));
}
