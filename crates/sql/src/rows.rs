//! Decoding rows: the columns of each kind of row, and the values of the model made from them.
//!
//! Every function fails with `Damaged`, with the row if possible, if a value is invalid, and with `StorageIo` if it
//! cannot be read.

use amplifier_session_core::{
    Result,
    backend::{
        DatedMessage, EventGroup, EventTime, MessageCount, RewoundTo, RowSpan, SkippedLine, StoredSession,
        StoredSyncState, UsageRow, Version, is_background,
    },
    model::{
        Digest, Event, HostId, Level, Message, MessageRef, MessageState, ProjectSlug, RawJson, Repository,
        Role, Session, SessionId, SessionKey, SessionSource, UserId, VectorRecord, VectorState, Visibility,
    },
};

use crate::{
    Columns,
    columns::{damaged, digest, maybe_number, named, number, unless_damaged, unnamed},
};

/// The columns of a session that [`session`] reads.
pub const SESSION: &str = "user_id, session_id, host_id, project_slug, created, updated, name, description, bundle, \
    model, turn_count, message_count, event_count, parent_id, forked_from_turn, tags, visibility, org_id, team_ids, \
    shared_at, working_dir, first_prompt, edited, source, moved_to, repository";

/// The columns between [`SESSION`] and [`SYNC_STATE`] that [`stored_session`] reads.
pub const SESSION_STATE: &str = "revision, skipped_lines";

/// The columns of a session that [`sync_state`] reads.
pub const SYNC_STATE: &str = "sync_state, settled, rewound_messages, rewound_events";

/// The columns of a message and of its session that [`message`] reads. It is a left join so that DuckDB first looks up
/// the message by its key; otherwise, it would scan all messages.
pub const MESSAGES: &str = "SELECT t.user_id, t.session_id, t.sequence, t.role, t.turn, t.ts, t.ts_source, t.synced_at, \
    t.vectors, t.digest, t.raw, s.host_id, s.project_slug \
    FROM transcripts t LEFT JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id";

/// The title and description of the session `s`, which searches look at.
pub const SESSION_TEXT: &str = "concat_ws(' ', s.name, s.first_prompt, s.session_id, s.description)";

/// The text of the event `e` that searches look at.
pub const EVENT_TEXT: &str = "concat_ws(' ', e.error_type, e.summary)";

/// The columns of a message that [`message_state`] reads.
pub const MESSAGE_STATE: &str = "digest, turn, ts, ts_source";

/// The columns of `transcripts t` that [`dated_message`] reads.
pub const DATED_MESSAGE: &str = "t.key, t.user_id, t.session_id, t.sequence, t.ts, t.ts_source, t.digest";

/// The columns of an event that [`event`] reads; host and project are those of its session.
pub const EVENT: &str = "e.event_id, e.user_id, e.session_id, e.sequence, e.event_type, e.ts, e.ts_estimated, \
    e.turn, e.level, e.tool_name, e.error_type, e.model, e.provider, e.summary, e.is_chunked, e.chunk_count, \
    e.data_size_bytes, e.digest, s.host_id, s.project_slug, e.synced_at";

/// The columns of an event that [`event_time`] reads. The summary is read only for tools, prompts, and calls that a
/// program made by itself, which few events concern. Its text has no spaces.
pub const EVENT_TIME: &str = "sequence, event_type, ts, ts_estimated, model, \
    CASE WHEN tool_name IS NOT NULL OR event_type = 'prompt:submit' \
        OR summary LIKE '%\"purpose\":\"%' OR summary LIKE '%\"origin_module\":\"%' THEN summary END";

/// The join of events and sessions.
pub const EVENT_OF_SESSION: &str = "ON e.user_id = s.user_id AND e.session_id = s.session_id";

/// The columns of a vector that [`record`] reads.
pub const VECTOR: &str = "content_type, chunk_index, total_chunks, span_start, span_end, token_count, vector";

/// The maximum number of rows in one result; callers read the rest in further calls.
pub const PAGE: usize = 10_000;

/// A page ends with the message that brings it to this size in bytes of lines.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The session of a row of [`SESSION`].
pub fn session(row: &dyn Columns) -> Result<Session> {
    named(row, (0, 1, None), read_session(row))
}

fn read_session(row: &dyn Columns) -> Result<Session> {
    Ok(Session {
        user_id: UserId::new(row.text(0)?)?,
        session_id: SessionId::new(row.text(1)?)?,
        host_id: HostId::new(row.text(2)?)?,
        project_slug: ProjectSlug::new(row.text(3)?)?,
        created: row.time(4)?,
        updated: row.time(5)?,
        name: row.maybe_text(6)?,
        description: row.maybe_text(7)?,
        bundle: row.maybe_text(8)?,
        model: row.maybe_text(9)?,
        turn_count: number(row, 10)?,
        message_count: number(row, 11)?,
        event_count: number(row, 12)?,
        parent_id: row.maybe_text(13)?.map(SessionId::new).transpose()?,
        forked_from_turn: maybe_number(row, 14)?,
        tags: row.texts(15)?,
        visibility: row.text(16)?.parse::<Visibility>()?,
        org_id: row.maybe_text(17)?,
        team_ids: row.texts(18)?,
        shared_at: row.maybe_time(19)?,
        working_dir: row.maybe_text(20)?,
        first_prompt: row.maybe_text(21)?,
        edited: serde_json::from_str(&row.text(22)?).map_err(|_| damaged("list of fields"))?,
        source: match row.maybe_text(23)? {
            Some(source) => source.parse::<SessionSource>()?,
            // DuckDB can't add a column that forbids it.
            None => SessionSource::default(),
        },
        moved_to: row.maybe_text(24)?,
        repository: row.maybe_text(25)?.map(Repository::new).transpose()?,
    })
}

/// The session of a row of [`SESSION`], [`SESSION_STATE`] and [`SYNC_STATE`], without its metadata files.
pub fn stored_session(row: &dyn Columns) -> Result<StoredSession> {
    named(row, (0, 1, None), read_stored_session(row))
}

fn read_stored_session(row: &dyn Columns) -> Result<StoredSession> {
    let skipped = row.text(27)?;
    Ok(StoredSession {
        session: session(row)?,
        version: Version(row.integer(26)?.to_string()),
        metadata_files: Vec::new(),
        skipped: serde_json::from_str::<Vec<SkippedLine>>(&skipped)
            .map_err(|_| damaged("list of skipped lines"))?,
        sync_state: sync_state(row, 28)?,
    })
}

/// The sync state in the columns [`SYNC_STATE`] from `index` on.
pub fn sync_state(row: &dyn Columns, index: usize) -> Result<Option<StoredSyncState>> {
    let Some(files) = row.maybe_text(index)? else { return Ok(None) };
    let rewound = maybe_number(row, index + 2)?.zip(maybe_number(row, index + 3)?);
    Ok(Some(StoredSyncState {
        files,
        settled: row.maybe_text(index + 1)?,
        rewound: rewound.map(|(messages, events)| RewoundTo { messages, events }),
    }))
}

/// The message of a row of [`MESSAGES`].
pub fn message(row: &dyn Columns) -> Result<Message> {
    named(row, (0, 1, Some(2)), read_message(row))
}

fn read_message(row: &dyn Columns) -> Result<Message> {
    let (digest, raw) = (digest(row, 9)?, row.line(10)?.into_owned());
    if Digest::of(&raw) != digest {
        return Err(damaged("line"));
    }
    Ok(Message {
        user_id: UserId::new(row.text(0)?)?,
        session_id: SessionId::new(row.text(1)?)?,
        sequence: number(row, 2)?,
        role: row.text(3)?.parse::<Role>()?,
        turn: maybe_number(row, 4)?,
        ts: row.time(5)?,
        ts_source: row.text(6)?.parse()?,
        synced_at: row.time(7)?,
        vectors: vector_state(row, 8)?,
        digest,
        raw: RawJson::new(raw),
        host_id: HostId::new(row.text(11)?)?,
        project_slug: ProjectSlug::new(row.text(12)?)?,
    })
}

/// The key, and the message with its time, of a row of [`DATED_MESSAGE`].
pub fn dated_message(row: &dyn Columns) -> Result<(i64, DatedMessage)> {
    let session = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
    let message_ref = MessageRef::new(session, number(row, 3)?);
    let (ts, ts_source, digest) = (row.time(4)?, row.text_ref(5)?.parse()?, digest(row, 6)?);
    Ok((row.integer(0)?, DatedMessage { message_ref, ts, ts_source, digest }))
}

/// The state of a message of a row of [`MESSAGE_STATE`].
pub fn message_state(row: &dyn Columns) -> Result<MessageState> {
    unnamed(read_message_state(row))
}

fn read_message_state(row: &dyn Columns) -> Result<MessageState> {
    Ok(MessageState {
        digest: digest(row, 0)?,
        turn: maybe_number(row, 1)?,
        ts: row.time(2)?,
        ts_source: row.text(3)?.parse()?,
    })
}

/// The event of a row of [`EVENT`].
pub fn event(row: &dyn Columns) -> Result<Event> {
    named(row, (1, 2, Some(3)), read_event(row))
}

fn read_event(row: &dyn Columns) -> Result<Event> {
    Ok(Event {
        event_id: row.text(0)?,
        user_id: UserId::new(row.text(1)?)?,
        session_id: SessionId::new(row.text(2)?)?,
        sequence: number(row, 3)?,
        event_type: row.text(4)?,
        ts: row.time(5)?,
        ts_estimated: row.flag(6)?,
        turn: maybe_number(row, 7)?,
        level: Level::parse(&row.text(8)?).ok_or_else(|| damaged("level"))?,
        tool_name: row.maybe_text(9)?,
        error_type: row.maybe_text(10)?,
        model: row.maybe_text(11)?,
        provider: row.maybe_text(12)?,
        summary: serde_json::from_str(&row.text(13)?).map_err(|_| damaged("summary"))?,
        is_chunked: row.flag(14)?,
        chunk_count: maybe_number(row, 15)?,
        data_size_bytes: count(row, 16)?,
        digest: digest(row, 17)?,
        host_id: HostId::new(row.text(18)?)?,
        project_slug: ProjectSlug::new(row.text(19)?)?,
        synced_at: row.maybe_time(20)?,
    })
}

/// The time that an event of a row of [`EVENT_TIME`] states. `start` is the index of the first column.
pub fn event_time(row: &dyn Columns, start: usize) -> Result<EventTime> {
    // An unreadable summary states no time; the other events are still read.
    let summary: serde_json::Map<String, serde_json::Value> = row
        .maybe_text(start + 5)?
        .and_then(|summary| serde_json::from_str(&summary).ok())
        .unwrap_or_default();
    Ok(EventTime {
        sequence: number(row, start)?,
        event_type: row.text(start + 1)?,
        ts: row.time(start + 2)?,
        ts_estimated: row.flag(start + 3)?,
        model: row.maybe_text(start + 4)?,
        tool_call_id: summary.get("tool_call_id").and_then(|id| id.as_str()).map(str::to_owned),
        prompt_digest: summary.get("prompt_digest").and_then(serde_json::Value::as_u64),
        is_background: is_background(&summary),
    })
}

/// The vector of a row of [`VECTOR`].
pub fn record(row: &dyn Columns) -> Result<VectorRecord> {
    Ok(VectorRecord {
        text: row.text(0)?.parse()?,
        chunk_index: number(row, 1)?,
        total_chunks: number(row, 2)?,
        span_start: number(row, 3)?,
        span_end: number(row, 4)?,
        token_count: number(row, 5)?,
        vector: row.vector(6)?,
        turn: None,
    })
}

/// Count, highest sequence, earliest and latest time: the first four columns. Invalid times are left out.
pub fn span(row: &dyn Columns) -> Result<RowSpan> {
    Ok(RowSpan {
        count: count(row, 0)?,
        last_sequence: maybe_number(row, 1)?,
        first_ts: unless_damaged(row.maybe_time(2))?.flatten(),
        last_ts: unless_damaged(row.maybe_time(3))?.flatten(),
    })
}

/// Quarter of an hour, type, tool, model, provider, whether it failed, and the session that it names: the first seven columns of
/// counted events.
pub fn event_group(row: &dyn Columns) -> Result<EventGroup> {
    Ok(EventGroup {
        quarter: row.time(0)?,
        event_type: row.text(1)?,
        tool_name: row.maybe_text(2)?,
        model: row.maybe_text(3)?,
        provider: row.maybe_text(4)?,
        failed: row.flag(5)?,
        of_session: row.maybe_text(6)?,
    })
}

/// The group of an event with usage, and then owner, session, digest, whether its time is an estimate, and summary.
/// `None` if the summary is not JSON.
pub fn usage_row(row: &dyn Columns) -> Result<Option<UsageRow>> {
    let Ok(summary) = serde_json::from_str(row.text_ref(11)?) else { return Ok(None) };
    Ok(Some(UsageRow {
        group: event_group(row)?,
        session: SessionKey::new(UserId::new(row.text(7)?)?, SessionId::new(row.text(8)?)?),
        digest: digest(row, 9)?,
        ts_estimated: row.flag(10)?,
        summary,
    }))
}

/// Quarter of an hour, role and number of messages.
pub fn message_count(row: &dyn Columns) -> Result<MessageCount> {
    Ok(MessageCount { quarter: row.time(0)?, role: row.text(1)?.parse()?, messages: count(row, 2)? })
}

/// A count.
pub fn count(row: &dyn Columns, index: usize) -> Result<u64> {
    row.integer(index).map(i64::unsigned_abs)
}

/// The state of a message's vectors.
pub fn vector_state(row: &dyn Columns, index: usize) -> Result<VectorState> {
    VectorState::from_code(number(row, index)?).ok_or_else(|| damaged("vector state"))
}

/// The condition that the vectors of a message's texts are pending. `column` is `transcripts.vectors`.
#[must_use]
pub fn is_pending(column: &str) -> String {
    format!("{column} IN ({}, {})", VectorState::Pending.code(), VectorState::Outdated.code())
}

/// The condition that only the vector of the turn that a message begins is pending. `column` is `transcripts.vectors`.
#[must_use]
pub fn is_turn_pending(column: &str) -> String {
    format!("{column} = {}", VectorState::TurnPending.code())
}

/// The condition that a message has vectors of the current generation. `column` is `transcripts.vectors`.
#[must_use]
pub fn has_vectors(column: &str) -> String {
    let states = [VectorState::Stored, VectorState::Outdated, VectorState::TurnPending];
    format!("{column} IN ({})", states.map(|state| state.code().to_string()).join(", "))
}

/// The condition that a message has something to embed. `column` is `transcripts.vectors`.
#[must_use]
pub fn has_something_to_embed(column: &str) -> String {
    format!("{column} <> {}", VectorState::Nothing.code())
}

/// Values of the column `kind` of `removed`.
pub mod removed {
    /// A message.
    pub const MESSAGE: i64 = 0;
    /// A vector of a text.
    pub const VECTOR: i64 = 1;
    /// A vector of a turn.
    pub const TURN: i64 = 2;
}

/// Values of the column `encoding` of `events`: the form of the payload.
pub mod encoding {
    /// No payload.
    pub const NONE: i64 = 0;
    /// The line.
    pub const PLAIN: i64 = 1;
    /// The line, compressed.
    pub const ZSTD: i64 = 2;
    /// Pieces in `event_chunks`.
    pub const CHUNKS: i64 = 3;
}
