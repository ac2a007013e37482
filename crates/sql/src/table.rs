//! Rows to write: tables, their columns and their values.

use std::borrow::Cow;

use amplifier_session_core::{
    backend::StoredSyncState,
    known_json,
    model::{Event, Message, MetadataFile, Payload, Session, SessionId, SessionKey, Timestamp},
};

use crate::rows::{SESSION, SESSION_STATE, SYNC_STATE, encoding};

/// A table, with its columns in the order in which rows are written.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in one or more lists.
    pub columns: &'static [&'static str],
}

impl Table {
    /// The statement that inserts a row. `values` contains the placeholders.
    #[must_use]
    pub fn insert(&self, values: &str) -> String {
        format!("INSERT INTO {} ({}) VALUES ({values})", self.name, self.columns.join(", "))
    }
}

/// A value to write.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// `NULL`.
    Null,
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Integer(i64),
    /// A boolean.
    Flag(bool),
    /// A point in time.
    Time(Timestamp),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A line, usually text.
    Line(&'a [u8]),
    /// A list of texts.
    Texts(&'a [String]),
    /// A vector.
    Vector(&'a [f32]),
}

impl<'a> Cell<'a> {
    /// A text.
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Text made for the row, such as JSON.
    #[must_use]
    pub fn made(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a Option<String>> for Cell<'a> {
    fn from(text: &'a Option<String>) -> Self {
        text.as_deref().map_or(Self::Null, Self::text)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Integer)
    }
}

impl From<Option<u32>> for Cell<'_> {
    fn from(number: Option<u32>) -> Self {
        number.map(i64::from).into()
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<Option<Timestamp>> for Cell<'_> {
    fn from(time: Option<Timestamp>) -> Self {
        time.map_or(Self::Null, Self::Time)
    }
}

/// A number of rows or bytes as a signed integer, as in SQL.
fn size(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Sessions.
pub const SESSIONS: Table = Table { name: "sessions", columns: &[SESSION, SESSION_STATE, SYNC_STATE, "key"] };

/// A session with the stored values that are not its fields.
#[derive(Debug)]
pub struct SessionRow<'a> {
    /// The session.
    pub session: &'a Session,
    /// The revision.
    pub revision: i64,
    /// The skipped lines, as JSON.
    pub skipped: Cow<'a, str>,
    /// How far its files were read.
    pub sync_state: Option<&'a StoredSyncState>,
    /// The key, unless the database assigns it.
    pub key: Option<i64>,
}

impl<'a> SessionRow<'a> {
    /// The row in [`SESSIONS`].
    #[must_use]
    pub fn cells(&'a self) -> [Cell<'a>; 33] {
        let session = self.session;
        let state = self.sync_state;
        let rewound = state.and_then(|state| state.rewound);
        [
            Cell::text(session.user_id.as_str()),
            Cell::text(session.session_id.as_str()),
            Cell::text(session.host_id.as_str()),
            Cell::text(session.project_slug.as_str()),
            Cell::Time(session.created),
            Cell::Time(session.updated),
            (&session.name).into(),
            (&session.description).into(),
            (&session.bundle).into(),
            (&session.model).into(),
            session.turn_count.into(),
            session.message_count.into(),
            session.event_count.into(),
            session.parent_id.as_ref().map_or(Cell::Null, |parent| Cell::text(SessionId::as_str(parent))),
            session.forked_from_turn.into(),
            Cell::Texts(&session.tags),
            Cell::text(session.visibility.as_str()),
            (&session.org_id).into(),
            Cell::Texts(&session.team_ids),
            session.shared_at.into(),
            (&session.working_dir).into(),
            (&session.first_prompt).into(),
            Cell::made(known_json(&session.edited)),
            Cell::text(session.source.as_str()),
            (&session.moved_to).into(),
            session.repository.as_ref().map_or(Cell::Null, |repository| Cell::text(repository.as_str())),
            Cell::Integer(self.revision),
            Cell::text(&self.skipped),
            state.map_or(Cell::Null, |state| Cell::text(&state.files)),
            state.map_or(Cell::Null, |state| (&state.settled).into()),
            rewound.map(|rewound| rewound.messages).into(),
            rewound.map(|rewound| rewound.events).into(),
            self.key.into(),
        ]
    }
}

/// The metadata files of sessions.
pub const METADATA_FILES: Table =
    Table { name: "metadata_files", columns: &["user_id, session_id, position, name, raw"] };

/// The row of a metadata file in [`METADATA_FILES`].
#[must_use]
pub fn metadata_file<'a>(key: &'a SessionKey, position: usize, file: &'a MetadataFile) -> [Cell<'a>; 5] {
    let [user, session] = of_session(key);
    [user, session, Cell::Integer(size(position)), Cell::text(&file.name), Cell::Bytes(file.raw.as_bytes())]
}

/// Messages.
pub const TRANSCRIPTS: Table = Table {
    name: "transcripts",
    columns: &[
        "key, user_id, session_id, sequence, role, turn, ts, ts_estimated, synced_at, vectors, digest, \
        revision, raw, generation, ts_source",
    ],
};

/// The row of a message in [`TRANSCRIPTS`]. A new line has no vectors of any generation.
#[must_use]
pub fn message(key: Option<i64>, revision: i64, message: &Message) -> [Cell<'_>; 15] {
    [
        key.into(),
        Cell::text(message.user_id.as_str()),
        Cell::text(message.session_id.as_str()),
        message.sequence.into(),
        Cell::text(message.role.as_str()),
        message.turn.into(),
        Cell::Time(message.ts),
        Cell::Flag(message.ts_estimated()),
        Cell::Time(message.synced_at),
        Cell::Integer(message.vectors.code().into()),
        Cell::Bytes(&message.digest.0),
        Cell::Integer(revision),
        Cell::Line(message.raw.as_bytes()),
        Cell::Integer(0),
        Cell::text(message.ts_source.as_str()),
    ]
}

/// Events.
pub const EVENTS: Table = Table {
    name: "events",
    columns: &[
        "user_id, session_id, sequence, event_id, event_type, ts, ts_estimated, turn, level, tool_name, \
        error_type, model, provider, summary, is_chunked, chunk_count, data_size_bytes, digest, encoding, raw, \
        synced_at",
    ],
};

/// The row of an event in [`EVENTS`].
#[must_use]
pub fn event<'a>(event: &'a Event, payload: &'a Payload) -> [Cell<'a>; 21] {
    let (encoding, raw) = match payload {
        Payload::None => (encoding::NONE, Cell::Null),
        Payload::Plain(bytes) => (encoding::PLAIN, Cell::Bytes(bytes)),
        Payload::Zstd(bytes) => (encoding::ZSTD, Cell::Bytes(bytes)),
        Payload::Chunks(_) => (encoding::CHUNKS, Cell::Null),
    };
    [
        Cell::text(event.user_id.as_str()),
        Cell::text(event.session_id.as_str()),
        event.sequence.into(),
        Cell::text(&event.event_id),
        Cell::text(&event.event_type),
        Cell::Time(event.ts),
        Cell::Flag(event.ts_estimated),
        event.turn.into(),
        Cell::text(event.level.as_str()),
        (&event.tool_name).into(),
        (&event.error_type).into(),
        (&event.model).into(),
        (&event.provider).into(),
        Cell::made(known_json(&event.summary)),
        Cell::Flag(event.is_chunked),
        event.chunk_count.into(),
        Cell::Integer(size(event.data_size_bytes)),
        Cell::Bytes(&event.digest.0),
        Cell::Integer(encoding),
        raw,
        event.synced_at.into(),
    ]
}

/// The chunks of payloads that are too long for one value.
pub const EVENT_CHUNKS: Table = Table {
    name: "event_chunks",
    columns: &["user_id, session_id, sequence, chunk_index, total_chunks, chunk_data"],
};

/// The row of a chunk in [`EVENT_CHUNKS`].
#[must_use]
pub fn event_chunk<'a>(event: &'a Event, index: usize, total: usize, chunk: &'a [u8]) -> [Cell<'a>; 6] {
    [
        Cell::text(event.user_id.as_str()),
        Cell::text(event.session_id.as_str()),
        event.sequence.into(),
        Cell::Integer(size(index)),
        Cell::Integer(size(total)),
        Cell::Bytes(chunk),
    ]
}

/// The reasons why messages have no vectors.
pub const VECTOR_FAILURES: Table =
    Table { name: "vector_failures", columns: &["user_id, session_id, sequence, generation, reason"] };

/// The row of a failure in [`VECTOR_FAILURES`].
#[must_use]
pub fn failure<'a>(key: &'a SessionKey, sequence: u32, generation: u32, reason: &'a str) -> [Cell<'a>; 5] {
    let [user, session] = of_session(key);
    [user, session, sequence.into(), generation.into(), Cell::text(reason)]
}

fn of_session(key: &SessionKey) -> [Cell<'_>; 2] {
    [Cell::text(key.user_id.as_str()), Cell::text(key.session_id.as_str())]
}
