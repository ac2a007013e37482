//! A cache of vectors.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt::{self, Debug},
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use amplifier_session_core::{
    Result,
    embedding::{EmbeddingProvider, EmbeddingPurpose, is_no_vector},
    model::EmbeddingSpace,
};
use async_trait::async_trait;
use lru::LruCache;

use super::{check_count, check_vectors, forward};

/// How many vectors are kept in memory by default. With 1,536 dimensions, these take 6 MB.
pub const MEMORY_ENTRIES: usize = 1_000;

/// The key of a vector in a cache: a hash of everything that the vector depends on.
///
/// This is the model, the dimensions, the purpose, the text, and a namespace that distinguishes models with the same
/// name. The service is not part of it: OpenAI and Azure have the same models.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of a text's vector.
    #[must_use]
    pub fn new(namespace: &str, space: &EmbeddingSpace, purpose: EmbeddingPurpose, text: &str) -> Self {
        let purpose = match purpose {
            EmbeddingPurpose::Document => "document",
            EmbeddingPurpose::Query => "query",
        };
        let mut hasher = blake3::Hasher::new();
        for part in [namespace, &space.model, purpose] {
            // Hashing the length as well separates the parts.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&(space.dimensions as u64).to_le_bytes());
        hasher.update(text.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// A larger and slower cache below the one in memory, such as `DiskCache` (feature `cache`).
///
/// Its methods never fail: a cache that can't be read has no vectors, and one that can't be written stores none.
#[async_trait]
pub trait VectorCache: Debug + Send + Sync {
    /// Returns the vectors of `keys` in the same order, each with `dimensions` numbers; `None` for missing ones.
    async fn get(&self, keys: Vec<CacheKey>, dimensions: usize) -> Vec<Option<Vec<f32>>>;

    /// Stores vectors, replacing those with the same keys.
    async fn put(&self, entries: Vec<(CacheKey, Vec<f32>)>);
}

/// The activity of a cache so far, counted in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStatistics {
    /// Texts whose vectors were in memory, or that were repeated within a call.
    pub memory_hits: u64,
    /// Texts whose vectors were in the cache below.
    pub disk_hits: u64,
    /// Texts that the provider embedded.
    pub misses: u64,
    /// The number of vectors in memory now.
    pub entries: usize,
}

/// Calls a provider only for texts whose vectors are neither in memory nor in the cache below.
///
/// A text that is repeated within a call is embedded once. Two concurrent calls that miss the same text both embed it.
/// A vector is kept only if the provider's call succeeds as a whole and the vector belongs to the model's space.
#[derive(Debug)]
pub struct Caching {
    inner: Arc<dyn EmbeddingProvider>,
    namespace: String,
    memory: Option<Mutex<LruCache<CacheKey, Vec<f32>>>>,
    below: Option<Arc<dyn VectorCache>>,
    memory_hits: AtomicU64,
    disk_hits: AtomicU64,
    misses: AtomicU64,
}

impl Caching {
    /// Keeps the [`MEMORY_ENTRIES`] most recently used vectors in memory.
    #[must_use]
    pub fn new(inner: Arc<dyn EmbeddingProvider>) -> Self {
        let caching = Self {
            inner,
            namespace: String::new(),
            memory: None,
            below: None,
            memory_hits: AtomicU64::new(0),
            disk_hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        };
        caching.with_memory(MEMORY_ENTRIES)
    }

    /// Sets how many vectors are kept in memory; 0 keeps none.
    #[must_use]
    pub fn with_memory(mut self, entries: usize) -> Self {
        self.memory = NonZeroUsize::new(entries).map(|entries| Mutex::new(LruCache::new(entries)));
        self
    }

    /// Sets the cache below the one in memory.
    #[must_use]
    pub fn with_below(mut self, cache: Arc<dyn VectorCache>) -> Self {
        self.below = Some(cache);
        self
    }

    /// Sets the namespace that distinguishes models with the same name, for example the server of a model. It is empty
    /// by default.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Its activity so far.
    #[must_use]
    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            memory_hits: self.memory_hits.load(Ordering::Relaxed),
            disk_hits: self.disk_hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: self.memory().map_or(0, |memory| memory.len()),
        }
    }

    fn memory(&self) -> Option<MutexGuard<'_, LruCache<CacheKey, Vec<f32>>>> {
        self.memory.as_ref().map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn remember(&self, key: CacheKey, vector: &[f32]) {
        if let Some(mut memory) = self.memory() {
            memory.put(key, vector.to_vec());
        }
    }

    fn find_in_memory(&self, wanted: &mut [DistinctText<'_>]) {
        let Some(mut memory) = self.memory() else { return };
        for text in wanted {
            text.vector = memory.get(&text.key).cloned();
        }
    }

    async fn find_below(&self, wanted: &mut [DistinctText<'_>]) {
        let mut missing: Vec<_> = wanted.iter_mut().filter(|text| text.vector.is_none()).collect();
        let Some(below) = self.below.as_ref().filter(|_| !missing.is_empty()) else { return };
        let keys = missing.iter().map(|text| text.key).collect();
        let found = below.get(keys, self.inner.space().dimensions).await;
        for (text, vector) in missing.iter_mut().zip(found) {
            let Some(vector) = vector else { continue };
            self.remember(text.key, &vector);
            self.disk_hits.fetch_add(1, Ordering::Relaxed);
            text.vector = Some(vector);
        }
    }

    async fn ask(&self, wanted: &mut [DistinctText<'_>], purpose: EmbeddingPurpose) -> Result<()> {
        let missing: Vec<_> = wanted.iter_mut().filter(|text| text.vector.is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = missing.iter().map(|text| text.text.to_owned()).collect();
        self.misses.fetch_add(texts.len() as u64, Ordering::Relaxed);
        let vectors = self.inner.embed(&texts, purpose).await?;
        check_count(&texts, &vectors)?;
        check_vectors(self.inner.space(), &vectors)?;
        let mut entries = Vec::new();
        for (text, vector) in missing.into_iter().zip(vectors) {
            // The service may embed the text next time.
            if !is_no_vector(&vector) {
                self.remember(text.key, &vector);
                entries.extend(self.below.is_some().then(|| (text.key, vector.clone())));
            }
            text.vector = Some(vector);
        }
        if let Some(below) = &self.below {
            below.put(entries).await;
        }
        Ok(())
    }
}

/// One of the distinct texts of a call.
struct DistinctText<'a> {
    key: CacheKey,
    text: &'a str,
    vector: Option<Vec<f32>>,
}

/// The distinct texts of a call, and for each text of the call, its index among them.
fn distinct<'a>(texts: &'a [String], key: impl Fn(&str) -> CacheKey) -> (Vec<DistinctText<'a>>, Vec<usize>) {
    let mut places = HashMap::with_capacity(texts.len());
    let mut wanted = Vec::with_capacity(texts.len());
    let place = |text: &'a String| {
        let key = key(text);
        match places.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                wanted.push(DistinctText { key, text, vector: None });
                *new.insert(wanted.len() - 1)
            }
        }
    };
    let order = texts.iter().map(place).collect();
    (wanted, order)
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EmbeddingProvider for Caching {
    forward!(inner: space, limits, strength, is_local, address);

    async fn embed(&self, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>> {
        let key = |text: &str| CacheKey::new(&self.namespace, self.inner.space(), purpose, text);
        let (mut wanted, order) = distinct(texts, key);
        self.find_in_memory(&mut wanted);
        let repeated = texts.len() - wanted.len();
        let remembered = wanted.iter().filter(|text| text.vector.is_some()).count();
        self.memory_hits.fetch_add((remembered + repeated) as u64, Ordering::Relaxed);
        self.find_below(&mut wanted).await;
        self.ask(&mut wanted, purpose).await?;
        let vectors: Vec<_> = if repeated == 0 {
            wanted.into_iter().filter_map(|text| text.vector).collect()
        } else {
            order.iter().filter_map(|place| wanted.get(*place)?.vector.clone()).collect()
        };
        debug_assert_eq!(vectors.len(), texts.len(), "each text has a vector");
        Ok(vectors)
    }
}
