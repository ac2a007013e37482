//! Checks the messages of a session.

use std::collections::{BTreeSet, HashSet};

use super::{Checking, Sequences};
use crate::{
    Result,
    backend::SequenceRange,
    content::TurnCounter,
    model::{DifferenceKind, Digest, Message, RowKind},
};

/// Number of messages read at a time: few, because lines and vectors may be long.
const PAGE: usize = 64;

/// The turns of the messages so far.
struct Turns {
    /// `None` after a message whose turn is unknown.
    counter: Option<TurnCounter>,
    distinct: BTreeSet<u32>,
    are_complete: bool,
}

impl Checking<'_> {
    pub(super) async fn messages(&mut self) -> Result<()> {
        let generation = self.held.current_number();
        let failures = self.storage.backend.vector_failures(generation, &self.key).await?;
        let failed: HashSet<u32> = failures.into_iter().map(|(sequence, _)| sequence).collect();
        let mut sequences = Sequences::default();
        let counter = Some(TurnCounter::new(None));
        let mut turns = Turns { counter, distinct: BTreeSet::new(), are_complete: true };
        let mut turn_vectors = self.begin_turns().await?;
        let mut range = SequenceRange { start: 0, limit: PAGE };
        loop {
            let mut damaged = Vec::new();
            let page = self.storage.readable_page::<Message>(&self.key, range, &mut damaged).await;
            for sequence in self.find_damaged(damaged) {
                sequences.add(sequence);
                turns.skip();
            }
            let Some(page) = self.unless_damaged(RowKind::Message, page)? else { return Ok(()) };
            let Some(last) = page.last() else { break };
            range.start = last.sequence.saturating_add(1);
            for message in &page {
                self.check.messages += 1;
                if !sequences.add(message.sequence) {
                    turns.skip();
                }
                self.message(message, &mut turns);
            }
            self.vectors(&page, &failed).await?;
            if let Some(turn_vectors) = &mut turn_vectors {
                page.into_iter().try_for_each(|message| turn_vectors.message(message))?;
            }
        }
        self.find_gaps(RowKind::Message, &sequences, self.stored.session.message_count);
        self.check.gaps.messages = sequences.gaps;
        self.turn_count(&turns);
        turn_vectors.map_or(Ok(()), |turn_vectors| self.end_turns(turn_vectors))
    }

    fn message(&mut self, message: &Message, turns: &mut Turns) {
        if Digest::of(message.raw.as_bytes()) != message.digest {
            let reason = "the stored line of a message is not what was written";
            self.find_at(DifferenceKind::Damaged, RowKind::Message, message.sequence, reason);
            self.check.damaged[0].insert(message.sequence);
        }
        turns.distinct.extend(message.turn);
        // In a session that was not synced, turns are whatever its writer stated.
        if self.stored.sync_state.is_none() {
            return;
        }
        let Some(mut counter) = turns.counter else {
            turns.counter = Some(TurnCounter::new(message.turn));
            return;
        };
        let expected = counter.turn_of(message.line().fields(), message.role);
        turns.counter = Some(counter);
        if expected != message.turn {
            let name =
                |turn: Option<u32>| turn.map_or_else(|| "no turn".to_owned(), |turn| format!("turn {turn}"));
            let reason =
                format!("it is stored with {}; its line belongs to {}", name(message.turn), name(expected));
            self.find_at(DifferenceKind::Turn, RowKind::Message, message.sequence, reason);
            self.check.repair.turns.insert(message.sequence, expected);
        }
    }

    fn turn_count(&mut self, turns: &Turns) {
        let (stated, counted) = (self.stored.session.turn_count, turns.distinct.len());
        let is_known = turns.are_complete && self.check.repair.turns.is_empty() && self.check.gaps.is_empty();
        if is_known && stated as usize != counted {
            self.find(
                DifferenceKind::Count,
                format!("the session states {stated} turns; its messages have {counted}"),
            );
            self.check.repair.counts = true;
        }
    }
}

impl Turns {
    /// Skips the next message, which is unknown.
    fn skip(&mut self) {
        (self.counter, self.are_complete) = (None, false);
    }
}
