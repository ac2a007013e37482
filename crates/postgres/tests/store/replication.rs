//! A primary server with a standby: reads from the standby, and the failover to it.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{
    ErrorKind,
    backend::{StorageBackend, prelude::*},
    config::{Entry, SettingOrigin, Settings},
};
use amplifier_session_postgres::{FACTORY, Postgres, PostgresConfig};
use amplifier_session_testkit::{
    Store, Subject, lines,
    postgres::PostgresServer,
    store::{meaning, target, words},
};
use async_trait::async_trait;
use tokio_postgres::NoTls;

/// A server whose commits wait until the standby shows them, once it has one.
fn primary() -> PostgresServer {
    PostgresServer::start("shared_buffers = 16MB\nmax_connections = 40\nsynchronous_commit = remote_apply\n")
}

async fn execute(server: &PostgresServer, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
}

/// The store on two servers, as a URL with both hosts names it.
struct Both {
    address: String,
    attributes: &'static str,
}

impl Both {
    fn new(servers: [&PostgresServer; 2], attributes: &'static str) -> Self {
        let hosts = servers.map(|server| format!("127.0.0.1:{}", server.port())).join(",");
        Self { address: format!("//amplifier@{hosts}/postgres"), attributes }
    }
}

#[async_trait]
impl Subject for Both {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        let setting =
            FACTORY.settings.iter().find(|setting| setting.name() == "target_session_attrs").unwrap();
        let entry = Entry::new(setting, SettingOrigin::Environment(setting.variable), Some(self.attributes));
        let mut config = PostgresConfig::new(&self.address, &Settings::new(vec![entry], None)).unwrap();
        // The standby is promoted only after a write has failed.
        config.patience = Duration::ZERO;
        Arc::new(Postgres::open(config).await.unwrap())
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn a_standby_is_read_and_takes_over_without_losing_a_write() {
    let (primary, standby) = tokio::task::spawn_blocking(|| {
        let primary = primary();
        let standby = PostgresServer::standby_of(&primary);
        (primary, standby)
    })
    .await
    .unwrap();
    execute(&primary, "ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    execute(&primary, "SELECT pg_reload_conf()").await;
    // Commits wait for the standby once the checkpointer has read the setting, which a checkpoint makes certain.
    execute(&primary, "CHECKPOINT").await;
    execute(
        &primary,
        "DO $$ BEGIN
            WHILE NOT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync') LOOP
                PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
            END LOOP;
        END $$",
    )
    .await;

    // The host that does not match comes first.
    let writer = Store::open(Arc::new(Both::new([&standby, &primary], "read-write"))).await;
    let session = target("s");
    writer.sync(&session, vec![lines::user("a red apple"), lines::assistant("a green pear")]).await;
    let reader = Store::open(Arc::new(Both::new([&primary, &standby], "read-only"))).await;
    assert_eq!(reader.backend.info().read_only.as_deref(), Some("the server is a standby"));
    assert_eq!(reader.everything(&session).await, writer.everything(&session).await);
    for options in [words("pear"), meaning("a green pear")] {
        assert_eq!(reader.search(&session, &options).await.results[0].sequence, 1);
    }
    let refused = reader.sync_from(&session, 2, vec![lines::user("more")]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::StorageIo);
    assert!(refused.to_string().contains("the store is read-only: the server is a standby"), "{refused}");

    // The primary is killed while lines are written.
    let writer = Arc::new(writer);
    let (acknowledged, mut written) = tokio::sync::watch::channel(2);
    let writing = tokio::spawn({
        let (writer, session) = (writer.clone(), session.clone());
        async move {
            for sequence in 2.. {
                let line = lines::user(&format!("line {sequence}"));
                if let Err(error) = writer.sync_from(&session, sequence, vec![line]).await {
                    return error;
                }
                acknowledged.send_replace(sequence + 1);
            }
            unreachable!("the primary is killed");
        }
    });
    written.wait_for(|written| *written > 12).await.unwrap();
    let primary = tokio::task::spawn_blocking(move || {
        primary.kill();
        primary
    })
    .await
    .unwrap();
    let error = writing.await.unwrap();
    assert!(error.is_retryable(), "{error:?}");
    let written = *written.borrow();

    let standby = tokio::task::spawn_blocking(move || {
        standby.promote();
        standby
    })
    .await
    .unwrap();
    let kept = writer.messages(&session).await;
    assert!(kept.len() as u32 >= written, "{} of {written}", kept.len());
    let line = |sequence: u32| lines::user(&format!("line {sequence}"));
    writer.sync_from(&session, written, (written..written + 5).map(line).collect()).await.unwrap();
    let all = writer.messages(&session).await;
    assert_eq!(all.len() as u32, written + 5);
    assert_eq!(all[..written as usize], kept[..written as usize]);
    for sequence in 2..written + 5 {
        assert_eq!(writer.find(&session, &format!("{sequence}")).await, [sequence]);
    }
    assert_eq!(writer.backend.check_index().await.unwrap().problems, []);
    drop((primary, standby));
}
