//! How long a search takes in a process that has searched before.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use amplifier_session_storage::{
    Scope, SessionStorage,
    model::UserId,
    search::{SearchMode, SearchOptions, SessionFilter},
    text::query_terms,
};
use serde_json::Value;

use super::{filled, opened, tantivy_alone::TantivyAlone, user};

/// How often each query is asked; the first time only warms up.
const ROUNDS: usize = 5;

pub(crate) async fn measure(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let storage = filled(folder.path(), root, "local").await;
    let counts = storage.sessions().get_session_statistics(&Scope::from(user()), None).await.unwrap();
    println!("{} messages in {} sessions\n", counts.messages, counts.sessions);
    println!("| search, warm | p50 | p95 | worst |\n| --- | --- | --- | --- |");
    let all = queries(root, &["keyword", "semantic"]);
    let scopes = [Scope::from(user())];
    let measured = Measured { storage: &storage, scopes: &scopes };
    let plain = SessionFilter::default();
    for mode in MODES {
        measured.row(mode.as_str(), &all, mode, &plain).await;
    }
    let busy = plain.with_min_turns(5);
    measured.row("hybrid, sessions of 5 turns and more", &all, SearchMode::Hybrid, &busy).await;
    for list in ["keyword", "semantic"] {
        let name = format!("full_text, {list} queries alone");
        measured.row(&name, &queries(root, &[list]), SearchMode::FullText, &SessionFilter::default()).await;
    }
}

/// Searches a store that was filled before, by one user after the other.
pub(crate) async fn measure_store(url: &str, root: &Path, users: &[String]) {
    let start = Instant::now();
    let storage = opened(url, "local").await;
    println!("| search, warm | p50 | p95 | worst |\n| --- | --- | --- | --- |");
    println!("| opening | {:.2} ms | | |", start.elapsed().as_secs_f64() * 1e3);
    let users = users.iter().map(|user| UserId::new(user).unwrap());
    let scopes: Vec<Scope> = users.map(Scope::from).collect();
    let measured = Measured { storage: &storage, scopes: &scopes };
    let all = queries(root, &["keyword", "semantic"]);
    for mode in MODES {
        measured.row(mode.as_str(), &all, mode, &SessionFilter::default()).await;
    }
    let file = url.split_once(':').map(|(_, path)| format!("{path}.index"));
    if let Some(index) = file.map(PathBuf::from).filter(|index| index.is_dir()) {
        with_tantivy_alone(&index, &all);
    }
}

/// Measures tantivy alone, which finds the best texts with any of the words in the same files.
fn with_tantivy_alone(index: &Path, queries: &[String]) {
    /// The number of texts that a search asks the index for.
    const BEST: usize = 250;
    let tantivy = TantivyAlone::open(index);
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        for query in queries {
            let terms = query_terms(query);
            let start = Instant::now();
            tantivy.search(&terms, BEST);
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    print_row("tantivy_alone", times);
}

const MODES: [SearchMode; 3] = [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid];

fn queries(root: &Path, lists: &[&str]) -> Vec<String> {
    let all: Value = serde_json::from_slice(&std::fs::read(root.join("queries.json")).unwrap()).unwrap();
    let lists = lists.iter().flat_map(|list| all[*list].as_array().unwrap());
    lists.map(|query| query.as_str().unwrap().to_owned()).collect()
}

struct Measured<'a> {
    storage: &'a SessionStorage,
    /// Queries are asked in these scopes, in turn.
    scopes: &'a [Scope],
}

impl Measured<'_> {
    async fn row(&self, name: &str, queries: &[String], mode: SearchMode, sessions: &SessionFilter) {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            for (query, scope) in queries.iter().zip(self.scopes.iter().cycle()) {
                let mut options = SearchOptions::new(query).with_mode(mode);
                options.filter.sessions = sessions.clone();
                let start = Instant::now();
                self.storage.search().search_transcripts(scope, &options).await.unwrap();
                if round > 0 {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        print_row(name, times);
    }
}

fn print_row(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize];
    println!("| {name} | {:.2} ms | {:.2} ms | {:.2} ms |", at(0.5), at(0.95), at(1.0));
}
