//! Reads of events: pages and searches.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result, Scope,
    backend::{CountedEvents, EventCounter, EventState, SequenceRange},
    model::{Event, Payload, SessionId, SessionKey, UserId},
    search::{EventFilter, EventSearchOptions},
};

use super::{limit, of_session};
use crate::{
    Columns, Conditions, Query, Reader, Value, damaged, digest, is_one_of, number,
    rows::{self, EVENT, EVENT_OF_SESSION, EVENT_TIME, PAGE, encoding},
    unless_damaged,
};

/// A page of the states of a session's events, in order of sequence.
#[must_use]
pub fn states(key: &SessionKey, range: SequenceRange, with_times: bool) -> Query<EventState> {
    let of = |columns: &str| {
        format!(
            "SELECT digest{columns} FROM events
             WHERE user_id = ?1 AND session_id = ?2 AND sequence >= ?3 ORDER BY sequence LIMIT ?4"
        )
    };
    if with_times {
        let decode = |row: &dyn Columns| {
            Ok(EventState { digest: digest(row, 0)?, time: Some(rows::event_time(row, 1)?) })
        };
        let values = from(key, range.start, range.limit.min(PAGE));
        return Query::new("event_states", of(&format!(", {EVENT_TIME}")), values, decode);
    }
    let decode = |row: &dyn Columns| Ok(EventState { digest: digest(row, 0)?, time: None });
    Query::new("event_states", of(""), from(key, range.start, range.limit), decode)
}

/// A page of a session's events, in order of sequence.
#[must_use]
pub fn page(key: &SessionKey, range: SequenceRange) -> Query<Event> {
    let sql = format!(
        "SELECT {EVENT} FROM events e JOIN sessions s {EVENT_OF_SESSION}
         WHERE e.user_id = ?1 AND e.session_id = ?2 AND e.sequence >= ?3 ORDER BY e.sequence LIMIT ?4"
    );
    Query::new("read_events", sql, from(key, range.start, range.limit.min(PAGE)), rows::event)
}

fn from(key: &SessionKey, start: u32, most: usize) -> impl Iterator<Item = Value> {
    of_session(key).into_iter().chain([start.into(), limit(most).into()])
}

/// The events that match `options`, newest first.
pub fn search<R: Reader>(reader: &R, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
    let mut conditions = Conditions::of_events(R::DIALECT, scope, &options.filter)?;
    if let Some(after) = &options.after {
        conditions.after_event(after);
    }
    conditions.without_events(&options.without);
    let most = options.limit.min(EventSearchOptions::MAX_LIMIT);
    // If the rows must be checked, the number of required rows is unknown.
    let words = options.filter.text.as_ref().filter(|_| !R::DIALECT.event_words.is_exact());
    let end = match words {
        Some(_) => String::new(),
        None => format!("LIMIT {}", conditions.bind(limit(most))),
    };
    let sql = format!(
        "SELECT {EVENT} FROM {} WHERE {}
         ORDER BY e.ts DESC, e.user_id DESC, e.session_id DESC, e.sequence DESC {end}",
        (R::DIALECT.events_in_order)(scope, &options.filter),
        conditions.sql()
    );
    let mut events = Vec::new();
    if most == 0 {
        return Ok(events);
    }
    reader.each(&Query::with_conditions("search_events", sql, conditions, rows::event), |event| {
        if words.is_none_or(|words| event.mentions(words)) {
            events.push(event);
        }
        if events.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(events)
}

/// The payloads of the events of these sequences, in any order. `Damaged` if chunks of one are missing.
pub fn of_sequences(
    reader: &impl Reader,
    key: &SessionKey,
    sequences: &[u32],
) -> Result<Vec<(u32, Payload)>> {
    let sql = format!(
        "SELECT sequence, encoding, raw FROM events WHERE user_id = ?1 AND session_id = ?2 AND {}",
        is_one_of("sequence", sequences.iter().copied().map(i64::from))
    );
    let stored = reader.rows(&Query::new("event_payloads", sql, of_session(key), stored_payload).once())?;
    let complete = |(sequence, payload): (u32, Option<Payload>)| match payload {
        Some(payload) => Ok((sequence, payload)),
        None => chunked_payload(reader, key, sequence).map(|payload| (sequence, payload)),
    };
    stored.into_iter().map(complete).collect()
}

/// An event and its payload; `None` if the payload is in chunks.
fn stored_payload(row: &dyn Columns) -> Result<(u32, Option<Payload>)> {
    let payload = match row.integer(1)? {
        encoding::NONE => Some(Payload::None),
        encoding::PLAIN => Some(Payload::Plain(row.bytes(2)?)),
        encoding::ZSTD => Some(Payload::Zstd(row.bytes(2)?)),
        encoding::CHUNKS => None,
        _ => return Err(damaged("payload")),
    };
    Ok((number(row, 0)?, payload))
}

fn chunked_payload(reader: &impl Reader, key: &SessionKey, sequence: u32) -> Result<Payload> {
    let sql = "SELECT chunk_data, total_chunks FROM event_chunks
        WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3 ORDER BY chunk_index";
    let values = of_session(key).into_iter().chain([sequence.into()]);
    let chunk = |row: &dyn Columns| Ok((row.bytes(0)?, rows::count(row, 1)?));
    let chunks = reader.rows(&Query::new("event_payloads", sql, values, chunk))?;
    if chunks.last().is_none_or(|(_, total)| chunks.len() as u64 != *total) {
        return Err(damaged("chunked payload"));
    }
    Ok(Payload::Chunks(chunks.into_iter().map(|(chunk, _)| chunk).collect()))
}

/// The events that match `filter`, counted by group. Examines each event, for filters that SQL cannot express.
/// `answered` selects the user and id of sessions that have a response with usage.
pub fn count_each<R: Reader>(
    reader: &R,
    scope: &Scope,
    filter: &EventFilter,
    answered: String,
) -> Result<CountedEvents> {
    let conditions = Conditions::of_events(R::DIALECT, scope, filter)?;
    let sql =
        format!("SELECT {EVENT} FROM events e JOIN sessions s {EVENT_OF_SESSION} WHERE {}", conditions.sql());
    let event = |row: &dyn Columns| unless_damaged(rows::event(row));
    let mut counter = EventCounter::default();
    reader.each(&Query::with_conditions("count_events", sql, conditions, event), |event| {
        if let Some(event) = event.filter(|event| filter.admits(event)) {
            counter.add(&event);
        }
        ControlFlow::Continue(())
    })?;
    if !counter.unanswered().is_empty() {
        counter.set_answered(reader.rows(&answered_sessions(answered))?);
    }
    Ok(counter.into_counts())
}

/// The sessions that `sql` selects by user and id.
pub fn answered_sessions(sql: String) -> Query<SessionKey> {
    Query::new("count_events", sql, [], |row| {
        Ok(SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?))
    })
}

/// The SQL of a database that counts groups of events.
#[derive(Debug, Clone, Copy)]
pub struct GroupedEvents<'a> {
    /// The columns of [`rows::event_group`].
    pub group: &'a str,
    /// The tables `events e` and `sessions s`.
    pub from: &'a str,
    /// How many events of a group are in the same log again, as [`EventCounter`] defines it.
    pub again: &'a str,
    /// The condition that an event may report usage.
    pub has_usage: &'a str,
}

/// The events that match `filter`, counted by group in the database. Only events with usage are examined one by one, by
/// the rules of `core`. The caller adds which sessions have responses.
pub fn count_groups<R: Reader>(
    reader: &R,
    scope: &Scope,
    filter: &EventFilter,
    sql: GroupedEvents<'_>,
) -> Result<EventCounter> {
    let GroupedEvents { group, from, again, has_usage } = sql;
    let mut counter = EventCounter::default();
    let conditions = Conditions::of_events(R::DIALECT, scope, filter)?;
    let groups = format!(
        "SELECT {group}, count(*), {again} FROM {from} WHERE {} GROUP BY 1, 2, 3, 4, 5, 6, 7",
        conditions.sql()
    );
    let count = |row: &dyn Columns| {
        let read = || Ok((rows::event_group(row)?, rows::count(row, 7)?, rows::count(row, 8)?));
        unless_damaged(read())
    };
    reader.each(&Query::with_conditions("count_events", groups, conditions, count), |count| {
        if let Some((group, all, again)) = count {
            counter.add_counts(group, all.saturating_sub(again), again);
        }
        ControlFlow::Continue(())
    })?;
    let conditions = Conditions::of_events(R::DIALECT, scope, filter)?;
    let usage = format!(
        "SELECT {group}, e.user_id, e.session_id, e.digest, e.ts_estimated, e.summary
         FROM {from} WHERE {has_usage} AND {}",
        conditions.sql()
    );
    let row = |row: &dyn Columns| unless_damaged(rows::usage_row(row));
    reader.each(&Query::with_conditions("count_events", usage, conditions, row), |row| {
        if let Some(row) = row.flatten() {
            counter.add_usage(row);
        }
        ControlFlow::Continue(())
    })?;
    Ok(counter)
}
