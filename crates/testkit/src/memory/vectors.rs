//! Vectors, in generations.

use amplifier_session_core::{
    Error, ErrorField, Result, Scope,
    backend::{
        MessageVectors, MessagesToEmbed, PendingQuery, SequenceRange, VectorCounts, Vectors,
        meta::{EMBEDDING_SPACE, NEXT_EMBEDDING_SPACE},
    },
    model::{Message, MessageRef, SessionKey, VectorRecord, VectorState, VectorText},
    search::{MissingVectors, SearchFilter},
};
use async_trait::async_trait;

use super::{
    MemoryBackend, PAGE_SIZE, page,
    rows::{MessageRow, Rows, VectorRows},
};

#[async_trait]
impl Vectors for MemoryBackend {
    async fn messages_pending_vectors(&self, query: &PendingQuery) -> Result<Vec<Message>> {
        let rows = self.rows();
        let generations = rows.generations();
        let messages = rows.of_user(&query.user).flat_map(|session| session.messages.values());
        let pending = messages.filter(|row| {
            row.is_pending(query.generation, query.turns, &generations)
                && query.session.as_ref().is_none_or(|session| *session == row.message.session_id)
                && query.after < Some(row.message.message_ref())
        });
        Ok(pending.take(query.limit.min(PAGE_SIZE)).map(|row| row.message.clone()).collect())
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        let mut rows = self.rows();
        let generations = rows.generations();
        let space = generations.space(generation)?;
        vectors.iter().flat_map(MessageVectors::records).try_for_each(|record| record.validate(space))?;
        let mut count = 0;
        let Some(session) = rows.sessions.get_mut(key) else { return Ok(0) };
        let lines = session.turn_lines();
        for of in vectors {
            let row = session.messages.get_mut(&of.sequence);
            // The message may have changed while its vectors were made.
            let Some(row) = row.filter(|row| row.message.digest == of.digest) else { continue };
            let leaves_turn = of.leaves_turn(lines.begun_by(of.sequence));
            let is_current = generation == generations.current_number();
            if let Some(mut records) = of.records {
                // Of the next generation, the vector of a turn that has changed meanwhile is left out.
                records.retain(|record| is_current || !leaves_turn || record.text != VectorText::Turn);
                count += records.len();
                records.sort_by_key(|record| (record.text, record.chunk_index));
                row.vectors.insert(generation, VectorRows { records, failure: of.failure });
            }
            if is_current {
                row.message.vectors =
                    if leaves_turn { VectorState::TurnPending } else { VectorState::Stored };
            }
        }
        Ok(count)
    }

    async fn mark_pending(&self, key: &SessionKey, which: MessagesToEmbed) -> Result<u64> {
        let mut rows = self.rows();
        let current = rows.generations().current_number();
        let (before, after) = which.transition();
        let mut pending = 0;
        for row in rows.sessions.get_mut(key).into_iter().flat_map(|session| session.messages.values_mut()) {
            let failed = row.vectors.get(&current).is_some_and(|of| of.failure.is_some());
            if before.contains(&row.message.vectors) && which.includes(row.message.sequence, failed) {
                row.message.vectors = after;
                pending += 1;
            }
        }
        Ok(pending)
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        let mut rows = self.rows();
        let generations = rows.generations();
        if generations.current_number() == generation {
            return Ok(true);
        }
        if !generations.is_next(generation) {
            return Err(Error::validation(
                ErrorField::Generation,
                format!("generation {generation} is not the next one"),
            ));
        }
        if all_messages(&mut rows).any(|row| row.is_pending(generation, true, &generations)) {
            return Ok(false);
        }
        for session in rows.sessions.values_mut() {
            let lines = session.turn_lines();
            let with_texts =
                session.messages.iter_mut().filter(|(_, row)| row.message.vectors != VectorState::Nothing);
            for (sequence, row) in with_texts {
                let has_turn = row.records(generation).iter().any(|of| of.text == VectorText::Turn);
                let is_whole = has_turn || lines.begun_by(*sequence).is_none();
                row.message.vectors = if is_whole { VectorState::Stored } else { VectorState::TurnPending };
            }
        }
        let next = rows.meta.get(NEXT_EMBEDDING_SPACE).cloned().unwrap_or_default();
        rows.meta.insert(EMBEDDING_SPACE.to_owned(), next);
        Ok(true)
    }

    async fn prune_vectors(&self, _limit: usize) -> Result<usize> {
        let mut rows = self.rows();
        let generations = rows.generations();
        let mut pruned = 0;
        for row in all_messages(&mut rows) {
            let before = row.vectors.len();
            row.vectors.retain(|generation, _| generations.numbers().any(|number| number == *generation));
            pruned += before - row.vectors.len();
        }
        Ok(pruned)
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let rows = self.rows();
        let generations = rows.generations();
        let mut counts = VectorCounts::default();
        for row in rows.messages(scope, &SearchFilter::default()) {
            if row.message.vectors == VectorState::Nothing {
                counts.nothing += 1;
                continue;
            }
            counts.embeddable += 1;
            for number in generations.numbers().filter(|number| row.is_pending(*number, false, &generations))
            {
                counts.generations.entry(number).or_default().pending += 1;
            }
            for (number, VectorRows { records, failure }) in &row.vectors {
                let texts = records.iter().filter(|of| of.text != VectorText::Turn).count();
                counts.add_vectors(*number, texts as u64, failure.as_deref());
            }
        }
        Ok(counts)
    }

    async fn missing_vectors(&self, scope: &Scope) -> Result<MissingVectors> {
        let rows = self.rows();
        let (mut messages, mut of) = (0, 0);
        for row in rows.messages(scope, &SearchFilter::default()) {
            of += 1;
            messages += u64::from(row.message.vectors.is_pending());
        }
        Ok(if messages == 0 { MissingVectors::default() } else { MissingVectors { messages, of } })
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, VectorText)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let rows = self.rows();
        let mut found = Vec::new();
        for (message_ref, text) in texts {
            let records = rows.message(message_ref).into_iter().flat_map(|row| row.records(generation));
            let records = records.filter(|record| record.text == *text);
            found.extend(records.map(|record| (message_ref.clone(), record.clone())));
        }
        Ok(found)
    }

    async fn vector_texts(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, Vec<VectorText>)>> {
        let rows = self.rows();
        let messages = rows.sessions.get(key).into_iter().flat_map(|of| of.messages.range(range.start..));
        let of_row = |row: &MessageRow| {
            let mut texts: Vec<VectorText> = row.records(generation).iter().map(|of| of.text).collect();
            texts.dedup();
            texts
        };
        let texts = messages.map(|(sequence, row)| (*sequence, of_row(row)));
        let texts = texts.filter(|(_, texts)| !texts.is_empty());
        Ok(texts.take(page(range).limit).collect())
    }
}

fn all_messages(rows: &mut Rows) -> impl Iterator<Item = &mut MessageRow> {
    rows.sessions.values_mut().flat_map(|session| session.messages.values_mut())
}
