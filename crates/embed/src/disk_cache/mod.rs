//! A cache of vectors on disk, shared by all stores and processes of the machine.
//!
//! It is a SQLite file with one row per vector (`file`). It contains vectors and hashes of texts, but no texts. It may be
//! deleted at any time, and a part that can't be read or written counts as missing.

mod file;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::UNIX_EPOCH,
};

use async_trait::async_trait;
use tokio::runtime::Handle;

use crate::{
    clock::{Clock, SystemClock},
    wrappers::{CacheKey, VectorCache},
};
use file::{CacheFile, EntryFailure};

/// The default limit on the size of the file: 1 GiB, about 130,000 vectors with 1,536 dimensions.
pub const LIMIT_BYTES: u64 = 1 << 30;

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// A cache of vectors in a file, by their [`CacheKey`].
///
/// - The first call creates or opens the file. File and folder are accessible only to their owner.
/// - When a write makes the file larger than its limit, the least recently used vectors are deleted until a tenth of the
///   limit is free. Uses are recorded to the day, so most reads write nothing. The limit does not include the write-ahead
///   log (`-wal`) of about 8 MB.
/// - Several processes may use the file at the same time. A call that waits more than 250 ms for a lock continues
///   without the cache.
/// - Each vector has a checksum. A vector that is damaged or has the wrong number of dimensions is deleted.
/// - A damaged file is renamed to `*.corrupt`, replacing the previous one, and a new file is created. A file with other
///   contents, or of a later version, is not used or changed.
/// - The first failure is logged as a warning, further ones at debug level.
#[derive(Debug, Clone)]
pub struct DiskCache {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    limit: u64,
    clock: Arc<dyn Clock>,
    file: Mutex<Option<CacheFile>>,
    has_warned: AtomicBool,
}

impl DiskCache {
    /// The cache in the file at `path`, with at most `limit_bytes` bytes, for example [`LIMIT_BYTES`].
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, limit_bytes: u64) -> Self {
        Self::with_clock(path, limit_bytes, Arc::new(SystemClock))
    }

    /// As [`DiskCache::new`], with another clock.
    #[must_use]
    pub fn with_clock(path: impl Into<PathBuf>, limit_bytes: u64, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared {
            path: path.into(),
            limit: limit_bytes,
            clock,
            file: Mutex::new(None),
            has_warned: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Runs `work` on a blocking thread. Returns `None` if it is interrupted.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(&self.shared);
        match Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(move || work(&shared)).await.ok().flatten(),
            // There is no tokio runtime with blocking threads.
            Err(_) => work(&shared),
        }
    }
}

#[async_trait]
impl VectorCache for DiskCache {
    async fn get(&self, keys: Vec<CacheKey>, dimensions: usize) -> Vec<Option<Vec<f32>>> {
        let nothing = vec![None; keys.len()];
        self.run(move |shared| shared.get(&keys, dimensions)).await.unwrap_or(nothing)
    }

    async fn put(&self, entries: Vec<(CacheKey, Vec<f32>)>) {
        if !entries.is_empty() {
            // An interrupted write leaves the cache unchanged.
            self.run(move |shared| shared.put(&entries)).await;
        }
    }
}

impl Shared {
    fn get(&self, keys: &[CacheKey], dimensions: usize) -> Option<Vec<Option<Vec<f32>>>> {
        let day = self.day();
        self.or_log(self.with_file(|file| file.get(keys, dimensions, day)))
    }

    fn put(&self, entries: &[(CacheKey, Vec<f32>)]) -> Option<()> {
        let day = self.day();
        self.or_log(self.with_file(|file| file.put(entries, day, self.limit)))
    }

    /// Days since the epoch.
    fn day(&self) -> i64 {
        let since_epoch = self.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_secs() / SECONDS_A_DAY).unwrap_or(i64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CacheFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` with the file, and again with a new file if the old one is damaged.
    fn with_file<T>(
        &self,
        work: impl Fn(&mut CacheFile) -> Result<T, EntryFailure>,
    ) -> Result<T, EntryFailure> {
        let mut slot = self.lock();
        match self.attempt(&mut slot, &work) {
            Err(failure) if failure.is_corruption() => {
                *slot = None;
                tracing::warn!(path = %self.path.display(), %failure, "the embedding cache is damaged and is replaced");
                file::set_aside(&self.path)?;
                self.attempt(&mut slot, &work)
            }
            done => done,
        }
    }

    fn attempt<T>(
        &self,
        slot: &mut Option<CacheFile>,
        work: impl Fn(&mut CacheFile) -> Result<T, EntryFailure>,
    ) -> Result<T, EntryFailure> {
        let file = match slot {
            Some(file) => file,
            None => slot.insert(CacheFile::open(&self.path)?),
        };
        work(file)
    }

    fn or_log<T>(&self, done: Result<T, EntryFailure>) -> Option<T> {
        let failure = match done {
            Ok(done) => return Some(done),
            Err(failure) => failure,
        };
        let path = self.path.display();
        if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%path, %failure, "the embedding cache is not used");
        } else {
            tracing::warn!(%path, %failure, "the embedding cache is not used");
        }
        None
    }
}

#[cfg(test)]
mod tests;
