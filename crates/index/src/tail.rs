//! The tail: rows newer than the index, cached for the next search of the same process.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use amplifier_session_core::Result;

use crate::{
    error::SearchFailure,
    rows::{Rows, StoreRevision},
};

/// A search that would have to read more than this many bytes of rows folds them instead: this takes little longer, and
/// searches of other processes need not read them again. The limit is well above what a sync leaves unfolded, so that
/// searches do not do the sync's work.
pub(crate) const LONG_TAIL: usize = 16 << 20;

/// The maximum size of cached rows. A longer tail is read again by every search.
const MOST_KEPT: usize = 48 << 20;

/// A kind of rows, and how they are cached for searches.
pub(crate) trait TailBuffer: Default + 'static {
    /// The row.
    type Row<'a>;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(Self::Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>>;

    fn identity(row: &Self::Row<'_>) -> RowIdentity;

    /// Adds a row to the buffer, which must not contain a row with its key.
    fn put(&mut self, row: &Self::Row<'_>);

    /// Removes a row, if present.
    fn remove(&mut self, key: u64);

    /// Removes all rows for which `keep` returns false.
    fn retain(&mut self, keep: &dyn Fn(u64) -> bool);
}

/// A state of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowIdentity {
    pub(crate) key: u64,
    pub(crate) revision: u64,
    /// The size of the row in bytes.
    pub(crate) bytes: usize,
    /// A checksum, because a store that was restored from a backup may have another row with this key and revision.
    pub(crate) checksum: u32,
}

/// A search in the tail.
pub(crate) trait Visitor<S: TailBuffer> {
    /// Visits a row that is not cached.
    fn row(&mut self, row: &S::Row<'_>);

    /// Visits the cached rows: all, or those with these keys.
    fn buffer(&mut self, buffer: &S, only: Option<&HashSet<u64>>);
}

/// The tail of one part of the index.
pub(crate) struct PartTail<S> {
    kept: RwLock<CachedTail<S>>,
    /// Whether there was a search before. The first one caches nothing: it may be the only one of its process, and
    /// caching a row takes several times as long as searching it.
    is_known: AtomicBool,
}

/// The result of a scan of the tail.
pub(crate) struct Scanned {
    /// Number of rows.
    pub(crate) rows: u64,
    /// Keys that the index must not return, because their rows were changed or removed since.
    pub(crate) masked: Arc<HashSet<u64>>,
}

/// Rows above `after` in the state `upto`. Without `upto`, rows may be missing or outdated.
#[derive(Default)]
struct CachedTail<S> {
    is_prepared: bool,
    after: u64,
    upto: Option<StoreRevision>,
    rows: HashMap<u64, RowIdentity>,
    buffer: S,
    masked: Arc<HashSet<u64>>,
    bytes: usize,
}

impl<S: TailBuffer> Default for PartTail<S> {
    fn default() -> Self {
        Self { kept: RwLock::default(), is_known: AtomicBool::new(false) }
    }
}

impl<S: TailBuffer> PartTail<S> {
    /// Whether this is the first search, which needs no [`PartTail::prepare`].
    pub(crate) fn is_first(&self) -> bool {
        !self.is_known.swap(true, Ordering::Relaxed)
    }

    /// Reads the rows above `after` that are not cached yet. Returns false if they exceed `most` bytes or the size of
    /// the cache.
    pub(crate) fn prepare(
        &self,
        rows: &mut dyn Rows,
        after: u64,
        now: StoreRevision,
        most: usize,
    ) -> Result<bool> {
        if self.read().covers(after, now) {
            return Ok(true);
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.upto.is_some_and(|upto| upto.store == now.store && upto.revision > now.revision) {
            // Another thread has a newer snapshot, which is more useful for later searches.
            return Ok(true);
        }
        kept.move_to(rows, after, now)?;
        kept.extend(rows, now, most)
    }

    /// Calls `visitor` with every row above `after`.
    ///
    /// # Errors
    ///
    /// `LongTail` if these rows exceed [`LONG_TAIL`] bytes and nothing was [prepared](PartTail::prepare); errors of
    /// `rows`.
    pub(crate) fn scan(
        &self,
        rows: &mut dyn Rows,
        after: u64,
        now: StoreRevision,
        visitor: &mut dyn Visitor<S>,
    ) -> Result<Scanned, SearchFailure> {
        let kept = self.read();
        if kept.covers(after, now) {
            visitor.buffer(&kept.buffer, None);
            return Ok(Scanned { rows: kept.rows.len() as u64, masked: Arc::clone(&kept.masked) });
        }
        kept.scan_rows(rows, after, visitor)
    }

    fn read(&self) -> RwLockReadGuard<'_, CachedTail<S>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: TailBuffer> CachedTail<S> {
    fn covers(&self, after: u64, now: StoreRevision) -> bool {
        self.after == after && self.upto == Some(now)
    }

    /// Scans the rows of this snapshot. Uses cached rows if they are current.
    fn scan_rows(
        &self,
        rows: &mut dyn Rows,
        after: u64,
        visitor: &mut dyn Visitor<S>,
    ) -> Result<Scanned, SearchFailure> {
        let mut masked: HashSet<u64> = S::removed_after(rows, after)?.into_iter().collect();
        let (mut count, mut known) = (0, HashSet::new());
        let mut bytes = 0;
        S::rows_after(rows, after, &mut |row| {
            let identity = S::identity(&row);
            count += 1;
            bytes += identity.bytes;
            if bytes > LONG_TAIL && !self.is_prepared {
                return Ok(ControlFlow::Break(()));
            }
            masked.insert(identity.key);
            if self.rows.get(&identity.key) == Some(&identity) {
                known.insert(identity.key);
            } else {
                visitor.row(&row);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if bytes > LONG_TAIL && !self.is_prepared {
            return Err(SearchFailure::LongTail);
        }
        visitor.buffer(&self.buffer, Some(&known));
        Ok(Scanned { rows: count, masked: Arc::new(masked) })
    }

    /// Drops cached rows that are not part of the tail from `after` to `now`.
    fn move_to(&mut self, rows: &mut dyn Rows, after: u64, now: StoreRevision) -> Result<()> {
        if let Some(upto) = self.upto
            && (upto.store != now.store || rows.nonce(upto.revision)? != Some(upto.nonce))
        {
            *self = Self::default();
        }
        if after < self.after {
            self.upto = None;
        }
        if after > self.after {
            self.retain(|identity| identity.revision > after);
            self.masked = Arc::new(self.rows.keys().copied().chain(S::removed_after(rows, after)?).collect());
        }
        self.after = after;
        Ok(())
    }

    /// Continues reading at the end of the cache. Returns false if the rows exceed `most` bytes or can't be cached.
    fn extend(&mut self, rows: &mut dyn Rows, now: StoreRevision, most: usize) -> Result<bool> {
        self.is_prepared = true;
        // Until everything is read, or after an error, rows may be missing.
        let known = self.upto.take();
        if known.is_none() {
            self.masked = Arc::default();
        }
        // The index may be newer than the cache.
        let from = known.map_or(0, |upto| upto.revision).max(self.after);
        for key in S::removed_after(rows, from)? {
            self.remove(key);
            Arc::make_mut(&mut self.masked).insert(key);
        }
        let mut met = HashSet::new();
        let (mut fits, mut read) = (true, 0);
        S::rows_after(rows, from, &mut |row| {
            let identity = S::identity(&row);
            self.put(identity, &row);
            if known.is_none() {
                met.insert(identity.key);
            }
            read += identity.bytes;
            fits = read <= most && self.bytes <= MOST_KEPT;
            Ok(if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if known.is_none() {
            self.retain(|identity| met.contains(&identity.key));
        }
        self.upto = fits.then_some(now);
        Ok(fits)
    }

    fn put(&mut self, identity: RowIdentity, row: &S::Row<'_>) {
        if self.rows.get(&identity.key) != Some(&identity) {
            self.remove(identity.key);
            self.bytes += identity.bytes;
            self.rows.insert(identity.key, identity);
            self.buffer.put(row);
        }
        Arc::make_mut(&mut self.masked).insert(identity.key);
    }

    fn remove(&mut self, key: u64) {
        if let Some(identity) = self.rows.remove(&key) {
            self.bytes = self.bytes.saturating_sub(identity.bytes);
            self.buffer.remove(key);
        }
    }

    fn retain(&mut self, keep: impl Fn(&RowIdentity) -> bool) {
        self.rows.retain(|_, identity| keep(identity));
        self.bytes = self.rows.values().map(|identity| identity.bytes).sum();
        let rows = &self.rows;
        self.buffer.retain(&|key| rows.contains_key(&key));
    }
}
