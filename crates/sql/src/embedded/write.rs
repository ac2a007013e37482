//! The transactions that write.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        MessageVectors, MessagesToEmbed, SessionChange, Version,
        meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    },
    model::{Digest, Payload, Retimed, SessionKey, StoredEvent, UserId, VectorState},
};

use super::{Database, NewVector, VectorTarget, Writer};
use crate::{
    Columns, Query, Reader, Statement, Value, deletions, is_one_of, number,
    read::{self, of_session},
    rows::{has_something_to_embed, is_pending, removed, vector_state},
    table::{self, EVENT_CHUNKS, EVENTS, METADATA_FILES, SESSIONS, SessionRow, TRANSCRIPTS, VECTOR_FAILURES},
};

/// How many messages get another time in one statement.
const RETIMED: usize = 1000;

/// Writes sessions, each all or nothing: in one transaction, or each in its own where one of them can't be written.
pub(super) fn sessions<D: Database>(database: &D, changes: &[SessionChange]) -> Vec<Result<Version>> {
    let mut keys = HashSet::new();
    // Inserted rows may be held back: a second change of a session would not see those of the first.
    if changes.len() > 1 && changes.iter().all(|change| keys.insert(change.session.key())) {
        let mut began = false;
        let together = database.transaction("write", |writer| {
            began = true;
            changes.iter().map(|change| session(writer, change)).collect::<Result<Vec<_>>>()
        });
        match together {
            Ok(versions) => return versions.into_iter().map(Ok).collect(),
            // Each would wait as long for another writer.
            Err(error) if !began => return vec![Err(error); changes.len()],
            Err(_) => {}
        }
    }
    changes.iter().map(|change| database.transaction("write", |writer| session(writer, change))).collect()
}

fn session<W: Writer>(writer: &mut W, change: &SessionChange) -> Result<Version> {
    let key = change.session.key();
    let stored = writer.first(&Stored::query(&key))?;
    let version = stored.as_ref().map(|stored| Version(stored.revision.to_string()));
    if version != change.expected {
        let message = "the session was written by somebody else in between";
        return Err(Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable());
    }
    let revision = writer.next_revision()?;
    if let Some(stored) = &stored {
        make_way(writer, &key, change, stored, revision)?;
    }
    let session_key = stored.as_ref().map(|stored| stored.key).or_else(|| writer.new_session_key());
    let row = SessionRow {
        session: &change.session,
        revision,
        skipped: match (&change.skipped, &stored) {
            (Some(lines), _) => Cow::Owned(table::skipped(lines)),
            (None, Some(stored)) => Cow::Borrowed(&stored.skipped),
            (None, None) => Cow::Borrowed("[]"),
        },
        sync_state: change
            .sync_state
            .as_ref()
            .or(stored.as_ref().and_then(|stored| stored.sync_state.as_ref()))
            .map(Into::into),
        key: session_key,
    };
    writer.insert(&SESSIONS, &row.cells())?;
    for (position, file) in change.metadata_files.iter().flatten().enumerate() {
        writer.insert(&METADATA_FILES, &table::metadata_file(&key, position, file))?;
    }
    for message in &change.messages.put {
        let message_key = W::message_key(session_key, message.sequence);
        writer.insert(&TRANSCRIPTS, &table::message(message_key, revision, message))?;
    }
    for stored in &change.events.put {
        event(writer, stored)?;
    }
    Ok(Version(revision.to_string()))
}

fn event(writer: &mut impl Writer, stored: &StoredEvent) -> Result<()> {
    writer.insert(&EVENTS, &table::event(&stored.event, &stored.payload))?;
    let Payload::Chunks(chunks) = &stored.payload else { return Ok(()) };
    for (index, chunk) in chunks.iter().enumerate() {
        writer.insert(&EVENT_CHUNKS, &table::event_chunk(&stored.event, index, chunks.len(), chunk))?;
    }
    Ok(())
}

/// What a write has to know of the session that is there.
struct Stored {
    key: i64,
    revision: i64,
    project: String,
    skipped: String,
    sync_state: Option<String>,
}

impl Stored {
    fn query(key: &SessionKey) -> Query<Self> {
        let sql = "SELECT key, revision, project_slug, skipped_lines, sync_state FROM sessions
            WHERE user_id = ?1 AND session_id = ?2";
        Query::new("write", sql, of_session(key), |row| {
            Ok(Self {
                key: row.integer(0)?,
                revision: row.integer(1)?,
                project: row.text(2)?,
                skipped: row.text(3)?,
                sync_state: row.maybe_text(4)?,
            })
        })
    }
}

/// Removes what a change of a stored session replaces.
fn make_way(
    writer: &impl Writer,
    key: &SessionKey,
    change: &SessionChange,
    stored: &Stored,
    revision: i64,
) -> Result<()> {
    delete("write", writer, "sessions", key)?;
    if change.metadata_files.is_some() {
        delete("write", writer, "metadata_files", key)?;
    }
    let put = change.messages.put.iter().map(|message| message.sequence);
    if let Some(which) = replaced(change.messages.truncate, put) {
        remove_messages("write", writer, key, &which, revision)?;
    }
    retime(writer, key, &change.retimed, revision)?;
    let put = change.events.put.iter().map(|stored| stored.event.sequence);
    if let Some(which) = replaced(change.events.truncate, put) {
        remove_events("write", writer, key, &which)?;
    }
    if stored.project != change.session.project_slug.as_str() {
        touch(writer, key, "TRUE", revision, &["transcripts"])?;
        touch(writer, key, "TRUE", revision, vector_tables(writer))?;
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

/// Removes the messages of a session that `which` selects, with their vectors, and notes it for the index.
fn remove_messages(
    operation: &'static str,
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<()> {
    if remove_noted(operation, writer, removed::MESSAGE, "transcripts", key, which, revision)? > 0 {
        remove_vectors(operation, writer, key, which, revision)?;
    }
    Ok(())
}

/// Removes what is known of the vectors of a session that `which` selects, and notes it for the index.
fn remove_vectors(
    operation: &'static str,
    writer: &impl Writer,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<()> {
    for table in vector_tables(writer) {
        remove_noted(operation, writer, removed::VECTOR, table, key, which, revision)?;
    }
    remove(operation, writer, "vector_failures", key, which).map(drop)
}

fn remove_events(operation: &'static str, writer: &impl Writer, key: &SessionKey, which: &str) -> Result<()> {
    remove(operation, writer, "events", key, which)?;
    remove(operation, writer, "event_chunks", key, which).map(drop)
}

/// Removes rows that the index knows; returns how many.
fn remove_noted(
    operation: &'static str,
    writer: &impl Writer,
    kind: i64,
    table: &str,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> Result<usize> {
    let sql = format!(
        "INSERT INTO removed (kind, revision, key)
         SELECT {kind}, {revision}, key FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}"
    );
    let removed = writer.execute(&Statement::once(operation, sql, of_session(key)))?;
    // Most writes append: there is nothing to remove then.
    if removed > 0 { remove(operation, writer, table, key, which) } else { Ok(0) }
}

fn delete(operation: &'static str, writer: &impl Writer, table: &str, key: &SessionKey) -> Result<usize> {
    let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2");
    writer.execute(&Statement::new(operation, sql, of_session(key)))
}

fn remove(
    operation: &'static str,
    writer: &impl Writer,
    table: &str,
    key: &SessionKey,
    which: &str,
) -> Result<usize> {
    let sql = format!("DELETE FROM {table} WHERE user_id = ?1 AND session_id = ?2 AND {which}");
    writer.execute(&Statement::once(operation, sql, of_session(key)))
}

/// Gives rows of a session a new revision, so that the index takes them in again.
fn touch(writer: &impl Writer, key: &SessionKey, which: &str, revision: i64, tables: &[&str]) -> Result<()> {
    for table in tables {
        let sql = format!(
            "UPDATE {table} SET revision = {revision} WHERE user_id = ?1 AND session_id = ?2 AND {which}"
        );
        writer.execute(&Statement::once("write", sql, of_session(key)))?;
    }
    Ok(())
}

/// Gives messages other times, and a new revision to them and their vectors so that the index takes the times in.
fn retime<W: Writer>(writer: &W, key: &SessionKey, retimed: &[Retimed], revision: i64) -> Result<()> {
    // One statement for many: each takes DuckDB a millisecond.
    for some in retimed.chunks(RETIMED) {
        let row = |of: &Retimed| {
            let (ts, source) = ((W::DIALECT.time)(of.ts), of.ts_source);
            let estimated = if source.is_estimated() { "TRUE" } else { "FALSE" };
            format!("({}, {ts}, {estimated}, '{source}')", of.sequence)
        };
        let rows: Vec<String> = some.iter().map(row).collect();
        let sql = format!(
            "WITH times(sequence, ts, estimated, source) AS (VALUES {})
             UPDATE transcripts SET ts = times.ts, ts_estimated = times.estimated, ts_source = times.source,
                 revision = {revision}
             FROM times
             WHERE user_id = ?1 AND session_id = ?2 AND transcripts.sequence = times.sequence",
            rows.join(", ")
        );
        writer.execute(&Statement::once("write", sql, of_session(key)))?;
        let which = is_one_of("sequence", some.iter().map(|of| of.sequence.into()));
        touch(writer, key, &which, revision, vector_tables(writer))?;
    }
    Ok(())
}

/// Stores vectors of one session; returns how many.
pub(super) fn vectors<D: Database>(
    database: &D,
    key: &SessionKey,
    generation: u32,
    of_messages: &[MessageVectors],
) -> Result<usize> {
    database.transaction("write_vectors", |writer| {
        let held = read::meta::generations(writer)?;
        let space = held.space(generation)?;
        let mut records = of_messages.iter().flat_map(|message| &message.records);
        records.try_for_each(|record| record.validate(space))?;
        let is_current = generation == held.current_number();
        if is_current {
            writer.prepare_for(space)?;
        }
        let revision = writer.next_revision()?;
        put_vectors(writer, &VectorTarget { key, generation, is_current, space, revision }, of_messages)
    })
}

/// Stores the vectors of the messages whose lines are still those that they were made of; returns how many.
fn put_vectors<W: Writer>(
    writer: &mut W,
    target: &VectorTarget<'_>,
    of_messages: &[MessageVectors],
) -> Result<usize> {
    let VectorTarget { key, generation, is_current, revision, .. } = *target;
    let lines = writer.rows(&EmbeddedLine::query(key, of_messages.iter().map(|of| of.sequence)))?;
    let lines: HashMap<u32, EmbeddedLine> = lines.into_iter().map(|line| (line.sequence, line)).collect();
    let line_of = |of: &MessageVectors| lines.get(&of.sequence).filter(|line| line.digest == of.digest);
    let fresh: Vec<(&MessageVectors, &EmbeddedLine)> =
        of_messages.iter().filter_map(|of| Some((of, line_of(of)?))).collect();
    if !is_current || fresh.iter().any(|(_, line)| line.may_have_vectors) {
        let which = is_one_of("sequence", fresh.iter().map(|(of, _)| of.sequence.into()));
        let which = format!("{which} AND generation = {generation}");
        remove_vectors("write_vectors", writer, key, &which, revision)?;
    }
    let vectors: Vec<NewVector<'_>> = fresh
        .iter()
        .flat_map(|(of, _)| {
            let (sequence, created_at) = (of.sequence, of.created_at);
            of.records.iter().map(move |record| NewVector { sequence, created_at, record })
        })
        .collect();
    writer.insert_vectors(target, &vectors)?;
    for (of, _) in &fresh {
        if let Some(reason) = &of.failure {
            writer.insert(&VECTOR_FAILURES, &table::failure(key, of.sequence, generation, reason))?;
        }
    }
    let made = match is_current {
        true => format!("vectors = {}", VectorState::Stored.code()),
        false => format!("generation = {generation}"),
    };
    let which = is_one_of("key", fresh.iter().map(|(_, line)| line.key));
    let sql = format!("UPDATE transcripts SET {made} WHERE {which}");
    writer.execute(&Statement::once("write_vectors", sql, []))?;
    Ok(vectors.len())
}

/// A message that vectors were made of.
struct EmbeddedLine {
    key: i64,
    sequence: u32,
    digest: Digest,
    /// Of the current generation.
    may_have_vectors: bool,
}

impl EmbeddedLine {
    fn query(key: &SessionKey, sequences: impl Iterator<Item = u32>) -> Query<Self> {
        let sql = format!(
            "SELECT key, sequence, digest, vectors FROM transcripts
             WHERE user_id = ?1 AND session_id = ?2 AND {}",
            is_one_of("sequence", sequences.map(i64::from))
        );
        let decode = |row: &dyn Columns| {
            Ok(Self {
                key: row.integer(0)?,
                sequence: number(row, 1)?,
                digest: crate::digest(row, 2)?,
                may_have_vectors: vector_state(row, 3)? != VectorState::Pending,
            })
        };
        Query::new("write_vectors", sql, of_session(key), decode).once()
    }
}

/// Makes vectors of a session pending again; returns of how many messages.
pub(super) fn mark_pending<D: Database>(
    database: &D,
    key: &SessionKey,
    which: &MessagesToEmbed,
) -> Result<u64> {
    database.transaction("owe_vectors", |writer| {
        let generation = read::meta::generations(writer)?.current_number();
        let which = match which {
            MessagesToEmbed::All => "TRUE".to_owned(),
            MessagesToEmbed::Failed => format!(
                "sequence IN (SELECT sequence FROM vector_failures
                     WHERE user_id = ?1 AND session_id = ?2 AND generation = {generation})"
            ),
            MessagesToEmbed::At(sequences) => is_one_of("sequence", sequences.iter().copied().map(i64::from)),
        };
        let sql = format!(
            "UPDATE transcripts SET vectors = {} WHERE user_id = ?1 AND session_id = ?2 AND vectors = {} AND {which}",
            VectorState::Outdated.code(),
            VectorState::Stored.code()
        );
        writer.execute(&Statement::once("owe_vectors", sql, of_session(key))).map(|pending| pending as u64)
    })
}

/// Makes the next generation of vectors the current one, unless vectors of it are pending.
pub(super) fn complete_generation<D: Database>(database: &D, generation: u32) -> Result<bool> {
    const OPERATION: &str = "complete_generation";
    database.transaction(OPERATION, |writer| {
        let held = read::meta::generations(writer)?;
        if held.current_number() == generation {
            return Ok(true);
        }
        let next = held.next.filter(|next| next.number == generation).ok_or_else(|| {
            Error::validation("generation", format!("generation {generation} is not the next one"))
        })?;
        let pending = format!(
            "SELECT 1 FROM transcripts WHERE {} AND generation <> ?1 LIMIT 1",
            has_something_to_embed("vectors")
        );
        if writer.first(&Query::new(OPERATION, pending, [generation.into()], |_| Ok(())))?.is_some() {
            return Ok(false);
        }
        let stored = VectorState::Stored.code();
        let made = format!("UPDATE transcripts SET vectors = {stored} WHERE {}", is_pending("vectors"));
        writer.execute(&Statement::new(OPERATION, made, []))?;
        writer.make_current(generation, &next.space)?;
        let adopt =
            "UPDATE schema_meta SET value = (SELECT value FROM schema_meta WHERE key = ?2) WHERE key = ?1";
        let keys = [EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE].map(Value::from);
        writer.execute(&Statement::new(OPERATION, adopt, keys))?;
        Ok(true)
    })
}

/// Removes vectors of generations that nobody searches any more, and all their failures; returns how many.
pub(super) fn prune_vectors<D: Database>(database: &D, limit: usize) -> Result<usize> {
    const OPERATION: &str = "prune_vectors";
    database.transaction(OPERATION, |writer| {
        let held = read::meta::generations(writer)?;
        let kept = is_one_of("generation", held.numbers().map(i64::from));
        let revision = writer.next_revision()?;
        let (mut left, mut pruned) = (limit, 0);
        for table in vector_tables(writer) {
            let sql = format!("SELECT key FROM {table} WHERE NOT ({kept}) ORDER BY key LIMIT ?1");
            let limit = [read::limit(left).into()];
            let keys = writer.rows(&Query::new(OPERATION, sql, limit, |row| row.integer(0)).once())?;
            let which = is_one_of("key", keys.iter().copied());
            let note = format!(
                "INSERT INTO removed (kind, revision, key)
                 SELECT {}, {revision}, key FROM {table} WHERE {which}",
                removed::VECTOR
            );
            for sql in [note, format!("DELETE FROM {table} WHERE {which}")] {
                writer.execute(&Statement::once(OPERATION, sql, []))?;
            }
            (left, pruned) = (left - keys.len(), pruned + keys.len());
        }
        let failures = format!("DELETE FROM vector_failures WHERE NOT ({kept})");
        Ok(pruned + writer.execute(&Statement::once(OPERATION, failures, []))?)
    })
}

/// Removes a session with all that belongs to it; returns whether there was one.
pub(super) fn delete_session<D: Database>(database: &D, key: &SessionKey) -> Result<bool> {
    const OPERATION: &str = "delete_session";
    database.transaction(OPERATION, |writer| {
        if writer.first(&Stored::query(key))?.is_none() {
            return Ok(false);
        }
        let revision = writer.next_revision()?;
        remove_messages(OPERATION, writer, key, "TRUE", revision)?;
        remove_events(OPERATION, writer, key, "TRUE")?;
        for table in ["metadata_files", "sessions"] {
            delete(OPERATION, writer, table, key)?;
        }
        for sql in [deletions::FORGET, deletions::REMEMBER] {
            writer.execute(&Statement::new(OPERATION, sql, of_session(key)))?;
        }
        Ok(true)
    })
}

/// Makes the sessions of one user those of another; returns how many.
pub(super) fn rename_user<D: Database>(database: &D, from: &UserId, to: &UserId) -> Result<u64> {
    const OPERATION: &str = "rename_user";
    let renamed = database.transaction(OPERATION, |writer| {
        let revision = writer.next_revision()?;
        let rename = |table: &str, set: &str| {
            let sql = format!("UPDATE {table} SET user_id = ?2{set} WHERE user_id = ?1");
            writer.execute(&Statement::once(OPERATION, sql, [from.as_str().into(), to.as_str().into()]))
        };
        for table in ["metadata_files", "events", "event_chunks", "vector_failures", "deleted_sessions"] {
            rename(table, "")?;
        }
        // The index learns of it by the revision.
        let revised = format!(", revision = {revision}");
        for table in vector_tables(writer).iter().chain(&["transcripts"]) {
            rename(table, &revised)?;
        }
        rename("sessions", &revised).map(|renamed| renamed as u64)
    });
    renamed.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            let message = format!("{from} and {to} have sessions or events of the same id");
            Error::new(ErrorKind::Conflict, message).with_operation(OPERATION)
        }
        _ => error,
    })
}

/// [`Meta::swap_meta`](amplifier_session_core::backend::Meta::swap_meta).
pub(super) fn swap_meta<D: Database>(
    database: &D,
    key: &str,
    expected: Option<&str>,
    value: &str,
) -> Result<Option<String>> {
    const OPERATION: &str = "swap_meta";
    database.transaction(OPERATION, |writer| {
        let (sql, values): (_, Vec<Value>) = match expected {
            Some(expected) => (
                "UPDATE schema_meta SET value = ?3 WHERE key = ?1 AND value = ?2",
                vec![key.into(), expected.into(), value.into()],
            ),
            None => (
                "INSERT INTO schema_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING",
                vec![key.into(), value.into()],
            ),
        };
        writer.execute(&Statement::new(OPERATION, sql, values))?;
        let stored = "SELECT value FROM schema_meta WHERE key = ?1";
        writer.first(&Query::new(OPERATION, stored, [key.into()], |row| row.text(0)))
    })
}

fn vector_tables<R: Reader>(_: &R) -> &'static [&'static str] {
    R::DIALECT.vector_tables
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
