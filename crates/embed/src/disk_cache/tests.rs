use std::{fs, path::Path, time::Duration};

use amplifier_session_core::{
    embedding::{EmbeddingProvider, EmbeddingPurpose},
    model::EmbeddingSpace,
};
use amplifier_session_testkit::FakeEmbedding;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::{clock::ManualClock, wrappers::Caching};

const DIMENSIONS: usize = 256;
const DAY: Duration = Duration::from_secs(SECONDS_A_DAY);

fn key(text: &str) -> CacheKey {
    let space = EmbeddingSpace { model: "model".to_owned(), dimensions: DIMENSIONS };
    CacheKey::new("", &space, EmbeddingPurpose::Document, text)
}

fn keys(numbers: std::ops::Range<usize>) -> Vec<CacheKey> {
    numbers.map(|number| key(&number.to_string())).collect()
}

fn vector(number: usize) -> Vec<f32> {
    (0..DIMENSIONS).map(|place| number as f32 + place as f32 / 1_000.0).collect()
}

fn entries(numbers: std::ops::Range<usize>) -> Vec<(CacheKey, Vec<f32>)> {
    keys(numbers.clone()).into_iter().zip(numbers.map(vector)).collect()
}

async fn get(cache: &DiskCache, numbers: std::ops::Range<usize>) -> Vec<bool> {
    let found = cache.get(keys(numbers.clone()), DIMENSIONS).await;
    assert_eq!(found.len(), numbers.len());
    for (number, found) in numbers.zip(&found) {
        assert!(found.as_ref().is_none_or(|found| *found == vector(number)), "{number}");
    }
    found.iter().map(Option::is_some).collect()
}

/// The number of vectors, and the size of the file in bytes.
fn usage(cache: &DiskCache) -> (u64, u64) {
    cache.shared.with_file(|file| file.usage()).unwrap()
}

struct Place {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), clock: Arc::new(ManualClock::default()) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache/embeddings.db")
    }

    fn cache(&self) -> DiskCache {
        self.bounded(LIMIT_BYTES)
    }

    fn bounded(&self, limit: u64) -> DiskCache {
        DiskCache::with_clock(self.path(), limit, Arc::clone(&self.clock) as _)
    }

    fn sql(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

#[tokio::test]
async fn all_handles_share_the_file() {
    let place = Place::new();
    let first = place.cache();
    let second = place.cache();
    assert_eq!(get(&first, 0..2).await, [false, false]);
    first.put(entries(0..3)).await;
    assert_eq!(get(&second, 0..4).await, [true, true, true, false]);
    second.put(entries(2..5)).await;
    assert_eq!(get(&first, 0..5).await, [true; 5]);
    assert_eq!(get(&place.cache(), 0..5).await, [true; 5]);
    assert_eq!(usage(&first).0, 5);
    assert!(first.get(Vec::new(), DIMENSIONS).await.is_empty());
}

#[tokio::test]
async fn a_second_store_with_the_same_texts_makes_no_calls() {
    let place = Place::new();
    let texts: Vec<String> = (0..50).map(|number| format!("text {number}")).collect();
    let mut vectors = Vec::new();
    for calls in [1, 0] {
        let provider =
            Arc::new(FakeEmbedding::new().with_limits(amplifier_session_core::embedding::EmbeddingLimits {
                batch_texts: 100,
                ..FakeEmbedding::new().limits()
            }));
        let caching = Caching::new(Arc::clone(&provider) as _).with_below(Arc::new(place.cache()));
        vectors.push(caching.embed(&texts, EmbeddingPurpose::Document).await.unwrap());
        assert_eq!(provider.calls(), calls);
    }
    assert_eq!(vectors[0], vectors[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handles_write_and_read_concurrently() {
    let place = Place::new();
    let work = (0..8).map(|part| {
        let cache = place.cache();
        tokio::spawn(async move {
            for step in 0..10 {
                let start = (part % 4) * 100 + step * 10;
                cache.put(entries(start..start + 10)).await;
                get(&cache, 0..400).await;
            }
        })
    });
    for work in work.collect::<Vec<_>>() {
        work.await.unwrap();
    }
    // A handle may have skipped a write that waited too long, so entries may be missing but not wrong.
    get(&place.cache(), 0..400).await;
    assert!(!place.path().with_extension("db.corrupt").exists());
}

#[tokio::test]
async fn damaged_entries_are_deleted() {
    let place = Place::new();
    place.cache().put(entries(0..6)).await;
    place.sql("UPDATE entry SET vector = zeroblob(length(vector)) WHERE rowid = 1");
    place.sql("UPDATE entry SET vector = x'0011' WHERE rowid = 2");
    place.sql("UPDATE entry SET vector = 'text', checksum = NULL OR 7 WHERE rowid = 3");
    place.sql("UPDATE entry SET vector = (SELECT vector FROM entry WHERE rowid = 6), checksum = (SELECT checksum FROM entry WHERE rowid = 6) WHERE rowid = 4");
    let cache = place.cache();
    assert_eq!(get(&cache, 0..6).await, [false, false, false, false, true, true]);
    assert_eq!(usage(&cache).0, 2);
    cache.put(entries(0..6)).await;
    assert_eq!(get(&cache, 0..6).await, [true; 6]);
}

#[tokio::test]
async fn a_vector_with_the_wrong_dimensions_is_not_used() {
    let place = Place::new();
    let cache = place.cache();
    cache.put(entries(0..1)).await;
    assert_eq!(cache.get(keys(0..1), DIMENSIONS + 1).await, [None]);
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_replaced() {
    let garbage: Vec<u8> = (0..100_000_u32).map(|byte| (byte % 251) as u8).collect();
    let cut = |path: &Path| {
        let whole = fs::read(path).unwrap();
        fs::write(path, &whole[..whole.len() / 2]).unwrap();
    };
    let overwrite = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let length = bytes.len();
        bytes[8_192..length].fill(0xa5);
        fs::write(path, bytes).unwrap();
    };
    let damages: [&dyn Fn(&Path); 3] = [&|path: &Path| fs::write(path, &garbage).unwrap(), &cut, &overwrite];
    for (number, damage) in damages.iter().enumerate() {
        let place = Place::new();
        place.cache().put(entries(0..100)).await;
        place.sql("PRAGMA wal_checkpoint(TRUNCATE)");
        damage(&place.path());
        let cache = place.cache();
        assert!(get(&cache, 0..100).await.contains(&false), "{number}");
        cache.put(entries(0..100)).await;
        assert_eq!(get(&cache, 0..100).await, [true; 100], "{number}");
        assert_eq!(get(&place.cache(), 0..100).await, [true; 100], "{number}");
        assert!(place.path().with_extension("db.corrupt").exists(), "{number}");
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_cache() {
    let place = Place::new();
    fs::create_dir(place.path().parent().unwrap()).unwrap();
    fs::write(place.path(), b"").unwrap();
    let cache = place.cache();
    cache.put(entries(0..1)).await;
    assert_eq!(get(&cache, 0..1).await, [true]);
}

#[tokio::test]
async fn other_files_are_not_changed() {
    for sql in ["CREATE TABLE theirs (x)", "PRAGMA user_version = 2"] {
        let place = Place::new();
        if sql.starts_with("PRAGMA") {
            place.cache().put(entries(0..1)).await;
        } else {
            fs::create_dir(place.path().parent().unwrap()).unwrap();
        }
        place.sql(sql);
        let before = fs::read(place.path()).unwrap();
        let cache = place.cache();
        cache.put(entries(0..1)).await;
        assert_eq!(get(&cache, 0..1).await, [false]);
        let used = cache.shared.with_file(|file| file.usage());
        assert!(matches!(used, Err(EntryFailure::Foreign)), "{used:?}");
        assert_eq!(fs::read(place.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn a_write_that_waits_too_long_for_a_lock_is_skipped() {
    let place = Place::new();
    let cache = place.cache();
    cache.put(entries(0..1)).await;
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    cache.put(entries(1..2)).await;
    place.clock.advance(DAY);
    assert_eq!(get(&cache, 0..2).await, [true, false]);
    other.execute_batch("ROLLBACK").unwrap();
    cache.put(entries(1..2)).await;
    assert_eq!(get(&cache, 0..2).await, [true, true]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_counts_as_an_empty_cache() {
    let place = Place::new();
    fs::write(place.folder.path().join("cache"), b"a file where the folder should be").unwrap();
    let cache = place.cache();
    cache.put(entries(0..1)).await;
    assert_eq!(get(&cache, 0..1).await, [false]);
}

#[tokio::test]
async fn the_least_recently_used_vectors_are_deleted_to_stay_within_the_limit() {
    const LIMIT: u64 = 1_000_000;
    let place = Place::new();
    let cache = place.bounded(LIMIT);
    cache.put(entries(0..50)).await;
    place.clock.advance(DAY);
    for batch in 1..40 {
        // The first ten are used every day, the others only once.
        assert_eq!(get(&cache, 0..10).await, [true; 10], "{batch}");
        cache.put(entries(batch * 50..(batch + 1) * 50)).await;
        assert!(usage(&cache).1 <= LIMIT);
        place.clock.advance(DAY);
    }
    assert_eq!(get(&cache, 10..60).await, [false; 50]);
    assert_eq!(get(&cache, 1_950..2_000).await, [true; 50]);
    assert!(usage(&cache).0 > 600, "{:?}", usage(&cache));
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(fs::metadata(place.path()).unwrap().len() <= LIMIT);
}

#[tokio::test]
async fn a_smaller_limit_shrinks_the_file() {
    let place = Place::new();
    place.cache().put(entries(0..1_000)).await;
    let small = place.bounded(200_000);
    small.put(entries(1_000..1_001)).await;
    assert!(usage(&small).1 <= 200_000);
    assert_eq!(get(&small, 1_000..1_001).await, [true]);
    let none = place.bounded(0);
    none.put(entries(0..10)).await;
    assert_eq!(usage(&none).0, 0);
}

#[tokio::test]
async fn reading_again_on_the_same_day_writes_nothing() {
    let place = Place::new();
    let cache = place.cache();
    cache.put(entries(0..3)).await;
    let changes = |cache: &DiskCache| {
        let file = cache.shared.lock();
        file.as_ref().unwrap().total_changes()
    };
    let before = changes(&cache);
    get(&cache, 0..3).await;
    assert_eq!(changes(&cache), before);
    place.clock.advance(DAY);
    get(&cache, 0..3).await;
    get(&cache, 0..3).await;
    assert_eq!(changes(&cache), before + 3);
}

#[cfg(unix)]
#[tokio::test]
async fn folder_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let cache = place.cache();
    cache.put(entries(0..1)).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.path().parent().unwrap()), 0o700);
    let mut files = 0;
    for file in fs::read_dir(place.path().parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
        files += 1;
    }
    assert!(files >= 2, "the log is there too");
}

#[test]
fn it_works_without_a_runtime() {
    let place = Place::new();
    let cache = place.cache();
    futures_util::FutureExt::now_or_never(cache.put(entries(0..1))).unwrap();
    let found = futures_util::FutureExt::now_or_never(cache.get(keys(0..1), DIMENSIONS)).unwrap();
    assert_eq!(found, [Some(vector(0))]);
}
