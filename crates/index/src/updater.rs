//! An index that is kept up to the rows of a store: what every embedded backend does with a [`SearchIndex`].

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{Candidates, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    blocking,
    model::{ContentType, Place},
};

use crate::{Rows, SearchIndex, WhenBusy, folding::Folding};

/// A search that had to look at more rows than this leaves the index to be brought up behind it. They are more than
/// wait while a sync keeps folding: its work is not for the searches beside it to do.
const LONG_TAIL_ROWS: u64 = 8_000;

/// A store whose rows can be read as they are at one moment.
pub trait Snapshots: Send + Sync + 'static {
    /// Calls `read` once, with rows of one read transaction. Blocks.
    ///
    /// # Errors
    ///
    /// What `read` fails with; those of the store.
    fn read(&self, read: &mut dyn FnMut(&mut dyn PlacedRows) -> Result<()>) -> Result<()>;

    /// Called behind a fold that ran beside writes, on its thread: the time for other work of that kind.
    fn folded(&self) {}
}

/// Rows that know what their keys stand for.
pub trait PlacedRows: Rows {
    /// The places of messages, in the order of their keys; none for one that does not exist.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn message_places(&mut self, keys: &[u64]) -> Result<Vec<Option<Place>>>;

    /// The places of vectors, in the order of their keys; none for one that does not exist.
    ///
    /// # Errors
    ///
    /// Those of the store.
    fn vector_places(&mut self, keys: &[u64]) -> Result<Vec<Option<VectorPlace>>>;
}

/// What a vector was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPlace {
    /// The message.
    pub message: Place,
    /// Which text of it.
    pub content_type: ContentType,
    /// The characters of the text: the first, and one past the last.
    pub span: (u32, u32),
}

/// An index with the rows that it is derived from. Cheap to clone; clones share it.
///
/// Its functions need a runtime of tokio and run on threads for blocking work.
pub struct IndexUpdater<S>(Arc<Inner<S>>);

struct Inner<S> {
    index: SearchIndex,
    snapshots: S,
    folding: Folding,
}

impl<S> Clone for IndexUpdater<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Snapshots> IndexUpdater<S> {
    /// An index and its rows.
    #[must_use]
    pub fn new(index: SearchIndex, snapshots: S) -> Self {
        Self(Arc::new(Inner { index, snapshots, folding: Folding::default() }))
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &SearchIndex {
        &self.0.index
    }

    /// As [`SearchIndex::give_way`], on a thread for blocking work.
    ///
    /// # Errors
    ///
    /// `StorageIo` when a thread panicked.
    pub async fn give_way(&self) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.index.give_way()).await
    }

    /// What [`SearchIndex::text_candidates`] finds, with places.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let query = query.clone();
        self.find(move |index, rows| {
            let answer = index.text_candidates(rows, &query)?;
            let keys: Vec<u64> = answer.hits.iter().map(|hit| hit.key).collect();
            let places = rows.message_places(&keys)?;
            let items = answer.hits.into_iter().zip(places).filter_map(|(hit, place)| {
                Some(TextCandidate { place: place?, content_type: hit.content_type, score: hit.score })
            });
            Ok((Candidates { items: items.collect(), notice: answer.notice }, answer.tail_rows))
        })
        .await
    }

    /// What [`SearchIndex::vector_candidates`] finds, with places.
    ///
    /// # Errors
    ///
    /// Those of the store; `Validation` when the query's vector has another length than the store's.
    pub async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let query = query.clone();
        self.find(move |index, rows| {
            let answer = index.vector_candidates(rows, &query)?;
            let keys: Vec<u64> = answer.hits.iter().map(|hit| hit.key).collect();
            let places = rows.vector_places(&keys)?;
            let items = answer.hits.into_iter().zip(places).filter_map(|(hit, place)| {
                let VectorPlace { message, content_type, span } = place?;
                Some(VectorCandidate {
                    place: message,
                    content_type,
                    span_start: span.0,
                    span_end: span.1,
                    similarity: hit.similarity,
                    vector: hit.vector,
                })
            });
            Ok((Candidates { items: items.collect(), notice: answer.notice }, answer.tail_rows))
        })
        .await
    }

    async fn find<T: Send + 'static>(
        &self,
        find: impl Fn(&SearchIndex, &mut dyn PlacedRows) -> Result<(Candidates<T>, u64)> + Send + 'static,
    ) -> Result<Candidates<T>> {
        let inner = Arc::clone(&self.0);
        let (found, tail_rows) = blocking(move || inner.read(|rows| find(&inner.index, rows))).await??;
        // A notice tells that the index is missing or can't be used: the next search should find it mended.
        if tail_rows > LONG_TAIL_ROWS || found.notice.is_some() {
            self.fold_in_background();
        }
        Ok(found)
    }

    /// To be called behind every write, with the bytes of text or vectors that it brought: brings the index up now and
    /// then, beside the caller. Waits for a fold that has fallen behind, but not for long.
    ///
    /// # Errors
    ///
    /// `StorageIo` when a thread panicked.
    pub async fn wrote(&self, bytes: usize) -> Result<()> {
        if !self.0.folding.wrote(bytes as u64) {
            return Ok(());
        }
        if self.0.folding.is_under_way() {
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
        let updater = self.clone();
        tokio::task::spawn_blocking(move || {
            let inner = &updater.0;
            let end = EndFold(&inner.folding);
            inner.index.give_way();
            if let Err(error) = inner.fold(WhenBusy::Skip) {
                tracing::warn!(%error, "the search index could not be brought up to date; searches are slower");
            }
            drop(end);
            inner.snapshots.folded();
        });
    }

    /// Brings the index up to the rows.
    ///
    /// # Errors
    ///
    /// Those of [`SearchIndex::fold`].
    pub async fn fold(&self, when_busy: WhenBusy) -> Result<()> {
        let inner = Arc::clone(&self.0);
        blocking(move || inner.fold(when_busy)).await?
    }
}

impl<S: Snapshots> Inner<S> {
    fn fold(&self, when_busy: WhenBusy) -> Result<()> {
        let folded = self.read(|rows| self.index.fold(rows, when_busy))?;
        if let Some(reason) = &folded.rebuilt {
            let (messages, vectors) = (folded.messages, folded.vectors);
            tracing::info!(reason, messages, vectors, "the search index was rebuilt");
        }
        Ok(())
    }

    fn read<T>(&self, mut read: impl FnMut(&mut dyn PlacedRows) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.snapshots.read(&mut |rows| {
            answer = Some(read(rows)?);
            Ok(())
        })?;
        answer.ok_or_else(|| Error::new(ErrorKind::StorageIo, "the store gave no rows to read"))
    }
}

/// Says that a fold has ended when it is dropped: also by a panic.
struct EndFold<'a>(&'a Folding);

impl Drop for EndFold<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
