//! What the search index reads: rows by revision, in one read transaction.

use std::{ops::ControlFlow, sync::Arc};

use amplifier_session_core::{
    Result, Scope,
    backend::meta::STORE_ID,
    model::{ContentType, Place, Role, SessionId, SessionKey, UserId},
    search::SessionFilter,
};
use amplifier_session_index::{
    MessageRow, PlacedRows, Rows, Snapshots, StoreRevision, VectorPlace, VectorRow,
};
use amplifier_session_sql::{Columns, damaged, read, unless_damaged};
use rusqlite::{OptionalExtension, Row, Transaction};

use crate::{
    columns::{Cursor, column, read_vector},
    error::storage,
    pool::{Pool, with_snapshot},
    reader::Read,
};

/// The rows of a store, each time as they are then.
#[derive(Debug)]
pub struct SqliteSnapshots(pub(crate) Arc<Pool>);

impl Snapshots for SqliteSnapshots {
    fn read(&self, read: &mut dyn FnMut(&mut dyn PlacedRows) -> Result<()>) -> Result<()> {
        self.0.read(|connection| with_snapshot(connection, |snapshot| read(&mut SqliteRows(snapshot))))
    }

    fn folded(&self) {
        if let Err(error) = self.0.checkpoint() {
            tracing::debug!(%error, "the write-ahead log is left to the next write");
        }
    }
}

/// The rows as one transaction sees them.
pub(crate) struct SqliteRows<'a>(pub(crate) &'a Transaction<'a>);

impl Rows for SqliteRows<'_> {
    fn mark(&mut self) -> Result<StoreRevision> {
        let store: String = self
            .0
            .prepare_cached("SELECT value FROM schema_meta WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([STORE_ID], |row| row.get(0)))
            .map_err(storage("read_revision"))?;
        let store = u128::from_str_radix(&store, 16).map_err(|_| damaged("store id"))?.to_be_bytes();
        let (revision, nonce) = self
            .0
            .prepare_cached("SELECT revision, nonce FROM revisions ORDER BY revision DESC LIMIT 1")
            .and_then(|mut statement| statement.query_row([], revision_and_nonce).optional())
            .map_err(storage("read_revision"))?
            .unwrap_or_default();
        Ok(StoreRevision { store, revision, nonce })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        if revision == 0 {
            return Ok(Some(0));
        }
        self.0
            .prepare_cached("SELECT revision, nonce FROM revisions WHERE revision = ?1")
            .and_then(|mut statement| statement.query_row([revision as i64], revision_and_nonce).optional())
            .map(|found| found.map(|(_, nonce)| nonce))
            .map_err(storage("read_revision"))
    }

    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let sql =
            "SELECT t.key, t.revision, s.key, t.user_id, s.project_slug, t.session_id, t.role, t.ts, t.raw
            FROM transcripts t JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id
            WHERE t.revision > ?1 ORDER BY t.revision";
        self.each_row(sql, revision, |row| match unless_damaged(message_row(row))? {
            Some(row) => each(row),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    fn vectors_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let sql = "SELECT v.key, v.revision, s.key, v.user_id, s.project_slug, v.session_id, t.role, v.content_type,
                t.ts, v.generation, v.vector
            FROM transcript_vectors v
            JOIN sessions s ON s.user_id = v.user_id AND s.session_id = v.session_id
            JOIN transcripts t
                ON t.user_id = v.user_id AND t.session_id = v.session_id AND t.sequence = v.sequence
            WHERE v.revision > ?1 ORDER BY v.revision";
        let mut vector = Vec::new();
        self.each_row(sql, revision, |row| match unless_damaged(vector_row(row, &mut vector))? {
            Some(row) => each(row),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(0, revision)
    }

    fn removed_vectors_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(1, revision)
    }

    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
        read::sessions::keys(&Read(self.0), scope, filter)
    }

    fn vectors(&mut self, keys: &[u64], each: &mut dyn FnMut(u64, &[f32]) -> Result<()>) -> Result<()> {
        let mut statement = self
            .0
            .prepare_cached("SELECT vector FROM transcript_vectors WHERE key = ?1")
            .map_err(storage("read_vectors"))?;
        let mut vector = Vec::new();
        for &key in keys {
            let mut rows = statement.query([key as i64]).map_err(storage("read_vectors"))?;
            if let Some(row) = rows.next().map_err(storage("read_vectors"))?
                && unless_damaged(read_vector(row, 0, &mut vector))?.is_some()
            {
                each(key, &vector)?;
            }
        }
        Ok(())
    }
}

impl PlacedRows for SqliteRows<'_> {
    fn message_places(&mut self, keys: &[u64]) -> Result<Vec<Option<Place>>> {
        self.each_key("SELECT user_id, session_id, sequence FROM transcripts WHERE key = ?1", keys, place)
    }

    fn vector_places(&mut self, keys: &[u64]) -> Result<Vec<Option<VectorPlace>>> {
        let sql = "SELECT user_id, session_id, sequence, content_type, span_start, span_end
            FROM transcript_vectors WHERE key = ?1";
        self.each_key(sql, keys, |row| {
            Ok(VectorPlace {
                message: place(row)?,
                content_type: text(row, 3)?.parse()?,
                span: (column(row, 4)?, column(row, 5)?),
            })
        })
    }
}

impl SqliteRows<'_> {
    /// What `read` makes of the row of each key.
    fn each_key<T>(
        &self,
        sql: &str,
        keys: &[u64],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        let mut statement = self.0.prepare_cached(sql).map_err(storage("search"))?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let mut rows = statement.query([*key as i64]).map_err(storage("search"))?;
            found.push(rows.next().map_err(storage("search"))?.map(&read).transpose()?);
        }
        Ok(found)
    }

    fn each_row(
        &self,
        sql: &str,
        revision: u64,
        mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut statement = self.0.prepare_cached(sql).map_err(storage("read_rows"))?;
        let mut rows = statement.query([revision as i64]).map_err(storage("read_rows"))?;
        while let Some(row) = rows.next().map_err(storage("read_rows"))? {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn removed_after(&self, kind: i64, revision: u64) -> Result<Vec<u64>> {
        self.0
            .prepare_cached("SELECT key FROM removed WHERE kind = ?1 AND revision > ?2")
            .and_then(|mut statement| {
                statement
                    .query_map([kind, revision as i64], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
                    .and_then(Iterator::collect)
            })
            .map_err(storage("read_removed"))
    }
}

fn message_row<'a>(row: &'a Row<'_>) -> Result<MessageRow<'a>> {
    Ok(MessageRow {
        key: unsigned(row, 0)?,
        revision: unsigned(row, 1)?,
        session_key: unsigned(row, 2)?,
        user: text(row, 3)?,
        project: text(row, 4)?,
        session: text(row, 5)?,
        role: text(row, 6)?.parse::<Role>()?,
        ts: Cursor(row).time(7)?,
        raw: row.get_ref(8).map_err(storage("read"))?.as_bytes().map_err(|_| damaged("line"))?,
    })
}

fn vector_row<'a>(row: &'a Row<'_>, vector: &'a mut Vec<f32>) -> Result<VectorRow<'a>> {
    read_vector(row, 10, vector)?;
    Ok(VectorRow {
        key: unsigned(row, 0)?,
        revision: unsigned(row, 1)?,
        session_key: unsigned(row, 2)?,
        user: text(row, 3)?,
        project: text(row, 4)?,
        session: text(row, 5)?,
        role: text(row, 6)?.parse::<Role>()?,
        content_type: text(row, 7)?.parse::<ContentType>()?,
        ts: Cursor(row).time(8)?,
        generation: column(row, 9)?,
        vector,
    })
}

fn revision_and_nonce(row: &Row<'_>) -> rusqlite::Result<(u64, u64)> {
    Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
}

fn place(row: &Row<'_>) -> Result<Place> {
    let session = SessionKey::new(UserId::new(text(row, 0)?)?, SessionId::new(text(row, 1)?)?);
    Ok(Place::new(session, column(row, 2)?))
}

fn unsigned(row: &Row<'_>, index: usize) -> Result<u64> {
    column::<i64>(row, index).map(i64::cast_unsigned)
}

fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<&'a str> {
    row.get_ref(index).map_err(storage("read"))?.as_str().map_err(|_| damaged("text"))
}
