//! After `kill -9` at any moment of a sync, the next sync completes the store. A killed rewind has removed everything
//! or nothing.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use amplifier_session_storage::{
    OpenOptions, Scope, SessionStorage, backend::SessionQuery, embedding, model::UserId,
    search::SearchOptions, storage::EventLines,
};
use amplifier_session_testkit::{AmplifierHome, lines, rounds};

use crate::support::{Home, copy};

const SESSIONS: usize = 20;
const QUERIES: [&str; 3] = ["violin in the harbour", "deadlock of a ledger import", "needle17"];

/// All rows and search results of a store, as text.
async fn dump(url: &str) -> Vec<String> {
    let options = OpenOptions::default().with_embedding(embedding::provider("local").unwrap());
    let storage = amplifier_session_storage::open(url, options).await.unwrap();
    let scope = Scope::from(UserId::new("dana").unwrap());
    let query = SessionQuery::new(scope.clone()).with_limit(SESSIONS * 2);
    let mut dump = Vec::new();
    for session in storage.sessions().search_sessions(&query).await.unwrap() {
        let id = &session.session_id;
        for message in storage.reading().get_transcript_lines(&scope, id, None, usize::MAX).await.unwrap() {
            let (turn, ts, vectors) = (message.turn, message.ts, message.vectors);
            dump.push(format!("{} {turn:?} {ts} {vectors:?} {}", message.id(), message.raw.to_text()));
        }
        let lines = EventLines::default().with_limit(usize::MAX).with_payload(true);
        for event in storage.reading().get_event_lines(&scope, id, lines).await.unwrap() {
            let raw = event.raw.as_ref().unwrap().to_text();
            dump.push(format!("{} {raw}", serde_json::to_string(&event.event).unwrap()));
        }
        dump.push(format!(
            "{} vectors",
            storage.backend().session_rows(&session.key()).await.unwrap().vectors
        ));
        dump.push(serde_json::to_string(&session).unwrap());
    }
    for query in QUERIES {
        dump.push(found(&storage, &scope, query).await);
    }
    dump
}

/// The messages that a search finds, in order.
async fn found(storage: &SessionStorage, scope: &Scope, query: &str) -> String {
    let found = storage.search().search_transcripts(scope, &SearchOptions::new(query)).await.unwrap();
    assert!(!found.results.is_empty(), "{query}");
    let places = found.results.iter().map(|result| format!("{} #{}", result.session_id, result.sequence));
    format!("{query}: {}", places.collect::<Vec<_>>().join(", "))
}

/// Sessions with thinking, tool output, events of all sizes and lines without times.
fn folders() -> AmplifierHome {
    let home = AmplifierHome::new().unwrap();
    for n in 0..SESSIONS {
        let at = |minute: usize| format!("2026-01-{:02}T{:02}:{minute:02}:00Z", 1 + n % 28, n % 24);
        let text = |turn: usize, words: usize| sentence(n * 1_000 + turn * 100, words);
        let transcript: Vec<_> = (0..5)
            .flat_map(|turn| {
                [
                    lines::user(&format!("Why does this fail, needle{n}? {}", text(turn, 9))).at(at(turn)),
                    lines::thinking(&text(turn + 5, 20), &text(turn + 6, 12)),
                    lines::tool(&text(turn + 7, 80 + n % 7)).at(at(turn)),
                    lines::assistant(&text(turn + 8, 30)).at(at(turn)),
                ]
            })
            .map(|line| line.raw())
            .collect();
        let events: Vec<_> = (0..15)
            .map(|k| {
                let size = if n == 7 && k == 3 { 500_000 } else { 300 * k };
                lines::logger_event("tool:post")
                    .data(serde_json::json!({"payload": "x".repeat(size)}))
                    .at(at(k))
                    .raw()
            })
            .collect();
        let folder = home.session(&format!("project-{}", n % 3), &format!("session-{n:03}")).unwrap();
        folder.metadata(&format!("{{\"name\":\"Session {n}\"}}")).unwrap();
        folder.transcript(transcript).unwrap().events(events).unwrap();
    }
    home
}

/// Pseudorandom words for a seed: no two texts match a query equally well.
fn sentence(seed: usize, words: usize) -> String {
    const WORDS: [&str; 24] = [
        "basket", "login", "import", "retry", "invoice", "cache", "deadlock", "customer", "token", "queue",
        "parser", "socket", "winter", "ledger", "camera", "garden", "python", "rust", "thread", "planet",
        "violin", "harbour", "pepper", "window",
    ];
    let mut state = seed as u64 + 1;
    let picked = (0..words).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(state >> 33) as usize % WORDS.len()]
    });
    picked.collect::<Vec<_>>().join(" ")
}

/// The number of bytes in a folder.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn a_killed_sync_is_completed_by_the_next() {
    kill_and_go_on("sqlite", &[], rounds(8, 40));
}

#[cfg(feature = "duckdb-system")]
#[test]
fn a_killed_sync_to_duckdb_is_completed_by_the_next() {
    kill_and_go_on("duckdb", &[], rounds(3, 16));
}

#[cfg(feature = "duckdb-system")]
#[test]
#[ignore = "needs the extension VSS of DuckDB in AMPLIFIER_TEST_DUCKDB_VSS; ./test provides it"]
fn a_killed_sync_to_duckdb_with_an_hnsw_index_is_completed_by_the_next() {
    let directory = std::env::var("AMPLIFIER_TEST_DUCKDB_VSS").unwrap();
    let settings =
        [("AMPLIFIER_SESSIONS_HNSW", "true"), ("AMPLIFIER_SESSIONS_EXTENSION_DIRECTORY", &directory)];
    kill_and_go_on("duckdb", &settings, 8);
}

/// Kills syncs to stores of this kind, each at another moment, and completes them.
fn kill_and_go_on(kind: &str, settings: &[(&str, &str)], moments: u32) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folders = folders();
    let root = folders.path().to_str().unwrap();
    let home = Home::new();
    let url = |name: &str| format!("{kind}:{}", home.path().join(name).join("sessions.db").display());
    let sync = |name: &str| {
        let mut command = home.process(&["--store", &url(name), "sync", "--root", root]);
        command.envs(settings.iter().copied());
        command
    };

    let begun = Instant::now();
    assert!(sync("whole").output().unwrap().status.success());
    let mut whole_time = begun.elapsed();
    let whole = runtime.block_on(dump(&url("whole")));
    let whole_size = size(&home.path().join("whole"));

    let mut seen = BTreeSet::new();
    let mut killed = 0;
    for moment in 0..moments {
        let name = format!("killed-{moment}");
        let mut child = sync(&name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let folder = home.path().join(&name);
        // Half of the moments depend on the bytes written, half on the time, which includes moments without writes.
        let reached = || match moment % 2 {
            0 => size(&folder) >= whole_size * u64::from(moment) / u64::from(moments),
            _ => begun.elapsed() >= whole_time * moment / moments,
        };
        while !reached() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(500));
        }
        let elapsed = begun.elapsed();
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            // The machine was slower when the time was measured.
            whole_time = whole_time.min(elapsed);
        } else {
            killed += 1;
        }
        seen.insert(size(&folder));
        let output = sync(&name).output().unwrap();
        assert!(output.status.success(), "moment {moment}: {}", String::from_utf8_lossy(&output.stderr));
        let dump = runtime.block_on(dump(&url(&name)));
        for (found, expected) in dump.iter().zip(&whole) {
            assert_eq!(found, expected, "moment {moment}");
        }
        assert_eq!(dump.len(), whole.len(), "moment {moment}");
        fs::remove_dir_all(folder).unwrap();
    }
    assert!(killed >= moments * 2 / 5, "only {killed} syncs were killed before they ended");
    assert!(seen.len() > moments as usize / 5, "all were killed at the same moments: {seen:?}");
}

#[test]
fn a_killed_rewind_removes_everything_or_nothing() {
    kill_rewinds("sqlite", rounds(6, 24));
}

#[cfg(feature = "duckdb-system")]
#[test]
fn a_killed_rewind_of_duckdb_removes_everything_or_nothing() {
    kill_rewinds("duckdb", rounds(2, 10));
}

/// Kills rewinds of copies of a store, each at another moment, and repeats them.
fn kill_rewinds(kind: &str, moments: u32) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folders = folders();
    let home = Home::new();
    let folder = |name: &str| home.path().join(name);
    let url = |name: &str| format!("{kind}:{}", folder(name).join("sessions.db").display());
    let rewind = |name: &str| {
        home.process(&["--store", &url(name), "rewind", "session-007", "--to-turn", "2", "--yes"])
    };
    let root = folders.path().to_str().unwrap();
    home.ok(&["--store", &url("before"), "sync", "--root", root]);
    copy(&folder("before"), &folder("after"));
    let begun = Instant::now();
    assert!(rewind("after").output().unwrap().status.success());
    let whole_time = begun.elapsed();
    let [before, after] = ["before", "after"].map(|name| runtime.block_on(dump(&url(name))));
    assert!(before.len() > after.len());

    let mut killed = 0;
    for moment in 0..moments {
        let name = format!("killed-{moment}");
        copy(&folder("before"), &folder(&name));
        let mut child = rewind(&name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while begun.elapsed() < whole_time * moment / moments && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let left = runtime.block_on(dump(&url(&name)));
        assert!(left == before || left == after, "moment {moment}: a part was removed");
        assert!(rewind(&name).output().unwrap().status.success());
        assert_eq!(runtime.block_on(dump(&url(&name))), after, "moment {moment}");
        fs::remove_dir_all(folder(&name)).unwrap();
    }
    assert!(killed > 0, "all rewinds ended before they were killed");
}
