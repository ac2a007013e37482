//! Reads of messages: pages, states and counts.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    backend::{MessageCount, PendingQuery, SequenceRange},
    model::{Message, MessageState, SessionKey},
    search::SearchFilter,
};

use super::{limit, meta, of_session};
use crate::{
    Columns, Conditions, Dialect, PendingRows, Query, Reader, is_one_of,
    rows::{self, MESSAGE_STATE, MESSAGES, PAGE, PAGE_BYTES},
    unless_damaged,
};

/// The states of a session's messages, in order of sequence.
#[must_use]
pub fn states(key: &SessionKey) -> Query<MessageState> {
    let sql = format!(
        "SELECT {MESSAGE_STATE} FROM transcripts WHERE user_id = ?1 AND session_id = ?2 ORDER BY sequence"
    );
    Query::new("message_states", sql, of_session(key), rows::message_state)
}

/// Messages of a session in order of sequence; to be read by [`page`].
#[must_use]
pub fn of_session_from(key: &SessionKey, range: SequenceRange) -> Query<Message> {
    let sql = format!(
        "{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND t.sequence >= ?3 ORDER BY t.sequence LIMIT ?4"
    );
    let range = [range.start.into(), limit(range.limit.min(PAGE)).into()];
    Query::new("read_messages", sql, of_session(key).into_iter().chain(range), rows::message)
}

/// The messages of a query, until they exceed [`PAGE_BYTES`].
pub fn page(reader: &impl Reader, query: &Query<Message>) -> Result<Vec<Message>> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    reader.each(query, |message| {
        bytes += message.raw.as_bytes().len();
        messages.push(message);
        if bytes < PAGE_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(messages)
}

/// Messages with pending vectors, in order. `reader` reads one snapshot.
pub fn pending<R: Reader>(reader: &R, query: &PendingQuery) -> Result<Vec<Message>> {
    let held = meta::generations(reader)?;
    let read = |rows| match R::DIALECT.batch {
        Some(_) => pending_by_key(reader, query, rows),
        None => page(reader, &pending_of(R::DIALECT, query, rows)),
    };
    if held.is_next(query.generation) {
        return read(PendingRows::OfNext);
    }
    if held.current_number() != query.generation {
        return Ok(Vec::new());
    }
    let of_texts = read(PendingRows::Texts)?;
    if !query.turns {
        return Ok(of_texts);
    }
    // Each kind has its own index.
    Ok(merged(of_texts, read(PendingRows::Turns)?, query.limit.min(PAGE)))
}

/// The first `most` messages of two pages. Nothing after the end of a page counts: it may not have been read.
fn merged(one: Vec<Message>, other: Vec<Message>, most: usize) -> Vec<Message> {
    let place = |message: &Message| (message.session_id.clone(), message.sequence);
    let end = |page: &[Message]| page.last().filter(|_| page.len() >= most || is_large(page)).map(place);
    let end = [end(&one), end(&other)].into_iter().flatten().min();
    let mut messages: Vec<Message> = one.into_iter().chain(other).collect();
    messages.sort_by_key(place);
    messages.retain(|message| end.as_ref().is_none_or(|end| place(message) <= *end));
    messages.truncate(most);
    messages
}

/// Whether a page ends because of its size.
fn is_large(page: &[Message]) -> bool {
    page.iter().map(|message| message.raw.as_bytes().len()).sum::<usize>() >= PAGE_BYTES
}

/// As [`pending_of`], for a database that has no index of pending messages: to sort them, it would read all their
/// lines. So their keys are sorted first.
fn pending_by_key<R: Reader>(reader: &R, query: &PendingQuery, rows: PendingRows) -> Result<Vec<Message>> {
    /// The number of messages in one result, which the database holds in memory.
    const AT_ONCE: usize = 256;
    let mut conditions = Conditions::of_pending(R::DIALECT, query, rows);
    let most = conditions.bind(limit(query.limit.min(PAGE)));
    let keys = format!(
        "SELECT t.key FROM transcripts t WHERE {} ORDER BY t.session_id, t.sequence LIMIT {most}",
        conditions.sql()
    );
    let keys = Query::with_conditions("read_messages", keys, conditions, |row| row.integer(0));
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for keys in reader.rows(&keys)?.chunks(AT_ONCE) {
        let of_keys = is_one_of("t.key", keys.iter().copied());
        let sql = format!("{MESSAGES} WHERE {of_keys} ORDER BY t.session_id, t.sequence");
        let found = reader.rows(&Query::new("read_messages", sql, [], rows::message).once())?;
        bytes += found.iter().map(|message| message.raw.as_bytes().len()).sum::<usize>();
        messages.extend(found);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(messages)
}

/// Messages with pending vectors; to be read by [`page`].
#[must_use]
pub fn pending_of(dialect: Dialect, query: &PendingQuery, rows: PendingRows) -> Query<Message> {
    let mut conditions = Conditions::of_pending(dialect, query, rows);
    let most = conditions.bind(limit(query.limit.min(PAGE)));
    let sql = format!("{MESSAGES} WHERE {} ORDER BY t.session_id, t.sequence LIMIT {most}", conditions.sql());
    Query::with_conditions("read_messages", sql, conditions, rows::message)
}

/// Counts the messages that `filter` admits by quarter of an hour and role.
pub fn counts<R: Reader>(reader: &R, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
    let conditions = Conditions::of_messages(R::DIALECT, scope, filter)?;
    let sql = format!(
        "SELECT {} AS quarter, t.role, count(*) FROM {} WHERE {} GROUP BY 1, 2",
        (R::DIALECT.quarter_hour)("t.ts"),
        R::DIALECT.messages_of_sessions,
        conditions.sql()
    );
    let decode = |row: &dyn Columns| unless_damaged(rows::message_count(row));
    let counts = reader.rows(&Query::with_conditions("count_messages", sql, conditions, decode))?;
    Ok(counts.into_iter().flatten().collect())
}
