//! How long a refresh takes that finds no change, against a bare walk of the same files.

use std::{fs, path::Path, time::Instant};

use amplifier_session_storage::{
    model::HostId,
    sync::{RefreshLimits, Refreshed, SyncOptions, refresh},
};

use super::{filled, user, yardstick};

/// How often each is measured; the best counts.
const RUNS: usize = 7;

pub(crate) async fn measure(root: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let storage = filled(folder.path(), root, "none").await;
    let options = SyncOptions::new(root, user(), HostId::new("here").unwrap());
    let refreshed = async || {
        let start = Instant::now();
        let found = refresh(&storage, &options, RefreshLimits::default()).await.unwrap();
        assert!(matches!(found, Refreshed::Taken { sessions, .. } if sessions.is_empty()));
        start.elapsed().as_secs_f64()
    };
    // The first one reads the states of all sessions.
    let first = refreshed().await;
    let [mut walk, mut idle] = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        walk = walk.min(yardstick::walk(root).as_secs_f64());
        idle = idle.min(refreshed().await);
    }
    let before = memory("VmRSS:");
    // Resets the peak.
    let _only_on_linux = fs::write("/proc/self/clear_refs", "5");
    refreshed().await;
    let more = memory("VmHWM:").saturating_sub(before) / 1_000;
    println!("| what | seconds | ratio |\n| --- | --- | --- |");
    println!("| yardstick: list all folders, and `stat` all files | {walk:.3} | |");
    println!("| refresh, nothing changed, {more} MB | {idle:.3} | {:.2} of the yardstick |", idle / walk);
    println!("| the first refresh | {first:.3} | {:.2} of the yardstick |\n", first / walk);
}

/// A size in KB from the status of this process; 0 on other systems than Linux.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
