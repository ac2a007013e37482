//! Which messages an event belongs to where no id says so: by their order, between messages whose times are known.

use crate::model::Timestamp;

/// Messages between two whose times are known, or before the first or behind the last of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The messages, by their positions: from `start` up to `end`.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The time of the message before.
    pub(super) after: Option<Timestamp>,
    /// The time of the message behind.
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

/// Times of events, each of which belongs to one message at most.
#[derive(Debug)]
pub(super) struct Events {
    times: Vec<Timestamp>,
    used: Vec<bool>,
}

impl Events {
    /// Events in order of time.
    pub(super) fn new(times: Vec<Timestamp>) -> Self {
        Self { used: vec![false; times.len()], times }
    }

    /// Gives each of `slots`, messages in their order, the time of an event within the stretch, as far as there are events.
    ///
    /// As many events as messages: in order. Otherwise:
    ///
    /// - before a message whose time is known, the last ones belong together: what a rewind, a retry or a compaction took
    ///   from the transcript came before what is left. Only where events are missing between two known messages, the
    ///   first ones do.
    /// - behind the last message whose time is known, or where none is, the first ones belong together: the log may be
    ///   ahead of the transcript. With `is_shortened`, which says that the beginning of the conversation is gone, the
    ///   last ones do where no message before is known.
    pub(super) fn give(
        &mut self,
        stretch: Stretch,
        slots: &[usize],
        is_shortened: bool,
    ) -> Vec<(usize, Timestamp)> {
        let from = stretch.after.map_or(0, |after| self.times.partition_point(|ts| *ts < after));
        let to =
            stretch.before.map_or(self.times.len(), |before| self.times.partition_point(|ts| *ts <= before));
        let free: Vec<usize> =
            (from..to.max(from)).filter(|event| self.used.get(*event) == Some(&false)).collect();
        let pairs = free.len().min(slots.len());
        let (is_open, is_first) = (stretch.before.is_none(), stretch.after.is_none());
        let from_end = match is_open {
            true => is_first && is_shortened,
            false => free.len() >= slots.len() || is_first,
        };
        let skip = |len: usize| if from_end { len - pairs } else { 0 };
        let (events, slots) = (free.iter().skip(skip(free.len())), slots.iter().skip(skip(slots.len())));
        let given: Vec<(usize, usize)> = slots.copied().zip(events.copied()).collect();
        let mut times = Vec::with_capacity(given.len());
        for (slot, event) in given {
            if let (Some(used), Some(ts)) = (self.used.get_mut(event), self.times.get(event)) {
                *used = true;
                times.push((slot, *ts));
            }
        }
        times
    }
}
