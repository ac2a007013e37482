//! The transactions that write.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        MessageVectors, OweAgain, SessionChange, Version,
        meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    },
    model::{SessionKey, UserId},
};
use amplifier_session_sql::read;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::{
    error::{storage, taken},
    events, messages,
    reader::Read,
    sessions, vectors,
};

/// Writes one session, all or nothing.
pub(crate) fn session(connection: &mut Connection, change: &SessionChange) -> Result<Version> {
    let transaction = begin(connection).map_err(storage("write"))?;
    let version = put(&transaction, change)?;
    transaction.commit().map_err(storage("write"))?;
    Ok(version)
}

/// Writes sessions, each all or nothing: in one transaction, and each in its own where one of them can't be written.
pub(crate) fn sessions(connection: &mut Connection, changes: &[SessionChange]) -> Vec<Result<Version>> {
    let together = match begin(connection).map_err(storage("write")) {
        Ok(transaction) => put_all(transaction, changes),
        // Each would wait as long for another writer.
        Err(error) => return vec![Err(error); changes.len()],
    };
    match together {
        Ok(versions) => versions.into_iter().map(Ok).collect(),
        Err(_) => changes.iter().map(|change| session(connection, change)).collect(),
    }
}

fn put_all(transaction: Transaction<'_>, changes: &[SessionChange]) -> Result<Vec<Version>> {
    let versions = changes.iter().map(|change| put(&transaction, change)).collect::<Result<_>>()?;
    transaction.commit().map_err(storage("write"))?;
    Ok(versions)
}

fn put(transaction: &Transaction<'_>, change: &SessionChange) -> Result<Version> {
    let key = change.session.key();
    let stored = sessions::stored_place(transaction, &key).map_err(storage("write"))?;
    let present = stored.as_ref().map(|(revision, _)| Version(revision.to_string()));
    if present != change.expected {
        let message = "the session was written by somebody else in between";
        return Err(Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable());
    }
    let project_before = stored.map(|(_, project)| project);
    let revision = apply(transaction, &key, change, project_before.as_deref()).map_err(storage("write"))?;
    Ok(Version(revision.to_string()))
}

fn apply(
    transaction: &Transaction<'_>,
    key: &SessionKey,
    change: &SessionChange,
    project_before: Option<&str>,
) -> rusqlite::Result<i64> {
    let revision = next_revision(transaction)?;
    let is_new = project_before.is_none();
    sessions::put(
        transaction,
        &change.session,
        change.skipped.as_deref(),
        change.sync_state.as_deref(),
        revision,
    )?;
    if let Some(files) = &change.metadata_files {
        sessions::put_metadata_files(transaction, key, files)?;
    }
    if let Some(start) = change.messages.truncate {
        vectors::truncate(transaction, key, start, revision)?;
        messages::truncate(transaction, key, start, revision)?;
    }
    for message in &change.messages.put {
        if !is_new {
            vectors::remove_of_message(transaction, key, message.sequence, revision)?;
        }
        messages::put(transaction, message, revision)?;
    }
    for retimed in &change.retimed {
        messages::retime(transaction, key, retimed, revision)?;
    }
    if let Some(start) = change.events.truncate {
        events::truncate(transaction, key, start)?;
    }
    if !is_new {
        events::remove_replaced(transaction, key, &change.events.put)?;
    }
    for event in &change.events.put {
        events::put(transaction, event)?;
    }
    if project_before.is_some_and(|project| project != change.session.project_slug.as_str()) {
        messages::touch(transaction, key, revision)?;
    }
    Ok(revision)
}

/// Stores vectors of one session; returns how many.
pub(crate) fn vectors(
    connection: &mut Connection,
    key: &SessionKey,
    generation: u32,
    of_messages: &[MessageVectors],
) -> Result<usize> {
    let transaction = begin(connection).map_err(storage("write_vectors"))?;
    let held = read::meta::generations(&Read(&transaction))?;
    let space = held.space(generation)?;
    let mut records = of_messages.iter().flat_map(|message| &message.records);
    records.try_for_each(|record| record.validate(space))?;
    let is_current = generation == held.current_number();
    let target = vectors::Target { generation, model: &space.model, is_current };
    let write = || {
        let revision = next_revision(&transaction)?;
        let mut stored = 0;
        for of_message in of_messages {
            stored += vectors::put(&transaction, key, of_message, &target, revision)?;
        }
        Ok(stored)
    };
    let stored = write().map_err(storage("write_vectors"))?;
    transaction.commit().map_err(storage("write_vectors"))?;
    Ok(stored)
}

/// Makes vectors of a session owed again; returns of how many messages.
pub(crate) fn owe_vectors(connection: &mut Connection, key: &SessionKey, which: &OweAgain) -> Result<u64> {
    let transaction = begin(connection).map_err(storage("owe_vectors"))?;
    let generation = read::meta::generations(&Read(&transaction))?.current_number();
    let owed = messages::owe_vectors(&transaction, key, which, generation).map_err(storage("owe_vectors"))?;
    transaction.commit().map_err(storage("owe_vectors"))?;
    Ok(owed as u64)
}

/// Makes the next generation of vectors the current one, if no message owes vectors of it.
pub(crate) fn complete_generation(connection: &mut Connection, generation: u32) -> Result<bool> {
    let transaction = begin(connection).map_err(storage("complete_generation"))?;
    let held = read::meta::generations(&Read(&transaction))?;
    if held.current_number() == generation {
        return Ok(true);
    }
    held.next.filter(|next| next.number == generation).ok_or_else(|| {
        Error::validation("generation", format!("generation {generation} is not the next one"))
    })?;
    let complete = || {
        let owing = "SELECT EXISTS (SELECT 1 FROM transcripts WHERE vectors <> 2 AND generation <> ?1)";
        if transaction.query_one(owing, [generation], |row| row.get(0))? {
            return Ok(false);
        }
        transaction.execute("UPDATE transcripts SET vectors = 1 WHERE vectors IN (0, 3)", [])?;
        let adopt =
            "UPDATE schema_meta SET value = (SELECT value FROM schema_meta WHERE key = ?2) WHERE key = ?1";
        transaction.execute(adopt, [EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE])?;
        Ok(true)
    };
    let complete = complete().map_err(storage("complete_generation"))?;
    transaction.commit().map_err(storage("complete_generation"))?;
    Ok(complete)
}

/// Removes vectors of generations that nobody searches any more; returns how many.
pub(crate) fn prune_vectors(connection: &mut Connection, limit: usize) -> Result<usize> {
    let transaction = begin(connection).map_err(storage("prune_vectors"))?;
    let held = read::meta::generations(&Read(&transaction))?;
    let current = held.current_number();
    let kept = [current, held.next.map_or(current, |next| next.number)];
    let prune = || {
        let revision = next_revision(&transaction)?;
        vectors::prune(&transaction, kept, limit, revision)
    };
    let pruned = prune().map_err(storage("prune_vectors"))?;
    transaction.commit().map_err(storage("prune_vectors"))?;
    Ok(pruned)
}

/// Removes a session with all that belongs to it.
pub(crate) fn delete(connection: &mut Connection, key: &SessionKey) -> Result<bool> {
    let mut delete = || {
        let transaction = begin(connection)?;
        if sessions::stored_place(&transaction, key)?.is_none() {
            return Ok(false);
        }
        let revision = next_revision(&transaction)?;
        vectors::truncate(&transaction, key, 0, revision)?;
        messages::truncate(&transaction, key, 0, revision)?;
        events::truncate(&transaction, key, 0)?;
        sessions::delete(&transaction, key)?;
        sessions::remember_deletion(&transaction, key)?;
        transaction.commit()?;
        Ok(true)
    };
    delete().map_err(storage("delete_session"))
}

/// Makes the sessions of one user those of another; returns how many.
pub(crate) fn rename_user(connection: &mut Connection, from: &UserId, to: &UserId) -> Result<u64> {
    let mut rename = || {
        let transaction = begin(connection)?;
        let revision = next_revision(&transaction)?;
        let users = [from.as_str(), to.as_str()];
        for table in ["metadata_files", "events", "event_chunks", "vector_failures", "deleted_sessions"] {
            transaction.execute(&format!("UPDATE {table} SET user_id = ?2 WHERE user_id = ?1"), users)?;
        }
        // The index learns of it by the revision.
        for table in ["transcripts", "transcript_vectors"] {
            let sql = format!("UPDATE {table} SET user_id = ?2, revision = ?3 WHERE user_id = ?1");
            transaction.execute(&sql, params![users[0], users[1], revision])?;
        }
        let sql = "UPDATE sessions SET user_id = ?2, revision = ?3 WHERE user_id = ?1";
        let renamed = transaction.execute(sql, params![users[0], users[1], revision])?;
        transaction.commit()?;
        Ok(renamed as u64)
    };
    let same_ids = || format!("{from} and {to} have sessions or events of the same id");
    rename().map_err(|error| taken("rename_user", error, same_ids))
}

/// Takes the write lock at once, so that what is read in the transaction is what will be written over.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn next_revision(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction.prepare_cached("INSERT INTO revisions (nonce) VALUES (random())")?.execute([])?;
    Ok(transaction.last_insert_rowid())
}
