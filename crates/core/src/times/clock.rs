//! The times in an event log.

use std::collections::{HashMap, HashSet};

use super::{
    line::{CallId, TextId},
    matching::TimedEvent,
};
use crate::{
    backend::{EventTime, PROMPT, RESPONSE},
    model::{Digest, Timestamp},
};

/// The relevant data of an event: a log of gigabytes is read line by line, and its payloads are not kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(super) ts: Option<Timestamp>,
    pub(super) kind: ClockKind,
    pub(super) call: Option<CallId>,
    /// The index of the model in [`EventClock::models`].
    model: Option<u32>,
    text: Option<TextId>,
}

impl Tick {
    /// An event that tells nothing about the conversation.
    const NOTHING: Self = Self { ts: None, kind: ClockKind::Other, call: None, model: None, text: None };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ClockKind {
    Begun,
    Resumed,
    Prompt,
    Response,
    CallBegun,
    CallEnded,
    Other,
}

impl ClockKind {
    fn of(event_type: &str) -> Self {
        match event_type {
            "session:start" => Self::Begun,
            "session:fork" | "session:resume" => Self::Resumed,
            PROMPT => Self::Prompt,
            RESPONSE => Self::Response,
            "tool:pre" | "tool:call" => Self::CallBegun,
            "tool:post" | "tool:result" | "tool:error" => Self::CallEnded,
            _ => Self::Other,
        }
    }
}

/// The times and models of a session's events, by sequence.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventClock {
    ticks: std::collections::BTreeMap<u32, Tick>,
    models: Vec<String>,
}

/// The relevant events of a session, in order of time.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The submitted prompts.
    pub(super) prompts: Vec<TimedEvent>,
    /// The responses of the model.
    pub(super) responses: Vec<TimedEvent>,
    /// When each tool call first began.
    pub(super) begun: HashMap<CallId, Timestamp>,
    /// When each tool call first ended.
    pub(super) ended: HashMap<CallId, Timestamp>,
}

impl EventClock {
    /// Records an event, replacing the one with the same sequence.
    pub(crate) fn note(&mut self, event: &EventTime) {
        if event.is_background {
            self.ticks.insert(event.sequence, Tick::NOTHING);
            return;
        }
        let kind = ClockKind::of(&event.event_type);
        let is_call = matches!(kind, ClockKind::CallBegun | ClockKind::CallEnded);
        let id = event.tool_call_id.as_deref().filter(|_| is_call);
        let tick = Tick {
            ts: (!event.ts_estimated).then_some(event.ts),
            kind,
            call: id.map(|id| Digest::of(id.as_bytes())),
            model: event.model.as_deref().map(|model| self.number_of(model)),
            text: event.prompt_digest,
        };
        self.ticks.insert(event.sequence, tick);
    }

    /// Forgets the events from `start` on.
    pub(crate) fn truncate(&mut self, start: u32) {
        self.ticks.split_off(&start);
    }

    /// Only the events from `start` on.
    pub(crate) fn from(mut self, start: u32) -> Self {
        self.ticks = self.ticks.split_off(&start);
        self
    }

    /// Records all events of `other`, replacing those with the same sequence.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.ticks.is_empty() {
            *self = other;
            return;
        }
        for (sequence, mut tick) in other.ticks {
            let model = tick.model.and_then(|number| other.models.get(number as usize));
            tick.model = model.map(|model| self.number_of(model));
            self.ticks.insert(sequence, tick);
        }
    }

    /// Records events before all others, except those that are recorded already. Returns whether there are any. The
    /// sequences of the others change.
    pub(crate) fn precede(&mut self, events: Vec<EventTime>) -> bool {
        let known: HashSet<_> = self.ticks.values().filter_map(|tick| Some((tick.ts?, tick.kind))).collect();
        let is_new = |event: &EventTime| !known.contains(&(event.ts, ClockKind::of(&event.event_type)));
        let mut all = Self::default();
        for (sequence, event) in (0..).zip(events.into_iter().filter(|event| is_new(event))) {
            all.note(&EventTime { sequence, ..event });
        }
        let count = all.ticks.len() as u32;
        if count == 0 {
            return false;
        }
        let Self { ticks, models } = std::mem::take(self);
        let ticks =
            ticks.into_iter().map(|(sequence, tick)| (sequence.saturating_add(count), tick)).collect();
        all.merge(Self { ticks, models });
        *self = all;
        true
    }

    /// Whether all of `count` events are known.
    pub(crate) fn is_whole(&self, count: u32) -> bool {
        self.ticks.len() == count as usize
    }

    /// Whether there are no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.ticks.is_empty()
    }

    /// Whether an event names this model.
    pub(crate) fn names(&self, model: &str) -> bool {
        self.models.iter().any(|known| known == model)
    }

    /// The events, in order of sequence.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (u32, &Tick)> {
        self.ticks.iter().map(|(sequence, tick)| (*sequence, tick))
    }

    /// The model that an event names.
    pub(super) fn model_of(&self, tick: &Tick) -> Option<&str> {
        self.models.get(tick.model? as usize).map(String::as_str)
    }

    fn number_of(&mut self, model: &str) -> u32 {
        let known = self.models.iter().position(|known| known == model);
        let number = known.unwrap_or_else(|| {
            self.models.push(model.to_owned());
            self.models.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The number of events from `start` on.
    pub(crate) fn count_from(&self, start: u32) -> usize {
        self.ticks.range(start..).count()
    }

    /// The sequence of the prompt that was submitted at `ts`, or else of the first event in the log that is not earlier.
    pub(super) fn first_since(&self, ts: Timestamp) -> Option<u32> {
        let mut prompts = self.ticks.iter().filter(|(_, tick)| tick.kind == ClockKind::Prompt);
        let prompt = prompts.find(|(_, tick)| tick.ts == Some(ts));
        let later = || self.ticks.iter().find(|(_, tick)| tick.ts.is_some_and(|at| at >= ts));
        prompt.or_else(later).map(|(sequence, _)| *sequence)
    }

    /// Whether the log begins with the session: its first relevant event says so. The log of a fork, and one that was
    /// turned on later, begin after the first messages.
    pub(super) fn has_beginning(&self) -> bool {
        self.ticks.values().map(|tick| tick.kind).find(|kind| *kind != ClockKind::Other)
            == Some(ClockKind::Begun)
    }

    /// The earliest and the latest time in events.
    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let mut stated = self.ticks.values().filter_map(|tick| tick.ts);
        let first = stated.next()?;
        Some(stated.fold((first, first), |(from, to), ts| (from.min(ts), to.max(ts))))
    }

    /// The model that most events name; of several, the one named last.
    pub(crate) fn model(&self) -> Option<&str> {
        let mut uses = vec![(0_u64, 0_u32); self.models.len()];
        for (sequence, tick) in &self.ticks {
            if let Some(uses) = tick.model.and_then(|number| uses.get_mut(number as usize)) {
                *uses = (uses.0 + 1, *sequence);
            }
        }
        let most = uses.iter().enumerate().filter(|(_, uses)| uses.0 > 0).max_by_key(|(_, uses)| **uses);
        most.and_then(|(number, _)| self.models.get(number)).map(String::as_str)
    }

    pub(super) fn times(&self) -> Times {
        let mut times = Times::default();
        for tick in self.ticks.values() {
            let Some(ts) = tick.ts else { continue };
            let first = |known: &mut HashMap<CallId, Timestamp>| {
                if let Some(call) = tick.call {
                    known.entry(call).and_modify(|first| *first = ts.min(*first)).or_insert(ts);
                }
            };
            match tick.kind {
                ClockKind::Prompt => times.prompts.push(TimedEvent { ts, text: tick.text }),
                ClockKind::Response => times.responses.push(TimedEvent { ts, text: None }),
                ClockKind::CallBegun => first(&mut times.begun),
                ClockKind::CallEnded => first(&mut times.ended),
                ClockKind::Begun | ClockKind::Resumed | ClockKind::Other => {}
            }
        }
        // Lines of a log need not be in order of time.
        times.prompts.sort_by_key(|prompt| prompt.ts);
        times.responses.sort_by_key(|response| response.ts);
        times
    }
}
