//! The HNSW index of pgvector: a graph of the vectors of one generation.
//!
//! It is made after sessions were written, and not with the tables: to add the vectors of a large store to an index one by
//! one takes many times as long as to make the index of all of them. From then on, the database adds each new vector.

use amplifier_session_core::{Result, backend::meta::Generations};
use amplifier_session_sql::{Columns as _, quote, read};
use tokio_postgres::types::Type;

use crate::{
    columns::Fields,
    connection::{Parameter, Read},
};

/// So many vectors are compared one by one: that takes few milliseconds and finds all that is to be found.
pub(super) const EXACT: i64 = 10_000;

/// The index is not used for less than this part of its vectors: it visits all near ones, and most would be out of scope.
const SMALLEST_SHARE: i64 = 25;

/// pgvector can't index longer vectors of 16-bit floats.
const MOST_DIMENSIONS: usize = 4_000;

/// Held by the client that makes or drops indexes of a table: this, plus the number of the table.
const ADVISORY_LOCK: i64 = 0x416d_5647_0000_0000;

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
    reader: &Read<'_>,
    operation: &'static str,
    generation: u32,
) -> Result<Option<i64>> {
    let sql = "SELECT CAST(c.reltuples AS bigint) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indexrelid = to_regclass($1) AND i.indisvalid";
    let rows = reader.query(operation, sql, &[(&quote::name(&name(generation)), Type::TEXT)])?;
    let total = rows.first().map(|row| Fields(row).integer(0)).transpose()?;
    Ok(total.map(|total| EXACT.max(total / SMALLEST_SHARE)))
}

/// Makes the index of each generation that has many vectors, and drops the others. Does nothing if this role does not own
/// the table, if the table is divided between servers, or if another client is at it.
pub(crate) fn update(reader: &Read<'_>) -> Result<()> {
    const OPERATION: &str = "update_index";
    const LOCK: &str = "$1 + CAST('transcript_vectors'::regclass::oid AS bigint)";
    let lock = format!(
        "SELECT 1 FROM pg_class WHERE oid = 'transcript_vectors'::regclass AND relkind = 'r'
         AND pg_has_role(relowner, 'USAGE') AND pg_try_advisory_lock({LOCK})"
    );
    let key: [Parameter<'_>; 1] = [(&ADVISORY_LOCK, Type::INT8)];
    if reader.query(OPERATION, &lock, &key)?.is_empty() {
        return Ok(());
    }
    let updated = update_locked(reader, OPERATION);
    reader.query(OPERATION, &format!("SELECT pg_advisory_unlock({LOCK})"), &key)?;
    updated
}

fn update_locked(reader: &Read<'_>, operation: &'static str) -> Result<()> {
    let generations = Generations::of(&read::meta::meta(reader)?);
    let sql = "SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'transcript_vectors'::regclass AND starts_with(c.relname, $1)";
    let mut valid = Vec::new();
    for row in reader.query(operation, sql, &[(&PREFIX, Type::TEXT)])? {
        let (found, is_valid) = (Fields(&row).text(0)?, Fields(&row).flag(1)?);
        if is_valid && generations.numbers().any(|generation| name(generation) == found) {
            valid.push(found);
        } else {
            // It was being made when the connection was lost, or its generation is gone.
            reader.batch(operation, &format!("DROP INDEX CONCURRENTLY IF EXISTS {}", quote::name(&found)))?;
        }
    }
    for generation in generations.current.iter().chain(&generations.next) {
        let name = name(generation.number);
        let dimensions = generation.space.dimensions;
        if !valid.contains(&name)
            && dimensions <= MOST_DIMENSIONS
            && has_many(reader, operation, generation.number)?
        {
            // Concurrently: others go on writing.
            let sql = format!(
                "CREATE INDEX CONCURRENTLY {} ON transcript_vectors USING hnsw (({}) halfvec_ip_ops) WHERE generation = {}",
                quote::name(&name),
                indexed(dimensions),
                generation.number
            );
            reader.batch(operation, &sql)?;
        }
    }
    Ok(())
}

fn has_many(reader: &Read<'_>, operation: &'static str, generation: u32) -> Result<bool> {
    let sql = "SELECT 1 FROM transcript_vectors WHERE generation = $1 OFFSET $2 LIMIT 1";
    let generation = i64::from(generation);
    Ok(!reader.query(operation, sql, &[(&generation, Type::INT8), (&EXACT, Type::INT8)])?.is_empty())
}

fn name(generation: u32) -> String {
    format!("{PREFIX}{generation}")
}
