//! Checks the vectors of messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Checking, turns::TurnVectors};
use crate::{
    ErrorField, Result,
    content::embeddable,
    model::{
        DifferenceKind, EmbeddingSpace, Message, MessageRef, RowKind, VectorRecord, VectorState, VectorText,
    },
    text::counted,
};

/// A problem with the vectors of a message.
struct VectorProblem {
    reason: String,
    /// Whether vectors are only missing; otherwise, the stored ones must be removed.
    is_lack: bool,
}

impl Checking<'_> {
    /// Checks the vectors of the current generation of some messages. A text of the messages `failed` could not be
    /// embedded. Passes on the vectors of turns.
    pub(super) async fn vectors(
        &mut self,
        messages: &[Message],
        failed: &HashSet<u32>,
        turns: &mut TurnVectors,
    ) -> Result<()> {
        // A store that never had vectors may still have messages that wait for one.
        let Some(current) = self.held.current.clone() else {
            self.check.pending_vectors += messages.iter().filter(|of| of.vectors.is_pending()).count() as u64;
            return Ok(());
        };
        let texts: Vec<(MessageRef, VectorText)> = messages
            .iter()
            .flat_map(|message| VectorText::ALL.map(|of| (message.message_ref(), of)))
            .collect();
        let read = self.store.backend.vectors_of(current.number, &texts).await;
        let Some(read) = self.unless_damaged(RowKind::Message, read)? else { return Ok(()) };
        let (of_turns, read): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(_, record)| record.text == VectorText::Turn);
        self.check.turn_vectors += of_turns.len() as u64;
        turns.stored(of_turns.into_iter().map(|(message, record)| (message.sequence, record)));
        self.check.vectors += read.len() as u64;
        let mut records: HashMap<u32, Vec<VectorRecord>> = HashMap::new();
        for (message, record) in read {
            records.entry(message.sequence).or_default().push(record);
        }
        for message in messages {
            self.check.pending_vectors += u64::from(message.vectors.is_pending());
            let records = records.remove(&message.sequence).unwrap_or_default();
            let wrong = self.wrong(message, &records, &current.space, failed.contains(&message.sequence));
            if let Some(VectorProblem { reason, is_lack }) = wrong {
                self.find_at(DifferenceKind::Vectors, RowKind::Message, message.sequence, reason);
                let repair = &mut self.check.repair;
                let sequences =
                    if is_lack { &mut repair.vectors_to_make } else { &mut repair.vectors_to_remove };
                sequences.insert(message.sequence);
            }
        }
        Ok(())
    }

    fn wrong(
        &self,
        message: &Message,
        records: &[VectorRecord],
        space: &EmbeddingSpace,
        has_failed: bool,
    ) -> Option<VectorProblem> {
        let wrong = |reason: String| Some(VectorProblem { reason, is_lack: false });
        if message.vectors == VectorState::Nothing && !records.is_empty() {
            return wrong(format!(
                "it has nothing to embed, but {}",
                counted(records.len() as u64, "vector")
            ));
        }
        let mut by_type: BTreeMap<VectorText, Vec<&VectorRecord>> = BTreeMap::new();
        for record in records {
            by_type.entry(record.text).or_default().push(record);
            if let Some(reason) = invalid(record, space) {
                return wrong(format!("vector {} of its {} {reason}", record.chunk_index, record.text));
            }
        }
        for (text, records) in &by_type {
            let total = records.iter().map(|record| record.total_chunks).max().unwrap_or(0);
            if (0..total).ne(records.iter().map(|record| record.chunk_index)) {
                let total = counted(total, "vector");
                let reason = format!("it has {} of {total} of its {text}", records.len());
                return Some(VectorProblem { reason, is_lack: true });
            }
        }
        if !message.vectors.has_stored() || has_failed {
            return None;
        }
        let limit = self.store.settings.tool_output_chars;
        let texts = message.line().texts();
        let mut texts = texts.iter().filter(|text| !embeddable(text, limit).is_empty());
        // A caller that gives vectors need not give them for every text.
        let is_complete = self.stored.sync_state.is_none() && !records.is_empty();
        let lacking = texts.find(|text| !is_complete && !by_type.contains_key(&text.content_type.into()))?;
        Some(VectorProblem {
            reason: format!("it has no vector of its {}", lacking.content_type),
            is_lack: true,
        })
    }
}

/// Why a vector can't be compared with others.
fn invalid(record: &VectorRecord, space: &EmbeddingSpace) -> Option<String> {
    if let Err(error) = record.validate(space) {
        return Some(match error.field() {
            Some(ErrorField::Vector) | None => error.message().to_owned(),
            Some(field) => format!("has a wrong {field}: it {}", error.message()),
        });
    }
    (!record.has_unit_length()).then(|| format!("has length {:.3}, not 1", record.length()))
}
