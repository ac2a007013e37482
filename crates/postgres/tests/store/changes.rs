//! The feed of changes while transactions are running.

use std::{collections::BTreeSet, time::Duration};

use amplifier_session_core::{
    backend::{ChangeCursor, SessionChanged, prelude::*},
    model::SessionKey,
};
use amplifier_session_testkit::{
    Store, lines,
    store::{ana, target},
};

use crate::support::{Database, connect};

/// How long to wait for changes: a transaction of another test holds them back as long as it runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads until these sessions were reported.
async fn until(store: &Store, mut cursor: ChangeCursor, expected: [&SessionKey; 2]) {
    let mut missing = BTreeSet::from(expected);
    while !missing.is_empty() {
        let page = store.backend.wait_for_changes(&ana(), &cursor, 9, PATIENCE).await.unwrap();
        assert!(!page.reset && !page.changes.is_empty(), "{missing:?}");
        for changed in &page.changes {
            missing.remove(&changed.key());
        }
        cursor = page.cursor;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_transaction_that_is_committed_late_is_not_missed() {
    let database = Database::create(3).await;
    let store = Store::open(database.clone()).await;
    let (slow, fast) = (target("slow"), target("fast"));
    for one in [&slow, &fast] {
        store.sync_text(one, vec![lines::user("hello")]).await;
    }
    let mut cursor = store.backend.changes(&ana(), None, 9).await.unwrap().cursor;
    // Takes its number before the other one, and is committed after it.
    let client = connect(&database.name, None).await;
    let write = "BEGIN; UPDATE amplifier_sessions.sessions SET changed = DEFAULT, name = 'slowly',
            revision = nextval('amplifier_sessions.revisions') WHERE session_id = 'slow'";
    client.batch_execute(write).await.unwrap();
    store.sync_metadata(&fast, r#"{"name":"quickly"}"#).await;
    for _ in 0..3 {
        let page = store.backend.changes(&ana(), Some(&cursor), 9).await.unwrap();
        // Its state before may be repeated, if a transaction of another test holds the cursor back.
        let is_late = |changed: &SessionChanged| match changed {
            SessionChanged::Written { session, .. } => session.name.is_some(),
            SessionChanged::Removed(_) => true,
        };
        assert!(!page.reset && !page.changes.iter().any(is_late), "{page:?}");
        cursor = page.cursor;
    }
    client.batch_execute("COMMIT").await.unwrap();
    until(&store, cursor, [&slow.key, &fast.key]).await;
    drop((store, client));
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn cursors_notice_restored_tables() {
    let database = Database::create(3).await;
    let store = Store::open(database.clone()).await;
    store.sync_text(&target("s"), vec![lines::user("hello")]).await;
    let cursor = store.backend.changes(&ana(), None, 9).await.unwrap().cursor;
    assert!(!store.backend.changes(&ana(), Some(&cursor), 9).await.unwrap().reset);
    // As a dump of it does.
    let client = connect(&database.name, None).await;
    let restore = "SET search_path TO amplifier_sessions, public;
        CREATE TABLE restored (LIKE sessions INCLUDING ALL);
        INSERT INTO restored SELECT * FROM sessions;
        DROP TABLE sessions;
        ALTER TABLE restored RENAME TO sessions";
    client.batch_execute(restore).await.unwrap();
    assert!(store.backend.changes(&ana(), Some(&cursor), 9).await.unwrap().reset);
    drop((store, client));
    database.remove().await;
}
