//! Writing and renaming sessions.

use std::{borrow::Cow, collections::HashSet};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{SessionChange, StoredSyncState, Version},
    known_json,
    model::{Payload, Retimed, Session, SessionKey, StoredEvent, UserId, Visibility},
};

use super::{
    event_ids::free_event_ids, own_tables, removal::RowsOf, superseded, turns, update, vector_tables,
};
use crate::{
    Columns, Query, Reader, Statement,
    backend::{Database, Writer},
    is_one_of,
    read::of_session,
    removals,
    rows::{self, SYNC_STATE},
    table::{self, EVENT_CHUNKS, EVENTS, METADATA_FILES, SESSIONS, SessionRow},
    turns::SUMMARIES,
    unless_damaged,
};

/// The number of messages that one statement gives new times.
const RETIMED: usize = 1000;

/// Writes sessions, each completely or not at all: all in one transaction, or each in its own if one of them cannot be
/// written.
pub(in crate::backend) fn sessions<D: Database>(
    database: &D,
    changes: &[SessionChange],
) -> Vec<Result<Version>> {
    let mut keys = HashSet::new();
    // Inserted rows may be buffered, so a second change of a session would not see those of the first.
    if changes.len() > 1 && changes.iter().all(|change| keys.insert(change.session.key())) {
        let mut began = false;
        let together = database.transaction("write", |writer| {
            began = true;
            changes.iter().map(|change| session(writer, change)).collect::<Result<Vec<_>>>()
        });
        match together {
            Ok(versions) => return versions.into_iter().map(Ok).collect(),
            // Each would wait just as long for the other writer.
            Err(error) if !began || error.is_lock_timeout() => return vec![Err(error); changes.len()],
            Err(_) => {}
        }
    }
    changes.iter().map(|change| alone(database, change)).collect()
}

/// Writes one session in a transaction of its own. If damaged rows have the ids of its events, frees these ids first.
fn alone<D: Database>(database: &D, change: &SessionChange) -> Result<Version> {
    let write = || database.transaction("write", |writer| session(writer, change));
    match write() {
        Err(error) if error.kind() == ErrorKind::Conflict && free_event_ids(database, change)? > 0 => write(),
        written => written,
    }
}

fn session<W: Writer>(writer: &mut W, change: &SessionChange) -> Result<Version> {
    let key = change.session.key();
    let stored = writer.first(&Stored::query(&key))?;
    if stored.as_ref().map(Stored::version) != change.expected {
        return Err(changed_meanwhile(&key));
    }
    let revision = writer.next_revision()?;
    superseded::insert(writer, &key, &change.superseded)?;
    if let Some(stored) = &stored {
        remove_replaced(writer, &key, change, stored, revision)?;
    }
    // A session keeps its key, because keys of its messages and the search index contain it.
    let session_key = stored.as_ref().map(|stored| stored.key).or_else(|| writer.new_session_key());
    let row = SessionRow {
        session: &change.session,
        revision,
        skipped: match (&change.skipped, &stored) {
            (Some(lines), _) => Cow::Owned(known_json(lines)),
            (None, Some(stored)) => Cow::Borrowed(&stored.skipped),
            (None, None) => Cow::Borrowed("[]"),
        },
        sync_state: change
            .sync_state
            .as_ref()
            .or(stored.as_ref().and_then(|stored| stored.sync_state.as_ref())),
        key: session_key,
    };
    writer.insert(&SESSIONS, &row.cells())?;
    for (position, file) in change.metadata_files.iter().flatten().enumerate() {
        writer.insert(&METADATA_FILES, &table::metadata_file(&key, position, file))?;
    }
    for message in &change.messages.put {
        writer.insert_message(session_key, revision, message)?;
    }
    for stored in &change.events.put {
        event(writer, stored)?;
    }
    Ok(version(revision))
}

/// The version of a session that was last changed by the write with this revision.
pub(super) fn version(revision: i64) -> Version {
    Version(revision.to_string())
}

/// The error for a session that has another version than its writer expected.
pub(super) fn changed_meanwhile(key: &SessionKey) -> Error {
    let message = "another writer changed the session in the meantime";
    Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable()
}

fn event(writer: &mut impl Writer, stored: &StoredEvent) -> Result<()> {
    writer.insert(&EVENTS, &table::event(&stored.event, &stored.payload))?;
    let Payload::Chunks(chunks) = &stored.payload else { return Ok(()) };
    for (index, chunk) in chunks.iter().enumerate() {
        writer.insert(&EVENT_CHUNKS, &table::event_chunk(&stored.event, index, chunks.len(), chunk))?;
    }
    Ok(())
}

/// The properties of the stored session that a write needs.
pub(super) struct Stored {
    key: i64,
    revision: i64,
    project: String,
    /// `None` if it can't be read.
    sharing: Option<StoredSharing>,
    skipped: String,
    sync_state: Option<StoredSyncState>,
}

impl Stored {
    pub(super) fn version(&self) -> Version {
        version(self.revision)
    }

    pub(super) fn query(key: &SessionKey) -> Query<Self> {
        let sql = format!(
            "SELECT key, revision, project_slug, skipped_lines, visibility, org_id, team_ids, {SYNC_STATE}
             FROM sessions
             WHERE user_id = ?1 AND session_id = ?2"
        );
        Query::new("write", sql, of_session(key), |row| {
            Ok(Self {
                key: row.integer(0)?,
                revision: row.integer(1)?,
                project: row.text(2)?,
                skipped: row.text(3)?,
                sharing: unless_damaged(StoredSharing::read(row, 4))?,
                sync_state: rows::sync_state(row, 7)?,
            })
        })
    }
}

/// Who could see a stored session.
struct StoredSharing {
    visibility: String,
    org_id: Option<String>,
    team_ids: Vec<String>,
}

impl StoredSharing {
    /// The sharing in the columns from `index` on.
    fn read(row: &dyn Columns, index: usize) -> Result<Self> {
        Ok(Self {
            visibility: row.text(index)?,
            org_id: row.maybe_text(index + 1)?,
            team_ids: row.texts(index + 2)?,
        })
    }

    /// Whether somebody who could see the session may not be able to after a write of `session`.
    fn may_shrink(&self, session: &Session) -> bool {
        let is_same = self.visibility == session.visibility.as_str()
            && self.org_id == session.org_id
            && self.team_ids == session.team_ids;
        !is_same && self.visibility != Visibility::Private.as_str()
    }
}

/// Removes the rows that a change replaces.
fn remove_replaced(
    writer: &impl Writer,
    key: &SessionKey,
    change: &SessionChange,
    stored: &Stored,
    revision: i64,
) -> Result<()> {
    let rows = RowsOf { operation: "write", writer, key };
    if stored.sharing.as_ref().is_none_or(|sharing| sharing.may_shrink(&change.session)) {
        rows.execute_once(removals::add(revision, "user_id = ?1 AND session_id = ?2"))?;
    }
    rows.delete("sessions")?;
    if change.metadata_files.is_some() {
        rows.delete("metadata_files")?;
    }
    let put = change.messages.put.iter().map(|message| message.sequence);
    let which = replaced(change.messages.truncate, put);
    turns::mark_changed(&rows, change, which.as_deref())?;
    if let Some(which) = which {
        turns::remove_vectors(&rows, &which, revision)?;
        rows.remove_messages(&which, revision)?;
    }
    turns::remove_summaries(&rows, &change.removed_messages())?;
    retime(&rows, &change.retimed, revision)?;
    let put = change.events.put.iter().map(|stored| stored.event.sequence);
    if let Some(which) = replaced(change.events.truncate, put) {
        rows.remove_events(&which)?;
    }
    if stored.project != change.session.project_slug.as_str() {
        rows.touch("TRUE", revision, true)?;
    }
    Ok(())
}

/// The condition on `sequence` of rows that are truncated or replaced, if there can be any.
fn replaced(truncate: Option<u32>, put: impl Iterator<Item = u32>) -> Option<String> {
    let put: Vec<i64> = put.map(i64::from).collect();
    let cut = truncate.map(|start| format!("sequence >= {start}"));
    let put = (!put.is_empty()).then(|| is_one_of("sequence", put));
    match (cut, put) {
        (Some(cut), Some(put)) => Some(format!("({cut} OR {put})")),
        (cut, put) => cut.or(put),
    }
}

/// Gives messages new times, and a new revision to them and their vectors, so that the index reads them again.
fn retime<W: Writer>(rows: &RowsOf<'_, W>, retimed: &[Retimed], revision: i64) -> Result<()> {
    // One statement for many, because each takes DuckDB a millisecond.
    for some in retimed.chunks(RETIMED) {
        let row = |of: &Retimed| {
            let (ts, source) = ((W::DIALECT.time)(of.ts), of.ts_source);
            let estimated = if source.is_estimated() { "TRUE" } else { "FALSE" };
            format!("({}, {ts}, {estimated}, '{source}')", of.sequence)
        };
        let times: Vec<String> = some.iter().map(row).collect();
        rows.execute_once(format!(
            "WITH times(sequence, ts, estimated, source) AS (VALUES {})
             {} transcripts SET ts = times.ts, ts_estimated = times.estimated, ts_source = times.source,
                 revision = {revision}
             FROM times
             WHERE user_id = ?1 AND session_id = ?2 AND transcripts.sequence = times.sequence",
            times.join(", "),
            update(rows.writer)
        ))?;
        let which = is_one_of("sequence", some.iter().map(|of| of.sequence.into()));
        rows.touch(&which, revision, false)?;
    }
    Ok(())
}

/// Moves the sessions of one user to another; returns their number.
pub(in crate::backend) fn rename_user<D: Database>(database: &D, from: &UserId, to: &UserId) -> Result<u64> {
    const OPERATION: &str = "rename_user";
    let renamed = database.transaction(OPERATION, |writer| {
        let revision = writer.next_revision()?;
        let rename = |table: &str, set: &str| {
            let sql = format!("{} {table} SET user_id = ?2{set} WHERE user_id = ?1", update(&*writer));
            writer.execute(&Statement::once(OPERATION, sql, [from.as_str().into(), to.as_str().into()]))
        };
        // Under their old keys, the sessions are gone.
        let add = removals::add(revision, "user_id = ?1");
        writer.execute(&Statement::once(OPERATION, add, [from.as_str().into()]))?;
        let tables = [
            "metadata_files",
            "events",
            "event_chunks",
            "vector_failures",
            "deleted_sessions",
            "superseded_lines",
        ];
        for table in tables.iter().chain([&SUMMARIES.name]).chain(own_tables(writer)) {
            rename(table, "")?;
        }
        // The index detects it by the revision.
        let revised = format!(", revision = {revision}");
        for table in vector_tables(writer).map(|(table, _)| table).chain(["transcripts"]) {
            rename(table, &revised)?;
        }
        let changed = <D::Writer<'_> as Reader>::DIALECT.changes.set;
        rename("sessions", &format!("{revised}{changed}")).map(|renamed| renamed as u64)
    });
    renamed.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            let message = format!("{from} and {to} have sessions or events with the same id");
            Error::new(ErrorKind::Conflict, message).with_operation(OPERATION)
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_or_put_anew_is_replaced() {
        assert_eq!(replaced(None, [].into_iter()), None);
        assert_eq!(replaced(Some(3), [].into_iter()).unwrap(), "sequence >= 3");
        assert_eq!(replaced(None, [1, 2].into_iter()).unwrap(), "sequence BETWEEN 1 AND 2");
        assert_eq!(replaced(Some(3), [7].into_iter()).unwrap(), "(sequence >= 3 OR sequence IN (7))");
    }
}
