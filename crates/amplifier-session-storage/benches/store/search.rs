//! How long a search takes in a process that has searched before.

use std::{path::Path, time::Instant};

use amplifier_session_storage::{
    Scope, SessionStorage,
    search::{SearchMode, SearchOptions, SessionFilter},
};
use serde_json::Value;

use super::{filled, user};

/// How often each query is asked; the first time only warms up.
const ROUNDS: usize = 5;

pub(crate) async fn measure(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let storage = filled(folder.path(), root, "local").await;
    let counts = storage.get_session_statistics(&Scope::from(user()), None).await.unwrap();
    println!("{} messages in {} sessions\n", counts.messages, counts.sessions);
    println!("| search, warm | p50 | p95 | worst |\n| --- | --- | --- | --- |");
    let all = queries(root, &["keyword", "semantic"]);
    let plain = SessionFilter::default();
    for mode in [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid] {
        row(mode.as_str(), &storage, &all, mode, &plain).await;
    }
    let busy = plain.with_min_turns(5);
    row("hybrid, sessions of 5 turns and more", &storage, &all, SearchMode::Hybrid, &busy).await;
    for list in ["keyword", "semantic"] {
        let name = format!("full_text, {list} queries alone");
        row(&name, &storage, &queries(root, &[list]), SearchMode::FullText, &SessionFilter::default()).await;
    }
}

fn queries(root: &Path, lists: &[&str]) -> Vec<String> {
    let all: Value = serde_json::from_slice(&std::fs::read(root.join("queries.json")).unwrap()).unwrap();
    let lists = lists.iter().flat_map(|list| all[*list].as_array().unwrap());
    lists.map(|query| query.as_str().unwrap().to_owned()).collect()
}

async fn row(
    name: &str,
    storage: &SessionStorage,
    queries: &[String],
    mode: SearchMode,
    sessions: &SessionFilter,
) {
    let scope = Scope::from(user());
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        for query in queries {
            let mut options = SearchOptions::new(query).with_mode(mode);
            options.filter.sessions = sessions.clone();
            let start = Instant::now();
            storage.search_transcripts(&scope, &options).await.unwrap();
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize];
    println!("| {name} | {:.2} ms | {:.2} ms | {:.2} ms |", at(0.5), at(0.95), at(1.0));
}
