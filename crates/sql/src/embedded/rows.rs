//! Rows for the search index: by revision, in one read transaction.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

use amplifier_session_core::{
    ErrorKind, Result, Scope,
    backend::{DatedMessage, meta::STORE_ID},
    model::{MessageRef, SessionId, SessionKey, UserId},
    search::SessionFilter,
};
use amplifier_session_index::{MessageRow, RowRefs, Rows, StoreRevision, VectorRef, VectorRow};

use super::{
    batches::batches,
    decoded::{message_row, unsigned, vector_row},
};
use crate::{
    Columns, Query, Reader, Statement,
    backend::Connections,
    damaged, is_one_of, number, read,
    rows::{self, DATED_MESSAGE, dated_message, removed},
    turns::EMBEDDINGS,
    unless_damaged,
};

/// The number of rows that are looked up by their keys at once.
const LOOKED_UP: usize = 1024;

/// The rows of a database. Each read sees their current state.
#[derive(Debug)]
pub struct RowSnapshots<C> {
    connections: Arc<C>,
    store: OnceLock<[u8; 16]>,
}

impl<C> RowSnapshots<C> {
    /// The rows that these connections read.
    #[must_use]
    pub fn new(connections: Arc<C>) -> Self {
        Self { connections, store: OnceLock::new() }
    }
}

impl<C: Connections> amplifier_session_index::Snapshots for RowSnapshots<C> {
    fn read(&self, read: &mut dyn FnMut(&mut dyn RowRefs) -> Result<()>) -> Result<()> {
        self.connections.read_snapshot(|reader| read(&mut IndexRows::new(reader, &self.store)))
    }

    fn folded(&self) {
        self.connections.folded();
    }
}

/// The rows in the snapshot of one transaction.
#[derive(Debug)]
pub struct IndexRows<'a, R> {
    reader: &'a R,
    store: &'a OnceLock<[u8; 16]>,
    /// References of messages whose vectors of texts and of turns were read: a search requests those of the vectors
    /// that it compares.
    message_refs: [RefCache; 2],
    /// The keys of rows that could not be read.
    unreadable: RefCell<HashSet<u64>>,
}

type RefCache = HashMap<u64, VectorRef>;

/// The references of texts or of `turns`.
fn of_kind([texts, of_turns]: &mut [RefCache; 2], turns: bool) -> &mut RefCache {
    if turns { of_turns } else { texts }
}

impl<'a, R: Reader> IndexRows<'a, R> {
    /// The rows that `reader` sees, which reads one snapshot. `store` remembers the store's identity.
    #[must_use]
    pub fn new(reader: &'a R, store: &'a OnceLock<[u8; 16]>) -> Self {
        Self { reader, store, message_refs: Default::default(), unreadable: RefCell::default() }
    }

    fn store(&self) -> Result<[u8; 16]> {
        if let Some(store) = self.store.get() {
            return Ok(*store);
        }
        let sql = "SELECT value FROM schema_meta WHERE key = ?1";
        let id =
            self.reader.first(&Query::new("read_revision", sql, [STORE_ID.into()], |row| row.text(0)))?;
        let id = id.and_then(|id| u128::from_str_radix(&id, 16).ok()).ok_or_else(|| damaged("store id"))?;
        Ok(*self.store.get_or_init(|| id.to_be_bytes()))
    }

    /// Calls `each` with the rows that `select` finds with a revision above `revision`, in order. It reads the table
    /// `t`, which is `table`; `length` is the length of a row. Leaves out rows that can't be read.
    fn newer(
        &self,
        (table, length): (&str, &str),
        select: &str,
        revision: u64,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(batch) = R::DIALECT.batch else {
            // Where to continue if a part of the database can't be read.
            let mut last = (revision.cast_signed(), i64::MAX);
            let read = self.select(select, &format!("t.revision > {revision}"), &mut |row| {
                last = (row.integer(1)?, row.integer(0)?);
                each(row)
            });
            return match read {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    self.newer_one_by_one(table, select, last, each)
                }
                read => read.map(drop),
            };
        };
        let newer = format!(
            "SELECT t.key, {length} FROM {table} t WHERE t.revision > {revision} ORDER BY t.revision, t.key"
        );
        let decode = |row: &dyn Columns| Ok((row.integer(0)?, rows::count(row, 1)?));
        let newer = self.reader.rows(&Query::new("read_rows", newer, [], decode).once())?;
        for keys in batches(&newer, batch) {
            if self.select(select, &is_one_of("t.key", keys.iter().map(|(key, _)| *key)), each)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// [`Self::newer`] after a revision and key, row by row, if a part of the database can't be read.
    fn newer_one_by_one(
        &self,
        table: &str,
        select: &str,
        after: (i64, i64),
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut left_out = 0_u64;
        for key in self.keys_after(table, after)? {
            match self.select(select, &format!("t.key = {key}"), each) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    left_out += 1;
                    self.leave_out(key.cast_unsigned());
                }
                Err(error) => return Err(error),
            }
        }
        if left_out > 0 {
            tracing::warn!(table, rows = left_out, "rows that can't be read are not in the search index");
        }
        Ok(())
    }

    fn leave_out(&self, key: u64) {
        self.unreadable.borrow_mut().insert(key);
    }

    /// The row, unless it can't be read.
    fn readable<T>(&self, row: &dyn Columns, read: Result<T>) -> Result<Option<T>> {
        let read = unless_damaged(read)?;
        if read.is_none()
            && let Some(key) = unless_damaged(unsigned(row, 0))?
        {
            self.leave_out(key);
        }
        Ok(read)
    }

    /// The keys of the rows after a revision and key, in order: from an index, or else from the table.
    fn keys_after(&self, table: &str, (revision, key): (i64, i64)) -> Result<Vec<i64>> {
        let decode = |row: &dyn Columns| Ok((row.integer(0)?, row.integer(1)?));
        let is_after = format!("t.revision > {revision} OR t.revision = {revision} AND t.key > {key}");
        let by_index = format!(
            "SELECT t.revision, t.key FROM {table} t WHERE t.revision >= {revision} AND ({is_after})"
        );
        let by_table = format!(
            "SELECT t.revision, t.key FROM {table} t WHERE +t.revision >= {revision} AND ({is_after})"
        );
        let by_index = Query::new("read_rows", by_index, [], decode).once();
        let mut rows = match self.reader.rows(&by_index) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.reader.rows(&Query::new("read_rows", by_table, [], decode).once())?
            }
            rows => rows?,
        };
        rows.sort_unstable();
        Ok(rows.into_iter().map(|(_, key)| key).collect())
    }

    /// Whether `each` stopped early.
    fn select(
        &self,
        select: &str,
        which: &str,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let sql = format!("{select} WHERE {which} ORDER BY t.revision, t.key");
        let mut flow = ControlFlow::Continue(());
        self.reader.each_row(&Statement::once("read_rows", sql, []), &mut |row| {
            flow = each(row)?;
            Ok(flow)
        })?;
        Ok(flow)
    }

    fn removed_after(&self, kind: i64, revision: u64) -> Result<Vec<u64>> {
        let sql = "SELECT key FROM removed WHERE kind = ?1 AND revision > ?2";
        let values = [kind.into(), revision.cast_signed().into()];
        self.reader.rows(&Query::new("read_removed", sql, values, |row| unsigned(row, 0)))
    }

    /// Calls `each` with the rows of these keys, in all tables of vectors of texts or `turns`.
    fn each_vector(
        &mut self,
        turns: bool,
        keys: &[u64],
        more: &str,
        each: &mut dyn FnMut(&mut RefCache, u64, &dyn Columns) -> Result<()>,
    ) -> Result<()> {
        for keys in keys.chunks(LOOKED_UP) {
            let mut done = HashSet::new();
            let mut once = |message_refs: &mut RefCache, key, row: &dyn Columns| {
                done.insert(key);
                each(message_refs, key, row)
            };
            match self.each_vector_of(turns, keys, more, &mut once) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    for key in keys.iter().filter(|key| !done.contains(key)) {
                        let read = self.each_vector_of(turns, std::slice::from_ref(key), more, each);
                        if unless_damaged(read)?.is_none() {
                            self.leave_out(*key);
                        }
                    }
                }
                read => read?,
            }
        }
        Ok(())
    }

    /// [`Self::each_vector`] of a few keys. Fails with `Damaged` if a row can't be read.
    fn each_vector_of(
        &mut self,
        turns: bool,
        keys: &[u64],
        more: &str,
        each: &mut dyn FnMut(&mut RefCache, u64, &dyn Columns) -> Result<()>,
    ) -> Result<()> {
        let which = of_keys(keys);
        let mut missing: HashSet<u64> = keys.iter().copied().collect();
        let message_refs = of_kind(&mut self.message_refs, turns);
        let tables = if turns { &[EMBEDDINGS.name] } else { R::DIALECT.vector_tables };
        let columns = if turns { TURN_PLACE } else { VECTOR_PLACE };
        for table in tables {
            if missing.is_empty() {
                break;
            }
            let sql = format!("SELECT {columns}{more} FROM {table} WHERE {which}");
            self.reader.each_row(&Statement::once("search", sql, []), &mut |row| {
                let key = unsigned(row, 0)?;
                missing.remove(&key);
                each(message_refs, key, row).map(ControlFlow::Continue)
            })?;
        }
        Ok(())
    }
}

impl<R: Reader> Rows for IndexRows<'_, R> {
    fn store_revision(&mut self) -> Result<StoreRevision> {
        let sql = "SELECT revision, nonce FROM revisions ORDER BY revision DESC LIMIT 1";
        let decode = |row: &dyn Columns| Ok((unsigned(row, 0)?, unsigned(row, 1)?));
        let newest = self.reader.first(&Query::new("read_revision", sql, [], decode))?;
        let (revision, nonce) = newest.unwrap_or_default();
        Ok(StoreRevision { store: self.store()?, revision, nonce })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        if revision == 0 {
            return Ok(Some(0));
        }
        let sql = "SELECT nonce FROM revisions WHERE revision = ?1";
        let revision = revision.cast_signed().into();
        self.reader.first(&Query::new("read_revision", sql, [revision], |row| unsigned(row, 0)))
    }

    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let select =
            "SELECT t.key, t.revision, s.key, t.user_id, s.project_slug, t.session_id, t.role, t.ts, t.raw
            FROM transcripts t JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id";
        self.newer(("transcripts", "octet_length(t.raw)"), select, revision, &mut |row| match self
            .readable(row, message_row(row))?
        {
            Some(row) => each(row),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    fn vectors_after(
        &mut self,
        turns: bool,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let vectors = if turns { EMBEDDINGS.name } else { R::DIALECT.all_vectors };
        let content_type = if turns { TURN_TYPE } else { "t.content_type" };
        let select = format!(
            "SELECT t.key, t.revision, s.key, t.user_id, s.project_slug, t.session_id, m.role, {content_type},
                m.ts, t.generation, t.vector
             FROM {vectors} t
             JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id
             JOIN transcripts m
                 ON m.user_id = t.user_id AND m.session_id = t.session_id AND m.sequence = t.sequence"
        );
        let mut vector = Vec::new();
        self.newer((vectors, "0"), &select, revision, &mut |row| match self
            .readable(row, vector_row(row, &mut vector))?
        {
            Some(row) => each(row),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(removed::MESSAGE, revision)
    }

    fn removed_vectors_after(&mut self, turns: bool, revision: u64) -> Result<Vec<u64>> {
        self.removed_after(if turns { removed::TURN } else { removed::VECTOR }, revision)
    }

    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
        read::sessions::keys(self.reader, scope, filter)
    }

    fn messages_of_vectors(&mut self, keys: &[u64]) -> Result<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        for keys in keys.chunks(LOOKED_UP) {
            for table in R::DIALECT.vector_tables {
                let sql = format!(
                    "SELECT v.key, t.key FROM {table} v JOIN transcripts t ON t.user_id = v.user_id
                        AND t.session_id = v.session_id AND t.sequence = v.sequence WHERE {}",
                    is_one_of("v.key", keys.iter().map(|key| key.cast_signed()))
                );
                let read = self.reader.each_row(&Statement::once("search", sql, []), &mut |row| {
                    found.push((unsigned(row, 0)?, unsigned(row, 1)?));
                    Ok(ControlFlow::Continue(()))
                });
                unless_damaged(read)?;
            }
        }
        Ok(found)
    }

    fn vectors(
        &mut self,
        turns: bool,
        keys: &[u64],
        each: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let (mut vector, mut unreadable) = (Vec::new(), Vec::new());
        let read = self.each_vector(turns, keys, ", vector", &mut |message_refs, key, row| {
            if unless_damaged(row.read_vector(VECTOR_PLACE_COLUMNS, &mut vector))?.is_none() {
                unreadable.push(key);
                return Ok(());
            }
            message_refs.insert(key, vector_ref(row)?);
            each(key, &vector)
        });
        unreadable.into_iter().for_each(|key| self.leave_out(key));
        read
    }
}

impl<R: Reader> RowRefs for IndexRows<'_, R> {
    fn message_refs(&mut self, keys: &[u64]) -> Result<Vec<Option<MessageRef>>> {
        let mut found = HashMap::new();
        let mut look_up = |which: &str| {
            let sql = format!("SELECT key, user_id, session_id, sequence FROM transcripts WHERE {which}");
            self.reader.each_row(&Statement::once("search", sql, []), &mut |row| {
                found.insert(unsigned(row, 0)?, message_ref(row)?);
                Ok(ControlFlow::Continue(()))
            })
        };
        for keys in keys.chunks(LOOKED_UP) {
            match look_up(&of_keys(keys)) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    let mut unreadable = Vec::new();
                    for key in keys {
                        if unless_damaged(look_up(&of_keys(std::slice::from_ref(key))))?.is_none() {
                            unreadable.push(*key);
                        }
                    }
                    // If the key's own index can't be read, SQLite reads another one, which shows which messages are
                    // unreadable.
                    if !unreadable.is_empty() {
                        unless_damaged(look_up(&format!("+{}", of_keys(&unreadable))))?;
                    }
                }
                read => read?,
            }
        }
        // A message is requested once for each of its texts.
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    fn dated_messages(&mut self, keys: &[u64]) -> Result<Vec<DatedMessage>> {
        let mut found = HashMap::new();
        let mut look_up = |keys: &[u64]| {
            let which = is_one_of("t.key", keys.iter().map(|key| key.cast_signed()));
            let sql = format!("SELECT {DATED_MESSAGE} FROM transcripts t WHERE {which}");
            self.reader.each_row(&Statement::once("search", sql, []), &mut |row| {
                let (key, message) = dated_message(row)?;
                found.insert(key.cast_unsigned(), message);
                Ok(ControlFlow::Continue(()))
            })
        };
        for keys in keys.chunks(LOOKED_UP) {
            if unless_damaged(look_up(keys))?.is_some() {
                continue;
            }
            for key in keys {
                if unless_damaged(look_up(std::slice::from_ref(key)))?.is_none() {
                    self.leave_out(*key);
                }
            }
        }
        Ok(keys.iter().filter_map(|key| found.remove(key)).collect())
    }

    fn vector_refs(&mut self, turns: bool, keys: &[u64]) -> Result<Vec<Option<VectorRef>>> {
        let known = of_kind(&mut self.message_refs, turns);
        let unknown: Vec<u64> = keys.iter().copied().filter(|key| !known.contains_key(key)).collect();
        self.each_vector(turns, &unknown, "", &mut |message_refs, key, row| {
            message_refs.insert(key, vector_ref(row)?);
            Ok(())
        })?;
        let known = of_kind(&mut self.message_refs, turns);
        Ok(keys.iter().map(|key| known.get(key).cloned()).collect())
    }

    fn unreadable(&self) -> usize {
        self.unreadable.borrow().len()
    }
}

fn of_keys(keys: &[u64]) -> String {
    is_one_of("key", keys.iter().map(|key| key.cast_signed()))
}

/// The message reference in the columns after the key.
fn message_ref(row: &dyn Columns) -> Result<MessageRef> {
    let session = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
    Ok(MessageRef::new(session, number(row, 3)?))
}

/// The columns that [`vector_place`] reads, with the key first.
const VECTOR_PLACE: &str = "key, user_id, session_id, sequence, content_type, span_start, span_end";
const VECTOR_PLACE_COLUMNS: usize = 7;

/// The same of a turn, and the content type of its vectors in the index.
const TURN_PLACE: &str = "key, user_id, session_id, sequence, 'user_query', 0, 0";
const TURN_TYPE: &str = "'user_query'";

fn vector_ref(row: &dyn Columns) -> Result<VectorRef> {
    Ok(VectorRef {
        message: message_ref(row)?,
        content_type: row.text_ref(4)?.parse()?,
        span: (number(row, 5)?, number(row, 6)?),
    })
}
