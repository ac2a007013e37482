//! A custom embedding provider, which turns texts into vectors. This one counts letters, so texts with the same letters
//! are near to each other.
//!
//!     cargo run --example own_provider

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use std::sync::Arc;

use amplifier_session_storage::{
    OpenOptions, Result, Scope,
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, ModelStrength},
    model::{EmbeddingSpace, HostId, ProjectSlug, SessionId, SessionKey, UserId},
    open,
    search::{SearchMode, SearchOptions},
    storage::{IngestTarget, SyncLines},
};

/// Counts the letters a to z.
#[derive(Debug)]
struct Letters {
    space: EmbeddingSpace,
}

impl Letters {
    fn new() -> Self {
        Self { space: EmbeddingSpace { model: "letters".to_owned(), dimensions: 26 } }
    }

    fn vector(text: &str) -> Vec<f32> {
        let mut counts = [0.0_f32; 26];
        for letter in text.to_ascii_lowercase().bytes().filter(u8::is_ascii_lowercase) {
            counts[usize::from(letter - b'a')] += 1.0;
        }
        // Vectors have unit length; a text without letters has a zero vector, which is near to nothing.
        let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
        counts.iter().map(|count| if length > 0.0 { count / length } else { 0.0 }).collect()
    }
}

#[async_trait::async_trait]
impl EmbeddingProvider for Letters {
    fn space(&self) -> &EmbeddingSpace {
        &self.space
    }

    fn limits(&self) -> EmbeddingLimits {
        // Longer texts are cut into chunks; the other limits are the texts and tokens per call.
        EmbeddingLimits {
            chunk_threshold_tokens: 1_000,
            chunk_target_tokens: 500,
            batch_texts: 100,
            batch_tokens: 50_000,
            concurrent_calls: 1,
        }
    }

    fn strength(&self) -> ModelStrength {
        ModelStrength::Static
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String], _purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::temp_dir().join(format!("own-provider-{}.sqlite", std::process::id()));
    let found = run(&format!("sqlite:{}", file.display())).await?;
    println!("nearest: message {found}");
    Ok(())
}

async fn run(url: &str) -> Result<u32> {
    let storage = open(url, OpenOptions::default().with_embedding(Some(Arc::new(Letters::new())))).await?;
    let user = UserId::new("ana")?;
    let target = IngestTarget {
        key: SessionKey::new(user.clone(), SessionId::new("session-1")?),
        host_id: HostId::new("laptop")?,
        project_slug: ProjectSlug::unnamed(),
    };
    let lines = ["a dirty room", "the eyes", "astronomer"];
    let lines = lines.map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#).as_str().into());
    storage.ingestion().sync_transcript_lines(&target, SyncLines::whole(lines.into())).await?;

    let options = SearchOptions::new("dormitory").with_mode(SearchMode::Semantic);
    let found = storage.search().search_transcripts(&Scope::from(user), &options).await?;
    Ok(found.results.first().map_or(0, |result| result.sequence))
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_anagram_is_nearest() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("s.sqlite").display());
        assert_eq!(super::run(&url).await.unwrap(), 0);
    }
}
