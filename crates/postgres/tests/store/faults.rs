//! Lost connections, a killed server, too few connections, and a role that may only read.

use std::sync::Arc;

use amplifier_session_core::{ErrorKind, SessionStorage, backend::prelude::*, storage::IngestTarget};
use amplifier_session_postgres::Postgres;
use amplifier_session_testkit::{
    Store,
    lines::{self, Line},
    postgres::PostgresServer,
    store::{raw, scope, sequences, target, target_of, whole, words},
};
use tokio::{
    sync::watch,
    task::{JoinSet, spawn_blocking},
};

use crate::support::{Database, OnServer, administrate};

/// The length of each transcript in the end.
const LINES: usize = 41;

fn line(number: usize) -> Line {
    lines::user(&format!("line{number} of a transcript"))
}

/// Syncs a transcript that grows, like a client that tries again what failed. Counts its steps.
async fn sync(storage: SessionStorage, target: IngestTarget, lines: usize, steps: watch::Sender<usize>) {
    for length in (1..=lines).step_by(5) {
        let lines: Vec<_> = (0..length).map(line).collect();
        while let Err(error) = storage.ingestion().sync_transcript_lines(&target, whole(lines.clone())).await
        {
            assert!(error.is_retryable(), "{error}");
        }
        steps.send_modify(|steps| *steps += 1);
    }
}

/// Syncs them at the same time. The channel has the number of steps so far.
fn sync_all(store: &Store, targets: &[IngestTarget], lines: usize) -> (JoinSet<()>, watch::Receiver<usize>) {
    let (steps, progress) = watch::channel(0);
    let syncs =
        targets.iter().map(|target| sync(store.storage.clone(), target.clone(), lines, steps.clone()));
    (syncs.collect(), progress)
}

async fn assert_whole(store: &Store, targets: &[IngestTarget]) {
    for target in targets {
        let stored: Vec<_> = store.messages(target).await.into_iter().map(|message| message.raw).collect();
        assert_eq!(stored, raw((0..LINES).map(line).collect()));
        assert_eq!(store.find(target, "line40").await, [40]);
    }
    assert!(store.backend.check_index().await.unwrap().problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn nothing_is_lost_or_doubled_when_connections_are_cut() {
    let database = Database::create(4).await;
    let store = Store::open(database.clone()).await;
    let targets: Vec<_> = (0..12).map(|n| target_of("ana", "p", &format!("s{n}"))).collect();
    let (syncs, mut progress) = sync_all(&store, &targets, LINES);
    let cutting = tokio::spawn({
        let database = database.clone();
        async move {
            // On a slow machine, nothing would ever be written if connections were cut more often than writes succeed.
            // The channel is closed after the last one.
            let mut cuts = 0;
            while progress.changed().await.is_ok() {
                database.cut().await;
                cuts += 1;
            }
            cuts
        }
    });
    syncs.join_all().await;
    assert!(cutting.await.unwrap() > 1);
    assert_whole(&store.again().await, &targets).await;
    drop(store);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn nothing_is_lost_or_doubled_when_the_server_is_killed() {
    let start = || PostgresServer::start("shared_buffers = 16MB\nmax_connections = 40\n");
    let server = Arc::new(spawn_blocking(start).await.unwrap());
    let store = Store::open(Arc::new(OnServer(server.clone()))).await;
    let targets: Vec<_> = (0..4).map(|n| target_of("ana", "p", &format!("s{n}"))).collect();
    let (syncs, mut progress) = sync_all(&store, &targets, LINES);
    for steps in [3, 10, 20] {
        progress.wait_for(|synced| *synced >= steps).await.unwrap();
        let server = server.clone();
        let restart = move || {
            server.kill();
            server.launch();
        };
        spawn_blocking(restart).await.unwrap();
    }
    syncs.join_all().await;
    assert_whole(&store.again().await, &targets).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn calls_wait_for_the_only_connection() {
    let database = Database::create(1).await;
    let store = Store::open(database.clone()).await;
    let targets: Vec<_> = (0..8).map(|n| target(&format!("s{n}"))).collect();
    sync_all(&store, &targets, 6).0.join_all().await;
    for target in &targets {
        assert_eq!(store.messages(target).await.len(), 6);
    }
    drop(store);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_role_that_may_only_read_reads() {
    let database = Database::create(2).await;
    let store = Store::open(database.clone()).await;
    store.sync(&target("s"), vec![line(0)]).await;
    let (role, schema) = (database.name.as_str(), "amplifier_sessions");
    administrate(
        role,
        &[
            &format!("CREATE ROLE {role} LOGIN"),
            &format!("GRANT USAGE ON SCHEMA {schema} TO {role}"),
            &format!("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"),
        ],
    )
    .await;

    let restricted =
        SessionStorage::new(Arc::new(Postgres::open(database.config(Some(role))).await.unwrap()));
    let found = restricted.search().search_transcripts(&scope(&target("s")), &words("line0")).await.unwrap();
    assert_eq!(sequences(&found.results), [0]);
    let both = whole(vec![line(0), line(1)]);
    let error = restricted.ingestion().sync_transcript_lines(&target("s"), both).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageIo, false));
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert_eq!(error.context("role"), Some(role));
    assert!(
        error.hint().unwrap().contains("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"),
        "{error:?}"
    );
    drop((store, restricted));
    database.remove().await;
    administrate("postgres", &[&format!("DROP ROLE {role}")]).await;
}
