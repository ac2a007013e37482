//! Which messages events belong to where no id says so: by what both say, then by their order, between messages whose times
//! are known.

use std::collections::HashSet;

use super::{alignment::align, line::TextId};
use crate::model::Timestamp;

/// Messages between two whose times are known, or before the first or after the last of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The messages, by their positions: from `start` up to `end`.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The time of the message before.
    pub(super) after: Option<Timestamp>,
    /// The time of the message after.
    pub(super) before: Option<Timestamp>,
}

/// The stretches of messages between those of which `known` says the time. They may be empty.
pub(super) fn stretches(known: &[Option<Timestamp>]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut start, mut after) = (0, None);
    for (position, ts) in known.iter().enumerate() {
        if ts.is_some() {
            stretches.push(Stretch { start, end: position, after, before: *ts });
            (start, after) = (position + 1, *ts);
        }
    }
    stretches.push(Stretch { start, end: known.len(), after, before: None });
    stretches
}

/// An event that may belong to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) ts: Timestamp,
    /// What it says, where it says anything.
    pub(super) text: Option<TextId>,
}

/// A message that an event may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) position: usize,
    /// What it says.
    pub(super) text: Option<TextId>,
}

/// What is known of how a log and a transcript lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlap {
    /// The beginning of the conversation is gone from the transcript.
    pub(super) is_shortened: bool,
    /// The log may begin after the first messages.
    pub(super) is_late: bool,
}

/// Events in order of time, each of which belongs to one message at most.
#[derive(Debug)]
pub(super) struct Events {
    events: Vec<Happened>,
    used: Vec<bool>,
    /// The messages that have their event.
    matched: HashSet<usize>,
    /// Whether a message and an event say the same.
    has_texts: bool,
    overlap: Overlap,
}

impl Events {
    /// Events in order of time.
    pub(super) fn new(events: Vec<Happened>, overlap: Overlap) -> Self {
        Self { used: vec![false; events.len()], events, matched: HashSet::new(), has_texts: false, overlap }
    }

    /// Gives messages of `slots`, which are in their order, the times of the events within the stretch that say the same.
    ///
    /// The order of both is kept, and as many as possible find each other. Of several with the same text, the ones are
    /// taken that [`Events::give_in_order`] would take.
    pub(super) fn give_by_text(&mut self, stretch: Stretch, slots: &[Slot]) -> Vec<(usize, Timestamp)> {
        let (slots, free) = self.unmatched(stretch, slots);
        let of_slots: Vec<_> = slots.iter().map(|slot| slot.text).collect();
        let of_events: Vec<_> =
            free.iter().map(|at| self.events.get(*at).and_then(|event| event.text)).collect();
        let from_end = self.begins_at_end(stretch, &free, &slots);
        let pairs = align(&of_slots, &of_events, from_end);
        let pairs: Vec<_> = pairs
            .into_iter()
            .filter_map(|(slot, event)| Some((*slots.get(slot)?, *free.get(event)?)))
            .collect();
        self.has_texts |= !pairs.is_empty();
        self.take(&pairs)
    }

    /// Gives each of `slots`, which are in their order, the time of an event within the stretch, as far as there are events.
    ///
    /// As many events as messages: in order. Otherwise:
    ///
    /// - before a message whose time is known, the last ones belong together: what a rewind, a retry or a compaction took
    ///   from the transcript came before what is left, and a log that begins late lacks the first events. Only where events
    ///   are missing between two known messages, the first ones do.
    /// - after the last message whose time is known, the first ones belong together: the log may be ahead of the
    ///   transcript, or cut off.
    /// - where no time is known, the same, but for two cases in which the last ones do: the beginning of the conversation is
    ///   gone from the transcript; there are fewer events than messages, and the log does not hold the beginning.
    ///
    /// Where texts found each other, events that say something else are left out if there are too few of them: the
    /// messages may be copies from another session.
    pub(super) fn give_in_order(&mut self, stretch: Stretch, slots: &[Slot]) -> Vec<(usize, Timestamp)> {
        let (slots, mut free) = self.unmatched(stretch, slots);
        let may_be_copies = free.len() < slots.len() || (stretch.after.is_none() && self.overlap.is_late);
        if may_be_copies && self.has_texts {
            free.retain(|at| self.events.get(*at).is_some_and(|event| event.text.is_none()));
        }
        let pairs = free.len().min(slots.len());
        let from_end = self.begins_at_end(stretch, &free, &slots);
        let skip = |len: usize| if from_end { len - pairs } else { 0 };
        let (events, slots) = (free.iter().skip(skip(free.len())), slots.iter().skip(skip(slots.len())));
        let pairs: Vec<_> = slots.copied().zip(events.copied()).collect();
        self.take(&pairs)
    }

    /// The messages without an event, and the events of the stretch without a message.
    fn unmatched(&self, stretch: Stretch, slots: &[Slot]) -> (Vec<Slot>, Vec<usize>) {
        let from = stretch.after.map_or(0, |after| self.events.partition_point(|event| event.ts < after));
        let to = stretch
            .before
            .map_or(self.events.len(), |before| self.events.partition_point(|event| event.ts <= before));
        let free = (from..to.max(from)).filter(|at| self.used.get(*at) == Some(&false)).collect();
        let slots = slots.iter().filter(|slot| !self.matched.contains(&slot.position)).copied().collect();
        (slots, free)
    }

    /// Whether messages and events belong together from their ends, and not from their beginnings.
    fn begins_at_end(&self, stretch: Stretch, free: &[usize], slots: &[Slot]) -> bool {
        let has_enough = free.len() >= slots.len();
        match (stretch.after, stretch.before) {
            (None, None) => self.overlap.is_shortened || (self.overlap.is_late && !has_enough),
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(_), Some(_)) => has_enough,
        }
    }

    fn take(&mut self, pairs: &[(Slot, usize)]) -> Vec<(usize, Timestamp)> {
        let mut times = Vec::with_capacity(pairs.len());
        for (slot, at) in pairs {
            if let (Some(used), Some(event)) = (self.used.get_mut(*at), self.events.get(*at)) {
                *used = true;
                self.matched.insert(slot.position);
                times.push((slot.position, event.ts));
            }
        }
        times
    }
}
