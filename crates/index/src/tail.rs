//! The tail: rows newer than the index, kept ready for the next search of the same process.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::{Arc, PoisonError, RwLock},
};

use amplifier_session_core::Result;

use crate::rows::{Mark, Rows};

/// The most bytes of rows that are kept ready. A longer tail is read anew by every search.
const MOST_KEPT: usize = 48 << 20;

/// One kind of rows, and what is kept of each.
pub(crate) trait Source: Default + 'static {
    /// The row.
    type Row<'a>;
    /// What is kept of it.
    type Item;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(Self::Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>>;

    fn identity(row: &Self::Row<'_>) -> Identity;

    fn item(&mut self, row: &Self::Row<'_>) -> Self::Item;
}

/// Which state of which row. Rows of the same identity have the same item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) key: u64,
    pub(crate) revision: u64,
    /// How many bytes the row has.
    pub(crate) bytes: usize,
    /// A checksum of them: a store restored from a backup may have another row of this key and revision.
    pub(crate) checksum: u32,
}

/// The tail of one part of the index.
pub(crate) struct Tail<S: Source> {
    kept: RwLock<Kept<S::Item>>,
}

/// What a scan of the tail found, beside the rows themselves.
pub(crate) struct Scanned {
    /// How many rows there are.
    pub(crate) rows: u64,
    /// Keys of what the index must not answer with: changed or removed since.
    pub(crate) masked: Arc<HashSet<u64>>,
}

/// Rows above `after` in the state `upto`; complete where there is an `upto`.
struct Kept<T> {
    after: u64,
    upto: Option<Mark>,
    rows: HashMap<u64, (Identity, T)>,
    masked: Arc<HashSet<u64>>,
    bytes: usize,
}

impl<S: Source> Default for Tail<S> {
    fn default() -> Self {
        Self { kept: RwLock::default() }
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { after: 0, upto: None, rows: HashMap::new(), masked: Arc::default(), bytes: 0 }
    }
}

impl<S: Source> Tail<S> {
    /// Reads the rows above `after` that are not kept yet. False when it has stopped because they are more than
    /// `most` bytes, or more than can be kept.
    pub(crate) fn prepare(&self, rows: &mut dyn Rows, after: u64, now: Mark, most: usize) -> Result<bool> {
        if self.read().covers(after, now) {
            return Ok(true);
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.upto.is_some_and(|upto| upto.store == now.store && upto.revision > now.revision) {
            // Another thread has a newer snapshot; what it reads is of more use to the searches that come.
            return Ok(true);
        }
        kept.move_to::<S>(rows, after, now)?;
        extend::<S>(&mut kept, rows, now, most)
    }

    /// Calls `visit` with every row above `after`.
    pub(crate) fn scan(
        &self,
        rows: &mut dyn Rows,
        after: u64,
        now: Mark,
        visit: &mut dyn FnMut(u64, &S::Item),
    ) -> Result<Scanned> {
        let kept = self.read();
        if kept.covers(after, now) {
            kept.rows.iter().for_each(|(key, (_, item))| visit(*key, item));
            return Ok(Scanned { rows: kept.rows.len() as u64, masked: Arc::clone(&kept.masked) });
        }
        scan_directly::<S>(&kept, rows, after, visit)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Kept<S::Item>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `visit` with every row above `after` as `rows` has it now. What is kept of the same row saves the work.
fn scan_directly<S: Source>(
    kept: &Kept<S::Item>,
    rows: &mut dyn Rows,
    after: u64,
    visit: &mut dyn FnMut(u64, &S::Item),
) -> Result<Scanned> {
    let mut source = S::default();
    let mut count = 0;
    let mut masked: HashSet<u64> = S::removed_after(rows, after)?.into_iter().collect();
    S::rows_after(rows, after, &mut |row| {
        let identity = S::identity(&row);
        count += 1;
        masked.insert(identity.key);
        match kept.rows.get(&identity.key) {
            Some((known, item)) if *known == identity => visit(identity.key, item),
            _ => visit(identity.key, &source.item(&row)),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Scanned { rows: count, masked: Arc::new(masked) })
}

/// Reads on from where `kept` ends. False, and incomplete, when that is more than `most` bytes or can't be kept.
fn extend<S: Source>(kept: &mut Kept<S::Item>, rows: &mut dyn Rows, now: Mark, most: usize) -> Result<bool> {
    // Incomplete until all is read: an error half way must not leave a tail that looks whole.
    let from = kept.upto.take().map(|upto| upto.revision);
    // Rows of an incomplete tail may be gone by now: only those that are met again stay.
    let mut known = if from.is_none() { kept.take_rows() } else { HashMap::new() };
    // The index may have gone beyond what was read.
    let from = from.unwrap_or(0).max(kept.after);
    for key in S::removed_after(rows, from)? {
        kept.remove(key);
        Arc::make_mut(&mut kept.masked).insert(key);
    }
    let mut source = S::default();
    let (mut fits, mut read) = (true, 0);
    S::rows_after(rows, from, &mut |row| {
        let identity = S::identity(&row);
        read += identity.bytes;
        let item = match known.remove(&identity.key) {
            Some((same, item)) if same == identity => item,
            _ => source.item(&row),
        };
        kept.put(identity, item);
        fits = read <= most && kept.bytes <= MOST_KEPT;
        Ok(if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    kept.upto = fits.then_some(now);
    Ok(fits)
}

impl<T> Kept<T> {
    fn covers(&self, after: u64, now: Mark) -> bool {
        self.after == after && self.upto == Some(now)
    }

    /// Drops what does not lead from `after` to `now`.
    fn move_to<S: Source<Item = T>>(&mut self, rows: &mut dyn Rows, after: u64, now: Mark) -> Result<()> {
        if let Some(upto) = self.upto
            && (upto.store != now.store || rows.nonce(upto.revision)? != Some(upto.nonce))
        {
            *self = Self::default();
        }
        if after < self.after {
            self.upto = None;
        }
        if after > self.after {
            self.rows.retain(|_, (identity, _)| identity.revision > after);
            self.bytes = self.rows.values().map(|(identity, _)| identity.bytes).sum();
            self.masked = Arc::new(self.rows.keys().copied().chain(S::removed_after(rows, after)?).collect());
        }
        self.after = after;
        Ok(())
    }

    fn take_rows(&mut self) -> HashMap<u64, (Identity, T)> {
        self.bytes = 0;
        self.masked = Arc::default();
        std::mem::take(&mut self.rows)
    }

    fn put(&mut self, identity: Identity, item: T) {
        self.remove(identity.key);
        self.bytes += identity.bytes;
        self.rows.insert(identity.key, (identity, item));
        Arc::make_mut(&mut self.masked).insert(identity.key);
    }

    fn remove(&mut self, key: u64) {
        if let Some((identity, _)) = self.rows.remove(&key) {
            self.bytes = self.bytes.saturating_sub(identity.bytes);
        }
    }
}
