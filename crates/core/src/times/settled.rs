//! Continues a session whose times were derived before: appended data is resolved without the messages and events
//! before it.
//!
//! # Why
//!
//! A running agent appends a line every few seconds. In a session of 100,000 messages and as many events, a sync of one
//! line takes 0.01 s with this module, and 0.45 s if all times are derived again, because all lines are read for that.
//!
//! # When the past is settled
//!
//! [`resolve_all`] gives a message the time that its line states, or the time of its event, or an estimate between the
//! nearest known times. New data can change an earlier estimate in two ways: a later known time ends the interval of the
//! estimate, or a new event belongs to an earlier message. Neither reaches back over a message that divides the session:
//!
//! ```text
//! messages   0    1    2    3 │  4    5    new
//! events       0     1        │    2    3    new
//!                     settled │
//! ─────────────────────── time ────────────────────────►
//! ```
//!
//! Such a message
//!
//! - has a certain time: its line states it, or the event of its tool call does;
//! - is not earlier than any known time before it, and earlier than every known time after it, of messages and events;
//! - has no event of a prompt or an answer at the same moment, which might belong to either side;
//! - does not follow a tool call whose result may still arrive, and whose event would then be found again;
//! - shares no tool call with later messages and events.
//!
//! Times before it need nothing after it, so they are final. Times after it need little of what is before it: whether
//! there are events at all, whether the log begins with the session, whether the transcript was shortened, whether texts
//! match, and which tool calls were seen. [`Settled`] has these facts, and is stored with the sync state of the session.
//!
//! # What happens when lines are appended
//!
//! 1. The caller reads the messages from the settled one on, and the events from [`Settled::event`] on.
//! 2. [`Settled::resolve`] checks that nothing new reaches back: a time that is not later, a tool call that was seen, the
//!    first text that matches, the first event, or the mark of a shortened transcript. Then it returns `None`, and the
//!    caller derives all times again.
//! 3. Otherwise, it resolves these rows by the same rules, as if the settled message began the session.
//! 4. [`Settled::find`] looks for a later message that divides the session, and adds the rows in between to the facts.
//!
//! A session without such a message, for example because its log is not in order of time, is resolved completely each
//! time. The tests compare both ways for sessions of random steps.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{
    clock::{ClockKind, EventClock, Tick},
    line::{CallId, LineTime, Part},
    resolve::{Basis, Bounds, KnownTimes, resolve_known},
    seen::{Seen, calls_of},
};
use crate::model::{TimeSource, Timestamp};

/// A log with more models than this is not continued.
const MOST_MODELS: usize = 16;
/// At most this many messages are examined to find the last settled one.
const MOST_TRIED: usize = 32;

/// Results of a tool call are expected within this many messages.
const RESULTS_WITHIN: usize = 16;

/// An earliest and a latest time.
pub(crate) type Span = Option<(Timestamp, Timestamp)>;

/// The first messages and events of a session, whose times no longer change.
///
/// The last of these messages has a certain time: it states it, or the event of its tool call does. All known times of
/// messages and events before it are not later, and all after it are later. So the later events belong to later
/// messages only, and the estimates before it depend on nothing after it. A session that cannot be divided like this,
/// for example because its log is not in order of time, is resolved completely each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    /// The last settled message, and its time.
    pub(crate) message: u32,
    ts: Timestamp,
    source: TimeSource,
    /// The first event that is not settled.
    pub(crate) event: u32,
    /// The times in settled events.
    logged: Span,
    /// The known times of settled messages.
    known: (Timestamp, Timestamp),
    /// Whether the log begins with the session; `None` if no settled event says so.
    has_beginning: Option<bool>,
    /// Whether the session has any event.
    has_events: bool,
    is_shortened: bool,
    /// Whether a settled message has the same text as an event.
    had_texts: bool,
    /// Whether any message had, when the times of the settled messages were derived.
    has_texts: bool,
    /// The tool calls of settled messages and events.
    seen: Seen,
    /// For each model, the number of settled events that name it, and the last of them.
    models: Vec<(String, u64, u32)>,
}

/// The times of a session.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The times of the messages that were resolved, in order.
    pub(crate) times: Vec<(Timestamp, TimeSource)>,
    /// All times in events.
    pub(crate) logged: Span,
    /// All known times of messages.
    pub(crate) known: Span,
    /// The state from which the next resolution continues.
    pub(crate) settled: Option<Settled>,
}

fn joined(left: Span, right: Span) -> Span {
    match (left, right) {
        (Some((from, to)), Some((other_from, other_to))) => Some((from.min(other_from), to.max(other_to))),
        (left, right) => left.or(right),
    }
}

fn span(times: impl Iterator<Item = Timestamp>) -> Span {
    times.fold(None, |span, ts| joined(span, Some((ts, ts))))
}

/// The times of all messages of a session, and what to continue from when it grows.
pub(crate) fn resolve_all(lines: &[LineTime], clock: &EventClock, bounds: &Bounds) -> Resolved {
    let basis = Basis::new(lines, clock, bounds.is_fork);
    let known = basis.known(lines);
    let has_texts = known.first_by_text.is_some();
    let settled = Settled::find(None, &Window { lines, clock, basis: &basis, known: &known, has_texts });
    Resolved {
        times: resolve_known(lines, &known.times, bounds),
        logged: clock.span(),
        known: span(known.times.iter().flatten().map(|(ts, _)| *ts)),
        settled,
    }
}

/// The messages and events from the last settled message on.
#[derive(Debug)]
struct Window<'a> {
    lines: &'a [LineTime],
    clock: &'a EventClock,
    basis: &'a Basis,
    known: &'a KnownTimes,
    has_texts: bool,
}

impl Settled {
    /// The times of the messages after the last settled one. `lines` begins with the settled one, and `clock` has only
    /// the events that are not settled. `bounds` has the times of the metadata.
    ///
    /// `None` if the times of the settled messages may have changed.
    pub(crate) fn resolve(
        &self,
        lines: &[LineTime],
        clock: &EventClock,
        mut bounds: Bounds,
    ) -> Option<Resolved> {
        let (first, later) = lines.split_first()?;
        let shortens = later.iter().any(|line| line.part == Part::Continuation);
        let calls = clock.ticks().filter_map(|(_, tick)| tick.call.as_ref());
        let is_apart = clock.ticks().all(|(_, tick)| tick.ts.is_none_or(|ts| ts > self.ts))
            && (self.is_shortened || !shortens)
            && !calls.chain(later.iter().flat_map(calls_of)).any(|call| self.seen.contains(*call))
            && first.stored == (self.ts, self.source)
            && self.has_events == (self.event > 0 || !clock.is_empty());
        if !is_apart {
            return None;
        }
        let mut basis = Basis::new(later, clock, bounds.is_fork);
        basis.has_events |= self.has_events;
        basis.overlap.is_shortened |= self.is_shortened;
        basis.overlap.is_late =
            bounds.is_fork || !self.has_beginning.unwrap_or_else(|| clock.has_beginning());
        basis.first = Some((self.ts, self.source));
        basis.has_texts = self.had_texts;
        let mut lines = lines.to_vec();
        if let Some(first) = lines.first_mut() {
            (first.own, first.part) = (None, Part::Other);
        }
        let known = basis.known(&lines);
        let has_texts = self.had_texts || known.first_by_text.is_some();
        let is_later = |time: &Option<(Timestamp, TimeSource)>| time.is_none_or(|(ts, _)| ts > self.ts);
        if has_texts != self.has_texts || !known.times.iter().skip(1).all(is_later) {
            return None;
        }
        let logged = joined(self.logged, clock.span());
        bounds.begun[1] = logged.map(|(first, _)| first);
        bounds.ended[1] = logged.map(|(_, last)| last);
        let part = Window { lines: &lines, clock, basis: &basis, known: &known, has_texts };
        Some(Resolved {
            times: resolve_known(&lines, &known.times, &bounds),
            logged,
            known: joined(Some(self.known), span(known.times.iter().flatten().map(|(ts, _)| *ts))),
            // If nothing more is settled, the next call continues from the same point.
            settled: Self::find(Some(self), &part).or_else(|| Some(self.clone())),
        })
    }

    /// The model that most events name; of several, the one named last. `clock` has the events that are not settled.
    pub(crate) fn model(&self, clock: &EventClock) -> Option<String> {
        let models = count_models(&self.models, clock.ticks(), clock);
        let most = models.into_iter().max_by_key(|(_, count, last)| (*count, *last));
        most.map(|(model, ..)| model)
    }

    /// Whether an event names this model.
    pub(crate) fn names(&self, model: &str, clock: &EventClock) -> bool {
        self.models.iter().any(|(known, ..)| known == model) || clock.names(model)
    }

    /// The settled rows in `part`, in addition to `before`; `None` if there are none.
    fn find(before: Option<&Self>, part: &Window<'_>) -> Option<Self> {
        let Window { lines, clock, basis, known, .. } = part;
        let known_ts: Vec<Option<Timestamp>> =
            known.times.iter().map(|time| time.map(|(ts, _)| ts)).collect();
        let latest_before = running(known_ts.iter().copied(), |known, ts| known.max(ts));
        let earliest_from = from_end(&known_ts);
        let ticks: Vec<(u32, &Tick)> = clock.ticks().collect();
        let latest_event = running(ticks.iter().map(|(_, tick)| tick.ts), |known, ts| known.max(ts));
        let earliest_event = from_end(&ticks.iter().map(|(_, tick)| tick.ts).collect::<Vec<_>>());
        let first = usize::from(before.is_some());
        let candidates = (first..lines.len())
            .rev()
            .filter(|at| lines.get(*at).is_some_and(|line| basis.certain(line).is_some()));
        for at in candidates.take(MOST_TRIED) {
            let Some(Some((ts, source))) = known.times.get(at).copied() else { continue };
            let is_latest = latest_before.get(at).copied().flatten() == Some(ts);
            let is_first = earliest_from.get(at + 1).copied().flatten().is_none_or(|next| next > ts);
            // The events up to the time of the message.
            let split = latest_event.partition_point(|latest| latest.is_none_or(|latest| latest <= ts));
            let is_apart = earliest_event.get(split).copied().flatten().is_none_or(|next| next > ts);
            let at_once = |(_, tick): &&(u32, &Tick)| {
                tick.ts == Some(ts) && matches!(tick.kind, ClockKind::Prompt | ClockKind::Response)
            };
            let (done, rest) = ticks.split_at(split.min(ticks.len()));
            if is_latest && is_first && is_apart && !done.iter().any(|tick| at_once(&tick)) {
                let settled = Self::at(before, part, (at, ts, source), done, rest);
                if settled.is_some() {
                    return settled;
                }
            }
        }
        None
    }

    /// The settled rows up to the message at position `at`, with the events `done`; `None` if one of their calls also
    /// occurs later.
    fn at(
        before: Option<&Self>,
        part: &Window<'_>,
        (at, ts, source): (usize, Timestamp, TimeSource),
        done: &[(u32, &Tick)],
        rest: &[(u32, &Tick)],
    ) -> Option<Self> {
        let Window { lines, clock, known, .. } = part;
        // The first line is settled already.
        let skipped = usize::from(before.is_some());
        let (settled, later) = lines.split_at((at + 1).min(lines.len()));
        if has_open_calls(settled) {
            return None;
        }
        let settled = settled.iter().skip(skipped);
        let calls = || done.iter().filter_map(|(_, tick)| tick.call.as_ref());
        let mut seen = match before {
            Some(before) => before.seen.clone(),
            None => {
                let all: HashSet<&CallId> = calls().chain(settled.clone().flat_map(calls_of)).collect();
                Seen::with_room(all.len())?
            }
        };
        for call in calls().chain(settled.clone().flat_map(calls_of)) {
            if !seen.add(*call) {
                return None;
            }
        }
        let calls_after = rest.iter().filter_map(|(_, tick)| tick.call.as_ref());
        if calls_after.chain(later.iter().flat_map(calls_of)).any(|call| seen.contains(*call)) {
            return None;
        }
        let times = known.times.iter().take(at + 1).skip(skipped).flatten().map(|(ts, _)| *ts);
        let models = before.map_or(&[][..], |before| &before.models);
        let models = count_models(models, done.iter().copied(), clock);
        let kinds = done.iter().map(|(_, tick)| tick.kind).find(|kind| *kind != ClockKind::Other);
        let first = before.map_or(0, |before| before.message);
        let next_event =
            rest.first().or(done.last()).map(|(sequence, _)| *sequence + u32::from(rest.is_empty()));
        Some(Self {
            message: first + u32::try_from(at).ok()?,
            ts,
            source,
            event: next_event.or(before.map(|before| before.event)).unwrap_or_default(),
            logged: joined(
                before.and_then(|before| before.logged),
                span(done.iter().filter_map(|(_, t)| t.ts)),
            ),
            known: joined(before.map(|before| before.known), span(times))?,
            has_beginning: before
                .and_then(|before| before.has_beginning)
                .or(kinds.map(|kind| kind == ClockKind::Begun)),
            has_events: part.basis.has_events,
            is_shortened: before.is_some_and(|before| before.is_shortened)
                || settled.clone().any(|line| line.part == Part::Continuation),
            had_texts: before.is_some_and(|before| before.had_texts)
                || known.first_by_text.is_some_and(|first| first <= at),
            has_texts: part.has_texts,
            seen,
            models,
        })
        .filter(|settled| settled.models.len() <= MOST_MODELS)
    }
}

/// Whether results of one of the last tool calls are missing: they may still arrive.
fn has_open_calls(lines: &[LineTime]) -> bool {
    let last = lines.iter().rev().take(RESULTS_WITHIN);
    let mut results: HashSet<&CallId> = HashSet::new();
    last.into_iter().any(|line| match &line.part {
        Part::Results(ids) => {
            results.extend(ids.iter());
            false
        }
        Part::Answer(ids) => ids.iter().any(|id| !results.contains(&id)),
        Part::Prompt(_) | Part::Continuation | Part::Other => false,
    })
}

/// For each model, the number of events that name it, and the last of them.
fn count_models<'a>(
    before: &[(String, u64, u32)],
    ticks: impl Iterator<Item = (u32, &'a Tick)>,
    clock: &EventClock,
) -> Vec<(String, u64, u32)> {
    let mut models = before.to_vec();
    for (sequence, tick) in ticks {
        let Some(model) = clock.model_of(tick) else { continue };
        match models.iter_mut().find(|(known, ..)| known == model) {
            Some((_, count, last)) => (*count, *last) = (*count + 1, sequence),
            None => models.push((model.to_owned(), 1, sequence)),
        }
    }
    models
}

/// The running fold of the items: for each position, the result for all items up to it.
fn running<T: Copy>(items: impl Iterator<Item = Option<T>>, fold: fn(T, T) -> T) -> Vec<Option<T>> {
    let mut so_far = None;
    items
        .map(|item| {
            so_far = match (so_far, item) {
                (Some(known), Some(item)) => Some(fold(known, item)),
                (known, item) => known.or(item),
            };
            so_far
        })
        .collect()
}

/// The earliest time from each position on.
fn from_end(times: &[Option<Timestamp>]) -> Vec<Option<Timestamp>> {
    let mut earliest = running(times.iter().rev().copied(), |known, ts| known.min(ts));
    earliest.reverse();
    earliest
}
