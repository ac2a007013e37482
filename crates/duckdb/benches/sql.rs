//! Measures queries over 1,000,000 events: `cargo bench -p amplifier-session-duckdb --bench sql`.
//!
//! DuckDB has to be found: see docs/duckdb.md.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement: it prints, and stops at an error"
)]

use std::{fs, sync::Arc, time::Instant};

use amplifier_session_core::SessionStorage;
use amplifier_session_duckdb::{
    Access, DuckDb,
    sql::{SqlQuery, SqlReader},
};
use amplifier_session_testkit::{
    Random, lines,
    store::{ana, target, whole},
};
use serde_json::json;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOOLS: [&str; 6] = ["bash", "read_file", "edit_file", "grep", "web_fetch", "task"];
const QUERIES: [&str; 5] = [
    "SELECT count(*), sum(data_size_bytes) FROM events",
    "SELECT event_type, tool_name, count(*), min(ts), max(ts) FROM events GROUP BY ALL",
    "FROM tool_use",
    "FROM errors_by_type",
    "FROM tokens_by_model_and_day",
];
/// How often each query runs.
const RUNS: usize = 5;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.duckdb");
    let storage = SessionStorage::new(Arc::new(DuckDb::open(&file, Access::ReadWrite).await.unwrap()));
    let start = Instant::now();
    for session in 0..100 {
        let events = (0..10_000).map(|n| event(session * 10_000 + n)).collect();
        storage.sync_event_lines(&target(&format!("s{session}")), whole(events)).await.unwrap();
    }
    drop(storage);
    println!(
        "1,000,000 events taken in: {:.1} s, {} MB\n",
        start.elapsed().as_secs_f64(),
        fs::metadata(&file).unwrap().len() / 1_000_000
    );
    println!("| query over 1,000,000 events | best | worst |\n| --- | --- | --- |");
    let reader = SqlReader::open(&file).await.unwrap();
    for sql in QUERIES {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            let mut answer = reader.query(&ana(), &SqlQuery::new(sql)).await.unwrap();
            while answer.next_rows().await.unwrap().is_some() {}
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("| `{sql}` | {:.0} ms | {:.0} ms |", times[0], times[RUNS - 1]);
    }
}

/// Event `n`: a response of a model, or a call of a tool.
fn event(n: u64) -> lines::Line {
    let mut random = Random(n);
    let day = format!("2026-{:02}-{:02}T08:00:00Z", 1 + random.below(12), 1 + random.below(28));
    let data = match n % 5 {
        0 => {
            json!({"model": "model-large", "usage": {"input_tokens": random.below(9_000), "output_tokens": 80}})
        }
        kind => json!({"tool_name": random.one(&TOOLS), "duration_ms": random.below(900), "kind": kind}),
    };
    lines::logger_event(if n.is_multiple_of(5) { "llm:response" } else { "tool:post" }).at(&day).data(data)
}
