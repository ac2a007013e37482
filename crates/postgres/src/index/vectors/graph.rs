//! The HNSW index of pgvector: a graph of the vectors of one generation.
//!
//! It is made after sessions were written, and not with the tables: to add the vectors of a large store to an index one by
//! one takes many times as long as to make the index of all of them. From then on, the database adds each new vector.

use amplifier_session_core::{Result, backend::meta::Generations};
use amplifier_session_sql::{Columns as _, quote, read};
use tokio_postgres::types::Type;

use crate::{columns::PgRow, connection::PgReader, error, pool::PgPool};

/// So many vectors are compared one by one: that takes few milliseconds and finds all that is to be found.
pub(super) const EXACT: i64 = 10_000;

/// The index is not used for less than this part of its vectors: it visits all near ones, and most would be out of scope.
const SMALLEST_SHARE: i64 = 25;

/// pgvector can't index longer vectors of 16-bit floats.
const MOST_DIMENSIONS: usize = 4_000;

const OPERATION: &str = "update_index";

const PREFIX: &str = "transcript_vectors_nearest_";

/// What is indexed. Only a query with the same expression uses the index.
pub(super) fn indexed(dimensions: usize) -> String {
    format!("half::halfvec({dimensions})")
}

/// How a query on a graph for `rows` vectors is run. `relaxed_order` goes on until there are enough rows in scope.
pub(super) fn settings(rows: usize) -> String {
    // The largest value that pgvector takes is 1,000.
    let candidates = rows.clamp(200, 1_000);
    format!(
        "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = {candidates};
        SET LOCAL hnsw.max_scan_tuples = 200000; SET LOCAL hnsw.scan_mem_multiplier = 8;
        SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    )
}

/// The most vectors in scope that are compared one by one; `None` if the generation has no index, so that all are.
pub(super) fn exact_below(
    reader: &PgReader<'_>,
    operation: &'static str,
    generation: u32,
) -> Result<Option<i64>> {
    let sql = "SELECT CAST(c.reltuples AS bigint) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indexrelid = to_regclass($1) AND i.indrelid = 'transcript_vectors'::regclass AND i.indisvalid";
    let rows = reader.query(operation, sql, &[(&quote::name(&name(generation)), Type::TEXT)])?;
    let total = rows.first().map(|row| PgRow(row).integer(0)).transpose()?;
    Ok(total.map(|total| EXACT.max(total / SMALLEST_SHARE)))
}

/// Makes the index of each generation that has many vectors, and drops the others. Does nothing if this role does not own
/// the table, if the table is divided between servers, or if another client is at it.
pub(crate) fn update(pool: &PgPool) -> Result<()> {
    // Concurrently: others go on writing. This is not possible in a transaction.
    for sql in pool.define(OPERATION, outdated)? {
        match pool.outside_transactions(OPERATION, &sql) {
            Err(error) if error::is_duplicate(&error) => {
                tracing::debug!(%error, "another client has made the index meanwhile");
            }
            done => done?,
        }
    }
    Ok(())
}

/// The statements that make and drop indexes.
fn outdated(reader: &PgReader<'_>) -> Result<Vec<String>> {
    let Some(table) = VectorTable::to_index(reader)? else { return Ok(Vec::new()) };
    // If no other client is at it, each invalid index was being made when a connection was lost.
    reader.batch(OPERATION, "LOCK TABLE transcript_vectors IN SHARE UPDATE EXCLUSIVE MODE")?;
    let generations = Generations::of(&read::meta::meta(reader)?);
    let sql = "SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'transcript_vectors'::regclass AND starts_with(c.relname, $1)";
    let (mut valid, mut statements) = (Vec::new(), Vec::new());
    for row in reader.query(OPERATION, sql, &[(&PREFIX, Type::TEXT)])? {
        let (found, is_valid) = (PgRow(&row).text(0)?, PgRow(&row).flag(1)?);
        if is_valid && generations.numbers().any(|generation| name(generation) == found) {
            valid.push(found);
        } else {
            statements.push(table.drop(&found));
        }
    }
    for generation in generations.current.iter().chain(&generations.next) {
        let is_missing = !valid.contains(&name(generation.number));
        let dimensions = generation.space.dimensions;
        if is_missing && dimensions <= MOST_DIMENSIONS && has_many(reader, OPERATION, generation.number)? {
            statements.push(table.create(generation.number, dimensions));
        }
    }
    Ok(statements)
}

/// Where the vectors are, as statements outside of a transaction name it.
struct VectorTable {
    schema: String,
    /// The schema of the extension.
    extension: String,
}

impl VectorTable {
    /// The table, if this client may make indexes of it now.
    fn to_index(reader: &PgReader<'_>) -> Result<Option<Self>> {
        // Of sessions of other roles, the table is not shown.
        let sql = "SELECT n.nspname::text, x.nspname::text
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                pg_extension e JOIN pg_namespace x ON x.oid = e.extnamespace
            WHERE c.oid = 'transcript_vectors'::regclass AND c.relkind = 'r' AND e.extname = 'vector'
                AND pg_has_role(c.relowner, 'USAGE')
                AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p
                    WHERE p.datname = current_database() AND coalesce(p.relid, c.oid) = c.oid)";
        let found = reader.query(OPERATION, sql, &[])?;
        let table = |row| Ok(Self { schema: PgRow(row).text(0)?, extension: PgRow(row).text(1)? });
        found.first().map(table).transpose()
    }

    fn drop(&self, index: &str) -> String {
        let (schema, index) = (quote::name(&self.schema), quote::name(index));
        format!("DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index}")
    }

    fn create(&self, generation: u32, dimensions: usize) -> String {
        let (schema, extension) = (quote::name(&self.schema), quote::name(&self.extension));
        let (index, indexed) =
            (quote::name(&name(generation)), format!("half::{extension}.halfvec({dimensions})"));
        format!(
            "CREATE INDEX CONCURRENTLY {index} ON {schema}.transcript_vectors
             USING hnsw (({indexed}) {extension}.halfvec_ip_ops) WHERE generation = {generation}"
        )
    }
}

fn has_many(reader: &PgReader<'_>, operation: &'static str, generation: u32) -> Result<bool> {
    let sql = "SELECT 1 FROM transcript_vectors WHERE generation = $1 OFFSET $2 LIMIT 1";
    let generation = i64::from(generation);
    Ok(!reader.query(operation, sql, &[(&generation, Type::INT8), (&EXACT, Type::INT8)])?.is_empty())
}

fn name(generation: u32) -> String {
    format!("{PREFIX}{generation}")
}
