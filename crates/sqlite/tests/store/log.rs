//! The length of the write-ahead log.

use std::fs;

use amplifier_session_core::storage::SyncLines;
use amplifier_session_testkit::{erasure::noise, lines};

use super::support::{Folder, target};

/// Without a limit, the log of this sync was 65 MB long, and those of longer syncs grew with their input: while the
/// index is updated, which is nearly always, SQLite cannot write the log from its beginning again.
const LIMIT: u64 = 48 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_keeps_the_log_short() {
    let folder = Folder::new();
    let storage = folder.storage().await.with_embedding(None);
    let log = folder.path().join("sessions.sqlite-wal");
    let mut longest = 0;
    for session in 0..25 {
        let target = target(&format!("session-{session}"));
        for part in 0..10 {
            let message = |n: u32| lines::user(&noise((session * 1_000 + n) as usize, 8_000));
            let messages = (part * 10..part * 10 + 10).map(|n| message(n).into());
            let lines = SyncLines::starting_at(part * 10, messages.collect());
            storage.ingestion().sync_transcript_lines(&target, lines).await.unwrap();
            longest = longest.max(fs::metadata(&log).unwrap().len());
        }
    }
    assert!(longest < LIMIT, "{} MB", longest >> 20);
}
