//! From one generation of vectors to the next: which table they lie in.

use amplifier_session_core::{
    Error, Result,
    backend::meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    model::EmbeddingSpace,
};
use amplifier_session_sql::read;
use duckdb::{Connection, params};

use crate::{
    error::storage, pool::Writer, reader::Read, reader::is_one_of, tables, vectors::TABLES,
    write::transaction,
};

/// Makes the table of the current generation one for vectors of `space`, unless it is. It holds nothing then: vectors of
/// another length would be those of another generation.
pub(crate) fn make_room(connection: &Connection, space: &EmbeddingSpace) -> duckdb::Result<()> {
    let sql = "SELECT data_type FROM duckdb_columns() WHERE database_name = current_database()
        AND table_name = 'transcript_vectors' AND column_name = 'vector'";
    let found: String = connection.query_row(sql, [], |row| row.get(0))?;
    if found != tables::vector_type(Some(space.dimensions)) {
        connection.execute_batch(&tables::vectors(Some(space.dimensions)))?;
    }
    Ok(())
}

/// Makes the next generation of vectors the current one, if no message owes vectors of it.
pub(crate) fn complete(writer: &mut Writer, generation: u32) -> Result<bool> {
    transaction(writer, "complete_generation", |connection, _| {
        let held = read::meta::generations(&Read(connection))?;
        if held.current_number() == generation {
            return Ok(true);
        }
        let next = held.next.filter(|next| next.number == generation).ok_or_else(|| {
            Error::validation("generation", format!("generation {generation} is not the next one"))
        })?;
        let complete = || {
            let owing = "SELECT count(*) > 0 FROM transcripts WHERE vectors <> 2 AND generation <> ?1";
            if connection.query_row(owing, [generation], |row| row.get(0))? {
                return Ok(false);
            }
            connection.execute("UPDATE transcripts SET vectors = 1 WHERE vectors IN (0, 3)", [])?;
            change_places(connection, generation, next.space.dimensions)?;
            let adopt = "UPDATE schema_meta SET value = (SELECT value FROM schema_meta WHERE key = ?2) WHERE key = ?1";
            connection.execute(adopt, [EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE])?;
            Ok(true)
        };
        complete().map_err(storage("complete_generation"))
    })
}

/// Those of before go to the other vectors, from where they are removed in time; the new ones take their table, which is
/// made for their length. Rows keep their keys and revisions: to the index nothing has happened.
fn change_places(connection: &Connection, generation: u32, dimensions: usize) -> duckdb::Result<()> {
    connection.execute("INSERT INTO other_vectors SELECT * FROM transcript_vectors", [])?;
    connection.execute_batch(&tables::vectors(Some(dimensions)))?;
    let [current, others] = TABLES;
    let take = format!("INSERT INTO {current} SELECT * FROM {others} WHERE generation = ?1 ORDER BY key");
    connection.execute(&take, [generation])?;
    connection.execute(&format!("DELETE FROM {others} WHERE generation = ?1"), [generation])?;
    Ok(())
}

/// Removes vectors of generations that nobody searches any more, and all their failures; returns how many.
pub(crate) fn prune(writer: &mut Writer, limit: usize) -> Result<usize> {
    transaction(writer, "prune_vectors", |connection, appends| {
        let held = read::meta::generations(&Read(connection))?;
        let kept = is_one_of("generation", held.numbers().map(i64::from));
        let revision = appends.revision();
        let prune = || {
            let (mut left, mut pruned) = (limit, 0);
            for table in TABLES {
                let sql = format!("SELECT key FROM {table} WHERE NOT ({kept}) ORDER BY key LIMIT ?1");
                let mut statement = connection.prepare(&sql)?;
                let keys: Vec<i64> = statement
                    .query_map([read::limit(left)], |row| row.get(0))?
                    .collect::<duckdb::Result<_>>()?;
                let which = is_one_of("key", keys.iter().copied());
                let removed = format!(
                    "INSERT INTO removed (kind, revision, key) SELECT 1, ?1, key FROM {table} WHERE {which}"
                );
                connection.execute(&removed, params![revision])?;
                connection.execute(&format!("DELETE FROM {table} WHERE {which}"), [])?;
                (left, pruned) = (left - keys.len(), pruned + keys.len());
            }
            let failures =
                connection.execute(&format!("DELETE FROM vector_failures WHERE NOT ({kept})"), [])?;
            Ok(pruned + failures)
        };
        prune().map_err(storage("prune_vectors"))
    })
}
