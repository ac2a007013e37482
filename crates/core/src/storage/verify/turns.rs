//! Checks the vectors of turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Checking;
use crate::{
    Result,
    content::Redactor,
    model::{
        Difference, DifferenceKind, EmbeddedTurn, EmbeddingSpace, Message, RowKind, TurnSummary,
        VectorRecord, VectorState,
    },
    storage::{
        embed::is_made_of,
        turn_texts::{BegunTurn, TurnReader, provider_name},
    },
};

/// The turns of a session, compared with their vectors while the messages are read.
pub(super) struct TurnVectors {
    reader: TurnReader,
    /// The vectors of the turns that were not compared yet, by user message.
    stored: BTreeMap<u32, VectorRecord>,
    summaries: BTreeMap<u32, TurnSummary>,
    redactor: Option<Arc<dyn Redactor>>,
    /// The kind of provider whose texts are known. Without the provider, it is unknown whether secrets in them are
    /// masked.
    provider: Option<&'static str>,
    /// The messages whose vectors are pending.
    pending: BTreeSet<u32>,
    /// The turns whose vector is missing or wrong, and what is wrong.
    wrong: Vec<(u32, &'static str)>,
}

impl Checking<'_> {
    /// Begins to compare the turns with their vectors.
    pub(super) async fn begin_turns(&self) -> Result<TurnVectors> {
        let provider = self.store.embedding.as_ref();
        Ok(TurnVectors {
            reader: TurnReader::default(),
            stored: BTreeMap::new(),
            summaries: self.store.summaries_of(&self.key).await?,
            redactor: provider.and_then(|of| self.store.redactor_for(of.as_ref())).cloned(),
            provider: provider.map(|of| provider_name(of.as_ref())),
            pending: BTreeSet::new(),
            wrong: Vec::new(),
        })
    }

    /// Ends the comparison. Finds nothing in a session without vectors of turns: whether a sync makes them is an
    /// option. Turns of damaged and missing messages are unknown; a repair of the messages embeds them.
    pub(super) fn end_turns(&mut self, mut turns: TurnVectors) -> Result<()> {
        if let (Some((first, last)), Some(space)) = (std::mem::take(&mut turns.reader).finish(), self.space())
        {
            turns.turn(first, last, space)?;
        }
        let repair = &self.check.repair;
        let is_known = self.check.gaps.messages.is_empty()
            && self.check.damaged_of(RowKind::Message).is_empty()
            && repair.turns.is_empty()
            && repair.vectors_to_remove.is_empty();
        if !is_known || self.check.turn_vectors == 0 {
            return Ok(());
        }
        let is_made_again = |message: &u32| self.check.repair.vectors_to_make.contains(message);
        let wrong: Vec<_> = turns.wrong.into_iter().filter(|(user, _)| !is_made_again(user)).collect();
        for (user, reason) in wrong {
            let difference = Difference::of(&self.key, DifferenceKind::Vectors, reason);
            self.check.add(difference.at_row(RowKind::Message, user));
            self.check.repair.turns_to_embed.insert(user);
        }
        Ok(())
    }

    /// The space of the vectors of the store.
    pub(super) fn space(&self) -> Option<&EmbeddingSpace> {
        self.held.current.as_ref().map(|current| &current.space)
    }
}

impl TurnVectors {
    /// Adds vectors of turns, before the messages that begin them.
    pub(super) fn stored(&mut self, vectors: impl Iterator<Item = (u32, VectorRecord)>) {
        self.stored.extend(vectors);
    }

    /// Adds the next message.
    pub(super) fn message(&mut self, message: Message, space: &EmbeddingSpace) -> Result<()> {
        if message.vectors.is_pending() || message.vectors == VectorState::TurnPending {
            self.pending.insert(message.sequence);
        }
        match self.reader.push(message) {
            Some((first, turn)) => self.turn(first, turn, space),
            None => Ok(()),
        }
    }

    fn turn(&mut self, first: u32, turn: BegunTurn, space: &EmbeddingSpace) -> Result<()> {
        let stored = self.stored.remove(&first);
        let Some(texts) = turn.texts.filter(|_| !self.pending.contains(&first)) else { return Ok(()) };
        let summary = self.summaries.get(&first).map(|of| of.text.as_str());
        let Some(content) = texts.content(summary, self.redactor.as_ref())? else { return Ok(()) };
        let Some(record) = stored else {
            self.wrong.push((first, "the turn that it begins has no vector"));
            return Ok(());
        };
        let made_of = record.turn.as_ref();
        if !made_of.is_some_and(|turn| is_made_of(&record, &turn.content_hash, space)) {
            self.wrong.push((first, "the vector of the turn that it begins can't be used"));
        } else if made_of.is_some_and(|turn| {
            self.provider == Some(&turn.provider) && turn.content_hash != EmbeddedTurn::hash(&content.text)
        }) {
            self.wrong.push((first, "the vector of the turn that it begins was made from another text"));
        }
        Ok(())
    }
}
