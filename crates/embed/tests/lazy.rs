//! A process of its own: whether the table is loaded is a matter of the whole process.

use amplifier_session_core::embedding::{EmbeddingProvider, EmbeddingPurpose};
use amplifier_session_embed::{LocalEmbedding, provider};

#[tokio::test]
async fn the_table_is_loaded_by_the_first_text() {
    let first = provider("local").unwrap().unwrap();
    let second = LocalEmbedding::new();
    assert_eq!(first.space(), second.space());
    assert!(first.embed(&[], EmbeddingPurpose::Query).await.unwrap().is_empty());
    assert!(!LocalEmbedding::is_loaded());

    first.embed(&["a text".to_owned()], EmbeddingPurpose::Query).await.unwrap();
    assert!(LocalEmbedding::is_loaded());
    LocalEmbedding::warm_up().unwrap();
}
