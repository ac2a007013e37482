//! Connections that are lost while a call uses them, and servers that restart.

use std::sync::Arc;

use amplifier_session_core::{
    Result, Scope,
    backend::prelude::*,
    search::SessionFilter,
    storage::{ArchiveWriter, Record},
};
use amplifier_session_testkit::{
    Store, lines,
    postgres::PostgresServer,
    store::{ana, target},
};
use tokio::task::spawn_blocking;

use crate::support::{Database, OnServer, connect};

/// Ends the sessions that wait for a lock, as soon as there is one.
const CUT_WAITING: &str = "DO $$ BEGIN
    LOOP
        PERFORM pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND database =
            (SELECT oid FROM pg_database WHERE datname = current_database());
        EXIT WHEN FOUND;
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END $$";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_read_whose_connection_is_cut_is_run_again() {
    let database = Database::create(2).await;
    let store = Arc::new(Store::open(database.clone()).await);
    store.sync(&target("s"), vec![lines::user("one")]).await;
    let admin = connect(&database.name, None).await;
    // A single statement, and a snapshot.
    for snapshot in [false, true] {
        admin.batch_execute("BEGIN; LOCK TABLE amplifier_sessions.transcripts").await.unwrap();
        let reading = tokio::spawn({
            let store = store.clone();
            async move {
                if snapshot {
                    store.rows(&target("s")).await.messages.count as usize
                } else {
                    store.messages(&target("s")).await.len()
                }
            }
        });
        admin.batch_execute(CUT_WAITING).await.unwrap();
        admin.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(reading.await.unwrap(), 1);
    }
    drop((store, admin));
    database.remove().await;
}

/// A trigger makes the commit wait, so that the connection is lost during it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn vectors_are_written_although_the_connection_is_cut_during_the_commit() {
    let database = Database::create(2).await;
    let store = Arc::new(Store::open(database.clone()).await);
    store.sync_text(&target("s"), vec![lines::user("one"), lines::user("two")]).await;
    let admin = connect(&database.name, None).await;
    let waits = "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(7);
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON amplifier_sessions.transcript_vectors
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.wait();
        SELECT pg_advisory_lock(7)";
    admin.batch_execute(waits).await.unwrap();
    let embedding = tokio::spawn({
        let store = store.clone();
        async move { store.embed().await }
    });
    admin.batch_execute(CUT_WAITING).await.unwrap();
    admin.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    embedding.await.unwrap();
    assert!(store.pending(&target("s")).await.is_empty());
    assert_eq!(store.vectors(&target("s")).await.len(), 2);
    drop((store, admin));
    database.remove().await;
}

/// Cuts all connections before each session and after each hundredth message.
struct Cutting {
    database: Arc<Database>,
    messages: usize,
    cuts: usize,
}

impl ArchiveWriter for Cutting {
    fn put(&mut self, record: Record) -> Result<()> {
        let cuts = match record {
            Record::Message(_) => {
                self.messages += 1;
                self.messages.is_multiple_of(100)
            }
            Record::Session(_) => true,
            _ => false,
        };
        if cuts {
            self.cuts += 1;
            let cut = self.database.cut();
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(cut));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn an_export_goes_on_after_its_connections_are_cut() {
    const SESSIONS: usize = 3;
    const MESSAGES: usize = 450;
    let database = Database::create(2).await;
    let store = Store::open(database.clone()).await;
    for session in 0..SESSIONS {
        let texts = (0..MESSAGES).map(|n| lines::user(&format!("line {n}")));
        store.sync_text(&target(&format!("s{session}")), texts.collect()).await;
    }
    let mut out = Cutting { database: database.clone(), messages: 0, cuts: 0 };
    let report =
        store.storage.archive().export_sessions(&ana(), SessionFilter::default(), &mut out).await.unwrap();
    assert_eq!((report.sessions as usize, report.messages as usize), (SESSIONS, SESSIONS * MESSAGES));
    // Nothing was written twice.
    assert_eq!((out.messages, out.cuts), (SESSIONS * MESSAGES, SESSIONS + SESSIONS * MESSAGES / 100));
    drop((store, out));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn reads_and_writes_wait_for_a_server_that_restarts() {
    let start = || PostgresServer::start("shared_buffers = 16MB\nmax_connections = 40\n");
    let server = Arc::new(spawn_blocking(start).await.unwrap());
    let store = Arc::new(Store::open(Arc::new(OnServer(server.clone()))).await);
    store.sync(&target("s"), vec![lines::user("one")]).await;
    let kill = {
        let server = server.clone();
        move || server.kill()
    };
    spawn_blocking(kill).await.unwrap();
    let reading = tokio::spawn({
        let store = store.clone();
        async move { store.find(&target("s"), "one").await }
    });
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.sync(&target("t"), vec![lines::user("two")]).await }
    });
    let listing = tokio::spawn({
        let store = store.clone();
        async move { store.backend.count_vectors(&Scope::Everyone).await }
    });
    spawn_blocking(move || server.launch()).await.unwrap();
    assert_eq!(reading.await.unwrap(), [0]);
    writing.await.unwrap();
    listing.await.unwrap().unwrap();
    assert_eq!(store.messages(&target("t")).await.len(), 1);
}
