//! Matches events with messages if no id does: by their texts, then by their order, between messages with known times.

use std::collections::HashSet;

use super::{alignment::align, line::TextId};
use crate::model::Timestamp;

/// A gap: the messages between two with known times, or before the first or after the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeGap {
    /// The positions of the messages: `start..end`.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The time of the previous message.
    pub(super) after: Option<Timestamp>,
    /// The time of the next message.
    pub(super) before: Option<Timestamp>,
}

/// The gaps between the messages with a time in `known`. They may be empty.
pub(super) fn time_gaps(known: &[Option<Timestamp>]) -> Vec<TimeGap> {
    let mut gaps = Vec::new();
    let (mut start, mut after) = (0, None);
    for (position, ts) in known.iter().enumerate() {
        if ts.is_some() {
            gaps.push(TimeGap { start, end: position, after, before: *ts });
            (start, after) = (position + 1, *ts);
        }
    }
    gaps.push(TimeGap { start, end: known.len(), after, before: None });
    gaps
}

/// An event that may belong to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimedEvent {
    pub(super) ts: Timestamp,
    /// Its text, if any.
    pub(super) text: Option<TextId>,
}

/// A message that an event may belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) position: usize,
    /// Its text.
    pub(super) text: Option<TextId>,
}

/// Properties of the relation between a log and a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlap {
    /// The beginning of the conversation is gone from the transcript.
    pub(super) is_shortened: bool,
    /// The log may begin after the first messages.
    pub(super) is_late: bool,
}

/// Events in order of time, each of which belongs to at most one message.
#[derive(Debug)]
pub(super) struct TimedEvents {
    events: Vec<TimedEvent>,
    used: Vec<bool>,
    /// The messages that have an event.
    matched: HashSet<usize>,
    /// Whether a message and an event have the same text.
    has_texts: bool,
    overlap: Overlap,
}

impl TimedEvents {
    /// Events in order of time. `has_texts` says whether an earlier message and an event have the same text.
    pub(super) fn new(events: Vec<TimedEvent>, overlap: Overlap, has_texts: bool) -> Self {
        Self { used: vec![false; events.len()], events, matched: HashSet::new(), has_texts, overlap }
    }

    /// Gives the messages of `slots`, which are in order, the times of events in the gap with the same text.
    ///
    /// The order of both is preserved, and as many as possible are matched. Of several with the same text, those are
    /// used that [`TimedEvents::assign_in_order`] would use.
    pub(super) fn assign_by_text(&mut self, gap: TimeGap, slots: &[Slot]) -> Vec<(usize, Timestamp)> {
        let (slots, free) = self.unmatched(gap, slots);
        let of_slots: Vec<_> = slots.iter().map(|slot| slot.text).collect();
        let of_events: Vec<_> =
            free.iter().map(|at| self.events.get(*at).and_then(|event| event.text)).collect();
        let from_end = self.begins_at_end(gap, &free, &slots);
        let pairs = align(&of_slots, &of_events, from_end);
        let pairs: Vec<_> = pairs
            .into_iter()
            .filter_map(|(slot, event)| Some((*slots.get(slot)?, *free.get(event)?)))
            .collect();
        self.has_texts |= !pairs.is_empty();
        self.take(&pairs)
    }

    /// Gives each of `slots`, which are in order, the time of an event in the gap, as far as there are events.
    ///
    /// If there are as many events as messages, they are paired in order. Otherwise:
    ///
    /// - Before a message with a known time, the last ones are paired: messages that a rewind, a retry or a compaction
    ///   removed came before the remaining ones, and a log that begins late lacks the first events. But if events are
    ///   missing between two messages with known times, the first ones are paired.
    /// - After the last message with a known time, the first ones are paired: the log may be ahead of the transcript,
    ///   or cut off.
    /// - If no time is known, the first ones are paired too, except in two cases: the beginning of the conversation is
    ///   gone from the transcript, or there are fewer events than messages and the log begins late.
    ///
    /// If texts were matched, events with other texts are left out if there are too few of them: the messages may be
    /// copies from another session.
    pub(super) fn assign_in_order(&mut self, gap: TimeGap, slots: &[Slot]) -> Vec<(usize, Timestamp)> {
        let (slots, mut free) = self.unmatched(gap, slots);
        let may_be_copies = free.len() < slots.len() || (gap.after.is_none() && self.overlap.is_late);
        if may_be_copies && self.has_texts {
            free.retain(|at| self.events.get(*at).is_some_and(|event| event.text.is_none()));
        }
        let pairs = free.len().min(slots.len());
        let from_end = self.begins_at_end(gap, &free, &slots);
        let skip = |len: usize| if from_end { len - pairs } else { 0 };
        let (events, slots) = (free.iter().skip(skip(free.len())), slots.iter().skip(skip(slots.len())));
        let pairs: Vec<_> = slots.copied().zip(events.copied()).collect();
        self.take(&pairs)
    }

    /// The messages without an event, and the events in the gap without a message.
    fn unmatched(&self, gap: TimeGap, slots: &[Slot]) -> (Vec<Slot>, Vec<usize>) {
        let from = gap.after.map_or(0, |after| self.events.partition_point(|event| event.ts < after));
        let to = gap
            .before
            .map_or(self.events.len(), |before| self.events.partition_point(|event| event.ts <= before));
        let free = (from..to.max(from)).filter(|at| self.used.get(*at) == Some(&false)).collect();
        let slots = slots.iter().filter(|slot| !self.matched.contains(&slot.position)).copied().collect();
        (slots, free)
    }

    /// Whether messages and events are paired from the end instead of the beginning.
    fn begins_at_end(&self, gap: TimeGap, free: &[usize], slots: &[Slot]) -> bool {
        let has_enough = free.len() >= slots.len();
        match (gap.after, gap.before) {
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
