use std::collections::HashMap;

use amplifier_session_testkit::{Answer, FakeEmbedding};
use futures_util::FutureExt;

use super::*;
use crate::wrappers::{CacheKey, Caching, VectorCache};

fn caching(provider: &Arc<Scripted>) -> Caching {
    Caching::new(Arc::clone(provider) as _)
}

/// A cache below, in a map.
#[derive(Debug, Default)]
struct Below(Mutex<HashMap<CacheKey, Vec<f32>>>);

#[async_trait]
impl VectorCache for Below {
    async fn get(&self, keys: Vec<CacheKey>, _dimensions: usize) -> Vec<Option<Vec<f32>>> {
        let map = self.0.lock().unwrap();
        keys.iter().map(|key| map.get(key).cloned()).collect()
    }

    async fn put(&self, entries: Vec<(CacheKey, Vec<f32>)>) {
        self.0.lock().unwrap().extend(entries);
    }
}

#[tokio::test]
async fn a_known_text_is_not_embedded_again() {
    let provider = Scripted::new().shared();
    let caching = caching(&provider);
    assert_describes(&caching, &provider);
    for _ in 0..3 {
        assert_eq!(embed(&caching, &texts(0..5)).await.unwrap(), vectors(&texts(0..5)));
    }
    let statistics = caching.statistics();
    assert_eq!((statistics.misses, statistics.memory_hits, statistics.entries), (5, 10, 5));
    assert_eq!(provider.calls(), 1);
    assert!(embed(&caching, &[]).await.unwrap().is_empty());
    assert_eq!(provider.calls(), 1);
}

#[tokio::test]
async fn missing_texts_are_embedded_once() {
    let provider = Scripted::new().shared();
    let caching = caching(&provider);
    embed(&caching, &texts(0..2)).await.unwrap();
    let mixed = [texts(1..4), texts(2..5), texts(0..1)].concat();
    assert_eq!(embed(&caching, &mixed).await.unwrap(), vectors(&mixed));
    assert_eq!(provider.calls.lock().unwrap()[1], texts(2..5));
    let statistics = caching.statistics();
    assert_eq!((statistics.misses, statistics.memory_hits), (5, 4));
}

#[tokio::test]
async fn the_most_recently_used_vectors_stay_in_memory() {
    let provider = Scripted::new().shared();
    let caching = caching(&provider).with_memory(2);
    for text in [0, 1, 0, 2] {
        embed(&caching, &texts(text..text + 1)).await.unwrap();
    }
    assert_eq!((provider.calls(), caching.statistics().entries), (3, 2));
    embed(&caching, &texts(0..1)).await.unwrap();
    assert_eq!(provider.calls(), 3);
    embed(&caching, &texts(1..2)).await.unwrap();
    assert_eq!(provider.calls(), 4);
}

#[tokio::test]
async fn without_memory_nothing_is_kept() {
    let provider = Scripted::new().shared();
    let caching = caching(&provider).with_memory(0);
    let twice = [texts(0..1), texts(0..1)].concat();
    assert_eq!(embed(&caching, &twice).await.unwrap().len(), 2);
    assert_eq!(provider.calls.lock().unwrap()[0].len(), 1);
    call(&caching).await.unwrap();
    assert_eq!((provider.calls(), caching.statistics().entries), (2, 0));
}

#[tokio::test]
async fn the_cache_below_is_shared() {
    let below = Arc::new(Below::default());
    for (calls, disk_hits) in [(1, 0), (0, 5)] {
        let provider = Scripted::new().shared();
        let caching = caching(&provider).with_below(Arc::clone(&below) as _);
        for _ in 0..2 {
            assert_eq!(embed(&caching, &texts(0..5)).await.unwrap(), vectors(&texts(0..5)));
        }
        assert_eq!((provider.calls(), caching.statistics().disk_hits), (calls, disk_hits));
        assert_eq!(caching.statistics().memory_hits, 5);
    }
}

#[tokio::test]
async fn failed_and_dropped_calls_keep_nothing() {
    let provider = Scripted::new().with_script([Err(down())]).shared();
    let below = Arc::new(Below::default());
    let caching = caching(&provider).with_below(Arc::clone(&below) as _);
    call(&caching).await.unwrap_err();
    assert_eq!(caching.statistics().entries, 0);
    assert!(call(&caching).now_or_never().is_none());
    assert_eq!(caching.statistics().entries + below.0.lock().unwrap().len(), 0);
    call(&caching).await.unwrap();
    assert_eq!(below.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_vectors_are_an_error_and_are_not_kept() {
    for answer in [Answer::TooFew, Answer::TooMany, Answer::WrongDimensions, Answer::NotFinite] {
        let provider = Arc::new(FakeEmbedding::new());
        provider.answer_with(answer);
        let caching = Caching::new(Arc::clone(&provider) as _);
        assert_eq!(embed(&caching, &texts(0..3)).await.unwrap_err().kind(), ErrorKind::Embedding);
        assert_eq!(caching.statistics().entries, 0);
        provider.answer_with(Answer::Right);
        assert_eq!(embed(&caching, &texts(0..3)).await.unwrap().len(), 3);
    }
}

#[test]
fn a_key_depends_on_everything_its_vector_depends_on() {
    let space = |model: &str, dimensions| EmbeddingSpace { model: model.to_owned(), dimensions };
    let (document, query) = (EmbeddingPurpose::Document, EmbeddingPurpose::Query);
    let keys = [
        CacheKey::new("", &space("model", 4), document, "text"),
        CacheKey::new("", &space("model", 4), document, "text "),
        CacheKey::new("", &space("model", 4), document, ""),
        CacheKey::new("", &space("model", 4), query, "text"),
        CacheKey::new("", &space("model", 5), document, "text"),
        CacheKey::new("", &space("model2", 4), document, "text"),
        CacheKey::new("", &space("mode", 4), document, "ltext"),
        CacheKey::new("m", &space("odel", 4), document, "text"),
        CacheKey::new("localhost", &space("model", 4), document, "text"),
    ];
    let different: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
    assert_eq!(keys[0], CacheKey::new("", &space("model", 4), document, "text"));
    // Existing caches on disk depend on this.
    assert_eq!(format!("{:?}", keys[0]), "f9bf48a55529d9f6820ed670aa44c719bfa8a090343601c4bd65344bcdc6bb83");
}
