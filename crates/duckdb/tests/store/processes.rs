//! Several processes with one file, and killed processes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
};

use amplifier_session_core::{ErrorKind, Scope, SessionStorage, search::VectorSearchOptions};
use amplifier_session_duckdb::{Access, DuckDb, HnswOptions};
use amplifier_session_testkit::{FakeEmbedding, lines, rounds};

use super::{
    hnsw::{extension, with_hnsw},
    support::{Folder, found, number, storage, target, whole},
};

/// The path of the database for a child process. Without it, the test does nothing.
const DATABASE: &str = "DUCKDB_TEST_DATABASE";
/// The task of the child: `hold`, `read`, `write`, or `hnsw` (write with an HNSW index).
const TASK: &str = "DUCKDB_TEST_TASK";

/// Opens the database, reports that, and keeps it open until its input ends. Or writes sessions until it is killed, and
/// reports each stored session.
#[tokio::test(flavor = "multi_thread")]
async fn child_of_another_test() {
    let (Some(database), Ok(task)) = (std::env::var_os(DATABASE), std::env::var(TASK)) else { return };
    let say = |word: String| {
        let mut out = std::io::stdout();
        writeln!(out, "\nchild {word}").unwrap();
        out.flush().unwrap();
    };
    let access = if task == "read" { Access::ReadOnly } else { Access::ReadWrite };
    let backend = DuckDb::open(database, access).await.unwrap();
    let has_hnsw = task == "hnsw";
    if has_hnsw {
        backend.use_hnsw(HnswOptions::default().with_extension_directory(Some(extension())));
    }
    let storage = storage(backend);
    say("open".to_owned());
    if has_hnsw || task == "write" {
        for n in 0.. {
            let messages = (0..20).map(|m| lines::user(&format!("session{n} message{m}"))).collect();
            storage
                .ingestion()
                .sync_transcript_lines(&target(&format!("s{n}")), whole(messages))
                .await
                .unwrap();
            // A session that is written repeatedly: rows are removed and put again with the same keys.
            let messages = (0..=n % 7).map(|m| lines::user(&format!("again {n} {m}"))).collect();
            storage.ingestion().sync_transcript_lines(&target("again"), whole(messages)).await.unwrap();
            if has_hnsw {
                say(format!("indexes {n}"));
                storage.update_index().await.unwrap();
            }
            say(n.to_string());
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

struct Other {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn new(folder: &Folder, task: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child_of_another_test", "--nocapture"])
            .env(DATABASE, folder.database())
            .env(TASK, task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut other = Self { child, says };
        other.wait_for("open");
        other
    }

    fn wait_for(&mut self, word: &str) {
        let wanted = format!("child {word}\n");
        let mut line = String::new();
        while line != wanted {
            line.clear();
            assert_ne!(self.says.read_line(&mut line).unwrap(), 0, "the other process ended before {word:?}");
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        std::io::copy(&mut self.says, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        assert!(!self.child.wait().unwrap().success());
    }
}

async fn refused(folder: &Folder, access: Access, holder: u32) {
    let error = DuckDb::open(folder.database(), access).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageConnection);
    let message = error.to_string();
    assert!(message.contains(&format!("(PID {holder})")), "{message}");
    assert!(message.contains("sessions.duckdb") && message.contains("--read-only"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_about_a_file_in_use_names_the_process() {
    let folder = Folder::new();
    let other = Other::new(&folder, "hold");
    refused(&folder, Access::ReadWrite, other.child.id()).await;
    refused(&folder, Access::ReadOnly, other.child.id()).await;
    other.end();
    drop(folder.backend().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_can_read_while_none_writes() {
    let folder = Folder::new();
    let writer = folder.storage().await;
    writer.ingestion().sync_transcript_lines(&target("s"), whole(vec![lines::user("a pear")])).await.unwrap();
    drop(writer);
    let others = [Other::new(&folder, "read"), Other::new(&folder, "read")];
    let error = DuckDb::open(folder.database(), Access::ReadWrite).await.unwrap_err();
    assert!(error.to_string().contains("(PID "), "{error}");
    let reader = storage(DuckDb::open(folder.database(), Access::ReadOnly).await.unwrap());
    assert_eq!(found(&reader, "pear").await, 1);
    drop(reader);
    others.into_iter().for_each(Other::end);
    drop(folder.backend().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_data_survives_a_kill() {
    let folder = Folder::new();
    let mut stored = 0;
    for round in 1..=rounds(2, 8) {
        let mut writer = Other::new(&folder, "write");
        // Each child starts at 0 and gets further than the previous one, so its first sessions exist already.
        stored = round * 5;
        writer.wait_for(&stored.to_string());
        writer.kill();
        let reader = folder.storage().await;
        for n in 0..=stored {
            let rows = reader.backend().session_rows(&target(&format!("s{n}")).key).await.unwrap();
            assert_eq!(rows.messages.count, 20, "round {round}, session {n}");
            assert_eq!((rows.vectors, rows.pending_vectors), (20, 0), "round {round}, session {n}");
        }
        assert_eq!(found(&reader, &format!("session{stored}")).await, 20);
        drop(reader);
        // The search may still be updating the index in the background, which keeps the file open. Opening the store
        // waits for that.
        drop(folder.backend().await);
    }
    let connection = folder.connection();
    assert!(number(&connection, "SELECT count(*) FROM transcripts") >= i64::from(stored) * 20);
    let doubled = "SELECT count(*) - count(DISTINCT (user_id, session_id, sequence)) FROM transcripts";
    assert_eq!(number(&connection, doubled), 0);
}

/// The similarities of the ten messages nearest to a text, best first, and whether the HNSW index was used.
async fn ten_nearest(storage: &SessionStorage, text: &str) -> (Vec<f32>, bool) {
    let options = VectorSearchOptions::new(FakeEmbedding::new().vector(text)).with_limit(10);
    let found = storage.search().vector_search(&Scope::Everyone, &options).await.unwrap();
    let is_by_hnsw = !found.notices.iter().any(|notice| notice.contains("HNSW"));
    (found.results.into_iter().map(|result| result.score).collect(), is_by_hnsw)
}

/// Kills writers at random points.
#[ignore = "needs DuckDB's extension: AMPLIFIER_TEST_DUCKDB_VSS, see .ci/duckdb-vss"]
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_an_hnsw_index_is_written_loses_nothing() {
    let folder = Folder::new();
    for round in 1..=8 {
        let mut writer = Other::new(&folder, "hnsw");
        let stored: u32 = round.min(12);
        writer.wait_for(&stored.to_string());
        // Kills in the next session and its vectors, or in the index: how far it gets is random.
        if round % 2 == 0 {
            writer.wait_for(&format!("indexes {}", stored + 1));
        }
        writer.kill();

        let vector = |n: u32| format!("session{n} message3");
        // Without the extension, the store is complete.
        let plain = folder.storage().await;
        for n in 0..=stored {
            let rows = plain.backend().session_rows(&target(&format!("s{n}")).key).await.unwrap();
            assert_eq!((rows.messages.count, rows.vectors), (20, 20), "round {round}, session {n}");
        }
        let mut exact = Vec::new();
        for n in 0..=stored {
            exact.push(ten_nearest(&plain, &vector(n)).await.0);
        }
        drop(plain);
        let check = async |storage: &SessionStorage, must_be_by_hnsw: bool| {
            for (n, exact) in (0..=stored).zip(&exact) {
                let (near, is_by_hnsw) = ten_nearest(storage, &vector(n)).await;
                assert!(is_by_hnsw || !must_be_by_hnsw, "round {round}");
                let differ = near.iter().zip(exact).filter(|(a, b)| (**a - **b).abs() > 1e-5).count();
                assert_eq!((near.len(), differ), (exact.len(), 0), "round {round}, session {n}");
            }
        };
        let storage = with_hnsw(&folder, Access::ReadWrite, extension()).await;
        check(&storage, false).await;
        storage.update_index().await.unwrap();
        check(&storage, true).await;
        drop(storage);
        drop(folder.backend().await);
    }
}
