//! The tail: rows newer than the index, kept ready for the next search of the same process.

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
    part::SearchFailure,
    rows::{Rows, StoreRevision},
};

/// A search that would have to read more than this many bytes of rows folds them: it takes little longer, and the
/// next search of another process need not read them again. Well above what waits while a sync keeps folding, or
/// searches would do its work.
pub(crate) const LONG_TAIL: usize = 16 << 20;

/// The most bytes of rows that are kept ready. A longer tail is read anew by every search.
const MOST_KEPT: usize = 48 << 20;

/// One kind of rows, and how they are kept ready for searches.
pub(crate) trait TailBuffer: Default + 'static {
    /// The row.
    type Row<'a>;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(Self::Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>>;

    fn identity(row: &Self::Row<'_>) -> Identity;

    /// Puts a row into the buffer, which has none with its key.
    fn put(&mut self, row: &Self::Row<'_>);

    /// Takes a row away, if it is there.
    fn remove(&mut self, key: u64);

    /// Takes away all rows but those that `keep` says yes to.
    fn retain(&mut self, keep: &dyn Fn(u64) -> bool);
}

/// Which state of which row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) key: u64,
    pub(crate) revision: u64,
    /// How many bytes the row has.
    pub(crate) bytes: usize,
    /// A checksum of them: a store restored from a backup may have another row of this key and revision.
    pub(crate) checksum: u32,
}

/// What a search does with the tail.
pub(crate) trait Visitor<S: TailBuffer> {
    /// A row that is not kept.
    fn row(&mut self, row: &S::Row<'_>);

    /// All rows that are kept, or those of these keys.
    fn buffer(&mut self, buffer: &S, only: Option<&HashSet<u64>>);
}

/// The tail of one part of the index.
pub(crate) struct Tail<S> {
    kept: RwLock<Kept<S>>,
    /// Whether a search has been here before. The first one looks at the rows and keeps nothing: it may well be the only
    /// one of its process, and to keep a row takes several times as long as to look at it.
    is_known: AtomicBool,
}

/// What a scan of the tail found, beside the rows themselves.
pub(crate) struct Scanned {
    /// How many rows there are.
    pub(crate) rows: u64,
    /// Keys of what the index must not answer with: changed or removed since.
    pub(crate) masked: Arc<HashSet<u64>>,
}

/// Rows above `after` in the state `upto`. Without an `upto` it is not known which are missing or gone.
#[derive(Default)]
struct Kept<S> {
    is_prepared: bool,
    after: u64,
    upto: Option<StoreRevision>,
    rows: HashMap<u64, Identity>,
    buffer: S,
    masked: Arc<HashSet<u64>>,
    bytes: usize,
}

impl<S: TailBuffer> Default for Tail<S> {
    fn default() -> Self {
        Self { kept: RwLock::default(), is_known: AtomicBool::new(false) }
    }
}

impl<S: TailBuffer> Tail<S> {
    /// Whether this is the first search, which needs no [`Tail::prepare`].
    pub(crate) fn is_first(&self) -> bool {
        !self.is_known.swap(true, Ordering::Relaxed)
    }

    /// Reads the rows above `after` that are not kept yet. False when it has stopped because they are more than
    /// `most` bytes, or more than can be kept.
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
            // Another thread has a newer snapshot; what it reads is of more use to the searches that come.
            return Ok(true);
        }
        kept.move_to(rows, after, now)?;
        kept.extend(rows, now, most)
    }

    /// Shows `visitor` every row above `after`.
    ///
    /// # Errors
    ///
    /// `LongTail` when that is more than [`LONG_TAIL`] and nothing was [prepared](Tail::prepare); those of `rows`.
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

    fn read(&self) -> RwLockReadGuard<'_, Kept<S>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: TailBuffer> Kept<S> {
    fn covers(&self, after: u64, now: StoreRevision) -> bool {
        self.after == after && self.upto == Some(now)
    }

    /// Goes through the rows as they are in this snapshot. What is kept of the same row saves the work.
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

    /// Drops what does not lead from `after` to `now`.
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

    /// Reads on from where it ends. False when that is more than `most` bytes or can't be kept.
    fn extend(&mut self, rows: &mut dyn Rows, now: StoreRevision, most: usize) -> Result<bool> {
        self.is_prepared = true;
        // Until all is read it is not known whether anything is missing, also after an error half way.
        let known = self.upto.take();
        if known.is_none() {
            self.masked = Arc::default();
        }
        // The index may have gone beyond what was read.
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

    fn put(&mut self, identity: Identity, row: &S::Row<'_>) {
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

    fn retain(&mut self, keep: impl Fn(&Identity) -> bool) {
        self.rows.retain(|_, identity| keep(identity));
        self.bytes = self.rows.values().map(|identity| identity.bytes).sum();
        let rows = &self.rows;
        self.buffer.retain(&|key| rows.contains_key(&key));
    }
}
