//! Freeing ids of events that damaged rows have.
//!
//! An id like `{session}_evt_{sequence}` is derived from the address of its event, and no event at another address gets
//! it. A row at another address with such an id is damaged: its session, its sequence or its id has changed. The event to
//! which the id belongs could not be written as long as that row has it.

use std::collections::HashMap;

use amplifier_session_core::{
    Result,
    backend::SessionChange,
    model::{Digest, Event, SessionId},
};

use crate::{
    Query, Reader as _, Statement, Value,
    backend::{Database, Writer},
    digest, number,
};

const OPERATION: &str = "free_event_ids";

/// The number of ids that are looked up at a time.
const LOOKED_UP: usize = 500;

/// A row that has the id of an event of another address.
struct Misplaced {
    session: SessionId,
    sequence: u32,
    event_id: String,
    digest: Digest,
}

/// Frees the ids of the events that `change` writes. Returns the number of changed rows.
///
/// A row with the line of the event is this event, at a wrong address: it is removed. Another one is an event with a
/// wrong id, and gets its own.
pub(super) fn free_event_ids<D: Database>(database: &D, change: &SessionChange) -> Result<usize> {
    let events = change.events.put.iter().map(|stored| &stored.event);
    let own: HashMap<&str, &Event> =
        events.filter(|event| event.has_derived_id()).map(|event| (event.event_id.as_str(), event)).collect();
    if own.is_empty() {
        return Ok(0);
    }
    let (ids, user): (Vec<&str>, _) = (own.keys().copied().collect(), change.session.user_id.as_str());
    let freed = database.transaction(OPERATION, |writer| {
        let mut freed = 0;
        for ids in ids.chunks(LOOKED_UP) {
            for row in writer.rows(&rows_with(user, ids))? {
                let Some(event) = own.get(row.event_id.as_str()) else { continue };
                if (&row.session, row.sequence) != (&event.session_id, event.sequence) {
                    free(writer, user, &row, row.digest == event.digest)?;
                    freed += 1;
                }
            }
        }
        Ok(freed)
    })?;
    if freed > 0 {
        tracing::warn!(session = %change.session.session_id, events = freed, "damaged rows had ids of its events");
    }
    Ok(freed)
}

fn rows_with(user: &str, ids: &[&str]) -> Query<Misplaced> {
    let places: Vec<String> = (2..ids.len() + 2).map(|place| format!("?{place}")).collect();
    let sql = format!(
        "SELECT session_id, sequence, event_id, digest FROM events WHERE user_id = ?1 AND event_id IN ({})",
        places.join(", ")
    );
    let values = std::iter::once(user).chain(ids.iter().copied()).map(Value::from);
    let decode = |row: &dyn crate::Columns| {
        Ok(Misplaced {
            session: SessionId::new(row.text(0)?)?,
            sequence: number(row, 1)?,
            event_id: row.text(2)?,
            digest: digest(row, 3)?,
        })
    };
    Query::new(OPERATION, sql, values, decode).once()
}

fn free(writer: &impl Writer, user: &str, row: &Misplaced, is_same_event: bool) -> Result<()> {
    let Misplaced { session, sequence, event_id, .. } = row;
    let address: [Value; 3] = [user.into(), session.as_str().into(), (*sequence).into()];
    let execute = |sql: &str, more: Option<Value>| {
        let values = address.iter().cloned().chain(more);
        writer.execute(&Statement::new(OPERATION, sql.to_owned(), values)).map(drop)
    };
    const ROW: &str = "user_id = ?1 AND session_id = ?2 AND sequence = ?3";
    if is_same_event {
        let sql = format!("DELETE FROM events WHERE {ROW} AND event_id = ?4");
        execute(&sql, Some(event_id.as_str().into()))?;
        return execute(&format!("DELETE FROM event_chunks WHERE {ROW}"), None);
    }
    let own_id = Event::derived_id(session, *sequence);
    execute(&format!("UPDATE events SET event_id = ?4 WHERE {ROW}"), Some(own_id.into()))
}
