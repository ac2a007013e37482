//! The public interface of the index.

use std::{
    fmt,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Result,
    backend::{TermPattern, TextQuery, VectorQuery},
    text::bm25::CollectionStatistics,
};

use crate::{
    answer::{IndexAnswer, PartHits, TextHit, VectorHit},
    error::{SearchFailure, io_error},
    files::{create_folder, private_file},
    part::{IndexPart, PartFolder, PartView},
    readers::Readers,
    reserve::Reserve,
    rows::{Rows, StoreRevision},
    tail::{LONG_TAIL, PartTail, TailBuffer},
    text::{self, TextPart, TextTailBuffer},
    vectors::{self, VectorPart, VectorTailBuffer},
};

const DEFAULT_STEP_BYTES: u64 = 64 << 20;

/// A derived search index in its own folder.
///
/// One value can be used by all threads of a process, and one folder by any number of processes.
pub struct SearchIndex {
    dir: PathBuf,
    step_bytes: u64,
    text: PartFolder<TextPart>,
    text_tail: PartTail<TextTailBuffer>,
    vectors: PartFolder<VectorPart<false>>,
    vector_tail: PartTail<VectorTailBuffer<false>>,
    turns: PartFolder<VectorPart<true>>,
    turn_tail: PartTail<VectorTailBuffer<true>>,
    readers: Readers,
    reserve: Reserve,
}

/// The lock of a running sync. It is released when the process ends, for whatever reason.
#[derive(Debug)]
pub struct SyncLock(#[expect(dead_code, reason = "it is held, not used")] Option<File>);

/// What [`SearchIndex::fold`] does if another thread or process is folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// Return.
    Skip,
    /// Wait, then fold the rest. For removals that must be erased from the files.
    Wait,
}

/// The result of a fold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folded {
    /// Nothing was done, because another thread or process is folding.
    pub busy: bool,
    /// Number of messages added to the index.
    pub messages: u64,
    /// Number of vectors added to the index.
    pub vectors: u64,
    /// Why the index, or part of it, was rebuilt, as a sentence for users.
    pub rebuilt: Option<String>,
}

/// The state of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The revision of the text part; `None` if it is missing or can't be used.
    pub text: Option<StoreRevision>,
    /// The revision of the vector part; `None` if it is missing or can't be used.
    pub vectors: Option<StoreRevision>,
    /// The revision of the part with the vectors of turns; `None` if it is missing or can't be used.
    pub turns: Option<StoreRevision>,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// The index in the folder `dir`, which need not exist. Reads nothing until it is used.
    #[must_use]
    pub fn open(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self {
            text: PartFolder::new(&dir),
            text_tail: PartTail::default(),
            vectors: PartFolder::new(&dir),
            vector_tail: PartTail::default(),
            turns: PartFolder::new(&dir),
            turn_tail: PartTail::default(),
            readers: Readers::new(&dir),
            reserve: Reserve::new(&dir),
            step_bytes: DEFAULT_STEP_BYTES,
            dir,
        }
    }

    /// Sets how many bytes of rows a fold processes before it commits. A larger value needs more memory, and a killed
    /// process loses more. Default: 64 MiB.
    #[must_use]
    pub fn with_step_bytes(mut self, step_bytes: u64) -> Self {
        self.step_bytes = step_bytes;
        self
    }

    /// Makes long work of other handles, in any process, wait briefly as long as this handle exists. For interactive
    /// searches.
    pub fn prioritize(&self) {
        self.readers.prioritize();
    }

    /// Waits while a handle with priority searches, at most a tenth of a second. Call this between two pieces of long
    /// work. Blocks.
    pub fn yield_to_searches(&self) {
        self.readers.yield_to_searches();
    }

    /// Takes the lock of a sync, which is held until it is dropped. Returns `None` if another sync holds it. If the
    /// folder can't be written, syncs run without a lock.
    #[must_use]
    pub fn begin_sync(&self) -> Option<SyncLock> {
        let file = create_folder(&self.dir).and_then(|()| private_file().open(self.dir.join("syncing")));
        let Ok(file) = file else { return Some(SyncLock(None)) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            _ => Some(SyncLock(Some(file))),
        }
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the best texts for `query` by BM25, from exactly the messages in its scope, filter and content types.
    ///
    /// A missing, foreign, damaged or outdated index is not an error: the rows are searched instead, and the answer
    /// says so. If many rows are not in the index, they are folded first, unless a fold is already running.
    ///
    /// # Errors
    ///
    /// Errors of `rows`.
    pub fn text_candidates(&self, rows: &mut dyn Rows, query: &TextQuery) -> Result<IndexAnswer<TextHit>> {
        self.search(&self.text, &self.text_tail, rows, |view, rows| {
            text::search(view, &self.text_tail, rows, query)
        })
    }

    /// Returns the keys of the newest messages that match `query`, newest first.
    ///
    /// Otherwise like [`SearchIndex::text_candidates`].
    ///
    /// # Errors
    ///
    /// Errors of `rows`.
    pub fn newest_messages(&self, rows: &mut dyn Rows, query: &TextQuery) -> Result<IndexAnswer<u64>> {
        self.search(&self.text, &self.text_tail, rows, |view, rows| {
            text::newest(view, &self.text_tail, rows, query)
        })
    }

    /// Returns the terms that match each pattern, at most `limit` of each: those in the most texts first. Texts of
    /// removed and changed rows may still count.
    ///
    /// # Errors
    ///
    /// Errors of `rows`.
    pub fn terms(
        &self,
        rows: &mut dyn Rows,
        patterns: &[TermPattern],
        limit: usize,
    ) -> Result<Vec<Vec<String>>> {
        let answer = self.search(&self.text, &self.text_tail, rows, |view, rows| {
            let finder = text::find_terms(view, &self.text_tail, rows, patterns)?;
            let statistics = CollectionStatistics::default();
            Ok(PartHits { hits: finder.finish(limit), statistics, tail_rows: 0 })
        })?;
        Ok(answer.hits)
    }

    /// Returns the vectors of texts or turns nearest to the query's, from exactly the messages in its scope, filter and
    /// content types. With tools, only the 2,000 nearest vectors are examined for those of messages that use them.
    ///
    /// Otherwise like [`SearchIndex::text_candidates`].
    ///
    /// # Errors
    ///
    /// `Validation` if the length of the query's vector differs from the store's vectors; errors of `rows`.
    pub fn vector_candidates(
        &self,
        rows: &mut dyn Rows,
        query: &VectorQuery,
    ) -> Result<IndexAnswer<VectorHit>> {
        if query.turns {
            return self.search(&self.turns, &self.turn_tail, rows, |view, rows| {
                vectors::search(view, &self.turn_tail, rows, query, None)
            });
        }
        let users = match query.tools.is_empty() {
            true => None,
            false => Some(self.newest_messages(rows, &all_texts_of(query))?.hits.into_iter().collect()),
        };
        self.search(&self.vectors, &self.vector_tail, rows, |view, rows| {
            vectors::search(view, &self.vector_tail, rows, query, users.as_ref())
        })
    }

    /// Updates the index from the rows; cheap if it is up to date. An index that can't be used is rebuilt.
    ///
    /// - Works in steps of bounded memory; a killed process loses at most one step.
    /// - Only one thread or process folds at a time; see [`WhenBusy`]. The first use of `rows` in this function must
    ///   take its snapshot, after the lock, because an index that is newer than the rows is rebuilt.
    /// - If `busy` is not set on return, no file contains words or vectors of rows that were removed or changed before
    ///   the snapshot of `rows`. With [`WhenBusy::Skip`], the next fold removes files that could not be removed.
    ///
    /// # Errors
    ///
    /// `StorageIo` if the folder can't be written; errors of `rows`. Searches stay correct.
    pub fn fold(&self, rows: &mut dyn Rows, when_busy: WhenBusy) -> Result<Folded> {
        let Some(_lock) = self.lock(when_busy)? else {
            return Ok(Folded { busy: true, ..Folded::default() });
        };
        let folded = self.fold_locked(rows)?;
        if when_busy == WhenBusy::Wait {
            self.text.check_swept()?;
            self.vectors.check_swept()?;
            self.turns.check_swept()?;
        }
        Ok(folded)
    }

    /// Removes all files of the index. The next fold rebuilds them from the rows. Meanwhile, searches are correct, but
    /// slow.
    ///
    /// # Errors
    ///
    /// `StorageIo` if a file can't be removed.
    pub fn discard(&self) -> Result<()> {
        let _lock = self.lock(WhenBusy::Wait)?;
        let text = self.text.clear().and_then(|()| self.text.check_swept());
        let vectors = self.vectors.clear().and_then(|()| self.vectors.check_swept());
        let turns = self.turns.clear().and_then(|()| self.turns.check_swept());
        let reserve = self.reserve.give_up().map_err(|error| io_error(error, &self.dir));
        text.and(vectors).and(turns).and(reserve)
    }

    /// Keeps other processes from replacing files, if possible. In a folder that can't be written, no process replaces
    /// files.
    pub(crate) fn lock_files(&self) -> Option<File> {
        self.dir.is_dir().then(|| self.lock(WhenBusy::Wait)).transpose().ok().flatten().flatten()
    }

    /// The parts, for a check.
    pub(crate) fn parts(
        &self,
    ) -> (&PartFolder<TextPart>, &PartFolder<VectorPart<false>>, &PartFolder<VectorPart<true>>) {
        (&self.text, &self.vectors, &self.turns)
    }

    fn fold_locked(&self, rows: &mut dyn Rows) -> Result<Folded> {
        // If one part can't be folded, the others still are. Vectors come first: they are fast, and searches need not
        // read them one by one while the texts are folded.
        let vectors = vectors::fold(&self.vectors, rows, self.step_bytes);
        let turns = vectors::fold(&self.turns, rows, self.step_bytes);
        let text = text::fold(&self.text, rows, self.step_bytes);
        let (text, vectors, turns) = (text?, vectors?, turns?);
        self.reserve.keep();
        Ok(Folded {
            busy: false,
            messages: text.rows,
            vectors: vectors.rows + turns.rows,
            rebuilt: [text.rebuilt, vectors.rebuilt, turns.rebuilt]
                .into_iter()
                .flatten()
                .reduce(|a, b| format!("{a}; {b}")),
        })
    }

    /// Returns the state. Reads only the folder.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            text: self.text.load().store_revision(),
            vectors: self.vectors.load().store_revision(),
            turns: self.turns.load().store_revision(),
        }
    }

    /// Searches a part and the rows above it.
    fn search<P: IndexPart, S: TailBuffer, T>(
        &self,
        part_folder: &PartFolder<P>,
        tail: &PartTail<S>,
        rows: &mut dyn Rows,
        run: impl Fn(&PartView<P>, &mut dyn Rows) -> Result<PartHits<T>, SearchFailure>,
    ) -> Result<IndexAnswer<T>> {
        let mut view = part_folder.view_for_search(rows)?;
        loop {
            let rebuilt = self.prepare(part_folder, tail, rows, &mut view)?;
            match run(&view, rows) {
                Ok(PartHits { hits, statistics, tail_rows }) => {
                    let notice = notice(&view, rebuilt, tail_rows);
                    return Ok(IndexAnswer { hits, statistics, tail_rows, notice });
                }
                Err(SearchFailure::Outside(error)) => return Err(error),
                Err(SearchFailure::Part(error)) => {
                    part_folder.mark_unusable(view.part.as_ref(), error);
                    view = part_folder.view_again(rows)?;
                }
                // The next round is no longer the first search.
                Err(SearchFailure::LongTail) => {}
            }
        }
    }

    /// Prepares a part and the rows above it for a search. Returns why the part was rebuilt, if it was.
    fn prepare<P: IndexPart, S: TailBuffer>(
        &self,
        part_folder: &PartFolder<P>,
        tail: &PartTail<S>,
        rows: &mut dyn Rows,
        view: &mut PartView<P>,
    ) -> Result<Option<String>> {
        let mut rebuilt = None;
        let view_only = tail.is_first() && view.part.is_some();
        if !view_only && !tail.prepare(rows, view.after(), view.now, LONG_TAIL)? {
            if self.fold_for_search(rows, view.now) {
                let fresh = part_folder.view_for_search(rows)?;
                // Unless another process has folded rows that are newer than this snapshot.
                if fresh.part.is_some() {
                    rebuilt = std::mem::replace(view, fresh).reason;
                }
            }
            tail.prepare(rows, view.after(), view.now, usize::MAX)?;
        }
        Ok(rebuilt)
    }

    /// Folds unless a fold is running. A search continues even if this fails.
    fn fold_for_search(&self, rows: &mut dyn Rows, now: StoreRevision) -> bool {
        let mut fold = || -> Result<bool> {
            let Some(_lock) = self.lock(WhenBusy::Skip)? else { return Ok(false) };
            // The snapshot is older than the lock. If another process folded in between, the index is newer than the
            // rows, as if the store had been restored, and would be rebuilt.
            let Status { text, vectors, turns } = self.status();
            if [text, vectors, turns].into_iter().flatten().any(|of| of.revision > now.revision) {
                return Ok(false);
            }
            self.fold_locked(rows).map(|_| true)
        };
        fold().unwrap_or_else(|error| {
            tracing::warn!(%error, "the search index can't be brought up to date");
            false
        })
    }

    /// Takes the writer's lock, which is held until it is dropped. Returns `None` if another process holds it.
    fn lock(&self, when_busy: WhenBusy) -> Result<Option<File>> {
        create_folder(&self.dir).map_err(|error| io_error(error, &self.dir))?;
        let path = self.dir.join("lock");
        let file = private_file().open(&path).map_err(|error| io_error(error, &path))?;
        match when_busy {
            WhenBusy::Wait => file.lock().map_err(|error| io_error(error, &path))?,
            WhenBusy::Skip => match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(io_error(error, &path)),
            },
        }
        Ok(Some(file))
    }
}

/// The texts of messages whose vectors a query may compare.
fn all_texts_of(query: &VectorQuery) -> TextQuery {
    let VectorQuery { scope, filter, content_types, tools, .. } = query.clone();
    let (terms, weights, required, phrases) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    TextQuery { scope, filter, content_types, terms, weights, required, phrases, tools, limit: usize::MAX }
}

/// The notice of an answer for users. It does not say how many rows there are, because most may belong to sessions that the
/// caller may not see.
fn notice<P: IndexPart>(view: &PartView<P>, rebuilt: Option<String>, tail_rows: u64) -> Option<String> {
    match (&view.reason, rebuilt) {
        (Some(reason), _) if tail_rows > 0 => {
            Some(format!("{reason}: {} were searched without it, which is slower", P::ROWS))
        }
        (None, Some(reason)) => Some(format!("{reason}: it was rebuilt")),
        _ => None,
    }
}
