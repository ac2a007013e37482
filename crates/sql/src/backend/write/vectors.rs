//! Writing vectors, and switching their generations.

use std::collections::{BTreeSet, HashMap};

use amplifier_session_core::{
    Error, ErrorField, Result,
    backend::{
        MessageVectors, MessagesToEmbed, TurnLines,
        meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    },
    model::{Digest, SessionKey, VectorState, VectorText},
};

use super::{records_vectors, removal::RowsOf, update, vector_tables};
use crate::{
    Columns, Query, Reader, Statement, Value,
    backend::{Database, NewVector, VectorTarget, Writer},
    columns::maybe_number,
    is_one_of, number,
    read::{self, of_session},
    rows::{has_something_to_embed, is_pending, is_turn_pending, removed, vector_state},
    table::{self, VECTOR_FAILURES},
    turns::{self, EMBEDDINGS},
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
        let mut records = of_messages.iter().flat_map(MessageVectors::records);
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
    let mut replaced = fresh.iter().filter(|(of, _)| of.records.is_some()).peekable();
    if replaced.peek().is_some() && (!is_current || fresh.iter().any(|(_, line)| line.may_have_vectors)) {
        let which = is_one_of("sequence", replaced.map(|(of, _)| of.sequence.into()));
        let which = format!("{which} AND generation = {generation}");
        RowsOf { operation: "write_vectors", writer: &*writer, key }.remove_vectors(&which, revision)?;
    }
    let lines = begun_lines(writer, key, &fresh)?;
    let leaves_turn = |of: &MessageVectors| of.leaves_turn(lines.begun_by(of.sequence));
    let mut vectors: Vec<NewVector<'_>> = Vec::new();
    for of in of_messages_in(&fresh) {
        let (sequence, created_at) = (of.sequence, of.created_at);
        // Of the next generation, the vector of a turn that has changed meanwhile is left out: it is pending
        // afterwards.
        let is_outdated = !is_current && leaves_turn(of);
        let records = of.records().iter();
        let records = records.filter(|record| !is_outdated || record.text != VectorText::Turn);
        vectors.extend(records.map(|record| NewVector { sequence, created_at, record }));
    }
    let (of_turns, of_texts): (Vec<_>, Vec<_>) =
        vectors.into_iter().partition(|new| new.record.text == VectorText::Turn);
    if !of_turns.is_empty() {
        // Of one model, a turn has one vector, even while a rebuild changes only the number of dimensions.
        let which = is_one_of("sequence", of_turns.iter().map(|new| new.sequence.into()));
        let which = format!("{which} AND model = '{}'", target.space.model.replace('\'', "''"));
        let rows = RowsOf { operation: "write_vectors", writer: &*writer, key };
        rows.remove_recorded(removed::TURN, EMBEDDINGS.name, &which, revision)?;
    }
    writer.insert_vectors(target, &of_texts)?;
    for new in &of_turns {
        let assigned = writer.turn_key();
        if let Some(row) = turns::embedding(target, new, assigned) {
            writer.insert(&EMBEDDINGS, &row)?;
        }
    }
    for of in of_messages_in(&fresh).filter(|of| of.records.is_some()) {
        if let Some(reason) = &of.failure {
            writer.insert(&VECTOR_FAILURES, &table::failure(key, of.sequence, generation, reason))?;
        }
    }
    let (pending, whole): (Vec<_>, Vec<_>) = fresh.iter().partition(|(of, _)| is_current && leaves_turn(of));
    let state = |state: VectorState| format!("vectors = {}", state.code());
    let made = if is_current { state(VectorState::Stored) } else { format!("generation = {generation}") };
    for (some, set) in [(whole, made), (pending, state(VectorState::TurnPending))] {
        if !some.is_empty() {
            let which = is_one_of("key", some.iter().map(|(_, line)| line.key));
            let sql = format!("{} transcripts SET {set} WHERE {which}", update(&*writer));
            writer.execute(&Statement::once("write_vectors", sql, []))?;
        }
    }
    Ok(of_texts.len() + of_turns.len())
}

/// Vectors with the lines of their messages.
type Fresh<'a> = (&'a MessageVectors, &'a EmbeddedLine);

fn of_messages_in<'a>(fresh: &[Fresh<'a>]) -> impl Iterator<Item = &'a MessageVectors> {
    fresh.iter().map(|(of, _)| *of)
}

/// The lines of the turns that these messages may begin.
fn begun_lines<W: Writer>(writer: &W, key: &SessionKey, fresh: &[Fresh<'_>]) -> Result<TurnLines> {
    let turns: BTreeSet<u32> = fresh.iter().filter_map(|(_, line)| line.turn).collect();
    if turns.is_empty() { Ok(TurnLines::default()) } else { turns::lines_of(writer, key, &turns) }
}

/// A message that vectors were made for.
struct EmbeddedLine {
    key: i64,
    sequence: u32,
    digest: Digest,
    /// Its turn, if a user wrote it.
    turn: Option<u32>,
    /// Whether it may have vectors of the current generation.
    may_have_vectors: bool,
}

impl EmbeddedLine {
    fn query(key: &SessionKey, sequences: impl Iterator<Item = u32>) -> Query<Self> {
        let sql = format!(
            "SELECT key, sequence, digest, vectors, CASE WHEN role = 'user' THEN turn END FROM transcripts
             WHERE user_id = ?1 AND session_id = ?2 AND {}",
            is_one_of("sequence", sequences.map(i64::from))
        );
        let decode = |row: &dyn Columns| {
            Ok(Self {
                key: row.integer(0)?,
                sequence: number(row, 1)?,
                digest: crate::digest(row, 2)?,
                may_have_vectors: vector_state(row, 3)? != VectorState::Pending,
                turn: maybe_number(row, 4)?,
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
        let (states, after) = which.transition();
        let which = match which {
            MessagesToEmbed::All => "TRUE".to_owned(),
            MessagesToEmbed::Failed => format!(
                "sequence IN (SELECT sequence FROM vector_failures
                     WHERE user_id = ?1 AND session_id = ?2 AND generation = {generation})"
            ),
            MessagesToEmbed::At(sequences) | MessagesToEmbed::TurnsAt(sequences) => {
                is_one_of("sequence", sequences.iter().copied().map(i64::from))
            }
        };
        let before = is_one_of("vectors", states.iter().map(|state| state.code().into()));
        let sql = format!(
            "{} transcripts SET vectors = {} WHERE user_id = ?1 AND session_id = ?2 AND {before} AND {which}",
            update(&*writer),
            after.code()
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
            Error::validation(ErrorField::Generation, format!("generation {generation} is not the next one"))
        })?;
        // A rebuild sets the generation of each message for which it has made vectors.
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
        // A statement of its own: some databases have an index for each of the two conditions.
        let stored_turns = format!(
            "{} transcripts SET vectors = {stored} WHERE {}",
            update(&*writer),
            is_turn_pending("vectors")
        );
        writer.execute(&Statement::new(OPERATION, stored_turns, []))?;
        let without = turns::mark_without_vectors(update(&*writer), generation);
        writer.execute(&Statement::once(OPERATION, without, []))?;
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
        let tables: Vec<(&str, i64)> = vector_tables(writer).collect();
        for (table, kind) in tables {
            let sql = format!("SELECT key FROM {table} WHERE NOT ({kept}) ORDER BY key LIMIT ?1");
            let limit = [read::limit(left).into()];
            let keys = writer.rows(&Query::new(OPERATION, sql, limit, |row| row.integer(0)).once())?;
            let which = is_one_of("key", keys.iter().copied());
            let note = format!(
                "INSERT INTO removed (kind, revision, key)
                 SELECT {kind}, {revision}, key FROM {table} WHERE {which}"
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
