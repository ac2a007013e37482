//! Checks the messages of a session.

use std::collections::{BTreeSet, HashSet};

use super::{Checking, Sequences};
use crate::{
    Result,
    backend::{StorageBackendExt, StoredSession},
    content::{MessageLine, TurnCounter},
    model::{DifferenceKind, Digest, Message, RowKind, SessionKey},
    storage::{
        ingest::ComparedMessage,
        session_rows::{RowPages, SessionRows},
        store::StoreContext,
    },
};

/// Number of messages whose vectors are read at a time.
const WITH_VECTORS: usize = 64;

/// The stored messages of a session, with what an ingest of their lines would store.
pub(super) struct ComparedMessages<'a> {
    pub(super) pages: RowPages<'a, Message>,
    sequences: Sequences,
    /// Derives turns. In a session that was not synced, turns are whatever its writer stated.
    derives_turns: bool,
    /// `None` after a message whose turn is unknown.
    counter: Option<TurnCounter>,
    /// Whether no message was skipped.
    are_complete: bool,
}

impl<'a> ComparedMessages<'a> {
    pub(super) fn new(store: &'a StoreContext, key: &'a SessionKey, stored: &StoredSession) -> Self {
        Self {
            pages: SessionRows::new(store, key).messages(0),
            sequences: Sequences::default(),
            derives_turns: stored.sync_state.is_some(),
            counter: Some(TurnCounter::new(None)),
            are_complete: true,
        }
    }

    /// The next messages; `None` at the end. Those that can't be read are skipped.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<(Message, ComparedMessage)>>> {
        let known = self.pages.damaged.len();
        let page = self.pages.next().await;
        let damaged = self.pages.damaged.iter().skip(known).filter_map(|row| row.sequence);
        for sequence in damaged {
            self.sequences.add(sequence);
            (self.counter, self.are_complete) = (None, false);
        }
        let compared = |message: Message| {
            let derived = self.derive(&message);
            (message, derived)
        };
        Ok(page?.map(|page| page.into_iter().map(compared).collect()))
    }

    fn derive(&mut self, message: &Message) -> ComparedMessage {
        if !self.sequences.add(message.sequence) {
            (self.counter, self.are_complete) = (None, false);
        }
        let digest = Digest::of(message.raw.as_bytes());
        let stored = ComparedMessage { digest, turn: message.turn };
        if !self.derives_turns {
            return stored;
        }
        let line = MessageLine::stored(&message.raw, message.role, message.session_id.source());
        let Some(counter) = &mut self.counter else {
            self.counter = Some(TurnCounter::new(message.turn));
            return stored;
        };
        ComparedMessage::of_line(digest, line.fields(), message.role, counter)
    }
}

impl Checking<'_> {
    pub(super) async fn messages(&mut self) -> Result<()> {
        let generation = self.held.current_number();
        let (store, key) = (self.store, self.key.clone());
        let failures = store.backend.vector_failures(generation, &key).await?;
        let failed: HashSet<u32> = failures.into_iter().map(|(sequence, _)| sequence).collect();
        let mut rows = ComparedMessages::new(store, &key, self.stored);
        let mut turns = BTreeSet::new();
        let mut turn_vectors = self.begin_turns().await?;
        loop {
            let page = rows.next().await;
            self.find_damaged(std::mem::take(&mut rows.pages.damaged));
            let Some(page) = self.unless_damaged(RowKind::Message, page)? else { return Ok(()) };
            let Some(page) = page else { break };
            self.check.messages += page.len() as u64;
            page.iter().for_each(|(message, derived)| self.message(message, *derived));
            let page: Vec<Message> = page.into_iter().map(|(message, _)| message).collect();
            turns.extend(page.iter().filter_map(|message| message.turn));
            for messages in page.chunks(WITH_VECTORS) {
                self.vectors(messages, &failed, &mut turn_vectors).await?;
            }
            if let Some(space) = self.space() {
                page.into_iter().try_for_each(|message| turn_vectors.message(message, space))?;
            }
        }
        self.find_gaps(RowKind::Message, &rows.sequences, self.stored.session.message_count);
        self.check.gaps.messages = rows.sequences.gaps;
        self.turn_count(turns.len(), rows.are_complete);
        self.end_turns(turn_vectors)
    }

    fn message(&mut self, message: &Message, derived: ComparedMessage) {
        let stored = ComparedMessage::from(message);
        if derived.digest != stored.digest {
            let reason = "the stored line of a message is not what was written";
            self.find_at(DifferenceKind::Damaged, RowKind::Message, message.sequence, reason);
            self.check.damaged[0].insert(message.sequence);
        }
        if derived.turn != stored.turn {
            let name =
                |turn: Option<u32>| turn.map_or_else(|| "no turn".to_owned(), |turn| format!("turn {turn}"));
            let (stored, derived) = (name(stored.turn), name(derived.turn));
            let reason = format!("it is stored with {stored}; its line belongs to {derived}");
            self.find_at(DifferenceKind::Turn, RowKind::Message, message.sequence, reason);
            self.check.repair.turns.insert(message.sequence);
        }
    }

    fn turn_count(&mut self, counted: usize, are_complete: bool) {
        let stated = self.stored.session.turn_count;
        let is_known = are_complete && self.check.repair.turns.is_empty() && self.check.gaps.is_empty();
        if is_known && stated as usize != counted {
            self.find(
                DifferenceKind::Count,
                format!("the session states {stated} turns; its messages have {counted}"),
            );
            self.check.repair.counts = true;
        }
    }
}
