//! The front of the index.

use std::{
    fmt,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Result,
    backend::{TextQuery, VectorQuery},
};

use crate::{
    answer::{Answer, TextHit, VectorHit},
    error::io_error,
    files::{create_folder, private_file},
    part::{Found, Part, PartFolder, PartView, SearchFailure},
    readers::Readers,
    rows::{Rows, StoreRevision},
    tail::{LONG_TAIL, Tail, TailBuffer},
    text::{self, TextPart, TextTailBuffer},
    vectors::{self, VectorPart, VectorTailBuffer},
};

const DEFAULT_STEP_BYTES: u64 = 64 << 20;

/// A derived search index in a folder of its own.
///
/// One value serves all threads of a process; any number of processes may use the same folder.
pub struct SearchIndex {
    dir: PathBuf,
    step_bytes: u64,
    text: PartFolder<TextPart>,
    text_tail: Tail<TextTailBuffer>,
    vectors: PartFolder<VectorPart>,
    vector_tail: Tail<VectorTailBuffer>,
    readers: Readers,
}

/// Says that a sync runs. The lock goes with the process, however that ends.
#[derive(Debug)]
pub struct SyncLock(#[expect(dead_code, reason = "it is held, not used")] Option<File>);

/// What [`SearchIndex::fold`] does when another thread or process is folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    /// Leaves it to the other.
    Skip,
    /// Waits for it and then does what is left. For removals that must be gone from the files.
    Wait,
}

/// What a fold did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folded {
    /// Nothing was done because another thread or process is folding.
    pub busy: bool,
    /// Messages that were put into the index.
    pub messages: u64,
    /// Vectors that were put into the index.
    pub vectors: u64,
    /// Why the index, or part of it, was built anew: a sentence for people.
    pub rebuilt: Option<String>,
}

/// State and size of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What the text part holds; `None` when it is missing or can't be used.
    pub text: Option<StoreRevision>,
    /// What the vector part holds; `None` when it is missing or can't be used.
    pub vectors: Option<StoreRevision>,
    /// Bytes of the text part on disk.
    pub text_bytes: u64,
    /// Bytes of the vector part on disk.
    pub vector_bytes: u64,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// The index in the folder `dir`, which need not exist. Looks at nothing until it is used.
    #[must_use]
    pub fn open(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self {
            text: PartFolder::new(&dir),
            text_tail: Tail::default(),
            vectors: PartFolder::new(&dir),
            vector_tail: Tail::default(),
            readers: Readers::new(&dir),
            step_bytes: DEFAULT_STEP_BYTES,
            dir,
        }
    }

    /// Sets how many bytes of rows a fold takes in before it commits: the memory that it needs grows with it, and
    /// so does what a killed process loses. Default: 64 MiB.
    #[must_use]
    pub fn with_step_bytes(mut self, step_bytes: u64) -> Self {
        self.step_bytes = step_bytes;
        self
    }

    /// Has long work of other handles, of any process, give way while this one lives: somebody waits for its answers.
    pub fn come_first(&self) {
        self.readers.come_first();
    }

    /// Waits while another handle searches that comes first, at most a tenth of a second: to be called between two
    /// pieces of long work. Blocks.
    pub fn give_way(&self) {
        self.readers.give_way();
    }

    /// A lock that one sync of the store holds, until it is dropped; `None` while another one does. Where the folder
    /// can't be written nobody holds it, and everybody goes on.
    #[must_use]
    pub fn begin_sync(&self) -> Option<SyncLock> {
        let file = create_folder(&self.dir).and_then(|()| private_file().open(self.dir.join("syncing")));
        let Ok(file) = file else { return Some(SyncLock(None)) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            _ => Some(SyncLock(Some(file))),
        }
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The best texts for `query` by BM25: exactly those in its scope, filter and content types.
    ///
    /// A missing, foreign, damaged or outdated index is no error: the answer comes from the rows and says so.
    /// Where much of the store is not in the index, it is folded first unless somebody else is at it.
    ///
    /// # Errors
    ///
    /// What `rows` fails with.
    pub fn text_candidates(&self, rows: &mut dyn Rows, query: &TextQuery) -> Result<Answer<TextHit>> {
        self.search(&self.text, &self.text_tail, rows, |view, rows| {
            text::search(view, &self.text_tail, rows, query)
        })
    }

    /// The vectors nearest to the query's: exactly those in its scope, filter and content types.
    ///
    /// As [`SearchIndex::text_candidates`] otherwise.
    ///
    /// # Errors
    ///
    /// `Validation` when the query's vector has another length than the store's; what `rows` fails with.
    pub fn vector_candidates(&self, rows: &mut dyn Rows, query: &VectorQuery) -> Result<Answer<VectorHit>> {
        self.search(&self.vectors, &self.vector_tail, rows, |view, rows| {
            vectors::search(view, &self.vector_tail, rows, query)
        })
    }

    /// Brings the index up to the rows; cheap when it is. An index that can't be used is built anew.
    ///
    /// - Works in steps of bounded memory; a process that is killed loses at most one.
    /// - One thread or process at a time; see [`WhenBusy`]. The snapshot of `rows` must be taken by its first use in
    ///   here, when the turn has come: an index that is newer than the rows is built anew.
    /// - When it returns without `busy`, no file holds words or vectors of rows that were removed or changed before
    ///   the snapshot of `rows`.
    ///
    /// # Errors
    ///
    /// `StorageIo` when the folder can't be written; what `rows` fails with. Searches are right all the same.
    pub fn fold(&self, rows: &mut dyn Rows, when_busy: WhenBusy) -> Result<Folded> {
        match self.lock(when_busy)? {
            Some(_lock) => self.fold_locked(rows),
            None => Ok(Folded { busy: true, ..Folded::default() }),
        }
    }

    fn fold_locked(&self, rows: &mut dyn Rows) -> Result<Folded> {
        // One part that can't be folded must not keep the other from it. Vectors first: they are done in a moment,
        // and searches need not view at them one by one while the texts are folded.
        let vectors = vectors::fold(&self.vectors, rows, self.step_bytes);
        let text = text::fold(&self.text, rows, self.step_bytes);
        let (text, vectors) = (text?, vectors?);
        Ok(Folded {
            busy: false,
            messages: text.rows,
            vectors: vectors.rows,
            rebuilt: [text.rebuilt, vectors.rebuilt].into_iter().flatten().reduce(|a, b| format!("{a}; {b}")),
        })
    }

    /// State and size; reads the folder only.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            text: mark_of(&self.text.load()),
            vectors: mark_of(&self.vectors.load()),
            text_bytes: self.text.bytes(),
            vector_bytes: self.vectors.bytes(),
        }
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.text.bytes() + self.vectors.bytes()
    }

    /// Searches a part and the rows above it; `run` gives the hits, and how many rows there are above.
    fn search<P: Part, S: TailBuffer, T>(
        &self,
        part_folder: &PartFolder<P>,
        tail: &Tail<S>,
        rows: &mut dyn Rows,
        run: impl Fn(&PartView<P>, &mut dyn Rows) -> Result<(Vec<T>, u64), SearchFailure>,
    ) -> Result<Answer<T>> {
        let mut view = part_folder.view_for_search(rows)?;
        loop {
            let rebuilt = self.prepare(part_folder, tail, rows, &mut view)?;
            match run(&view, rows) {
                Ok((hits, tail_rows)) => {
                    return Ok(Answer { hits, tail_rows, notice: notice(&view, rebuilt, tail_rows) });
                }
                Err(SearchFailure::Outside(error)) => return Err(error),
                Err(SearchFailure::Part(error)) => {
                    part_folder.mark_unusable(view.part.as_ref(), error);
                    view = part_folder.view_again(rows)?;
                }
                // The next round is not the first search any more.
                Err(SearchFailure::LongTail) => {}
            }
        }
    }

    /// Makes a part and the rows above it ready for a search. Returns why the part was built anew, if it was.
    fn prepare<P: Part, S: TailBuffer>(
        &self,
        part_folder: &PartFolder<P>,
        tail: &Tail<S>,
        rows: &mut dyn Rows,
        view: &mut PartView<P>,
    ) -> Result<Option<String>> {
        let mut rebuilt = None;
        let view_only = tail.is_first() && view.part.is_some();
        if !view_only && !tail.prepare(rows, view.after(), view.now, LONG_TAIL)? {
            if self.fold_for_search(rows, view.now) {
                let fresh = part_folder.view_for_search(rows)?;
                // Unless yet another has folded rows that are newer than this snapshot.
                if fresh.part.is_some() {
                    rebuilt = std::mem::replace(view, fresh).reason;
                }
            }
            tail.prepare(rows, view.after(), view.now, usize::MAX)?;
        }
        Ok(rebuilt)
    }

    /// Folds if nobody else does. A search goes on whatever comes of it.
    fn fold_for_search(&self, rows: &mut dyn Rows, now: StoreRevision) -> bool {
        let mut fold = || -> Result<bool> {
            let Some(_lock) = self.lock(WhenBusy::Skip)? else { return Ok(false) };
            // The snapshot is older than the lock. Another may have folded in between, and what is newer than the
            // rows is taken for the index of a store that was restored: it would be built anew.
            let newer = |mark: Option<StoreRevision>| mark.is_some_and(|mark| mark.revision > now.revision);
            if newer(mark_of(&self.text.load())) || newer(mark_of(&self.vectors.load())) {
                return Ok(false);
            }
            self.fold_locked(rows).map(|_| true)
        };
        fold().unwrap_or_else(|error| {
            tracing::warn!(%error, "the search index can't be brought up to date");
            false
        })
    }

    /// The writer's lock, held until it is dropped; `None` when another has it.
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

fn mark_of<P: Part>(found: &Found<P>) -> Option<StoreRevision> {
    match found {
        Found::Ready(part) => Some(part.mark()),
        Found::Missing | Found::Unusable(_) => None,
    }
}

/// What people should know of how an answer was found.
fn notice<P: Part>(view: &PartView<P>, rebuilt: Option<String>, tail_rows: u64) -> Option<String> {
    match (&view.reason, rebuilt) {
        (Some(reason), _) if tail_rows > 0 => {
            Some(format!("{reason}: {tail_rows} {} were searched without it, which is slower", P::ROWS))
        }
        (None, Some(reason)) => Some(format!("{reason}: it has been built anew")),
        _ => None,
    }
}
