//! Vectors on disk, shared by all stores and processes of the machine.
//!
//! One SQLite file with a row a vector (`file`). It holds vectors and hashes of texts, no texts. It is a cache: it may
//! be deleted at any time, and what can't be read or written is as if it were not there.

mod file;

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::UNIX_EPOCH,
};

use amplifier_session_core::{Error, ErrorKind, Result};
use async_trait::async_trait;
use tokio::runtime::Handle;

use crate::{
    clock::{Clock, SystemClock},
    wrappers::{CacheKey, VectorCache},
};
use file::{CacheFile, Failure};

/// How large the file may become by default: 1 GiB, some 130,000 vectors of 1,536 dimensions.
pub const LIMIT_BYTES: u64 = 1 << 30;

/// The name of the file in the cache folder of the user.
const FILE: &str = "amplifier-sessions/embeddings.db";

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// Where the cache is unless somebody says otherwise: `amplifier-sessions/embeddings.db` in `$XDG_CACHE_HOME`, or in
/// `~/.cache` where that is not set or no absolute path. `None` where there is no home folder either.
///
/// `variable` looks up a variable of the environment.
#[must_use]
pub fn default_path(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    // The rule for relative paths is that of the XDG base directory specification.
    let given = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(given.or_else(|| Some(home?.join(".cache")))?.join(FILE))
}

/// Vectors in a file, found by what they depend on ([`CacheKey`]).
///
/// - Building one touches nothing: the file is made or opened by the first call, the folder and the file for their
///   owner alone.
/// - It is bounded: when a write makes it larger than its limit, vectors that were used longest ago go, until a tenth
///   of the limit is free. When a vector was used is kept to the day, so that most reads write nothing. The log
///   beside the file (`-wal`) is not counted; it has some 8 MB.
/// - Several processes may use it at the same time. One that can't get at the file within a quarter of a second goes
///   without.
/// - Each vector has a checksum. One that is damaged, or of other dimensions than are asked for, is as if it were not
///   there, and is deleted.
/// - A file that is damaged as a whole is renamed to `*.corrupt` (replacing the last such) and made anew. A file of
///   something else, or of a later version, is left alone and not used.
/// - The first failure is logged as a warning, others for debugging.
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

/// What a cache on disk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskUsage {
    /// The number of vectors.
    pub entries: u64,
    /// The size of the file in bytes, without its log.
    pub bytes: u64,
}

impl DiskCache {
    /// The cache in the file at `path`, of at most `limit_bytes` bytes ([`LIMIT_BYTES`] where there is no better idea).
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, limit_bytes: u64) -> Self {
        Self::with_clock(path, limit_bytes, Arc::new(SystemClock))
    }

    /// The same, with what tells which day it is.
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

    /// What it holds.
    ///
    /// # Errors
    ///
    /// `StorageIo` when the file can't be opened or read.
    pub async fn usage(&self) -> Result<DiskUsage> {
        let failed = |failure: Failure| {
            Error::new(ErrorKind::StorageIo, "the cache of embeddings can't be read")
                .with("file", self.shared.path.display())
                .with_source(failure)
        };
        self.run(|shared| shared.with_file(|file| file.usage())).await?.map_err(failed)
    }

    /// Runs `work` on a thread that may wait for the disk.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Shared) -> T + Send + 'static) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        match Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(move || work(&shared)).await.map_err(|source| {
                Error::new(ErrorKind::StorageIo, "the cache of embeddings was interrupted")
                    .with_source(source)
            }),
            // No runtime of tokio to hand it to.
            Err(_) => Ok(work(&shared)),
        }
    }
}

#[async_trait]
impl VectorCache for DiskCache {
    async fn get(&self, keys: Vec<CacheKey>, dimensions: usize) -> Vec<Option<Vec<f32>>> {
        let nothing = vec![None; keys.len()];
        self.run(move |shared| shared.get(&keys, dimensions)).await.ok().flatten().unwrap_or(nothing)
    }

    async fn put(&self, entries: Vec<(CacheKey, Vec<f32>)>) {
        if !entries.is_empty() {
            // An interrupted write has written nothing, which is all there is to say about it.
            let _ = self.run(move |shared| shared.put(&entries)).await;
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

    /// Does `work` with the file; once more with a new file when the old one turns out to be damaged.
    fn with_file<T>(&self, work: impl Fn(&mut CacheFile) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut slot = self.lock();
        match self.attempt(&mut slot, &work) {
            Err(failure) if failure.is_corruption() => {
                *slot = None;
                tracing::warn!(path = %self.path.display(), %failure, "the cache of embeddings is damaged and begins anew");
                file::set_aside(&self.path)?;
                self.attempt(&mut slot, &work)
            }
            done => done,
        }
    }

    fn attempt<T>(
        &self,
        slot: &mut Option<CacheFile>,
        work: impl Fn(&mut CacheFile) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let file = match slot {
            Some(file) => file,
            None => slot.insert(CacheFile::open(&self.path)?),
        };
        work(file)
    }

    fn or_log<T>(&self, done: Result<T, Failure>) -> Option<T> {
        let failure = match done {
            Ok(done) => return Some(done),
            Err(failure) => failure,
        };
        let path = self.path.display();
        if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%path, %failure, "the cache of embeddings is not used");
        } else {
            tracing::warn!(%path, %failure, "the cache of embeddings is not used");
        }
        None
    }
}

#[cfg(test)]
mod tests;
