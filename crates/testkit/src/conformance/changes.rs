//! The feed of changes: a reader that follows it has the same sessions as the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::scopes::{VIEWERS, scope_of_viewer, session_of_olga};
use crate::prelude::*;

/// How long a test waits for a change. Another transaction may hold it back, in stores that several tests share.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reader that follows the feed.
struct Follower {
    scope: Scope,
    limit: usize,
    cursor: ChangeCursor,
    sessions: BTreeMap<SessionKey, (Session, Version)>,
    /// The digests of their messages and events, of which only those that may have changed are read.
    rows: BTreeMap<SessionKey, [Vec<Digest>; 2]>,
    /// The sessions that pages reported, in order.
    reported: Vec<SessionKey>,
}

impl Follower {
    /// Takes a cursor, and then lists the sessions.
    async fn begin(store: &Store, scope: Scope, limit: usize) -> Self {
        let page = store.backend.changes(&scope, None, limit).await.unwrap();
        assert!(page.changes.is_empty() && !page.reset);
        let sessions = current(store, &scope).await;
        let rows = current_rows(store, &sessions).await;
        Self { scope, limit, cursor: page.cursor, sessions, rows, reported: Vec::new() }
    }

    /// Reads a page. Returns the number of changes.
    async fn read(&mut self, store: &Store, patience: Duration) -> usize {
        let backend = &store.backend;
        let page = backend.wait_for_changes(&self.scope, &self.cursor, self.limit, patience).await.unwrap();
        assert!(!page.reset && page.changes.len() <= self.limit);
        self.cursor = ChangeCursor::parse(&page.cursor.to_string()).unwrap();
        assert_eq!(self.cursor, page.cursor);
        for changed in &page.changes {
            let key = changed.key();
            match changed.clone() {
                SessionChanged::Written { session, version, from } => {
                    assert!(self.scope.allows(&session));
                    assert!(from.messages <= session.message_count && from.events <= session.event_count);
                    let now = rows_of(store, &key).await;
                    let rows = self.rows.entry(key.clone()).or_default();
                    for ((rows, now), from) in rows.iter_mut().zip(now).zip([from.messages, from.events]) {
                        rows.truncate(from as usize);
                        rows.extend(now.into_iter().skip(rows.len()));
                    }
                    self.sessions.insert(key.clone(), (*session, version));
                }
                SessionChanged::Removed(_) => {
                    self.sessions.remove(&key);
                    self.rows.remove(&key);
                }
            }
            self.reported.push(key);
        }
        page.changes.len()
    }

    /// Reads until it has the sessions of the store.
    async fn follow(&mut self, store: &Store) {
        let (begun, expected) = (Instant::now(), current(store, &self.scope).await);
        loop {
            if self.read(store, Duration::ZERO).await > 0 {
                continue;
            }
            if self.sessions == expected && self.rows == current_rows(store, &expected).await {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?}\nis not\n{expected:?}", self.sessions);
            self.read(store, Duration::from_secs(1)).await;
        }
    }
}

/// The sessions in a scope.
async fn current(store: &Store, scope: &Scope) -> BTreeMap<SessionKey, (Session, Version)> {
    let query = SessionQuery::new(scope.clone()).with_limit(10_000);
    let mut sessions = BTreeMap::new();
    for session in store.backend.list_sessions(&query).await.unwrap() {
        let stored = store.backend.get_session(&session.key()).await.unwrap().unwrap();
        sessions.insert(session.key(), (session, stored.version));
    }
    sessions
}

/// The digests of the messages and events of sessions.
async fn current_rows(
    store: &Store,
    sessions: &BTreeMap<SessionKey, (Session, Version)>,
) -> BTreeMap<SessionKey, [Vec<Digest>; 2]> {
    let mut rows = BTreeMap::new();
    for key in sessions.keys() {
        rows.insert(key.clone(), rows_of(store, key).await);
    }
    rows
}

async fn rows_of(store: &Store, key: &SessionKey) -> [Vec<Digest>; 2] {
    let messages = store.backend.message_states(key).await.unwrap();
    let range = SequenceRange { start: 0, limit: 100_000 };
    let events = store.backend.event_digests(key, range).await.unwrap();
    [messages.into_iter().map(|state| state.digest).collect(), events]
}

async fn delete(store: &Store, target: &IngestTarget) {
    store.backend.delete_session(&target.key).await.unwrap();
}

async fn append(storage: &SessionStorage, target: &IngestTarget, at: u32) {
    let lines = SyncLines::starting_at(at, raw(vec![lines::user(&format!("line {at}"))]));
    storage.ingestion().sync_transcript_lines(target, lines).await.unwrap();
}

/// Every kind of write is reported: metadata, messages, events alone, edits, rewinds, and deletions.
pub async fn every_write_of_a_session_is_reported(store: Store) {
    let (one, catalog) = (target("s"), store.storage.sessions());
    let mut reader = Follower::begin(&store, ana(), 10).await;
    store.sync_metadata(&one, r#"{"name":"first"}"#).await;
    reader.follow(&store).await;
    let times = ["2026-01-05T08:00:00Z", "2026-01-05T08:00:02Z", "2026-01-05T08:00:04Z"];
    let transcript = [lines::user("question"), lines::assistant("answer"), lines::user("again")];
    store.sync_text(&one, transcript.into_iter().zip(times).map(|(line, at)| line.at(at)).collect()).await;
    reader.follow(&store).await;
    store.sync_events(&one, vec![lines::logger_event("tool:pre").at("2026-01-05T08:00:01Z")]).await;
    reader.follow(&store).await;
    let (session, _) = &reader.sessions[&one.key];
    assert_eq!((session.message_count, session.event_count), (3, 1));
    store
        .sync_events_from(&one, 1, vec![lines::logger_event("tool:post").at("2026-01-05T08:00:05Z")])
        .await
        .unwrap();
    reader.follow(&store).await;
    catalog.update_session(&one.key, &SessionEdit::default().add_tags(["red"])).await.unwrap();
    reader.follow(&store).await;
    store.storage.ingestion().rewind(&one.key, &RewindOptions::to_turn(1)).await.unwrap();
    reader.follow(&store).await;
    delete(&store, &one).await;
    reader.follow(&store).await;
    store.sync_text(&one, vec![lines::user("created again")]).await;
    reader.follow(&store).await;
    let reported: BTreeSet<&SessionKey> = reader.reported.iter().collect();
    assert_eq!(reported, BTreeSet::from([&one.key]));
}

/// Pages of any size add up to all changes.
pub async fn pages_of_changes_add_up(store: Store) {
    let other = user("ana.new");
    let mut readers = Vec::new();
    for (scope, limit) in [(ana(), 1), (ana(), 2), (ana(), 50), (Scope::User(other.clone()), 3)] {
        readers.push(Follower::begin(&store, scope, limit).await);
    }
    let targets: Vec<IngestTarget> = (0..9).map(|n| target(&format!("s{n}"))).collect();
    for target in &targets {
        store.sync_text(target, vec![lines::user("hello")]).await;
    }
    // Several in one transaction, where the store has them.
    let mut changes = Vec::new();
    for target in &targets[2..7] {
        let stored = store.stored(target).await;
        changes.push(SessionChange::new(stored.session, Some(stored.version)));
    }
    store.backend.write(changes).await.into_iter().for_each(|written| drop(written.unwrap()));
    readers[0].follow(&store).await;
    delete(&store, &targets[3]).await;
    readers[1].read(&store, PATIENCE).await;
    // All at once.
    store.storage.users().rename_user(&targets[0].key.user_id, &other).await.unwrap();
    for reader in &mut readers {
        reader.follow(&store).await;
    }
    assert!(readers[0].sessions.is_empty());
    assert_eq!(readers[3].sessions.len(), 8);
}

/// A renamed user's sessions are removed under the old name, and written under the new one.
pub async fn renamed_users_are_reported(store: Store) {
    let (one, new) = (target("s"), user("ana.new"));
    for target in [&one, &target_of("ben", "p", "s")] {
        store.sync_text(target, vec![lines::user("hello")]).await;
    }
    let mut old_reader = Follower::begin(&store, ana(), 10).await;
    let mut new_reader = Follower::begin(&store, Scope::User(new.clone()), 10).await;
    store.storage.users().rename_user(&one.key.user_id, &new).await.unwrap();
    old_reader.follow(&store).await;
    new_reader.follow(&store).await;
    // A page may repeat what was written before.
    let only_it = old_reader.reported.iter().all(|key| *key == one.key) && !old_reader.reported.is_empty();
    assert!(old_reader.sessions.is_empty() && only_it);
    assert!(new_reader.reported.iter().all(|key| key.user_id == new));
    store.storage.users().rename_user(&new, &one.key.user_id).await.unwrap();
    old_reader.follow(&store).await;
    new_reader.follow(&store).await;
    assert!(old_reader.sessions.len() == 1 && new_reader.sessions.is_empty());
}

/// A session that leaves a scope is removed from it. Sessions that never were in a scope are not mentioned.
pub async fn changes_stay_in_scope(store: Store) {
    let (shared, private) = (session_of_olga("shared"), session_of_olga("private"));
    for target in [&shared, &private] {
        store.sync_text(target, vec![lines::user("hello")]).await;
    }
    let mut readers = Vec::new();
    for (name, _) in VIEWERS {
        readers.push((name, Follower::begin(&store, scope_of_viewer(name), 10).await));
    }
    let share = async |sharing: Sharing| {
        drop(store.storage.sessions().share_session(&shared.key, &sharing).await.unwrap())
    };
    let steps: [(Sharing, &[&str]); 7] = [
        (Sharing::teams(["blue", "red"]), &["olga", "teammate", "both"]),
        (Sharing::org("acme"), &["olga", "colleague", "both"]),
        (Sharing::private(), &["olga"]),
        (Sharing::public(), &["olga", "teammate", "colleague", "both", "stranger", "loner"]),
        (Sharing::teams(["red"]), &["olga", "teammate", "both"]),
        (Sharing::teams(["blue"]), &["olga"]),
        (Sharing::teams(["red"]), &["olga", "teammate", "both"]),
    ];
    for (sharing, who) in steps {
        share(sharing.clone()).await;
        append(&store.storage, &private, store.stored(&private).await.session.message_count).await;
        for (name, reader) in &mut readers {
            reader.follow(&store).await;
            assert_eq!(reader.sessions.contains_key(&shared.key), who.contains(name), "{name} {sharing:?}");
        }
    }
    for target in [&shared, &private] {
        delete(&store, target).await;
    }
    for (name, reader) in &mut readers {
        reader.follow(&store).await;
        assert!(reader.reported.contains(&shared.key), "{name}");
        assert_eq!(reader.reported.contains(&private.key), *name == "olga", "{name}");
    }
}

/// What happened to a session before it was shared, or after it was unshared, is not reported.
pub async fn a_private_session_is_not_mentioned(store: Store) {
    let (secret, marker) = (session_of_olga("secret"), session_of_olga("marker"));
    let mut reader = Follower::begin(&store, scope_of_viewer("stranger"), 10).await;
    store.sync_text(&secret, vec![lines::user("hello")]).await;
    append(&store.storage, &secret, 1).await;
    delete(&store, &secret).await;
    store.sync_text(&secret, vec![lines::user("again")]).await;
    store.storage.users().rename_user(&secret.key.user_id, &user("olga.new")).await.unwrap();
    // Later than all of this.
    store.sync_text(&marker, vec![lines::user("hello")]).await;
    store.storage.sessions().share_session(&marker.key, &Sharing::public()).await.unwrap();
    reader.follow(&store).await;
    assert!(reader.reported.iter().all(|key| *key == marker.key), "{:?}", reader.reported);
}

/// After random changes, every reader has the sessions of its scope, and was told of no others.
pub async fn readers_follow_random_changes(store: Store) {
    let again = store.again().await;
    let mut random = Random(rounds(7, 77));
    let scopes = VIEWERS.map(|(name, _)| scope_of_viewer(name));
    let scopes = scopes.into_iter().chain([Scope::Everyone, Scope::User(user("olga"))]);
    let mut readers = Vec::new();
    for (n, scope) in scopes.enumerate() {
        let reader = Follower::begin(&store, scope, 1 + 3 * n).await;
        readers.push((reader, BTreeSet::new()));
    }
    let sharings = [Sharing::private(), Sharing::org("acme"), Sharing::public(), Sharing::teams(["red"])];
    for step in 0..rounds(40, 600) {
        let handle = if random.below(2) == 0 { &store } else { &again };
        let name = *random.one(&["olga", "teammate"]);
        let one = target_of(name, "shop", &format!("s{}", random.below(4)));
        let exists = handle.backend.get_session(&one.key).await.unwrap();
        match (random.below(12), exists) {
            (0, Some(_)) => delete(handle, &one).await,
            (1..6, Some(_)) => {
                let sharing = random.one(&sharings);
                drop(handle.storage.sessions().share_session(&one.key, sharing).await.unwrap());
            }
            (6, Some(_)) => {
                let (from, to) = (one.key.user_id.clone(), user("somebody"));
                handle.storage.users().rename_user(&from, &to).await.unwrap();
                handle.storage.users().rename_user(&to, &from).await.unwrap();
            }
            (_, Some(stored)) => append(&handle.storage, &one, stored.session.message_count).await,
            (_, None) => append(&handle.storage, &one, 0).await,
        }
        let all = store.backend.list_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap();
        for (reader, ever) in &mut readers {
            ever.extend(all.iter().filter(|session| reader.scope.allows(session)).map(Session::key));
            if random.below(4) == 0 || step % 20 == 0 {
                reader.follow(&store).await;
            }
        }
    }
    for (reader, ever) in &mut readers {
        reader.follow(&store).await;
        let is_known = |key: &&SessionKey| ever.contains(key) || key.user_id == user("somebody");
        let others: Vec<&SessionKey> = reader.reported.iter().filter(|key| !is_known(key)).collect();
        assert!(others.is_empty(), "{:?}: {others:?}", reader.scope);
    }
}

/// Concurrent writers, through several handles, hide no change from a reader, and no older state follows a newer one.
pub async fn no_concurrent_change_is_missed(store: Store) {
    const WRITERS: usize = 8;
    const LINES: u32 = 12;
    let again = store.again().await;
    let mut reader = Follower::begin(&store, ana(), 3).await;
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let storage = [&store, &again][n % 2].storage_with(None);
        let (own, shared) = (target(&format!("s{n}")), target(&format!("shared{}", n / 4)));
        writers.spawn(async move {
            for at in 0..LINES {
                append(&storage, &own, at).await;
                let metadata = RawJson::from(format!(r#"{{"name":"{n} {at}"}}"#).as_str());
                storage.ingestion().sync_session_metadata(&shared, metadata).await.unwrap();
            }
        });
    }
    let mut counts = BTreeMap::new();
    let mut check = |reader: &Follower| {
        for (key, (session, _)) in &reader.sessions {
            let before = counts.insert(key.clone(), session.message_count).unwrap_or_default();
            assert!(before <= session.message_count, "{key:?}");
        }
    };
    while let Some(written) = writers.join_next().await {
        written.unwrap();
        reader.read(&again, Duration::ZERO).await;
        check(&reader);
    }
    reader.follow(&store).await;
    check(&reader);
    assert_eq!(reader.sessions.len(), WRITERS + WRITERS / 4);
    assert!((0..WRITERS).all(|n| counts[&target(&format!("s{n}")).key] == LINES));
}

/// A cursor of another store or another scope is answered with a reset, and the reader begins again.
pub async fn unknown_cursors_are_reset(store: Store) {
    let foreign = MemoryBackend::new().changes(&ana(), None, 9).await.unwrap().cursor;
    let own = store.backend.changes(&ana(), None, 9).await.unwrap().cursor;
    let ben = Scope::User(user("ben"));
    for (scope, cursor) in [(ana(), foreign), (ben, own)] {
        let page = store.backend.changes(&scope, Some(&cursor), 9).await.unwrap();
        assert!(page.reset && page.changes.is_empty());
        let next = store.backend.changes(&scope, Some(&page.cursor), 9).await.unwrap();
        assert!(!next.reset && next.changes.is_empty());
    }
}

/// All readers that wait are woken by a write of the same handle, and of another one.
pub async fn waiting_readers_are_woken(store: Store) {
    let store = Arc::new(store);
    let writers = [store.clone(), Arc::new(store.again().await)];
    for (n, writer) in writers.into_iter().enumerate() {
        let one = target(&format!("s{n}"));
        let mut readers = JoinSet::new();
        for _ in 0..4 {
            let mut reader = Follower::begin(&store, ana(), 9).await;
            let (store, key) = (store.clone(), one.key.clone());
            readers.spawn(async move {
                // What was written before may be repeated first.
                while !reader.reported.contains(&key) {
                    assert!(reader.read(&store, PATIENCE).await > 0, "not woken");
                }
            });
        }
        writer.sync_metadata(&one, r#"{"name":"hello"}"#).await;
        while let Some(read) = readers.join_next().await {
            read.unwrap();
        }
    }
}

/// Without a change, a reader waits no longer than it wants to.
pub async fn waiting_readers_return_without_changes(store: Store) {
    let mut reader = Follower::begin(&store, ana(), 9).await;
    store.sync_text(&target_of("ben", "p", "s"), vec![lines::user("not of ana")]).await;
    for millis in [0, 1, 20] {
        assert_eq!(reader.read(&store, Duration::from_millis(millis)).await, 0);
    }
}
