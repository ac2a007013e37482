//! Stores without vectors, with some of them, and texts that a service makes nothing of.

use std::sync::Arc;

use amplifier_session_core::{
    backend::meta::{EMBEDDING_SPACE, Generation},
    backend::prelude::*,
    embedding::EmbeddingProvider as _,
    search::{MissingVectors, SearchMode, SearchOptions},
    storage::{SyncLines, VectorsOf},
};

use super::{
    Subject,
    store::{Store, meaning, raw, scope, sequences, target, target_of},
};
use crate::{FakeEmbedding, lines};

fn other() -> FakeEmbedding {
    FakeEmbedding::new().with_model("other-words").with_dimensions(48)
}

/// A model that fails before its first vector is stored keeps no other model out.
pub async fn a_model_that_fails_reserves_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.fail_always(true);
    store.sync(&target("s"), vec![lines::user("a red apple")]).await;
    let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert!(report.failure.is_some());
    assert!(!store.backend.meta().await.unwrap().contains_key(EMBEDDING_SPACE));

    let new = store.storage_with(Some(other()));
    let report = new.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert!(report.failure.is_none() && report.total() == 1, "{report:?}");
    assert_eq!(new.embedding_space().await.unwrap().as_ref(), Some(other().space()));
    let found = new.search_transcripts(&scope(&target("s")), &meaning("apple")).await.unwrap();
    assert_eq!(sequences(&found.results), [0]);
}

/// A store that an earlier version claimed for a model, without a vector of it, is another model's too.
pub async fn a_claim_without_vectors_gives_way(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let claim = Generation { space: other().space().clone(), number: 0 };
    store.backend.put_meta_if_absent(EMBEDDING_SPACE, &claim.to_value()).await.unwrap();
    // Nothing is there to be found, which is no reason to look at words alone.
    let found = store.search(&target("s"), &SearchOptions::new("apple")).await;
    assert_eq!((found.mode, found.notices.len()), (SearchMode::Hybrid, 0));

    store.sync(&target("s"), vec![lines::user("a red apple")]).await;
    assert_eq!(store.storage.embedding_space().await.unwrap().as_ref(), Some(store.embedding.space()));
    let found = store.search(&target("s"), &meaning("apple")).await;
    assert_eq!(sequences(&found.results), [0]);
    // From now on it is taken.
    let new = store.storage_with(Some(other()));
    store.storage_with(None).sync_transcript_lines(&target("t"), one("a green pear")).await.unwrap();
    let report = new.embed_owed(&target("t").key.user_id, None).await.unwrap();
    assert!(report.failure.is_some());
}

fn one(text: &str) -> SyncLines {
    SyncLines::whole(raw(vec![lines::user(text)]))
}

/// A text that a service makes a vector of zeros of, or of what is no number, has none and says why; the others of its
/// batch have theirs. It is tried again when asked for.
pub async fn a_text_that_nothing_is_made_of_fails_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.make_nothing_of(Some("odd"));
    let of = vec![lines::user("a red apple"), lines::user("an odd pear"), lines::user("a green plum")];
    store.sync(&target("s"), of).await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [0, 2]);
    assert!(store.owing(&target("s")).await.is_empty());
    let status = store.storage.vector_status(&scope(&target("s"))).await.unwrap().current.unwrap();
    let (reason, messages) = status.counts.failed.first_key_value().unwrap();
    assert!(reason.starts_with("http://fake.test/v1: the model returned a vector of zeros"), "{reason}");
    assert_eq!(*messages, 1);

    store.embedding.make_nothing_of(None);
    let of_ana = VectorsOf::user(target("s").key.user_id);
    let report = store.storage.backfill(&of_ana, &mut |_| {}).await.unwrap();
    assert_eq!((report.messages, store.vectors(&target("s")).await.len()), (1, 3));
}

/// A service that makes nothing of any text has failed: the messages still owe their vectors.
pub async fn a_service_that_makes_nothing_of_everything_marks_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.make_nothing_of(Some("text"));
    let many = (0..8).map(|n| lines::user(&format!("text {n}"))).collect::<Vec<_>>();
    store.sync(&target("s"), many).await;
    let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    let failure = report.failure.unwrap();
    assert!(failure.message().starts_with("http://fake.test/v1: ") && report.refused == 0, "{failure}");
    assert_eq!(store.owing(&target("s")).await.len(), 8);
}

/// A search that uses vectors says how many messages have none yet, found or not; one of words says nothing of them.
pub async fn a_search_tells_what_it_could_not_look_at(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("a red apple"), lines::assistant("a green pear")]).await;
    let everything = store.search(&target("s"), &SearchOptions::new("apple")).await;
    assert_eq!(everything.missing_vectors, None);

    let without = store.storage_with(None);
    let lines = vec![lines::user("a blue plum"), lines::system("rules")];
    let lines = SyncLines::whole(raw(lines));
    without.sync_transcript_lines(&target("t"), lines).await.unwrap();
    without.sync_transcript_lines(&target_of("ben", "shop", "s"), one("a melon")).await.unwrap();
    let missing = Some(MissingVectors { messages: 1, of: 3 });
    for query in ["apple", "nothing like it"] {
        for mode in [SearchMode::Hybrid, SearchMode::Semantic] {
            let found = store.search(&target("s"), &SearchOptions::new(query).with_mode(mode)).await;
            assert_eq!(found.missing_vectors, missing, "{query} {mode:?}");
        }
    }
    let words = SearchOptions::new("apple").with_mode(SearchMode::FullText);
    assert_eq!(store.search(&target("s"), &words).await.missing_vectors, None);
    let of_ben = store.search(&target_of("ben", "shop", "s"), &SearchOptions::new("melon")).await;
    assert_eq!(of_ben.missing_vectors, Some(MissingVectors { messages: 1, of: 1 }));
}

/// Where no vector was ever made, all messages are missing.
pub async fn a_store_without_vectors_misses_all(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.storage_with(None).sync_transcript_lines(&target("s"), one("a melon")).await.unwrap();
    let new = store.storage.clone().with_embedding(Some(Arc::new(other())));
    let found = new.search_transcripts(&scope(&target("s")), &SearchOptions::new("plum")).await.unwrap();
    assert_eq!(found.missing_vectors, Some(MissingVectors { messages: 1, of: 1 }));
}
