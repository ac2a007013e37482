//! Writing vectors, and switching their generations.

use std::collections::HashMap;

use amplifier_session_core::{
    Error, Result,
    backend::{
        MessageVectors, MessagesToEmbed,
        meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    },
    model::{Digest, SessionKey, VectorState},
};

use super::{records_vectors, removal::RowsOf, update, vector_tables};
use crate::{
    Columns, Query, Reader, Statement, Value,
    backend::{Database, NewVector, VectorTarget, Writer},
    is_one_of, number,
    read::{self, of_session},
    rows::{has_something_to_embed, is_pending, removed, vector_state},
    table::{self, VECTOR_FAILURES},
};

/// Stores vectors of one session; returns their number.
pub(in crate::backend) fn vectors<D: Database>(
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

/// Stores the vectors of messages that have not changed since the vectors were made; returns the number of vectors.
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
        RowsOf { operation: "write_vectors", writer: &*writer, key }.remove_vectors(&which, revision)?;
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
    let sql = format!("{} transcripts SET {made} WHERE {which}", update(&*writer));
    writer.execute(&Statement::once("write_vectors", sql, []))?;
    Ok(vectors.len())
}

/// A message that vectors were made for.
struct EmbeddedLine {
    key: i64,
    sequence: u32,
    digest: Digest,
    /// Whether it may have vectors of the current generation.
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

/// Marks vectors of a session as pending again; returns the number of messages.
pub(in crate::backend) fn mark_pending<D: Database>(
    database: &D,
    key: &SessionKey,
    which: &MessagesToEmbed,
) -> Result<u64> {
    database.transaction("mark_pending", |writer| {
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
            "{} transcripts SET vectors = {} WHERE user_id = ?1 AND session_id = ?2 AND vectors = {} AND {which}",
            update(&*writer),
            VectorState::Outdated.code(),
            VectorState::Stored.code()
        );
        writer.execute(&Statement::once("mark_pending", sql, of_session(key))).map(|pending| pending as u64)
    })
}

/// Makes the next generation of vectors the current one, unless vectors of it are pending.
pub(in crate::backend) fn complete_generation<D: Database>(database: &D, generation: u32) -> Result<bool> {
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
        let made = format!(
            "{} transcripts SET vectors = {stored} WHERE {}",
            update(&*writer),
            is_pending("vectors")
        );
        writer.execute(&Statement::new(OPERATION, made, []))?;
        writer.make_current(generation, &next.space)?;
        let adopt =
            "UPDATE schema_meta SET value = (SELECT value FROM schema_meta WHERE key = ?2) WHERE key = ?1";
        let keys = [EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE].map(Value::from);
        writer.execute(&Statement::new(OPERATION, adopt, keys))?;
        Ok(true)
    })
}

/// Removes vectors of generations that are no longer searched, and all their failures; returns the number of removed
/// rows.
pub(in crate::backend) fn prune_vectors<D: Database>(database: &D, limit: usize) -> Result<usize> {
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
            let note = records_vectors(&*writer).then_some(note);
            for sql in note.into_iter().chain([format!("DELETE FROM {table} WHERE {which}")]) {
                writer.execute(&Statement::once(OPERATION, sql, []))?;
            }
            (left, pruned) = (left - keys.len(), pruned + keys.len());
        }
        let failures = format!("DELETE FROM vector_failures WHERE NOT ({kept})");
        Ok(pruned + writer.execute(&Statement::once(OPERATION, failures, []))?)
    })
}
