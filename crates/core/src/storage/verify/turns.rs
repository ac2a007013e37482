//! Checks the vectors of turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Checking;
use crate::{
    ErrorKind, Result,
    content::Redactor,
    model::{Difference, DifferenceKind, EmbeddingSpace, Message, RowKind, TurnEmbedding, TurnSummary},
    storage::StoredVectors,
    storage::turns::{PROVIDERS, TurnCollector, TurnTexts, provider_name},
};

/// The tolerance for the length of a vector, which should be 1.
const UNIT: f64 = 1e-2;

/// The turns of a session, compared with their vectors while the messages are read.
pub(super) struct TurnVectors {
    collector: TurnCollector,
    /// By user message.
    stored: BTreeMap<u32, StoredTurn>,
    summaries: BTreeMap<u32, TurnSummary>,
    redactor: Option<Arc<dyn Redactor>>,
    /// Whether the texts are known from which the vectors should be made. Without the provider, it is unknown whether
    /// secrets in them are masked.
    compares_texts: bool,
    /// The messages whose vectors are pending. Their turns are embedded with them.
    pending: BTreeSet<u32>,
    /// The turns whose vector is missing or wrong, and what is wrong.
    wrong: Vec<(u32, &'static str)>,
}

/// A stored vector of a turn.
enum StoredTurn {
    /// It was made from the text with this hash.
    Of(String),
    Unusable,
}

impl Checking<'_> {
    /// Begins to compare the turns with their vectors: those of the provider's model, or without a provider, of the model
    /// of the store. `None` if the session has none: whether a sync embeds turns is an option.
    pub(super) async fn begin_turns(&mut self) -> Result<Option<TurnVectors>> {
        let provider = self.storage.embedding.clone();
        let stored = match &provider {
            Some(provider) => self.stored_turns(provider_name(provider.as_ref()), provider.space()).await,
            None => self.stored_turns_of_store().await,
        };
        let stored = match stored {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let reason = format!("the vectors of its turns can't be read: {}", error.message());
                self.find(DifferenceKind::Vectors, reason);
                return Ok(None);
            }
            stored => stored?,
        };
        self.check.turn_vectors = stored.len() as u64;
        if stored.is_empty() {
            return Ok(None);
        }
        Ok(Some(TurnVectors {
            collector: TurnCollector::default(),
            stored,
            summaries: self.storage.summaries_of(&self.key).await?,
            redactor: provider.as_ref().and_then(|of| self.storage.redactor_for(of.as_ref())).cloned(),
            compares_texts: provider.is_some(),
            pending: BTreeSet::new(),
            wrong: Vec::new(),
        }))
    }

    /// The stored vectors of turns by the model of the store, of the first kind of provider that has some.
    async fn stored_turns_of_store(&self) -> Result<BTreeMap<u32, StoredTurn>> {
        let Some(current) = &self.held.current else { return Ok(BTreeMap::new()) };
        for provider in PROVIDERS {
            let stored = self.stored_turns(provider, &current.space).await?;
            if !stored.is_empty() {
                return Ok(stored);
            }
        }
        Ok(BTreeMap::new())
    }

    /// The stored vectors of turns, by user message. One that can't be read is unusable.
    async fn stored_turns(
        &self,
        provider: &str,
        space: &EmbeddingSpace,
    ) -> Result<BTreeMap<u32, StoredTurn>> {
        let hashes = StoredVectors::new(self.storage).turn_hashes(&self.key, provider, space).await?;
        let mut stored = BTreeMap::new();
        let mut sequences = hashes.keys().copied().peekable();
        while let Some(start) = sequences.peek().copied() {
            let page = match StoredVectors::new(self.storage)
                .turns_from(&self.key, provider, &space.model, start)
                .await
            {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    let of_one = StoredVectors::new(self.storage)
                        .turn_at(&self.key, provider, &space.model, start)
                        .await;
                    let one = match of_one {
                        Err(error) if error.kind() == ErrorKind::Damaged => StoredTurn::Unusable,
                        found => found?.map_or(StoredTurn::Unusable, StoredTurn::from),
                    };
                    stored.insert(start, one);
                    sequences.next();
                    continue;
                }
                page => page?,
            };
            let Some(last) = page.last().map(|turn| turn.user_sequence) else { break };
            while sequences.next_if(|sequence| *sequence <= last).is_some() {}
            stored.extend(page.into_iter().map(|turn| (turn.user_sequence, StoredTurn::from(turn))));
        }
        Ok(stored)
    }

    /// Ends the comparison. Turns of damaged and missing messages are unknown; a repair of the messages embeds them.
    pub(super) fn end_turns(&mut self, mut turns: TurnVectors) -> Result<()> {
        if let Some(last) = std::mem::take(&mut turns.collector).finish() {
            turns.turn(last)?;
        }
        let repair = &self.check.repair;
        let is_known = self.check.gaps.messages.is_empty()
            && self.check.damaged_of(RowKind::Message).is_empty()
            && repair.turns.is_empty()
            && repair.vectors_to_remove.is_empty();
        if !is_known {
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
}

impl TurnVectors {
    /// Adds the next message.
    pub(super) fn message(&mut self, message: Message) -> Result<()> {
        if message.vectors.is_pending() {
            self.pending.insert(message.sequence);
        }
        match self.collector.push(message) {
            Some(turn) => self.turn(turn),
            None => Ok(()),
        }
    }

    fn turn(&mut self, turn: TurnTexts) -> Result<()> {
        let user = turn.user.sequence;
        let mut messages =
            std::iter::once(user).chain(turn.assistant.as_ref().map(|(message, _)| message.sequence));
        if messages.any(|message| self.pending.contains(&message)) {
            return Ok(());
        }
        let summary = self.summaries.get(&user).map(|of| of.text.as_str());
        let Some(content) = turn.content(summary, self.redactor.as_ref())? else { return Ok(()) };
        let wrong = match self.stored.get(&user) {
            None => "the turn that it begins has no vector",
            Some(StoredTurn::Unusable) => "the vector of the turn that it begins can't be used",
            Some(StoredTurn::Of(hash))
                if self.compares_texts && *hash != TurnEmbedding::hash(&content.text) =>
            {
                "the vector of the turn that it begins was made from another text"
            }
            Some(StoredTurn::Of(_)) => return Ok(()),
        };
        self.wrong.push((user, wrong));
        Ok(())
    }
}

impl From<TurnEmbedding> for StoredTurn {
    fn from(turn: TurnEmbedding) -> Self {
        let length = turn.vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        // A text without any words that the model knows has a vector of zeros.
        let has_length = length == 0.0 || (length - 1.0).abs() <= UNIT;
        let is_usable = turn.validate().is_ok()
            && has_length
            && TurnEmbedding::hash(&turn.content_used) == turn.content_hash;
        if is_usable { Self::Of(turn.content_hash) } else { Self::Unusable }
    }
}
