//! A custom backend. Any implementation of the traits of `core::backend` can replace [`MemoryBackend`] here. The source
//! of [`MemoryBackend`], `crates/testkit/src/memory`, has a file for each trait and is written to be read.
//!
//!     cargo run -p amplifier-session-testkit --example own_backend
//!
//! The conformance suite then tests every rule that a backend must follow:
//!
//!     amplifier_session_testkit::conformance_suite!(OwnBackend::new());

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use std::sync::Arc;

use amplifier_session_core::{
    Result, Scope, SessionStorage,
    model::{HostId, ProjectSlug, SessionId, SessionKey, UserId},
    search::SearchOptions,
    storage::{IngestTarget, SyncLines},
};
use amplifier_session_testkit::{FakeEmbedding, MemoryBackend};

#[tokio::main]
async fn main() -> Result<()> {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let storage = storage.with_embedding(Some(Arc::new(FakeEmbedding::new())));
    let ana = UserId::new("ana")?;
    let target = IngestTarget {
        key: SessionKey::new(ana.clone(), SessionId::new("session-1")?),
        host_id: HostId::new("laptop")?,
        project_slug: ProjectSlug::unnamed(),
    };
    let lines = [
        r#"{"role":"user","content":"why are payments retried?"}"#.into(),
        r#"{"role":"assistant","content":"because the bank times out"}"#.into(),
    ];
    storage.ingestion().sync_transcript_lines(&target, SyncLines::whole(lines.into())).await?;
    let question = SearchOptions::new("the bank's answer");
    for result in storage.search().search_transcripts(&Scope::from(ana), &question).await?.results {
        println!("{:.2} #{}: {}", result.score, result.sequence, result.snippet);
    }
    Ok(())
}
