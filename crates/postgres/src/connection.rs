//! Connections as `amplifier-session-sql` uses them, and PostgreSQL's dialect.
//!
//! The shared reads and writes block, and run on threads for blocking work. These threads wait for each call of the
//! asynchronous driver.

use std::{
    cell,
    collections::BTreeMap,
    fmt,
    ops::ControlFlow,
    pin::pin,
    time::{Duration, SystemTime},
};

use amplifier_session_core::{
    Result,
    model::{Message, Timestamp},
};
use amplifier_session_sql::{
    Cell, Columns, Dialect, Reader, Statement, Table, Value, WordSearch,
    backend::{NewVector, VectorTarget, Writer},
    read::changes::ChangeNumbers,
    rows::{EVENT_TEXT, SESSION_TEXT},
    table::{self, TRANSCRIPTS},
    turns,
};
use deadpool_postgres::ClientWrapper;
use futures_util::{FutureExt as _, SinkExt as _, TryStreamExt as _, future::join};
use tokio_postgres::{
    Row, RowStream,
    types::{ToSql, Type},
};

use crate::{
    columns::PgRow,
    copy::{CopyRows, Key},
    error::storage,
    index::text::{IndexedMessage, NewTexts},
    runtime::ConnectionRuntime,
    text,
};

/// A value that [`PgReader::query`] binds, with its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection with a transaction, which ends with this.
///
/// No statement stays prepared: behind a pooler, the next transaction may be on another connection of the server, where
/// the name of a prepared statement is unknown, or has another meaning.
pub struct PgReader<'a> {
    runtime: &'a ConnectionRuntime,
    client: &'a ClientWrapper,
    /// Whether row level security restricts the role.
    is_restricted: bool,
    /// Begins the transaction. Sent with the first statement.
    begin: cell::Cell<Option<&'a str>>,
    /// Whether the transaction ends with this.
    ends: cell::Cell<bool>,
}

impl fmt::Debug for PgReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgReader").finish_non_exhaustive()
    }
}

impl Drop for PgReader<'_> {
    fn drop(&mut self) {
        if self.ends.get() {
            // It only has to be sent: there is nothing to commit.
            let _ = self.client.batch_execute("COMMIT").now_or_never();
        }
    }
}

impl Reader for PgReader<'_> {
    const DIALECT: Dialect = POSTGRES;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.each(statement.operation, self.run(statement), each).map(drop)
    }
}

impl<'a> PgReader<'a> {
    /// Uses a connection with an open transaction.
    pub(crate) fn new(
        runtime: &'a ConnectionRuntime,
        client: &'a ClientWrapper,
        is_restricted: bool,
    ) -> Self {
        let (begin, ends) = (cell::Cell::new(None), cell::Cell::new(false));
        Self { runtime, client, is_restricted, begin, ends }
    }

    /// Sends `begin` before the first statement, for a connection without an open transaction.
    pub(crate) fn beginning(self, begin: &'a str) -> Self {
        self.begin.set(Some(begin));
        self
    }

    /// Waits for `work`, after the transaction has begun.
    fn wait<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let Some(begin) = self.begin.take() else {
            return self.runtime.wait(work).map_err(storage(operation));
        };
        self.ends.set(true);
        // The first is sent first, and the server answers in order.
        let (begun, done) = self.runtime.wait(join(self.client.batch_execute(begin), work));
        begun.and(done).map_err(storage(operation))
    }

    /// All rows of a statement with values of any type.
    pub(crate) fn query(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>> {
        self.wait(operation, self.client.query_typed(sql, parameters))
    }

    /// [`Self::query`], with rows that are decoded one by one.
    pub(crate) fn query_decoded<T>(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
        decode: impl Fn(&dyn Columns) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let run = self.client.query_typed_raw(sql, parameters.iter().cloned());
        self.each(operation, run, &mut |row| {
            found.push(decode(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, operation: &'static str, sql: &str) -> Result<()> {
        self.wait(operation, self.client.batch_execute(sql))
    }

    /// Copies rows to their table. A transaction must be open.
    pub(crate) fn copy(&self, operation: &'static str, rows: CopyRows) -> Result<()> {
        let (table, columns) = (rows.table(), rows.columns().to_owned());
        if !self.is_restricted {
            return self.copy_to(table, operation, rows);
        }
        // Row level security checks inserted rows, and does not allow `COPY`.
        let create = format!(
            "CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA"
        );
        self.batch(operation, &create)?;
        self.copy_to("pg_temp.incoming", operation, rows)?;
        let insert = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM pg_temp.incoming");
        self.batch(operation, &format!("{insert}; DROP TABLE pg_temp.incoming"))
    }

    fn copy_to(&self, table: &str, operation: &'static str, rows: CopyRows) -> Result<()> {
        let (sql, bytes) = rows.into_copy(table);
        let copy = async {
            let mut sink = pin!(self.client.copy_in(&sql).await?);
            sink.send(std::io::Cursor::new(bytes)).await?;
            sink.finish().await
        };
        self.wait(operation, copy).map(drop)
    }

    async fn run(&self, statement: &Statement) -> std::result::Result<RowStream, tokio_postgres::Error> {
        let sql = statement.sql.replace('?', "$");
        let types: Vec<Type> = statement.values.iter().map(type_of).collect();
        let values: Vec<Box<dyn ToSql + Sync + Send>> = statement.values.iter().map(bound).collect();
        self.client.query_typed_raw(&sql, values.into_iter().zip(types)).await
    }

    /// Calls `each` with the rows until it breaks; returns the number of rows that the statement changed.
    fn each(
        &self,
        operation: &'static str,
        rows: impl Future<Output = std::result::Result<RowStream, tokio_postgres::Error>>,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        let mut rows = pin!(self.wait(operation, rows)?);
        while let Some(row) = self.wait(operation, rows.try_next())? {
            if each(&PgRow(&row))?.is_break() {
                return Ok(0);
            }
        }
        Ok(rows.rows_affected().unwrap_or_default())
    }
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Text(_) => Type::TEXT,
        Value::Integer(_) => Type::INT8,
        Value::Time(_) => Type::TIMESTAMPTZ,
    }
}

fn bound(value: &Value) -> Box<dyn ToSql + Sync + Send> {
    match value {
        Value::Text(text) => Box::new(text::stored(text).into_owned()),
        Value::Integer(number) => Box::new(*number),
        Value::Time(time) => Box::new(system_time(*time)),
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    let distance = Duration::from_micros(time.as_micros().unsigned_abs());
    let time = match time.as_micros() {
        0.. => SystemTime::UNIX_EPOCH.checked_add(distance),
        _ => SystemTime::UNIX_EPOCH.checked_sub(distance),
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Rows are written when the buffer has this many bytes.
const BUFFERED: usize = 16 << 20;

/// A write transaction. Inserted rows are buffered, and copied to their tables when there are many or it ends.
#[derive(Debug)]
pub struct PgWriter<'a> {
    read: PgReader<'a>,
    rows: BTreeMap<(&'static str, bool), CopyRows>,
    texts: NewTexts,
}

impl<'a> PgWriter<'a> {
    /// Uses a connection with an open transaction. [`Self::flush`] must be called before it ends.
    pub(crate) fn new(read: PgReader<'a>) -> Self {
        Self { read, rows: BTreeMap::new(), texts: NewTexts::default() }
    }

    /// The connection, which sees what was flushed.
    pub(crate) fn reader(&self) -> &PgReader<'a> {
        &self.read
    }

    /// Adds the texts of a message that is already stored to the index.
    pub(crate) fn index(&mut self, message: &IndexedMessage) {
        self.texts.add(Some(message.key), &message.user, &message.line);
    }

    /// The number of messages whose texts will be written to one block.
    pub(crate) fn indexed_messages(&self) -> usize {
        self.texts.messages()
    }

    /// Writes the buffered rows, and the index of their texts.
    pub(crate) fn flush(&mut self, operation: &'static str) -> Result<()> {
        let mut keys = Vec::new();
        for (_, mut rows) in std::mem::take(&mut self.rows) {
            if rows.missing_keys() > 0 {
                keys = self.new_keys(operation, rows.missing_keys())?;
                rows.assign_keys(&keys);
            }
            self.read.copy(operation, rows)?;
        }
        std::mem::take(&mut self.texts).write(&self.read, operation, &keys)
    }

    fn new_keys(&self, operation: &'static str, count: usize) -> Result<Vec<i64>> {
        let sql = "SELECT nextval('message_keys') FROM generate_series(1, $1)";
        let rows = self.read.query(operation, sql, &[(&(count as i64), Type::INT8)])?;
        let mut keys = rows.iter().map(|row| PgRow(row).integer(0)).collect::<Result<Vec<_>>>()?;
        keys.sort_unstable();
        Ok(keys)
    }

    fn buffered(&self) -> usize {
        self.rows.values().map(CopyRows::len).sum()
    }

    fn add(&mut self, table: &Table, key: Key, row: &[Cell<'_>]) {
        let rows = self.rows.entry((table.name, key == Key::LeftOut));
        rows.or_insert_with(|| CopyRows::of(table, key)).add(table, key, row);
    }
}

impl Reader for PgWriter<'_> {
    const DIALECT: Dialect = POSTGRES;

    fn each_row(
        &self,
        statement: &Statement,
        each: &mut dyn FnMut(&dyn Columns) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.read.each_row(statement, each)
    }
}

impl Writer for PgWriter<'_> {
    fn execute(&self, statement: &Statement) -> Result<usize> {
        let changed = self
            .read
            .each(statement.operation, self.read.run(statement), &mut |_| Ok(ControlFlow::Continue(())))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn next_revision(&mut self) -> Result<i64> {
        let next = Statement::new("write", "SELECT nextval('revisions')", []);
        let mut revision = 0;
        self.each_row(&next, &mut |row| {
            revision = row.integer(0)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(revision)
    }

    fn new_session_key(&mut self) -> Option<i64> {
        None
    }

    fn message_key(_: Option<i64>, _: u32) -> Option<i64> {
        None
    }

    fn insert(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<()> {
        // The key is the last column of a session and of the vector of a turn.
        let may_be_assigned = [table::SESSIONS.name, turns::EMBEDDINGS.name].contains(&table.name);
        let is_assigned = may_be_assigned && matches!(row.last(), Some(Cell::Null));
        self.add(table, if is_assigned { Key::LeftOut } else { Key::Given }, row);
        if self.buffered() > BUFFERED { self.flush("write") } else { Ok(()) }
    }

    fn insert_message(&mut self, _: Option<i64>, revision: i64, message: &Message) -> Result<()> {
        self.add(&TRANSCRIPTS, Key::Later, &table::message(None, revision, message));
        self.texts.add(None, message.user_id.as_str(), &message.line());
        if self.buffered() > BUFFERED { self.flush("write") } else { Ok(()) }
    }

    fn insert_vectors(&mut self, target: &VectorTarget<'_>, vectors: &[NewVector<'_>]) -> Result<()> {
        let rows = self.rows.entry(("transcript_vectors", true));
        let rows = rows.or_insert_with(|| CopyRows::new("transcript_vectors", VECTOR_COLUMNS));
        for NewVector { sequence, created_at, record } in vectors {
            rows.begin(VECTOR_COLUMNS.len());
            rows.text(target.key.user_id.as_str());
            rows.text(target.key.session_id.as_str());
            rows.integer((*sequence).into());
            rows.text(record.text.as_str());
            for number in [record.chunk_index, record.total_chunks, record.span_start, record.span_end] {
                rows.integer(number.into());
            }
            rows.integer(record.token_count.into());
            rows.text(&target.space.model);
            rows.time(*created_at);
            rows.integer(target.revision);
            rows.integer(target.generation.into());
            rows.vector(&record.vector);
        }
        if self.buffered() > BUFFERED { self.flush("write_vectors") } else { Ok(()) }
    }
}

const VECTOR_COLUMNS: [&str; 14] = [
    "user_id",
    "session_id",
    "sequence",
    "content_type",
    "chunk_index",
    "total_chunks",
    "span_start",
    "span_end",
    "token_count",
    "embedding_model",
    "created_at",
    "revision",
    "generation",
    "vector",
];

/// Lists are arrays. The client compares the words of a title or an event, according to the rules of `core`.
pub(crate) const POSTGRES: Dialect = Dialect {
    list_holds: |list, value| format!("{value} = ANY({list})"),
    session_words: WordSearch::Parts(|part| may_contain(SESSION_TEXT, part)),
    event_words: WordSearch::Parts(|part| may_contain(EVENT_TEXT, part)),
    quarter_hour: |time| format!("date_bin('15 minutes', {time}, TIMESTAMPTZ '1970-01-01 00:00:00+00')"),
    list_from: |_| "sessions s",
    changes: CHANGES,
    messages_of_sessions: "sessions s JOIN transcripts t
        ON t.user_id = s.user_id AND t.session_id = s.session_id",
    events_in_order: |_, _| {
        "events e JOIN sessions s ON e.user_id = s.user_id AND e.session_id = s.session_id".to_owned()
    },
    beside_sessions: |table| {
        format!("sessions s JOIN {table} t ON t.user_id = s.user_id AND t.session_id = s.session_id")
    },
    all_vectors: "transcript_vectors",
    vector_tables: &["transcript_vectors"],
    update: "UPDATE",
    time,
    batch: None,
    records_removed_vectors: false,
    removed_of_users: true,
    own_tables: &["text_blocks", "postings", "removed"],
    session_keys: &[],
};

/// Changes are numbered by their transactions. A reader gets those below the oldest one that is still running, in any
/// database of the server, so that none is committed later before its place.
///
/// A store that was restored from a backup has other tables, belongs to another server, or has another timeline.
const CHANGES: ChangeNumbers = ChangeNumbers {
    column: "changed",
    set: ", changed = DEFAULT",
    sessions: "sessions s",
    // Their revisions are not in the order of transactions.
    messages: None,
    last: "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1, state FROM
        (SELECT c.system_identifier # s.timeline_id::bigint # ('sessions'::regclass::oid::bigint << 32) AS state
        FROM pg_control_system() c, pg_control_checkpoint() s) store",
    state: "SELECT state FROM
        (SELECT c.system_identifier # s.timeline_id::bigint # ('sessions'::regclass::oid::bigint << 32) AS state
        FROM pg_control_system() c, pg_control_checkpoint() s) store WHERE ?1 > 0",
};

/// Whether `text` contains `part`, which consists of letters and digits, or has non-ASCII letters. Dashes,
/// quotation marks and `…` do not count: long titles end with `…`.
fn may_contain(text: &str, part: &str) -> String {
    format!("{text} COLLATE \"C\" ~* ('[^[:ascii:]\u{2010}-\u{2027}]|' || {part})")
}

/// As days and microseconds, which is exact for every time.
fn time(ts: Timestamp) -> String {
    const DAY: i64 = 86_400_000_000;
    let (days, micros) = (ts.as_micros().div_euclid(DAY), ts.as_micros().rem_euclid(DAY));
    format!("(TIMESTAMPTZ '1970-01-01 00:00:00+00' + INTERVAL '{days} days {micros} microseconds')")
}
