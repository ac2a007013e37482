//! The HNSW index that whoever asks for it has, made by DuckDB's extension VSS.
//!
//! DuckDB 1.5.5 calls such indexes in files experimental, and for good reasons. Without the extension their table can't be
//! written: an insert fails, and a delete behind it waits for ever. Their entries in the write-ahead log are not worked off
//! properly when the extension is missing, or at all (<https://duckdb.org/docs/stable/core_extensions/vss>,
//! <https://github.com/duckdb/duckdb-vss/issues/81>); and an error of the index shuts down the database that it is in.
//!
//! So the index has a DuckDB file of its own beside the store's, `<store>.hnsw`, opened as a database of its own. It is
//! derived from the rows like the search index, and as disposable: one that is missing, foreign, damaged, or was being
//! written when its process ended is made anew, and no search depends on it. Nothing of it is in the store's file, which
//! opens, is written and survives a crash without the extension as ever.
//!
//! It is brought up to the rows by `update_index`, in one transaction with a checkpoint behind it, so that at rest it has no
//! log. A search uses it when the search leaves nothing out, because VSS filters behind the nearest rows, and when it
//! holds exactly the vectors that there are. All others go through the search index, whose answers are never worse.

mod extension;
mod graph;
mod rows;

use std::{
    fs, io,
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
use amplifier_session_index::{RowRefs, Rows, StoreRevision, VectorRef};

use amplifier_session_sql::{
    embedded::{Connections, Nearest},
    read,
};

use self::{
    graph::{Graph, Held},
    rows::HnswRows,
};
use crate::{
    connect::{self, Access},
    pool::Pool,
};

/// Rows are only added: what VSS removes takes the places of other results, and compacting its graph ends the process
/// at the next row (1.5.5). So what the store has removed stays, is passed over, and when it is more than one row of so many
/// the graph is made anew.
const ONE_REMOVED_OF: u64 = 10;

/// How an HNSW index is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HnswOptions {
    /// Where DuckDB's extensions are: a folder that DuckDB installs to, or one with the file `vss.duckdb_extension` itself.
    /// Default: where DuckDB installs them, `~/.duckdb/extensions`.
    pub extension_directory: Option<PathBuf>,
}

impl HnswOptions {
    /// Names the folder with DuckDB's extensions.
    #[must_use]
    pub fn with_extension_directory(mut self, directory: Option<PathBuf>) -> Self {
        self.extension_directory = directory;
        self
    }
}

/// The index of one store, if somebody asked for one.
#[derive(Debug)]
pub(crate) struct Hnsw {
    store: PathBuf,
    store_id: OnceLock<[u8; 16]>,
    access: Access,
    options: OnceLock<HnswOptions>,
    /// Opened when it is first needed.
    graph: Mutex<Option<Graph>>,
    /// Whether an update has the graph, which may take long: searches do not wait for it.
    is_being_updated: AtomicBool,
}

impl Hnsw {
    pub(crate) fn new(store: &Path, access: Access) -> Self {
        Self {
            store: store.to_owned(),
            store_id: OnceLock::new(),
            access,
            options: OnceLock::new(),
            graph: Mutex::default(),
            is_being_updated: AtomicBool::new(false),
        }
    }

    /// Asks for the index. Who asks first says how it is made.
    pub(crate) fn ask_for(&self, options: HnswOptions) {
        self.options.get_or_init(|| options);
    }

    /// The vectors nearest to that of `query`.
    pub(crate) fn nearest(&self, pool: &Pool, query: &VectorQuery) -> Result<Nearest> {
        let Some(options) = self.options.get() else { return Ok(Nearest::NotAsked) };
        pool.read_snapshot(|reader| {
            let rows = &mut HnswRows::new(reader, &self.store_id);
            if !leaves_nothing_out(rows, query)? {
                return Ok(Nearest::NotAsked);
            }
            if self.is_being_updated.load(Ordering::Acquire) {
                return Ok(unavailable("it is being brought up to date".to_owned()));
            }
            let mut graph = self.graph();
            let found = self.opened(&mut graph, options).and_then(|graph| search(graph, rows, query));
            Ok(found.unwrap_or_else(|error| {
                // An error may have ended the database.
                *graph = None;
                unavailable(error.message().to_owned())
            }))
        })
    }

    /// Brings the index up to the rows, or makes it anew. That it can't be is no failure: the searches that miss it say so.
    pub(crate) fn update(&self, pool: &Pool) {
        let (Some(options), Access::ReadWrite) = (self.options.get(), self.access) else { return };
        self.is_being_updated.store(true, Ordering::Release);
        if let Err(error) =
            pool.read_snapshot(|reader| self.bring_up(&mut HnswRows::new(reader, &self.store_id), options))
        {
            tracing::warn!(%error, "the HNSW index could not be brought up to date");
        }
        self.is_being_updated.store(false, Ordering::Release);
    }

    /// Removes the index, also one that somebody asked for earlier; the next update makes it anew.
    pub(crate) fn remove(&self) -> Result<()> {
        *self.graph() = None;
        remove_files(&self.store)
    }

    /// The file of the index, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        Some(path(&self.store)).filter(|file| file.exists())
    }

    fn bring_up(&self, rows: &mut HnswRows<'_>, options: &HnswOptions) -> Result<()> {
        let Some(current) = read::meta::generations(rows.reader)?.current else { return Ok(()) };
        let mut graph = self.graph();
        match self.opened(&mut graph, options).and_then(|graph| bring_up(graph, rows, &current)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => tracing::debug!(%error, "the HNSW index is made anew"),
        }
        *graph = None;
        *graph = Some(self.make(rows, &current, options)?);
        Ok(())
    }

    fn graph(&self) -> MutexGuard<'_, Option<Graph>> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened<'a>(&self, graph: &'a mut Option<Graph>, options: &HnswOptions) -> Result<&'a mut Graph> {
        let opened = match graph.take() {
            Some(graph) => graph,
            None => Graph::open(&self.store, self.access, options)?,
        };
        Ok(graph.insert(opened))
    }

    /// Makes the index in a folder of its own, and puts it in place when it is whole.
    fn make(&self, rows: &mut HnswRows<'_>, current: &Generation, options: &HnswOptions) -> Result<Graph> {
        let workshop = connect::workshop(&self.store, connect::REWRITING).map_err(failed)?;
        let fresh = workshop.path().join("new.hnsw");
        let held = Held::nothing(rows.index.mark()?, current);
        let mut graph = Graph::create(&fresh, &self.store, options, held)?;
        graph.take_up(rows)?;
        graph.index()?;
        drop(graph);
        connect::own(&fresh).map_err(failed)?;
        // First what is of the old one: a log must never lie beside another file than its own.
        remove_files(&self.store)?;
        fs::rename(&fresh, path(&self.store)).map_err(failed)?;
        Graph::open(&self.store, self.access, options)
    }
}

/// The file of a store's index.
fn path(store: &Path) -> PathBuf {
    connect::beside(store, ".hnsw")
}

/// Removes the files of a store's index, if there are any. It must not be open.
fn remove_files(store: &Path) -> Result<()> {
    let file = path(store);
    for file in [connect::log_path(&file), file] {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(())
}

fn failed(source: io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("the HNSW index can't be written: {source}")).with_source(source)
}

/// Whether a search looks at every vector that there is: at all texts, without a filter, and of everybody who has any.
fn leaves_nothing_out(rows: &HnswRows<'_>, query: &VectorQuery) -> Result<bool> {
    let is_every_text = ContentTypes::embedded().iter().all(|text| query.content_types.contains(text));
    if query.filter != SearchFilter::default() || !is_every_text {
        return Ok(false);
    }
    match &query.scope {
        Scope::Everyone => Ok(true),
        Scope::User(user) => rows.are_all_of(user),
        Scope::Visible(viewer) => rows.are_all_of(&viewer.user_id),
        _ => Ok(false),
    }
}

/// Brings `graph` up to `rows`; no where it has to be made anew.
fn bring_up(graph: &mut Graph, rows: &mut HnswRows<'_>, current: &Generation) -> Result<bool> {
    let mark = rows.index.mark()?;
    if !belongs(graph.held(), &mark, rows, current.number)? {
        return Ok(false);
    }
    let removed = rows.index.removed_vectors_after(graph.held().mark.revision)?;
    graph.change(mark, &removed, rows)?;
    Ok(graph.held().removed * ONE_REMOVED_OF <= graph.held().rows)
}

fn search(graph: &Graph, rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<Nearest> {
    let mark = rows.index.mark()?;
    let held = graph.held();
    let is_current = belongs(held, &mark, rows, query.generation)?
        && (held.mark == mark
            || rows.index.removed_vectors_after(held.mark.revision)?.is_empty() && holds_all(held, rows)?);
    if !is_current {
        return Ok(unavailable("it is behind the rows until the next sync".to_owned()));
    }
    let as_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let keys = graph.nearest(&query.vector, query.limit + query.limit.min(as_usize(held.removed)))?;
    let found = candidates(&keys, rows, query)?;
    if found.len() < query.limit.min(as_usize(held.rows - held.removed)) {
        return Ok(unavailable("it found too little".to_owned()));
    }
    Ok(Nearest::Found(found))
}

/// Whether what is held was made of this store as it is or was, and of this generation of vectors.
fn belongs(held: &Held, mark: &StoreRevision, rows: &mut HnswRows<'_>, generation: u32) -> Result<bool> {
    Ok(held.mark.store == mark.store
        && held.generation == generation
        && held.mark.revision <= mark.revision
        && rows.index.nonce(held.mark.revision)? == Some(held.mark.nonce))
}

/// Whether no vector has come since. Their keys only grow, and a vector never changes under its key.
fn holds_all(held: &Held, rows: &HnswRows<'_>) -> Result<bool> {
    Ok(rows.last_vector_key()? <= held.last_key)
}

/// What stands in the rows of `keys`, as far as they are there, with the exact similarity, best first.
fn candidates(keys: &[u64], rows: &mut HnswRows<'_>, query: &VectorQuery) -> Result<Vec<VectorCandidate>> {
    let mut near = Vec::with_capacity(keys.len());
    rows.index.vectors(keys, &mut |key, vector| {
        let similarity: f32 = query.vector.iter().zip(vector).map(|(a, b)| a * b).sum();
        near.push((key, similarity, vector.to_vec()));
        Ok(())
    })?;
    near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    near.truncate(query.limit);
    let keys: Vec<u64> = near.iter().map(|(key, ..)| *key).collect();
    let message_refs = rows.index.vector_refs(&keys)?;
    let near = near.into_iter().zip(message_refs).filter_map(|((_, similarity, vector), message_ref)| {
        let VectorRef { message, content_type, span: (span_start, span_end) } = message_ref?;
        Some(VectorCandidate { message_ref: message, content_type, span_start, span_end, similarity, vector })
    });
    Ok(near.collect())
}

fn unavailable(reason: impl std::fmt::Display) -> Nearest {
    Nearest::Unavailable(format!("the HNSW index was not used: {reason}"))
}
