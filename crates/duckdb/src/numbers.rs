//! Revisions and keys. No other process can assign any.

use duckdb::Connection;

/// The highest assigned numbers. They only grow, even if a transaction is rolled back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    revision: i64,
    key: i64,
}

impl Numbers {
    pub(crate) fn next_revision(&mut self) -> i64 {
        self.revision += 1;
        self.revision
    }

    pub(crate) fn next_key(&mut self) -> i64 {
        self.key += 1;
        self.key
    }

    /// The highest numbers in a database.
    pub(crate) fn read(connection: &Connection) -> duckdb::Result<Self> {
        let keys = "SELECT coalesce(max(key), 0) FROM (
                SELECT max(key) AS key FROM sessions UNION ALL SELECT max(key) FROM transcript_vectors
                UNION ALL SELECT max(key) FROM other_vectors UNION ALL SELECT max(key) FROM message_embeddings
                UNION ALL SELECT max(key) FROM removed WHERE kind IN (1, 2)
            )";
        let revision = "SELECT coalesce(max(revision), 0) FROM revisions";
        let number = |sql| connection.query_row(sql, [], |row| row.get(0));
        Ok(Self { revision: number(revision)?, key: number(keys)? })
    }
}
