//! What the search index reads: rows by revision, in one read transaction.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
};

use amplifier_session_core::{
    Result, Scope,
    model::{ContentType, Place, Role, SessionId, SessionKey, UserId},
    search::SessionFilter,
};
use amplifier_session_index::{
    MessageRow, PlacedRows, Rows, Snapshots, StoreRevision, VectorPlace, VectorRow,
};
use amplifier_session_sql::{Columns, number, read, unless_damaged};
use duckdb::{
    OptionalExt, Row, Transaction,
    arrow::{
        array::{Array, Int64Array},
        record_batch::RecordBatch,
    },
};

use crate::{
    columns::{Cursor, bytes, read_vector, text},
    error::storage,
    pool::{Pool, with_snapshot},
    reader::Read,
    reader::is_one_of,
    vectors::TABLES,
};

/// How many rows are read at once, and how many bytes of lines: an answer of DuckDB is in memory as a whole. Each question
/// goes through whole tables, so that few of them matter.
const ROWS: usize = 4096;
const BYTES: u64 = 16 << 20;

/// How many rows are looked up at once by their keys.
const VECTORS: usize = 1024;

/// How many vectors are handed on at once in columns.
const VECTORS_IN_A_BATCH: usize = 8192;

/// The rows of a store, each time as they are then.
#[derive(Debug)]
pub struct DuckDbSnapshots(pub(crate) Arc<Pool>);

impl Snapshots for DuckDbSnapshots {
    fn read(&self, read: &mut dyn FnMut(&mut dyn PlacedRows) -> Result<()>) -> Result<()> {
        DuckDbRows::with(&self.0, |rows| read(rows))
    }
}

/// The rows as one transaction sees them.
pub(crate) struct DuckDbRows<'a> {
    pub(crate) snapshot: &'a Transaction<'a>,
    store: [u8; 16],
    /// Of vectors that were looked at.
    places: HashMap<u64, VectorPlace>,
}

impl DuckDbRows<'_> {
    /// Runs `read` with the rows as they are now.
    pub(crate) fn with<T>(pool: &Pool, read: impl FnOnce(&mut DuckDbRows<'_>) -> Result<T>) -> Result<T> {
        let store = pool.store_id();
        pool.read(|connection| {
            with_snapshot(connection, |snapshot| {
                read(&mut DuckDbRows { snapshot, store, places: HashMap::new() })
            })
        })
    }
}

/// What the HNSW index reads beside: vectors of the current generation, in the order of their keys.
impl DuckDbRows<'_> {
    /// Whether every session is this user's.
    pub(crate) fn are_all_of(&self, user: &UserId) -> Result<bool> {
        let sql = "SELECT count(*) = 0 FROM sessions WHERE user_id <> ?1";
        self.snapshot.query_row(sql, [user.as_str()], |row| row.get(0)).map_err(storage("read_rows"))
    }

    /// The highest key, 0 where there are no vectors.
    pub(crate) fn last_vector_key(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(key), 0) FROM transcript_vectors";
        self.snapshot.query_row(sql, [], |row| row.get(0)).map_err(storage("read_rows"))
    }

    /// Calls `each` with those above a key, some at a time, in columns `key` and `vector`.
    pub(crate) fn vector_batches_after(
        &self,
        mut key: i64,
        mut each: impl FnMut(RecordBatch) -> duckdb::Result<()>,
    ) -> Result<()> {
        let sql = format!(
            "SELECT key, vector FROM transcript_vectors WHERE key > ?1 ORDER BY key LIMIT {VECTORS_IN_A_BATCH}"
        );
        loop {
            let mut statement = self.snapshot.prepare(&sql).map_err(storage("read_rows"))?;
            let batches: Vec<RecordBatch> =
                statement.query_arrow([key]).map_err(storage("read_rows"))?.collect();
            let Some(last) = batches.iter().filter_map(last_key).next_back() else { return Ok(()) };
            key = last;
            batches.into_iter().try_for_each(&mut each).map_err(storage("hnsw"))?;
        }
    }
}

/// The last number in the first column.
fn last_key(batch: &RecordBatch) -> Option<i64> {
    batch.column(0).as_any().downcast_ref::<Int64Array>()?.values().last().copied()
}

impl Rows for DuckDbRows<'_> {
    fn mark(&mut self) -> Result<StoreRevision> {
        let newest =
            "SELECT coalesce(max(revision), 0), coalesce(arg_max(nonce, revision), 0) FROM revisions";
        let (revision, nonce) = self
            .snapshot
            .prepare_cached(newest)
            .and_then(|mut statement| statement.query_row([], revision_and_nonce))
            .map_err(storage("read_revision"))?;
        Ok(StoreRevision { store: self.store, revision, nonce })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        if revision == 0 {
            return Ok(Some(0));
        }
        self.snapshot
            .prepare_cached("SELECT revision, nonce FROM revisions WHERE revision = ?1")
            .and_then(|mut statement| {
                statement.query_row([revision.cast_signed()], revision_and_nonce).optional()
            })
            .map(|found| found.map(|(_, nonce)| nonce))
            .map_err(storage("read_revision"))
    }

    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let newer =
            "SELECT key, octet_length(raw) FROM transcripts WHERE revision > ?1 ORDER BY revision, key";
        self.in_batches(newer, revision, |which| {
            let sql = format!(
                "SELECT t.key, t.revision, s.key, t.user_id, s.project_slug, t.session_id, t.role, t.ts, t.raw
                 FROM transcripts t JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id
                 WHERE {which} ORDER BY t.revision, t.key"
            );
            self.each_until(&sql, |row| match unless_damaged(message_row(row))? {
                Some(row) => each(row),
                None => Ok(ControlFlow::Continue(())),
            })
        })
    }

    fn vectors_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let newer = "SELECT key, 0 FROM (
                SELECT key, revision FROM transcript_vectors UNION ALL SELECT key, revision FROM other_vectors
            ) WHERE revision > ?1 ORDER BY revision, key";
        let mut vector = Vec::new();
        self.in_batches(newer, revision, |which| {
            let sql = format!(
                "SELECT t.key, t.revision, s.key, t.user_id, s.project_slug, t.session_id, m.role, t.content_type,
                    m.ts, t.generation, t.vector
                 FROM vectors_of_generations t
                 JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id
                 JOIN transcripts m
                     ON m.user_id = t.user_id AND m.session_id = t.session_id AND m.sequence = t.sequence
                 WHERE {which} ORDER BY t.revision, t.key"
            );
            self.each_until(&sql, |row| match unless_damaged(vector_row(row, &mut vector))? {
                Some(row) => each(row),
                None => Ok(ControlFlow::Continue(())),
            })
        })
    }

    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(0, revision)
    }

    fn removed_vectors_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(1, revision)
    }

    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
        read::sessions::keys(&Read(self.snapshot), scope, filter)
    }

    fn vectors(&mut self, keys: &[u64], each: &mut dyn FnMut(u64, &[f32]) -> Result<()>) -> Result<()> {
        let mut vector = Vec::new();
        self.each_vector(keys, ", vector", |places, key, row| {
            if unless_damaged(read_vector(row, VECTOR_PLACE_COLUMNS, &mut vector))?.is_none() {
                return Ok(());
            }
            // What a search compares is what it asks the places of.
            places.insert(key, vector_place(row)?);
            each(key, &vector)
        })
    }
}

impl PlacedRows for DuckDbRows<'_> {
    fn message_places(&mut self, keys: &[u64]) -> Result<Vec<Option<Place>>> {
        self.each_key("SELECT key, user_id, session_id, sequence FROM transcripts", keys, place)
    }

    fn vector_places(&mut self, keys: &[u64]) -> Result<Vec<Option<VectorPlace>>> {
        let unknown: Vec<u64> = keys.iter().copied().filter(|key| !self.places.contains_key(key)).collect();
        self.each_vector(&unknown, "", |places, key, row| {
            places.insert(key, vector_place(row)?);
            Ok(())
        })?;
        Ok(keys.iter().map(|key| self.places.get(key).cloned()).collect())
    }
}

impl DuckDbRows<'_> {
    /// Calls `each` with the rows of these keys, in all tables of vectors.
    fn each_vector(
        &mut self,
        keys: &[u64],
        more: &str,
        mut each: impl FnMut(&mut HashMap<u64, VectorPlace>, u64, &Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut places = std::mem::take(&mut self.places);
        for keys in keys.chunks(VECTORS) {
            let mut missing: HashSet<u64> = keys.iter().copied().collect();
            for table in TABLES {
                if missing.is_empty() {
                    break;
                }
                let which = of_keys("key", keys);
                self.each_row(&format!("SELECT {VECTOR_PLACE}{more} FROM {table} WHERE {which}"), |row| {
                    let key = unsigned(row, 0)?;
                    missing.remove(&key);
                    each(&mut places, key, row)
                })?;
            }
        }
        self.places = places;
        Ok(())
    }

    /// What `read` makes of the row of each key.
    fn each_key<T: Clone>(
        &self,
        select: &str,
        keys: &[u64],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        let mut found = HashMap::new();
        for keys in keys.chunks(VECTORS) {
            self.each_row(&format!("{select} WHERE {}", of_keys("key", keys)), |row| {
                found.insert(unsigned(row, 0)?, read(row)?);
                Ok(())
            })?;
        }
        // A message is asked for once for each of its texts.
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    /// The keys that `newer` selects with the lengths of their lines, some at a time, as a condition on the table `t`, until
    /// `each` has enough.
    fn in_batches(
        &self,
        newer: &str,
        revision: u64,
        mut each: impl FnMut(&str) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let read = |row: &Row<'_>| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
        };
        let rows: Vec<(u64, u64)> = self
            .snapshot
            .prepare_cached(newer)
            .and_then(|mut statement| {
                statement.query_map([revision.cast_signed()], read).and_then(Iterator::collect)
            })
            .map_err(storage("read_rows"))?;
        let (mut keys, mut bytes) = (Vec::new(), 0);
        for (at, (key, length)) in rows.iter().enumerate() {
            keys.push(*key);
            bytes += length;
            if keys.len() == ROWS || bytes >= BYTES || at + 1 == rows.len() {
                if each(&of_keys("t.key", &keys))?.is_break() {
                    break;
                }
                keys.clear();
                bytes = 0;
            }
        }
        Ok(())
    }

    fn each_row(&self, sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        self.each_until(sql, |row| each(row).map(ControlFlow::Continue)).map(drop)
    }

    /// Whether `each` had enough before the last row.
    fn each_until(
        &self,
        sql: &str,
        mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let mut statement = self.snapshot.prepare(sql).map_err(storage("read_rows"))?;
        let mut rows = statement.query([]).map_err(storage("read_rows"))?;
        while let Some(row) = rows.next().map_err(storage("read_rows"))? {
            if each(row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn removed_after(&self, kind: i64, revision: u64) -> Result<Vec<u64>> {
        self.snapshot
            .prepare_cached("SELECT key FROM removed WHERE kind = ?1 AND revision > ?2")
            .and_then(|mut statement| {
                statement
                    .query_map([kind, revision.cast_signed()], |row| {
                        row.get::<_, i64>(0).map(i64::cast_unsigned)
                    })
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
        raw: bytes(row, 8)?,
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
        generation: number(&Cursor(row), 9)?,
        vector,
    })
}

fn of_keys(column: &str, keys: &[u64]) -> String {
    is_one_of(column, keys.iter().map(|key| key.cast_signed()))
}

fn revision_and_nonce(row: &Row<'_>) -> duckdb::Result<(u64, u64)> {
    Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
}

/// Behind the key.
fn place(row: &Row<'_>) -> Result<Place> {
    let session = SessionKey::new(UserId::new(text(row, 1)?)?, SessionId::new(text(row, 2)?)?);
    Ok(Place::new(session, number(&Cursor(row), 3)?))
}

/// The columns that [`vector_place`] reads, behind the key.
const VECTOR_PLACE: &str = "key, user_id, session_id, sequence, content_type, span_start, span_end";
const VECTOR_PLACE_COLUMNS: usize = 7;

fn vector_place(row: &Row<'_>) -> Result<VectorPlace> {
    Ok(VectorPlace {
        message: place(row)?,
        content_type: text(row, 4)?.parse()?,
        span: (number(&Cursor(row), 5)?, number(&Cursor(row), 6)?),
    })
}

fn unsigned(row: &Row<'_>, index: usize) -> Result<u64> {
    Cursor(row).integer(index).map(i64::cast_unsigned)
}
