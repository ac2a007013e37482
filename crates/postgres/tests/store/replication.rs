//! A primary server with a standby: reads from the standby, and the failover to it.

use std::{
    fs,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use amplifier_session_core::{
    ErrorKind,
    backend::{StorageBackend, prelude::*},
    config::{Entry, Origin, Settings},
};
use amplifier_session_postgres::{FACTORY, Postgres, PostgresConfig};
use amplifier_session_testkit::{
    Store, Subject, lines,
    store::{meaning, target, words},
};
use async_trait::async_trait;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::support::programs;

/// A server that is stopped when this is dropped.
struct Server {
    programs: PathBuf,
    /// The user who owns the programs: a server does not run as root.
    owner: u32,
    folder: TempDir,
    port: u16,
}

impl Server {
    fn new() -> Self {
        let programs = programs();
        let owner = fs::metadata(&programs).unwrap().uid();
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(owner), None).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { programs, owner, folder, port }
    }

    /// A server whose commits wait until the standby shows them, once it has one.
    fn primary() -> Self {
        let server = Self::new();
        server.run(
            "initdb",
            &["--username=amplifier", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
        );
        server.configure("shared_buffers = 16MB\nmax_connections = 40\nsynchronous_commit = remote_apply\n");
        server.start();
        server
    }

    fn standby_of(primary: &Self) -> Self {
        let server = Self::new();
        let port = primary.port.to_string();
        let place = ["--host=127.0.0.1", "--port", &port, "--username=amplifier"];
        let how = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
        server.run("pg_basebackup", &[place.as_slice(), how.as_slice()].concat());
        server.configure("");
        server.start();
        server
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn configure(&self, settings: &str) {
        let file = self.data().join("postgresql.conf");
        let before = fs::read_to_string(&file).unwrap();
        let place =
            format!("listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\n", self.port);
        fs::write(file, format!("{before}\n{place}{settings}")).unwrap();
    }

    fn start(&self) {
        let log = self.folder.path().join("log");
        self.run("pg_ctl", &["start", "--wait", "--silent", "--log", path(&log)]);
    }

    /// Stops the server at once, without writing anything more.
    fn kill(&self) {
        self.run("pg_ctl", &["stop", "--mode=immediate", "--silent"]);
    }

    fn promote(&self) {
        self.run("pg_ctl", &["promote", "--wait", "--silent"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).arg("--pgdata").arg(self.data()).args(arguments);
        if fs::metadata("/proc/self").unwrap().uid() != self.owner {
            command.uid(self.owner);
        }
        // A server would keep a pipe open.
        let output = self.folder.path().join("output");
        let file = fs::File::create(&output).unwrap();
        let status = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        assert!(status.success(), "{program}: {}", fs::read_to_string(output).unwrap());
    }

    async fn execute(&self, sql: &str) {
        let place = format!("host=127.0.0.1 port={} user=amplifier dbname=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&place, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was killed is not there any more.
        let mut stop = Command::new(self.programs.join("pg_ctl"));
        stop.current_dir(self.folder.path()).uid(self.owner).args([
            "stop",
            "--mode=immediate",
            "--silent",
            "-D",
        ]);
        let _ = stop.arg(self.data()).output();
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The store on two servers, as a URL with both hosts names it.
struct Both {
    address: String,
    attributes: &'static str,
}

impl Both {
    fn new(servers: [&Server; 2], attributes: &'static str) -> Self {
        let hosts = servers.map(|server| format!("127.0.0.1:{}", server.port)).join(",");
        Self { address: format!("//amplifier@{hosts}/postgres"), attributes }
    }
}

#[async_trait]
impl Subject for Both {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        let setting =
            FACTORY.settings.iter().find(|setting| setting.name() == "target_session_attrs").unwrap();
        let entry = Entry::new(setting, Origin::Environment(setting.variable), Some(self.attributes));
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
#[ignore = "needs a PostgreSQL server: .ci/with-postgres"]
async fn a_standby_is_read_and_takes_over_without_losing_a_write() {
    let (primary, standby) = tokio::task::spawn_blocking(|| {
        let primary = Server::primary();
        let standby = Server::standby_of(&primary);
        (primary, standby)
    })
    .await
    .unwrap();
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
    primary.execute("SELECT pg_reload_conf()").await;

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
