//! The file with the vectors and the HNSW index over them.

use std::path::{Path, PathBuf};

use amplifier_session_core::{Error, ErrorKind, Result, backend::meta::Generation};
use amplifier_session_index::StoreRevision;
use amplifier_session_sql::{file, is_one_of, quote};
use duckdb::{Connection, params};

use super::{HnswOptions, extension, rows::HnswRows};
use crate::{connect::log_path, error::storage};

/// The name of the index, as in databases of the Python library.
const INDEX: &str = "idx_vectors_hnsw";

/// The operation that errors of the database name. They only explain why a search did not use the index.
const OPERATION: &str = "hnsw";

/// How many of the nearest rows are gathered during a walk of the graph, per result and at least. Higher numbers give
/// better results and take longer.
const GATHERED_PER_RESULT: usize = 2;
const LEAST_GATHERED: usize = 256;

/// An open file. It is a separate database, so that an error in it does not shut down the store's database.
#[derive(Debug)]
pub(super) struct Graph {
    file: PathBuf,
    connection: Connection,
    pub(super) held: GraphState,
}

/// The state of a file.
#[derive(Debug, Clone)]
pub(super) struct GraphState {
    /// The state of the store that it reflects.
    pub(super) store_revision: StoreRevision,
    /// The generation of the vectors.
    pub(super) generation: u32,
    dimensions: usize,
    /// The highest key of a vector.
    pub(super) last_key: i64,
    /// The number of vectors.
    pub(super) rows: u64,
    /// The number of vectors that the store removed since then.
    pub(super) removed: u64,
}

impl GraphState {
    /// The state of an empty file for a generation of vectors.
    pub(super) fn empty(store_revision: StoreRevision, of: &Generation) -> Self {
        let (generation, dimensions) = (of.number, of.space.dimensions);
        Self { store_revision, generation, dimensions, last_key: 0, rows: 0, removed: 0 }
    }

    fn read(connection: &Connection) -> duckdb::Result<Self> {
        let sql = "SELECT store, revision, nonce, generation, dimensions, removed,
                (SELECT coalesce(max(key), 0) FROM vectors), (SELECT count(*) FROM vectors)
            FROM held";
        connection.query_row(sql, [], |row| {
            let store: Vec<u8> = row.get(0)?;
            let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
            Ok(Self {
                // An identity with another length matches no store.
                store_revision: StoreRevision {
                    store: store.try_into().unwrap_or_default(),
                    revision: number(1)?,
                    nonce: number(2)?,
                },
                generation: row.get(3)?,
                dimensions: row.get(4)?,
                removed: number(5)?,
                last_key: row.get(6)?,
                rows: number(7)?,
            })
        })
    }

    fn write(&self, connection: &Connection) -> duckdb::Result<()> {
        connection.execute("DELETE FROM held", [])?;
        connection.execute(
            "INSERT INTO held VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                self.store_revision.store.as_slice(),
                self.store_revision.revision.cast_signed(),
                self.store_revision.nonce.cast_signed(),
                self.generation,
                self.dimensions,
                self.removed.cast_signed()
            ],
        )?;
        Ok(())
    }
}

impl Graph {
    /// Opens the file of an index in an in-memory database that has the extension. If the extension is missing, it is
    /// also the reason for a missing file.
    pub(super) fn open(file: &Path, read_only: bool, connection: Connection) -> Result<Self> {
        let unusable = |why: &str| Error::new(ErrorKind::StorageIo, why);
        if !file.exists() {
            return Err(unusable("it does not exist yet; the next sync creates it"));
        }
        // A process that ended during a write left a log, which VSS may not be able to replay.
        if std::fs::metadata(log_path(file)).is_ok_and(|log| log.len() > 0) {
            return Err(unusable("it is incomplete; the next sync rebuilds it"));
        }
        let open = || {
            attach(&connection, file, read_only)?;
            let held = GraphState::read(&connection)?;
            Ok((connection, held))
        };
        let (connection, held) = open().map_err(storage(OPERATION))?;
        Ok(Self { file: file.to_owned(), connection, held })
    }

    /// Creates a file without vectors and without the graph.
    pub(super) fn create(file: &Path, connection: Connection, held: GraphState) -> Result<Self> {
        let create = || {
            attach(&connection, file, false)?;
            connection.execute_batch(&format!(
                "CREATE TABLE held (store BLOB, revision BIGINT, nonce BIGINT, generation UINTEGER, dimensions UBIGINT,
                     removed BIGINT);
                 CREATE TABLE vectors (key BIGINT NOT NULL, vector FLOAT[{}] NOT NULL);",
                held.dimensions
            ))?;
            held.write(&connection)
        };
        create().map_err(storage(OPERATION))?;
        Ok(Self { file: file.to_owned(), connection, held })
    }

    /// Adds the vectors that are new in the store.
    pub(crate) fn add_new(&mut self, rows: &HnswRows<'_>) -> Result<()> {
        rows.vectors_above(self.held.last_key, &mut |batch| {
            let append = || {
                let mut appender = self.connection.appender("vectors")?;
                appender.append_record_batch(batch)?;
                appender.flush()
            };
            append().map_err(storage(OPERATION))
        })
    }

    /// Builds the graph over the vectors and moves it into the file.
    pub(super) fn build(&self) -> Result<()> {
        let sql = format!(
            "CREATE INDEX {INDEX} ON vectors USING HNSW (vector) WITH (metric = 'cosine'); CHECKPOINT"
        );
        self.connection.execute_batch(&sql).map_err(storage(OPERATION))
    }

    /// Adds the new vectors and counts the removed ones, so that the file reflects this state of the store.
    pub(super) fn change(
        &mut self,
        store_revision: StoreRevision,
        removed: &[u64],
        rows: &HnswRows<'_>,
    ) -> Result<()> {
        // DuckDB would create a log that everybody can read.
        file::create(&log_path(&self.file))?;
        let which = is_one_of("key", removed.iter().map(|key| key.cast_signed()));
        let gone = format!("SELECT count(*) FROM vectors WHERE {which}");
        let gone =
            self.connection.query_row(&gone, [], |row| row.get::<_, i64>(0)).map_err(storage(OPERATION))?;
        self.connection.execute_batch("BEGIN").map_err(storage(OPERATION))?;
        self.add_new(rows)?;
        self.held.store_revision = store_revision;
        self.held.removed += gone.cast_unsigned();
        let end = || {
            self.held.write(&self.connection)?;
            self.connection.execute_batch("COMMIT; CHECKPOINT")?;
            GraphState::read(&self.connection)
        };
        self.held = end().map_err(storage(OPERATION))?;
        Ok(())
    }

    /// The keys of the nearest vectors that the index finds.
    pub(super) fn nearest(&self, vector: &[f32], limit: usize) -> Result<Vec<u64>> {
        let gathered = (limit * GATHERED_PER_RESULT).max(LEAST_GATHERED);
        let find = || {
            self.connection.execute_batch(&format!("SET hnsw_ef_search = {gathered}"))?;
            let sql = format!(
                "SELECT key FROM vectors ORDER BY array_cosine_distance(vector, CAST(?1 AS FLOAT[{}])) LIMIT {limit}",
                self.held.dimensions
            );
            let mut statement = self.connection.prepare(&sql)?;
            let keys = statement.query_map([literal(vector)], |row| row.get::<_, i64>(0))?;
            keys.map(|key| key.map(i64::cast_unsigned)).collect::<duckdb::Result<_>>()
        };
        find().map_err(storage(OPERATION))
    }
}

/// An in-memory database that has the extension before a file with an HNSW index is attached to it.
pub(super) fn with_extension(
    opened: duckdb::Result<Connection>,
    options: &HnswOptions,
) -> Result<Connection> {
    let connection = opened.map_err(storage(OPERATION))?;
    extension::load(&connection, options.extension_directory.as_deref())?;
    connection
        .execute_batch("SET hnsw_enable_experimental_persistence = true")
        .map_err(storage(OPERATION))?;
    Ok(connection)
}

fn attach(connection: &Connection, file: &Path, read_only: bool) -> duckdb::Result<()> {
    let file = quote::text(&file.to_string_lossy());
    let access = if read_only { "(READ_ONLY)" } else { "" };
    connection.execute_batch(&format!("ATTACH {file} AS hnsw {access}; USE hnsw"))
}

/// A vector as a text literal: DuckDB cannot bind arrays.
fn literal(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}
