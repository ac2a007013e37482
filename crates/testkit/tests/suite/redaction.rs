//! Secrets are masked before texts are cut into chunks.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    content::{Certainty, Masked, Redaction, Redactor, SecretSpan},
    embedding::EmbeddingProvider,
    search::{SearchMode, SearchOptions},
    storage::{EmbedReport, SyncLines},
};
use amplifier_session_testkit::{FakeEmbedding, MemoryBackend, lines};

use crate::interruption::target;

/// A secret of several tokens, so that a chunk boundary can split it.
const SECRET: &str = "swordfish swordfish swordfish";

/// Masks [`SECRET`], and fails on the text `unreadable`.
#[derive(Debug)]
struct MaskSecret;

impl Redactor for MaskSecret {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        if text == "unreadable" {
            return Err(Error::new(ErrorKind::Embedding, "secrets can't be looked for"));
        }
        let masked = text.replace(SECRET, &"*".repeat(SECRET.len()));
        Ok(Masked { text: masked.into(), secrets: text.matches(SECRET).count() })
    }

    fn find(&self, text: &str) -> Result<Vec<SecretSpan>> {
        let span = |(start, found): (usize, &str)| start..start + found.len();
        let found = text.match_indices(SECRET).map(span);
        Ok(found
            .map(|span| SecretSpan { rule: "swordfish".to_owned(), certainty: Certainty::Certain, span })
            .collect())
    }
}

/// A model with a limit of a few tokens.
fn model() -> FakeEmbedding {
    FakeEmbedding::new().with_chunks(16, 16)
}

/// Embeds a message of `text` and searches for `text`; returns the report and all texts that the model received.
async fn embedded(model: FakeEmbedding, redaction: Redaction, text: &str) -> (EmbedReport, String) {
    let model = Arc::new(model);
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()))
        .with_embedding(Some(Arc::clone(&model) as Arc<dyn EmbeddingProvider>))
        .with_redactor(redaction, Arc::new(MaskSecret));
    let (target, message) = (target("p"), lines::user(text).raw());
    let without_model = storage.clone().with_embedding(None);
    without_model.ingestion().sync_transcript_lines(&target, SyncLines::whole(vec![message])).await.unwrap();
    let report = storage.vectors().embed_pending(&target.key.user_id, None).await.unwrap();
    let options = SearchOptions::new(text).with_mode(SearchMode::Hybrid);
    storage.search().search_transcripts(&target.key.user_id.clone().into(), &options).await.unwrap();
    (report, model.texts().join(" "))
}

/// Texts that are cut into chunks, with the secret at a different position in each.
fn texts() -> impl Iterator<Item = String> {
    (0..20).map(|words| format!("{}{SECRET} and much more of the same", "word ".repeat(words)))
}

#[tokio::test]
async fn a_remote_model_receives_no_part_of_a_secret() {
    for text in texts() {
        let (report, seen) = embedded(model().on_another_machine(), Redaction::Remote, &text).await;
        assert_eq!(report.secrets, 1);
        assert!(seen.contains("much more") && !seen.contains("swordfish"), "{seen}");
    }
}

#[tokio::test]
async fn a_local_model_receives_unmasked_text() {
    for text in texts() {
        let (report, seen) = embedded(model(), Redaction::Remote, &text).await;
        // A chunk may repeat the end of the previous one.
        assert!(report.secrets == 0 && seen.matches("swordfish").count() >= 6, "{seen}");
        let (report, seen) = embedded(model(), Redaction::Always, &text).await;
        assert!(report.secrets == 1 && !seen.contains("swordfish"), "{seen}");
    }
}

#[tokio::test]
async fn nothing_is_masked_if_redaction_is_off() {
    let (report, seen) = embedded(model().on_another_machine(), Redaction::Off, SECRET).await;
    assert_eq!((report.secrets, seen.matches("swordfish").count()), (0, 6));
}

#[tokio::test]
async fn a_text_that_cannot_be_masked_is_not_sent() {
    let (report, seen) = embedded(model().on_another_machine(), Redaction::Remote, "unreadable").await;
    assert!(report.failure.is_some_and(|error| error.to_string().contains("can't be looked for")));
    assert_eq!(seen, "");
}
