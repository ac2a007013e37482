//! Keeps a [`SearchIndex`] up to date with the rows of a store. Used by every embedded backend.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        Candidates, DatedMessage, IndexCheck, TermPattern, TextCandidate, TextQuery, VectorCandidate,
        VectorQuery,
    },
    blocking,
    model::{ContentType, MessageRef},
};

use crate::{
    folding::Folding,
    index::{SearchIndex, WhenBusy},
    rows::Rows,
};

/// A search that had to read more rows than this starts an update of the index. The number is higher than what a sync
/// leaves unfolded, so that searches do not do the sync's work.
const LONG_TAIL_ROWS: u64 = 8_000;

/// A store whose rows can be read in one snapshot.
pub trait Snapshots: Send + Sync + 'static {
    /// Calls `read` once, with the rows of one read transaction. Blocks.
    ///
    /// # Errors
    ///
    /// Errors of `read` and of the store.
    fn read(&self, read: &mut dyn FnMut(&mut dyn RowRefs) -> Result<()>) -> Result<()>;

    /// Called after a fold in the background, on the same thread, for similar work.
    fn folded(&self) {}
}

/// Rows that can resolve keys. The calls fail with errors of the store.
pub trait RowRefs: Rows {
    /// The references of messages, in the order of their keys; `None` for missing ones.
    fn message_refs(&mut self, keys: &[u64]) -> Result<Vec<Option<MessageRef>>>;

    /// Messages with their times, in the order of their keys. Missing ones are left out.
    fn dated_messages(&mut self, keys: &[u64]) -> Result<Vec<DatedMessage>>;

    /// The references of vectors of texts or `turns`, in the order of their keys; `None` for missing ones.
    fn vector_refs(&mut self, turns: bool, keys: &[u64]) -> Result<Vec<Option<VectorRef>>>;

    /// The number of rows that the calls so far left out because they can't be read.
    fn unreadable(&self) -> usize;
}

/// The text from which a vector was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorRef {
    /// The message.
    pub message: MessageRef,
    /// The type of the message's text.
    pub content_type: ContentType,
    /// The range of characters in the text.
    pub span: (u32, u32),
}

/// An index with the rows from which it is derived.
///
/// Its functions need a tokio runtime, and run on its threads for blocking work.
#[derive(Debug)]
pub struct IndexUpdater<S>(Arc<UpdaterState<S>>);

#[derive(Debug)]
struct UpdaterState<S> {
    index: SearchIndex,
    snapshots: S,
    folding: Folding,
}

impl<S: Snapshots> IndexUpdater<S> {
    /// An index and its rows.
    #[must_use]
    pub fn new(index: SearchIndex, snapshots: S) -> Self {
        Self(Arc::new(UpdaterState { index, snapshots, folding: Folding::default() }))
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &SearchIndex {
        &self.0.index
    }

    /// Like [`SearchIndex::yield_to_searches`], on a thread for blocking work.
    ///
    /// # Errors
    ///
    /// `StorageIo` if a thread panicked.
    pub async fn yield_to_searches(&self) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.index.yield_to_searches()).await
    }

    /// Like [`SearchIndex::text_candidates`], with references.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let query = query.clone();
        self.find("message", move |index, rows| {
            let answer = index.text_candidates(rows, &query)?;
            let keys: Vec<u64> = answer.hits.iter().map(|hit| hit.key).collect();
            let message_refs = rows.message_refs(&keys)?;
            let items = answer.hits.into_iter().zip(message_refs).filter_map(|(hit, message_ref)| {
                Some(TextCandidate {
                    message_ref: message_ref?,
                    content_type: hit.content_type,
                    score: hit.score,
                })
            });
            let found = Candidates::new(items.collect()).with_statistics(answer.statistics);
            Ok((found.with_notice(answer.notice), answer.tail_rows))
        })
        .await
    }

    /// Like [`SearchIndex::newest_messages`], with references and times.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn newest_messages(&self, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        let query = query.clone();
        self.find("message", move |index, rows| {
            let answer = index.newest_messages(rows, &query)?;
            let found = Candidates::new(rows.dated_messages(&answer.hits)?);
            Ok((found.with_notice(answer.notice), answer.tail_rows))
        })
        .await
    }

    /// Like [`SearchIndex::terms`].
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        let (inner, patterns) = (Arc::clone(&self.0), patterns.to_vec());
        blocking(move || inner.read(|rows| inner.index.terms(rows, &patterns, limit))).await?
    }

    /// Like [`SearchIndex::vector_candidates`], with references.
    ///
    /// # Errors
    ///
    /// Errors of the store; `Validation` if the length of the query's vector differs from the store's vectors.
    pub async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let query = query.clone();
        self.find("vector", move |index, rows| {
            let answer = index.vector_candidates(rows, &query)?;
            let keys: Vec<u64> = answer.hits.iter().map(|hit| hit.key).collect();
            let message_refs = rows.vector_refs(query.turns, &keys)?;
            let items = answer.hits.into_iter().zip(message_refs).filter_map(|(hit, message_ref)| {
                let VectorRef { message, content_type, span } = message_ref?;
                Some(VectorCandidate {
                    message_ref: message,
                    content_type,
                    span_start: span.0,
                    span_end: span.1,
                    similarity: hit.similarity,
                    vector: hit.vector,
                })
            });
            Ok((Candidates::new(items.collect()).with_notice(answer.notice), answer.tail_rows))
        })
        .await
    }

    /// Runs a search. Its notice also says how many rows could not be read.
    async fn find<T: Send + 'static>(
        &self,
        searched: &'static str,
        find: impl Fn(&SearchIndex, &mut dyn RowRefs) -> Result<(Candidates<T>, u64)> + Send + 'static,
    ) -> Result<Candidates<T>> {
        let inner = Arc::clone(&self.0);
        let ((mut found, tail_rows), unreadable) = blocking(move || {
            inner.read(|rows| {
                let found = find(&inner.index, rows)?;
                Ok((found, rows.unreadable()))
            })
        })
        .await??;
        if unreadable > 0 {
            let notices = found.notice.take().into_iter().chain([left_out(unreadable, searched)]);
            found.notice = Some(notices.collect::<Vec<_>>().join("; "));
            // An index without these rows would hide that they exist.
            return Ok(found);
        }
        // A notice means that the index is missing or can't be used, so it is rebuilt for the next search.
        if tail_rows > LONG_TAIL_ROWS || found.notice.is_some() {
            self.fold_in_background();
        }
        Ok(found)
    }

    /// Call this after every write, with the number of bytes of text or vectors written. Updates the index from time to
    /// time, in the background. Waits for a fold that has fallen behind, but not for long.
    ///
    /// # Errors
    ///
    /// `StorageIo` if a thread panicked.
    pub async fn wrote(&self, bytes: usize) -> Result<()> {
        if !self.0.folding.wrote(bytes as u64) {
            return Ok(());
        }
        if self.0.folding.is_running() {
            let inner = Arc::clone(&self.0);
            blocking(move || inner.folding.wait()).await?;
        }
        self.fold_in_background();
        Ok(())
    }

    fn fold_in_background(&self) {
        if !self.0.folding.begin() {
            return;
        }
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            let end = EndFold(&inner.folding);
            inner.index.yield_to_searches();
            if let Err(error) = inner.fold(WhenBusy::Skip) {
                tracing::warn!(%error, "the search index could not be brought up to date; searches are slower");
            }
            // Before the next fold, which also reads for a long time.
            inner.snapshots.folded();
            drop(end);
        });
    }

    /// Updates the index from the rows.
    ///
    /// # Errors
    ///
    /// Errors of [`SearchIndex::fold`].
    pub async fn fold(&self, when_busy: WhenBusy) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.fold(when_busy)).await?
    }

    /// Like [`SearchIndex::lacks_little`].
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn lacks_little(&self) -> Result<bool> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.read(|rows| inner.index.lacks_little(rows))).await?
    }

    /// Compares the index with the rows.
    ///
    /// # Errors
    ///
    /// Errors of [`SearchIndex::check`].
    pub async fn check(&self) -> Result<IndexCheck> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.read(|rows| inner.index.check(rows))).await?
    }

    /// Removes the index.
    ///
    /// # Errors
    ///
    /// Errors of [`SearchIndex::discard`].
    pub async fn discard(&self) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.index.discard()).await?
    }
}

impl<S: Snapshots> UpdaterState<S> {
    fn fold(&self, when_busy: WhenBusy) -> Result<()> {
        let folded = self.read(|rows| self.index.fold(rows, when_busy))?;
        if let Some(reason) = &folded.rebuilt {
            let (messages, vectors) = (folded.messages, folded.vectors);
            tracing::info!(reason, messages, vectors, "the search index was rebuilt");
        }
        Ok(())
    }

    fn read<T>(&self, mut read: impl FnMut(&mut dyn RowRefs) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.snapshots.read(&mut |rows| {
            answer = Some(read(rows)?);
            Ok(())
        })?;
        answer.ok_or_else(|| Error::new(ErrorKind::StorageIo, "the store did not return any rows"))
    }
}

/// A note about rows that a search left out.
fn left_out(count: usize, row: &str) -> String {
    let (rows, were) = if count == 1 { ("", "was") } else { ("s", "were") };
    format!(
        "{count} {row}{rows} can't be read and {were} left out: run `verify --repair`, or `salvage` if that fails"
    )
}

/// Marks the fold as ended when dropped, also after a panic.
struct EndFold<'a>(&'a Folding);

impl Drop for EndFold<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
