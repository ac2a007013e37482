//! Rows in bulk: gathered while a transaction looks at what it replaces, and appended to the tables at its end.
//!
//! A statement a row takes DuckDB a millisecond; the appender takes some microseconds.

use amplifier_session_core::{
    Result,
    model::{Message, StoredEvent},
};
use duckdb::{
    Connection, params,
    types::{Null, ToSqlOutput, Value},
};

use crate::{
    error::storage, events, messages::message_key, pool::Numbers, reader::time, sessions::SessionRow,
};

/// What a transaction adds.
#[derive(Debug)]
pub(crate) struct Appends<'a> {
    pub(crate) numbers: &'a mut Numbers,
    revisions: Vec<i64>,
    sessions: Vec<SessionRow<'a>>,
    /// With the revision and the key of each.
    messages: Vec<(i64, i64, &'a Message)>,
    events: Vec<&'a StoredEvent>,
}

impl<'a> Appends<'a> {
    pub(crate) fn new(numbers: &'a mut Numbers) -> Self {
        Self {
            numbers,
            revisions: Vec::new(),
            sessions: Vec::new(),
            messages: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Takes the next revision.
    pub(crate) fn revision(&mut self) -> i64 {
        let revision = self.numbers.next_revision();
        self.revisions.push(revision);
        revision
    }

    /// Takes the next key of a row.
    pub(crate) fn key(&mut self) -> i64 {
        self.numbers.next_key()
    }

    /// Adds a session.
    pub(crate) fn session(&mut self, session: SessionRow<'a>) {
        self.sessions.push(session);
    }

    /// Adds messages of the session whose row has this key.
    pub(crate) fn messages(&mut self, messages: &'a [Message], session: i64, revision: i64) {
        let key = |message: &Message| message_key(session, message.sequence);
        self.messages.extend(messages.iter().map(|message| (revision, key(message), message)));
    }

    /// Adds events.
    pub(crate) fn events(&mut self, events: &'a [StoredEvent]) {
        self.events.extend(events);
    }

    /// Writes it all to the tables.
    pub(crate) fn write(self, connection: &Connection, operation: &'static str) -> Result<()> {
        self.append(connection).map_err(storage(operation))
    }

    fn append(self, connection: &Connection) -> duckdb::Result<()> {
        let nonces = "INSERT INTO revisions VALUES (?1, CAST(random() * 9007199254740992 AS BIGINT))";
        for revision in &self.revisions {
            connection.prepare_cached(nonces)?.execute([revision])?;
        }
        for session in &self.sessions {
            session.insert(connection)?;
        }
        append_messages(connection, &self.messages)?;
        events::append(connection, &self.events)
    }
}

fn append_messages(connection: &Connection, messages: &[(i64, i64, &Message)]) -> duckdb::Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut appender = connection.appender("transcripts")?;
    for (revision, key, message) in messages {
        appender.append_row(params![
            key,
            message.user_id.as_str(),
            message.session_id.as_str(),
            message.sequence,
            message.role.as_str(),
            message.turn,
            time(message.ts),
            message.ts_estimated(),
            time(message.synced_at),
            message.vectors.code(),
            message.digest.0.as_slice(),
            revision,
            message.raw.as_bytes(),
            0u32,
            message.ts_source.as_str(),
        ])?;
    }
    appender.flush()
}

/// Bytes, or nothing.
pub(crate) fn maybe_bytes(bytes: Option<&[u8]>) -> ToSqlOutput<'_> {
    bytes.map_or(ToSqlOutput::Owned(Value::from(Null)), ToSqlOutput::from)
}
