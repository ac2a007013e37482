//! Decides which vectors of pending messages to make, and which stored ones are still right.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Cutting;
use crate::{
    Result,
    backend::StorageBackendExt,
    model::{
        Digest, EmbeddedTurn, EmbeddingSpace, Message, MessageRef, Role, SessionKey, TurnSummary,
        VectorRecord, VectorState, VectorText,
    },
    storage::{
        store::StoredVectors,
        turn_texts::{BegunTurn, TurnContent, TurnTexts, summaries_from},
    },
};

/// The vectors that are made for a message.
#[derive(Debug)]
pub(super) struct MessagePlan {
    pub(super) message: Message,
    /// Whether the vectors of its texts are made.
    pub(super) texts: bool,
    /// The stored vectors that are right; `None` if no vector changes.
    pub(super) kept: Option<Vec<VectorRecord>>,
    /// Why some of its texts have no vectors, if these are not made.
    pub(super) failure: Option<String>,
    /// The turn whose vector is made.
    pub(super) turn: Option<TurnPlan>,
    /// The digest of the lines of its turn, if the turn was looked at.
    pub(super) lines: Option<Digest>,
}

/// The vector that is made for a turn.
#[derive(Debug)]
pub(super) struct TurnPlan {
    pub(super) content: TurnContent,
    pub(super) content_hash: String,
    pub(super) assistant_sequence: Option<u32>,
}

/// The stored vectors, failures, turns and summaries of the messages of a step.
#[derive(Default)]
struct PlanInput {
    records: HashMap<MessageRef, Vec<VectorRecord>>,
    failures: HashMap<MessageRef, String>,
    turns: HashMap<MessageRef, BegunTurn>,
    summaries: BTreeMap<SessionKey, BTreeMap<u32, TurnSummary>>,
}

impl MessagePlan {
    /// Makes the vectors of all texts.
    pub(super) fn of_texts(message: Message) -> Self {
        Self { message, texts: true, kept: Some(Vec::new()), failure: None, turn: None, lines: None }
    }
}

impl StoredVectors<'_> {
    /// Plans the vectors of messages that are pending in a generation. With `turns`, also those of the turns that they
    /// begin.
    pub(super) async fn plan(
        self,
        generation: u32,
        messages: Vec<Message>,
        turns: bool,
        cutting: &Cutting,
    ) -> Result<Vec<MessagePlan>> {
        let held = self.store.generations().await?;
        let is_current = held.current_number() == generation;
        let space = cutting.provider.space();
        let mut stored = self.stored_of(generation, is_current, &messages, turns).await?;
        let mut plans = Vec::with_capacity(messages.len());
        for message in messages {
            let place = message.message_ref();
            let begun = stored.turns.remove(&place);
            let summary = stored.summaries.get(&place.session).and_then(|of| of.get(&place.sequence));
            let records = stored.records.remove(&place).unwrap_or_default();
            let mut plan = MessagePlan::of_texts(message);
            if is_current && plan.message.vectors == VectorState::TurnPending {
                plan.texts = false;
                plan.failure = stored.failures.remove(&place);
            }
            plan.lines = begun.as_ref().map(|begun| begun.lines);
            let wanted = begun.and_then(|begun| begun.texts);
            let wanted = wanted.map(|texts| planned_turn(&texts, summary, cutting)).transpose()?.flatten();
            plan.keep(records, wanted, turns, space);
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Reads what the plans need.
    async fn stored_of(
        self,
        generation: u32,
        is_current: bool,
        messages: &[Message],
        turns: bool,
    ) -> Result<PlanInput> {
        let mut stored = PlanInput::default();
        let mut texts: Vec<(MessageRef, VectorText)> = Vec::new();
        let mut begin: BTreeMap<SessionKey, BTreeSet<u32>> = BTreeMap::new();
        let mut kept: BTreeSet<SessionKey> = BTreeSet::new();
        for message in messages {
            let place = message.message_ref();
            match message.vectors {
                // All vectors of a message are written together, so those that stay are read.
                VectorState::TurnPending if is_current => {
                    kept.insert(place.session.clone());
                    texts.extend(VectorText::ALL.map(|text| (place.clone(), text)));
                }
                VectorState::Outdated if is_current && !turns => {
                    texts.push((place.clone(), VectorText::Turn));
                }
                _ => {}
            }
            if turns && message.role == Role::User && message.turn.is_some() {
                begin.entry(place.session).or_default().insert(place.sequence);
            }
        }
        if !texts.is_empty() {
            for (place, record) in self.store.backend.vectors_of(generation, &texts).await? {
                stored.records.entry(place).or_default().push(record);
            }
        }
        for key in kept {
            let failures = self.store.backend.vector_failures(generation, &key).await?;
            let failures = failures.into_iter();
            stored.failures.extend(failures.map(|(of, reason)| (MessageRef::new(key.clone(), of), reason)));
        }
        for (key, users) in begin {
            let mut summaries =
                summaries_from(&*self.store.backend, &key, users.first().copied().unwrap_or_default())
                    .await?;
            let found = self.store.turns_begun(&key, &users).await?;
            let stated = self.unstored_summaries(&found, &summaries);
            if !stated.is_empty() {
                self.store.backend.write_summaries(&key, stated.clone()).await?;
                summaries.extend(stated.into_iter().map(|of| (of.user_sequence, of)));
            }
            stored.summaries.insert(key.clone(), summaries);
            stored.turns.extend(found.into_iter().map(|(of, turn)| (MessageRef::new(key.clone(), of), turn)));
        }
        Ok(stored)
    }

    /// The summaries that lines state and that are not stored. Searches by words use only stored ones.
    fn unstored_summaries(
        self,
        turns: &BTreeMap<u32, BegunTurn>,
        known: &BTreeMap<u32, TurnSummary>,
    ) -> Vec<TurnSummary> {
        let texts = turns.values().filter_map(|turn| turn.texts.as_ref());
        let unknown = texts.filter(|texts| !known.contains_key(&texts.user.sequence));
        let summary = |texts: &TurnTexts| {
            Some(TurnSummary {
                session: texts.user.message_ref().session,
                user_sequence: texts.user.sequence,
                digest: texts.user.digest,
                text: texts.stated_summary.clone()?,
                is_stated: true,
                set_at: self.store.now(),
            })
        };
        unknown.filter_map(summary).collect()
    }
}

impl MessagePlan {
    /// Decides which of the stored `records` stay. `wanted` is the turn as it should be embedded.
    fn keep(
        &mut self,
        records: Vec<VectorRecord>,
        wanted: Option<TurnPlan>,
        turns: bool,
        space: &EmbeddingSpace,
    ) {
        let of_turn = records.iter().find(|record| record.text == VectorText::Turn);
        if self.texts {
            // Without `turns`, the vector of the turn stays as it is.
            self.kept = Some(if turns { Vec::new() } else { records });
            self.turn = wanted;
            return;
        }
        let is_right = match (&of_turn, &wanted) {
            (Some(record), Some(wanted)) => {
                let answer = record.turn.as_ref().and_then(|turn| turn.assistant_sequence);
                answer == wanted.assistant_sequence && is_made_of(record, &wanted.content_hash, space)
            }
            (None, None) => true,
            _ => false,
        };
        if is_right {
            self.kept = None;
            return;
        }
        self.kept = Some(records.into_iter().filter(|record| record.text != VectorText::Turn).collect());
        self.turn = wanted;
    }
}

/// The vector to make of a turn; `None` if it lacks one of its sides.
fn planned_turn(
    texts: &TurnTexts,
    summary: Option<&TurnSummary>,
    cutting: &Cutting,
) -> Result<Option<TurnPlan>> {
    let content = texts.content(summary.map(|of| of.text.as_str()), cutting.redactor.as_ref())?;
    Ok(content.map(|content| TurnPlan {
        content_hash: EmbeddedTurn::hash(&content.text),
        assistant_sequence: texts.assistant.as_ref().map(|(message, _)| message.sequence),
        content,
    }))
}

/// Whether the vector of a turn can be compared with others and was made from the text with this hash.
pub(in crate::storage) fn is_made_of(record: &VectorRecord, hash: &str, space: &EmbeddingSpace) -> bool {
    record.turn.as_ref().is_some_and(|turn| turn.content_hash == hash)
        && record.validate(space).is_ok()
        && record.has_unit_length()
}
