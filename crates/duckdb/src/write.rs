//! The transactions that write.

use std::collections::HashSet;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{MessageVectors, OweAgain, SessionChange, Version},
    model::{SessionKey, UserId},
};
use amplifier_session_sql::read;
use duckdb::{Connection, params};

use crate::{
    appends::Appends,
    error::{storage, taken},
    events, generations, messages,
    pool::Writer,
    reader::Read,
    reader::is_one_of,
    sessions::{self, SessionRow},
    vectors,
};

/// Runs `write` in one transaction, with what it appends.
pub(crate) fn transaction<'a, T>(
    writer: &'a mut Writer,
    operation: &'static str,
    write: impl FnOnce(&Connection, &mut Appends<'a>) -> Result<T>,
) -> Result<T> {
    let Writer { connection, numbers } = writer;
    let transaction = connection.transaction().map_err(storage(operation))?;
    let mut appends = Appends::new(numbers);
    let answer = write(&transaction, &mut appends)?;
    appends.write(&transaction, operation)?;
    transaction.commit().map_err(storage(operation))?;
    Ok(answer)
}

/// Writes one session, all or nothing.
pub(crate) fn session<'a>(writer: &'a mut Writer, change: &'a SessionChange) -> Result<Version> {
    transaction(writer, "write", |connection, appends| put(connection, change, appends))
}

/// Writes sessions, each all or nothing: in one transaction, and each in its own where one of them can't be written.
pub(crate) fn sessions(writer: &mut Writer, changes: &[SessionChange]) -> Vec<Result<Version>> {
    let mut keys = HashSet::new();
    // Rows are appended at the end: a second change of a session would not see those of the first.
    if changes.iter().all(|change| keys.insert(change.session.key())) {
        let together = transaction(writer, "write", |connection, appends| {
            changes.iter().map(|change| put(connection, change, appends)).collect::<Result<Vec<_>>>()
        });
        if let Ok(versions) = together {
            return versions.into_iter().map(Ok).collect();
        }
    }
    changes.iter().map(|change| session(writer, change)).collect()
}

fn put<'a>(connection: &Connection, change: &'a SessionChange, appends: &mut Appends<'a>) -> Result<Version> {
    let key = change.session.key();
    let present = sessions::present(connection, &key).map_err(storage("write"))?;
    let version = present.as_ref().map(|present| Version(present.revision.to_string()));
    if version != change.expected {
        let message = "the session was written by somebody else in between";
        return Err(Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable());
    }
    let revision = appends.revision();
    if let Some(present) = &present {
        make_way(connection, &key, change, present, revision).map_err(storage("write"))?;
    }
    let row_key = present.as_ref().map_or_else(|| appends.key(), |present| present.key);
    let row = SessionRow::new(&change.session, row_key, revision).with_state(
        present,
        change.skipped.as_deref(),
        change.sync_state.as_deref(),
        change.metadata_files.as_deref(),
    );
    appends.session(row);
    appends.messages(&change.messages.put, row_key, revision);
    appends.events(&change.events.put);
    Ok(Version(revision.to_string()))
}

/// Removes what a change of a stored session replaces.
fn make_way(
    connection: &Connection,
    key: &SessionKey,
    change: &SessionChange,
    present: &sessions::Present,
    revision: i64,
) -> duckdb::Result<()> {
    sessions::delete(connection, key, change.metadata_files.is_some())?;
    let put = change.messages.put.iter().map(|message| message.sequence);
    if let Some(which) = replaced(change.messages.truncate, put) {
        messages::remove(connection, key, &which, revision)?;
    }
    messages::retime(connection, (key, present.key), &change.retimed, revision)?;
    let put = change.events.put.iter().map(|stored| stored.event.sequence);
    if let Some(which) = replaced(change.events.truncate, put) {
        events::remove(connection, key, &which)?;
    }
    if present.project != change.session.project_slug.as_str() {
        messages::touch(connection, key, revision)?;
    }
    Ok(())
}

/// The condition on `sequence` of the rows that are cut off or put anew, if there may be any.
fn replaced(truncate: Option<u32>, put: impl Iterator<Item = u32>) -> Option<String> {
    let put: Vec<i64> = put.map(i64::from).collect();
    let cut = truncate.map(|start| format!("sequence >= {start}"));
    let put = (!put.is_empty()).then(|| is_one_of("sequence", put));
    match (cut, put) {
        (Some(cut), Some(put)) => Some(format!("({cut} OR {put})")),
        (cut, put) => cut.or(put),
    }
}

/// Stores vectors of one session; returns how many.
pub(crate) fn vectors(
    writer: &mut Writer,
    key: &SessionKey,
    generation: u32,
    of_messages: &[MessageVectors],
) -> Result<usize> {
    transaction(writer, "write_vectors", |connection, appends| {
        let held = read::meta::generations(&Read(connection))?;
        let space = held.space(generation)?;
        let mut records = of_messages.iter().flat_map(|message| &message.records);
        records.try_for_each(|record| record.validate(space))?;
        let is_current = generation == held.current_number();
        if is_current {
            generations::make_room(connection, space).map_err(storage("write_vectors"))?;
        }
        let (model, dimensions) = (space.model.as_str(), space.dimensions);
        let target = vectors::Target { generation, model, dimensions, is_current };
        let revision = appends.revision();
        vectors::put(connection, key, of_messages, &target, revision, appends.numbers)
    })
}

/// Makes vectors of a session owed again; returns of how many messages.
pub(crate) fn owe_vectors(writer: &mut Writer, key: &SessionKey, which: &OweAgain) -> Result<u64> {
    transaction(writer, "owe_vectors", |connection, _| {
        let generation = read::meta::generations(&Read(connection))?.current_number();
        let owed =
            messages::owe_vectors(connection, key, which, generation).map_err(storage("owe_vectors"))?;
        Ok(owed as u64)
    })
}

/// Removes a session with all that belongs to it.
pub(crate) fn delete(writer: &mut Writer, key: &SessionKey) -> Result<bool> {
    transaction(writer, "delete_session", |connection, appends| {
        if sessions::present(connection, key).map_err(storage("delete_session"))?.is_none() {
            return Ok(false);
        }
        let revision = appends.revision();
        let delete = || {
            messages::remove(connection, key, "TRUE", revision)?;
            events::remove(connection, key, "TRUE")?;
            sessions::delete(connection, key, true)?;
            sessions::remember_deletion(connection, key)
        };
        delete().map_err(storage("delete_session"))?;
        Ok(true)
    })
}

/// Makes the sessions of one user those of another; returns how many.
pub(crate) fn rename_user(writer: &mut Writer, from: &UserId, to: &UserId) -> Result<u64> {
    transaction(writer, "rename_user", |connection, appends| {
        let revision = appends.revision();
        let users = [from.as_str(), to.as_str()];
        let rename = || {
            for table in ["metadata_files", "events", "event_chunks", "vector_failures", "deleted_sessions"] {
                connection.execute(&format!("UPDATE {table} SET user_id = ?2 WHERE user_id = ?1"), users)?;
            }
            // The index learns of it by the revision.
            for table in ["transcripts", "transcript_vectors", "other_vectors"] {
                let sql = format!("UPDATE {table} SET user_id = ?2, revision = ?3 WHERE user_id = ?1");
                connection.execute(&sql, params![users[0], users[1], revision])?;
            }
            let sql = "UPDATE sessions SET user_id = ?2, revision = ?3 WHERE user_id = ?1";
            connection.execute(sql, params![users[0], users[1], revision])
        };
        let same_ids = || format!("{from} and {to} have sessions or events of the same id");
        let renamed = rename().map_err(|error| taken("rename_user", error, same_ids))?;
        Ok(renamed as u64)
    })
}
