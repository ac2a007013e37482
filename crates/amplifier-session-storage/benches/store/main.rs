//! Measures a whole store: taking sessions in, and searching them, with yardsticks in the same run.
//!
//! ```text
//! cargo bench -p amplifier-session-storage                        both, on made-up sessions
//! cargo bench -p amplifier-session-storage -- sync                taking in alone
//! cargo bench -p amplifier-session-storage -- search --root DIR   on sessions below DIR, with DIR/queries.json
//! cargo bench -p amplifier-session-storage -- search --store URL --root DIR [--user ID]...   on a store that is there
//! cargo bench -p amplifier-session-storage -- refresh --sessions 20000   a refresh that finds nothing
//! cargo bench -p amplifier-session-storage -- yardstick --root DIR   only how long parsing and inserting takes
//! ```
//!
//! `--sessions N` sets how many made-up sessions of 50 messages there are (200: 10,000 messages), of 2 for `refresh`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement: it prints, and stops at an error"
)]

mod refresh;
mod search;
mod sync;
#[path = "../../../index/benches/search/tantivy_alone.rs"]
mod tantivy_alone;
mod yardstick;

use std::path::{Path, PathBuf};

use amplifier_session_storage::{
    OpenOptions, SessionStorage, embedding,
    model::{HostId, UserId},
    open,
    sync::{NoProgress, SyncOptions, sync as sync_folders},
};
use amplifier_session_testkit::corpus::{Corpus, CorpusSize};

/// The one of the program, for yardsticks too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is typed.
struct Arguments {
    sync: bool,
    search: bool,
    yardstick: bool,
    refresh: bool,
    root: Option<PathBuf>,
    sessions: usize,
    store: Option<String>,
    users: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        // Cargo adds `--bench`.
        let typed: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
        let value = |name: &str| typed.iter().position(|one| one == name).and_then(|at| typed.get(at + 1));
        let values = |name: &str| {
            let pairs = typed.iter().zip(typed.iter().skip(1));
            pairs.filter(|(option, _)| *option == name).map(|(_, value)| value.clone()).collect()
        };
        let named = |name: &str| typed.iter().any(|one| one == name);
        let (yardstick, refresh) = (named("yardstick"), named("refresh"));
        let both = !named("sync") && !named("search") && !yardstick && !refresh;
        Self {
            sync: both || named("sync"),
            search: both || named("search"),
            yardstick,
            refresh,
            root: value("--root").map(PathBuf::from),
            sessions: value("--sessions").map_or(200, |number| number.parse().unwrap()),
            store: value("--store").cloned(),
            users: values("--user"),
        }
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let made = tempfile::tempdir().unwrap();
    let root = arguments.root.clone().unwrap_or_else(|| {
        let mut corpus = Corpus::new(1);
        let (messages, events) = if arguments.refresh { (2, 2) } else { (50, 100) };
        corpus.write(made.path(), CorpusSize { sessions: arguments.sessions, messages, events }).unwrap();
        corpus.write_queries(made.path()).unwrap();
        made.path().to_owned()
    });
    if arguments.yardstick {
        let folder = tempfile::tempdir().unwrap();
        println!("{:.2}", yardstick::parse_and_insert(&root, folder.path()).as_secs_f64());
    }
    if arguments.sync {
        sync::measure(&root).await;
    }
    if arguments.refresh {
        refresh::measure(&root).await;
    }
    match arguments.store {
        Some(url) => search::measure_store(&url, &root, &arguments.users).await,
        None if arguments.search => search::measure(&root).await,
        None => {}
    }
}

/// The user whose sessions are taken in.
fn user() -> UserId {
    UserId::new("bench").unwrap()
}

async fn opened(url: &str, embedding: &str) -> SessionStorage {
    let options = OpenOptions::default().with_embedding(embedding::provider(embedding).unwrap());
    open(url, options).await.unwrap()
}

/// A store in `folder` with all sessions below `root`.
async fn filled(folder: &Path, root: &Path, embedding: &str) -> SessionStorage {
    let url = format!("sqlite:{}", folder.join(format!("{embedding}.sqlite")).display());
    let storage = opened(&url, embedding).await;
    let options = SyncOptions::new(root, user(), HostId::new("here").unwrap());
    let report = sync_folders(&storage, &options, &NoProgress).await.unwrap();
    assert_eq!(report.sessions.failed, 0);
    storage
}
