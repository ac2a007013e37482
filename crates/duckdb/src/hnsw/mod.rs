//! An HNSW index over the vectors of a store, created by DuckDB's extension VSS on request.
//!
//! DuckDB 1.5.5 calls such indexes in files experimental, for good reasons. Without the extension, their table cannot
//! be written: an insert fails, and a delete after it never returns. Their entries in the write-ahead log are not
//! always replayed (<https://duckdb.org/docs/stable/core_extensions/vss>,
//! <https://github.com/duckdb/duckdb-vss/issues/81>), and an error of the index shuts down the database that contains
//! it.
//!
//! So the index has its own DuckDB file beside the store's, `<store>.hnsw`, opened as a separate database. It is
//! derived from the rows and disposable, like the search index. If it is missing, foreign or damaged, or its process
//! ended while writing it, it is rebuilt, and no search depends on it. The store's file contains no part of it: it can
//! be opened and written without the extension, and remains as resistant to crashes as before.
//!
//! [`Hnsw::update`] brings it up to date with the rows, in one transaction followed by a checkpoint, so that at rest it
//! has no log. A search uses it if the search has no filter, because VSS filters after finding the nearest rows, and if
//! the index contains exactly the vectors of the store. All other searches use the search index, whose results are at
//! least as good.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | when the index is used, updated and rebuilt |
//! | `graph.rs` | the file with the vectors and the graph over them |
//! | `rows.rs` | what the index reads of the store |
//! | `extension.rs` | loading the extension |

mod extension;
mod graph;
mod rows;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{VectorCandidate, VectorQuery, meta::Generation},
    model::ContentTypes,
    search::SearchFilter,
};
use amplifier_session_index::{RowRefs as _, Rows as _, StoreRevision, VectorRef};
use amplifier_session_sql::{
    embedded::Nearest,
    file,
    staging::{REWRITING, StagingFolder},
};

use crate::connect::{self, log_path};

use graph::{Graph, GraphState};

pub(crate) use rows::HnswRows;

/// Vectors are only added: vectors that VSS removes take the places of other results, and compacting its graph crashes
/// the process at the next row (1.5.5). So removed vectors stay and are skipped. If more than one in this many is
/// removed, the graph is rebuilt.
const ONE_REMOVED_OF: u64 = 10;

/// Options of an HNSW index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HnswOptions {
    /// The folder with DuckDB's extensions: either a folder to which DuckDB installs, or one that contains the file
    /// `vss.duckdb_extension`. By default, the folder to which DuckDB installs, `~/.duckdb/extensions`.
    pub extension_directory: Option<PathBuf>,
}

impl HnswOptions {
    /// Sets the folder with DuckDB's extensions.
    #[must_use]
    pub fn with_extension_directory(mut self, directory: Option<PathBuf>) -> Self {
        self.extension_directory = directory;
        self
    }
}

/// The index of one store, if it is enabled.
pub(crate) struct Hnsw {
    store: PathBuf,
    read_only: bool,
    options: OnceLock<HnswOptions>,
    /// Opened when it is first needed.
    graph: Mutex<Option<Graph>>,
    /// Whether an update holds the graph, which may take long: searches do not wait for it.
    is_being_updated: AtomicBool,
}

impl fmt::Debug for Hnsw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hnsw").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Hnsw {
    /// The index of the store in the file `store`.
    pub(crate) fn new(store: &Path, read_only: bool) -> Self {
        Self {
            store: store.to_owned(),
            read_only,
            options: OnceLock::new(),
            graph: Mutex::default(),
            is_being_updated: AtomicBool::new(false),
        }
    }

    /// Enables the index. The first options win.
    pub(crate) fn enable(&self, options: HnswOptions) {
        self.options.get_or_init(|| options);
    }

    /// Whether the index is enabled.
    pub(crate) fn is_enabled(&self) -> bool {
        self.options.get().is_some()
    }

    /// The vectors nearest to the query's.
    ///
    /// # Errors
    ///
    /// Errors of `rows`. If the index cannot be used, the result is [`Nearest::Unavailable`].
    pub(crate) fn nearest(&self, rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<Nearest> {
        let Some(options) = self.options.get() else { return Ok(Nearest::NotAsked) };
        if !includes_everything(rows, query)? {
            return Ok(Nearest::NotAsked);
        }
        if self.is_being_updated.load(Ordering::Acquire) {
            return Ok(unavailable("it is being updated"));
        }
        let mut graph = self.graph();
        let found = self.opened(&mut graph, options).and_then(|graph| search(graph, rows, query));
        Ok(found.unwrap_or_else(|error| {
            // The error may have shut down the database.
            *graph = None;
            unavailable(error.message())
        }))
    }

    /// Brings the index up to date with the rows, or rebuilds it. A failure is not an error: searches without the index
    /// report the reason.
    pub(crate) fn update(&self, rows: &mut HnswRows<'_>) {
        let Some(options) = self.options.get().filter(|_| !self.read_only) else { return };
        self.is_being_updated.store(true, Ordering::Release);
        if let Err(error) = self.update_or_rebuild(rows, options) {
            tracing::warn!(%error, "the HNSW index could not be updated");
        }
        self.is_being_updated.store(false, Ordering::Release);
    }

    /// Removes the index, even if it is not enabled; the next update rebuilds it.
    ///
    /// # Errors
    ///
    /// `StorageIo` if a file cannot be removed.
    pub(crate) fn remove(&self) -> Result<()> {
        *self.graph() = None;
        remove_files(&self.store)
    }

    /// The file of the index, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        Some(path(&self.store)).filter(|file| file.exists())
    }

    fn update_or_rebuild(&self, rows: &mut HnswRows<'_>, options: &HnswOptions) -> Result<()> {
        let Some(current) = rows.current_generation()? else { return Ok(()) };
        let mut graph = self.graph();
        match self.opened(&mut graph, options).and_then(|graph| update(graph, rows, &current)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "rebuilding the HNSW index"),
        }
        *graph = None;
        *graph = Some(self.build(rows, &current, options)?);
        Ok(())
    }

    fn graph(&self) -> MutexGuard<'_, Option<Graph>> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened<'a>(&self, graph: &'a mut Option<Graph>, options: &HnswOptions) -> Result<&'a mut Graph> {
        let opened = graph.take().map_or_else(|| self.open(options), Ok)?;
        Ok(graph.insert(opened))
    }

    fn open(&self, options: &HnswOptions) -> Result<Graph> {
        Graph::open(&path(&self.store), self.read_only, self.in_memory(options)?)
    }

    fn in_memory(&self, options: &HnswOptions) -> Result<duckdb::Connection> {
        graph::with_extension(connect::in_memory(&self.store), options)
    }

    /// Builds the index in a staging folder and moves it into place when it is complete.
    fn build(&self, rows: &mut HnswRows<'_>, current: &Generation, options: &HnswOptions) -> Result<Graph> {
        let staging = StagingFolder::beside(&self.store, REWRITING).map_err(not_written)?;
        let fresh = staging.path().join("new.hnsw");
        let held = GraphState::empty(rows.index.store_revision()?, current);
        let mut graph = Graph::create(&fresh, self.in_memory(options)?, held)?;
        graph.add_new(rows)?;
        graph.build()?;
        drop(graph);
        file::make_private(&fresh).map_err(not_written)?;
        // The old files come first: a log must never be beside a file to which it does not belong.
        remove_files(&self.store)?;
        fs::rename(&fresh, path(&self.store)).map_err(not_written)?;
        self.open(options)
    }
}

/// The file of a store's index.
fn path(store: &Path) -> PathBuf {
    file::beside(store, ".hnsw")
}

/// Removes the files of a store's index, if there are any. It must not be open.
fn remove_files(store: &Path) -> Result<()> {
    let file = path(store);
    for file in [log_path(&file), file] {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(not_written(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a search includes every vector: all texts, no filter, and all users with vectors.
fn includes_everything(rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<bool> {
    let is_every_text = ContentTypes::embedded().iter().all(|text| query.content_types.contains(text));
    if query.turns || query.filter != SearchFilter::default() || !is_every_text {
        return Ok(false);
    }
    match &query.scope {
        Scope::Everyone => Ok(true),
        Scope::User(user) => rows.are_all_of(user),
        Scope::Visible(viewer) => Ok(viewer.owner.is_none() && rows.are_all_of(&viewer.user_id)?),
        _ => Ok(false),
    }
}

/// Brings `graph` up to date with `rows`. Returns false if it must be rebuilt.
fn update(graph: &mut Graph, rows: &mut HnswRows<'_>, current: &Generation) -> Result<bool> {
    let store_revision = rows.index.store_revision()?;
    if !belongs(&graph.held, &store_revision, rows, current.number)? {
        return Ok(false);
    }
    let removed = rows.index.removed_vectors_after(false, graph.held.store_revision.revision)?;
    graph.change(store_revision, &removed, rows)?;
    Ok(graph.held.removed * ONE_REMOVED_OF <= graph.held.rows)
}

fn search(graph: &Graph, rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<Nearest> {
    let store_revision = rows.index.store_revision()?;
    let held = &graph.held;
    let is_current = belongs(held, &store_revision, rows, query.generation)?
        && (held.store_revision == store_revision
            // No vector was added since, either: keys only grow, and the vector of a key never changes.
            || rows.index.removed_vectors_after(false, held.store_revision.revision)?.is_empty()
                && rows.last_vector_key()? <= held.last_key);
    if !is_current {
        return Ok(unavailable("it is not up to date until the next sync"));
    }
    let as_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let keys = graph.nearest(&query.vector, query.limit + query.limit.min(as_usize(held.removed)))?;
    let found = candidates(&keys, rows, query)?;
    if found.len() < query.limit.min(as_usize(held.rows - held.removed)) {
        return Ok(unavailable("it found too few vectors"));
    }
    Ok(Nearest::Found(found))
}

/// Whether the file belongs to this store, now or at an earlier revision, and to this generation of vectors.
fn belongs(
    held: &GraphState,
    store_revision: &StoreRevision,
    rows: &mut HnswRows<'_>,
    generation: u32,
) -> Result<bool> {
    Ok(held.store_revision.store == store_revision.store
        && held.generation == generation
        && held.store_revision.revision <= store_revision.revision
        && rows.index.nonce(held.store_revision.revision)? == Some(held.store_revision.nonce))
}

/// The rows of `keys` that still exist, with their exact similarity, best first.
fn candidates(keys: &[u64], rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<Vec<VectorCandidate>> {
    let mut near = Vec::with_capacity(keys.len());
    rows.index.vectors(false, keys, &mut |key, vector| {
        let similarity: f32 = query.vector.iter().zip(vector).map(|(a, b)| a * b).sum();
        near.push((key, similarity, vector.to_vec()));
        Ok(())
    })?;
    near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    near.truncate(query.limit);
    let keys: Vec<u64> = near.iter().map(|(key, ..)| *key).collect();
    let message_refs = rows.index.vector_refs(false, &keys)?;
    let near = near.into_iter().zip(message_refs).filter_map(|((_, similarity, vector), message_ref)| {
        let VectorRef { message, content_type, span: (span_start, span_end) } = message_ref?;
        Some(VectorCandidate { message_ref: message, content_type, span_start, span_end, similarity, vector })
    });
    Ok(near.collect())
}

/// The error of an index that cannot be written.
fn not_written(source: io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("the HNSW index cannot be written: {source}"))
        .with_source(source)
}

fn unavailable(reason: impl fmt::Display) -> Nearest {
    Nearest::Unavailable(format!("the HNSW index was not used: {reason}"))
}
