//! Deletions on a full disk, and deletions that were killed: what is left is erased later.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    backend::{
        Deletion, MessageVectors, NotErased, SequenceRange, SessionDeletion, StorageBackend, StoreInfo,
        meta::{EMBEDDING_SPACE, Generation},
        prelude::*,
    },
    embedding::EmbeddingProvider as _,
    model::{EmbeddedTurn, SessionKey, Timestamp, VectorRecord, VectorText},
};
use amplifier_session_index::IndexUpdater;
use amplifier_session_sql::{
    Columns, DISK_FULL, Query, Reader, Statement,
    backend::{Database, Writer as _},
    embedded::{Embedded, EmbeddedDatabase, RowSnapshots},
    number,
};
use amplifier_session_sqlite::{Sqlite, SqliteBackend};
use amplifier_session_testkit::{
    FakeEmbedding,
    erasure::{bystander, fill, search, stored_pieces, traces},
    lines,
};

use super::support::{Folder, target, whole};

/// A database that fails as on a full disk.
#[derive(Debug)]
struct FullDisk {
    store: SqliteBackend,
    /// How many rewrites fail.
    rewrites: AtomicUsize,
    /// The number of deletions until the failing one, from 1.
    deletions: AtomicUsize,
    /// Whether those after it fail too.
    stays_full: AtomicBool,
    /// The number of rows that a transaction of a deletion can change.
    room: AtomicU64,
}

impl FullDisk {
    async fn open(folder: &Folder, rewrites: usize, deletions: usize) -> Embedded<Self> {
        Embedded::embedded(Self {
            store: folder.backend().await,
            rewrites: AtomicUsize::new(rewrites),
            deletions: AtomicUsize::new(deletions),
            stays_full: AtomicBool::new(false),
            room: AtomicU64::new(u64::MAX),
        })
    }
}

fn disk_full() -> Error {
    Error::new(ErrorKind::StorageIo, DISK_FULL)
}

/// Counts down. Returns whether it was above zero before.
fn count_down(counter: &AtomicUsize) -> Option<usize> {
    counter.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).ok()
}

/// The number of rows that a connection has changed so far.
fn changes(reader: &impl Reader) -> Result<u64> {
    let decode = |row: &dyn Columns| number(row, 0);
    let changes = reader.first(&Query::new("changes", "SELECT total_changes()", Vec::new(), decode))?;
    Ok(changes.unwrap_or_default())
}

impl Database for FullDisk {
    type Connections = <Sqlite as Database>::Connections;
    type Writer<'a> = <Sqlite as Database>::Writer<'a>;

    fn connections(&self) -> &Self::Connections {
        self.store.connections()
    }

    fn info(&self) -> StoreInfo {
        Database::info(&**self.store)
    }

    fn check_writable(&self) -> Result<()> {
        self.store.check_writable()
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        mut write: impl FnMut(&mut Self::Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        let is_deletion = operation == "delete_session";
        let left = if is_deletion { count_down(&self.deletions) } else { Some(0) };
        if left == Some(1) || left.is_none() && self.stays_full.load(SeqCst) {
            return Err(disk_full());
        }
        self.store.transaction(operation, |writer| {
            let before = changes(writer)?;
            let answer = write(writer)?;
            if is_deletion && changes(writer)? - before > self.room.load(SeqCst) {
                Err(disk_full())
            } else {
                Ok(answer)
            }
        })
    }

    fn tidy(&self) -> Result<()> {
        self.store.tidy()
    }
}

impl EmbeddedDatabase for FullDisk {
    fn index(&self) -> &IndexUpdater<RowSnapshots<Self::Connections>> {
        self.store.index()
    }

    fn erase(&self) -> Result<()> {
        if count_down(&self.rewrites).is_some() {
            return Err(disk_full());
        }
        EmbeddedDatabase::erase(&**self.store)
    }
}

/// Deletes a session as it is now.
async fn delete(backend: &dyn StorageBackend, key: &SessionKey) -> (bool, Vec<NotErased>) {
    let version = backend.get_session(key).await.unwrap().map(|stored| stored.version);
    let session = SessionDeletion::from(key).with_expected(version);
    let Deletion { mut deleted, remains } = backend.delete_sessions(&[session]).await;
    (deleted.pop().unwrap().unwrap(), remains)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_disk_keeps_is_erased_by_the_next_process_that_writes() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    let pieces = stored_pieces(&folder.backend().await, &key).await;
    storage.update_index().await.unwrap();
    drop(storage);

    let backend = FullDisk::open(&folder, 2, 0).await;
    let (deleted, remains) = delete(&backend, &key).await;
    let found: Vec<_> = remains.iter().map(|left| (left.file.clone(), left.error.message())).collect();
    assert_eq!((deleted, found), (true, vec![(folder.database(), DISK_FULL)]));
    assert!(backend.get_session(&key).await.unwrap().is_none());
    // The disk is still full: the write succeeds nevertheless.
    let storage = SessionStorage::new(std::sync::Arc::new(backend));
    bystander(&storage, 1_000).await;
    drop(storage);

    let storage = folder.storage().await;
    bystander(&storage, 1_001).await;
    assert_eq!(traces(folder.path(), &pieces), []);
    assert_eq!(search(&storage, "quondammessage").await, 0);
    assert!(search(&storage, "harmless").await > 0);
    // Nothing is left to be done.
    let backend = FullDisk::open(&folder, 1, 0).await;
    assert!(delete(&backend, &key).await.1.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_cannot_be_cleaned_is_reported_and_cleaned_later() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    let pieces = stored_pieces(&folder.backend().await, &key).await;
    storage.update_index().await.unwrap();
    drop(storage);
    let index = folder.path().join("sessions.sqlite.index");
    fs::remove_file(index.join("lock")).unwrap();
    fs::create_dir(index.join("lock")).unwrap();

    let backend = folder.backend().await;
    let (deleted, remains) = delete(&backend, &key).await;
    assert!(deleted);
    assert_eq!(remains.iter().map(|left| &left.file).collect::<Vec<_>>(), [&index]);
    drop(backend);

    fs::remove_dir(index.join("lock")).unwrap();
    let storage = folder.storage().await;
    bystander(&storage, 1_000).await;
    assert_eq!(traces(folder.path(), &pieces), []);
    assert!(storage.backend().delete_sessions(&[(&key).into()]).await.remains.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_a_deletion_makes_room_by_removing_the_index() {
    let folder = Folder::new();
    let storage = folder.storage().await;
    let key = fill(&storage).await;
    storage.update_index().await.unwrap();
    drop(storage);
    let backend = FullDisk::open(&folder, 0, 1).await;
    let (deleted, remains) = delete(&backend, &key).await;
    assert!(deleted && remains.is_empty(), "{remains:?}");
    let storage = folder.storage().await;
    assert_eq!(search(&storage, "quondammessage").await, 0);
    assert!(search(&storage, "harmless").await > 0);
}

/// More messages and events than one transaction removes.
const LONG: usize = 4_100;

async fn fill_long(folder: &Folder) -> SessionKey {
    let storage = folder.storage().await.with_embedding(None);
    let long = target("long");
    let messages = (0..LONG).map(|n| lines::user(&format!("long {n}"))).collect();
    storage.ingestion().sync_transcript_lines(&long, whole(messages)).await.unwrap();
    let events = (0..LONG).map(|n| lines::logger_event(&format!("event{n}"))).collect();
    storage.ingestion().sync_event_lines(&long, whole(events)).await.unwrap();
    storage
        .ingestion()
        .sync_transcript_lines(&target("other"), whole(vec![lines::user("other")]))
        .await
        .unwrap();
    long.key
}

/// Writes vectors of the turns of some messages.
async fn write_turns(folder: &Folder, key: &SessionKey, users: &[u32]) {
    let backend = folder.backend().await;
    let states = backend.message_states(key).await.unwrap();
    let space = FakeEmbedding::new().space().clone();
    let generation = Generation { space: space.clone(), number: 0 };
    backend.put_meta_if_absent(EMBEDDING_SPACE, &generation.to_value()).await.unwrap();
    let made = |user: &u32| {
        let turn = EmbeddedTurn {
            id: format!("turn-{user}"),
            assistant_sequence: None,
            provider: "local".to_owned(),
            content_used: "User: x".to_owned(),
            content_hash: EmbeddedTurn::hash("User: x"),
            used_turn_summary: true,
            created_at: Timestamp::from_micros(0),
        };
        let record = VectorRecord::of_turn(turn, vec![0.0; space.dimensions]);
        MessageVectors::new(*user, states[*user as usize].digest, Timestamp::from_micros(0), vec![record])
    };
    let made = users.iter().map(made).collect();
    assert_eq!(backend.write_vectors(key, 0, made).await.unwrap(), users.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_transaction_left_in_the_log_is_cut_off() {
    let folder = Folder::new();
    bystander(&folder.storage().await, 1).await;
    let backend = folder.backend().await;
    let log = || fs::metadata(folder.path().join("sessions.sqlite-wal")).unwrap().len();
    let mut longest = 0;
    let failed = Database::transaction(&**backend, "write", |writer| {
        for n in 0..40 {
            let sql = format!("INSERT INTO event_chunks VALUES ('ana', 's', {n}, 0, 1, zeroblob(1000000))");
            writer.execute(&Statement::once("write", sql, []))?;
        }
        longest = log();
        Err::<(), Error>(disk_full())
    });
    assert_eq!(failed.unwrap_err().message(), DISK_FULL);
    assert!(longest > 16 << 20 && log() < 1 << 20, "{longest}, then {}", log());
    bystander(&folder.storage().await, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_is_deleted_in_several_transactions() {
    // The second transaction, or the third, is the first that fails; the index is removed, and it is tried again.
    for failing in [0, 2, 3] {
        let folder = Folder::new();
        let key = fill_long(&folder).await;
        let backend = FullDisk::open(&folder, 0, failing).await;
        let (deleted, remains) = delete(&backend, &key).await;
        assert!(deleted && remains.is_empty(), "{remains:?}");
        assert!(backend.get_session(&key).await.unwrap().is_none());
        assert!(backend.message_states(&key).await.unwrap().is_empty());
        assert_eq!(backend.deleted_sessions(&key.user_id).await.unwrap(), [key.session_id]);
        assert_eq!(backend.message_states(&target("other").key).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_deleted_in_steps_that_have_room() {
    let folder = Folder::new();
    let storage = folder.storage().await.with_embedding(None);
    let short = target("short");
    let messages = (0..100).map(|n| lines::user(&format!("short {n}"))).collect();
    storage.ingestion().sync_transcript_lines(&short, whole(messages)).await.unwrap();
    let events = (0..100).map(|n| lines::logger_event(&format!("event{n}"))).collect();
    storage.ingestion().sync_event_lines(&short, whole(events)).await.unwrap();
    drop(storage);
    // One step changes more than the row that it removes.
    let backend = FullDisk::open(&folder, 0, 0).await;
    backend.room.store(20, SeqCst);
    let (deleted, remains) = delete(&backend, &short.key).await;
    assert!(deleted && remains.is_empty(), "{remains:?}");
    assert!(backend.get_session(&short.key).await.unwrap().is_none());
    assert!(backend.message_states(&short.key).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_deletion_leaves_a_shorter_session_that_can_be_deleted_again() {
    let folder = Folder::new();
    let key = fill_long(&folder).await;
    write_turns(&folder, &key, &[0, LONG as u32 - 1]).await;
    let backend = FullDisk::open(&folder, 0, 3).await;
    backend.stays_full.store(true, SeqCst);
    let deletion = backend.delete_sessions(&[(&key).into()]).await;
    assert_eq!(deletion.deleted[0].as_ref().unwrap_err().message(), DISK_FULL);
    let stored = backend.get_session(&key).await.unwrap().unwrap();
    let messages = backend.message_states(&key).await.unwrap().len();
    assert!(messages < LONG && stored.session.message_count as usize == messages);
    assert_eq!(stored.sync_state, None);
    // The turns of messages that stay keep their vectors.
    let left = backend.vector_texts(0, &key, SequenceRange { start: 0, limit: 9 }).await.unwrap();
    assert_eq!(left, [(0, vec![VectorText::Turn])]);
    backend.stays_full.store(false, SeqCst);
    let (deleted, remains) = delete(&backend, &key).await;
    assert!(deleted && remains.is_empty(), "{remains:?}");
}
