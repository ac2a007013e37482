//! Derives all times of a session.

use super::{
    clock::{EventClock, Times},
    line::{LineTime, Part, TextId},
    matching::{Overlap, Slot, TimeGap, TimedEvents, time_gaps},
};
use crate::model::{TimeSource, Timestamp};

/// When a session began and ended, according to its metadata and its events, and how it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) begun: [Option<Timestamp>; 2],
    pub(crate) ended: [Option<Timestamp>; 2],
    /// Whether its first messages are copies from another session.
    pub(crate) is_fork: bool,
}

impl Bounds {
    /// When it began, unless that is after `before`.
    fn begin(&self, before: Option<Timestamp>) -> Option<Timestamp> {
        self.begun.into_iter().flatten().find(|begun| before.is_none_or(|before| *begun <= before))
    }

    /// When it ended, unless that is before `after`.
    fn end(&self, after: Option<Timestamp>) -> Option<Timestamp> {
        self.ended.into_iter().flatten().find(|ended| after.is_none_or(|after| *ended >= after))
    }
}

/// The times of all messages of a session, in order.
pub(crate) fn resolve(
    lines: &[LineTime],
    clock: &EventClock,
    bounds: &Bounds,
) -> Vec<(Timestamp, TimeSource)> {
    resolve_known(lines, &known(lines, clock, bounds.is_fork), bounds)
}

/// The times of messages of which some are known.
pub(super) fn resolve_known(
    lines: &[LineTime],
    known: &[Option<(Timestamp, TimeSource)>],
    bounds: &Bounds,
) -> Vec<(Timestamp, TimeSource)> {
    let times: Vec<Option<Timestamp>> = known.iter().map(|known| known.map(|(ts, _)| ts)).collect();
    let mut resolved: Vec<(Timestamp, TimeSource)> =
        known.iter().zip(lines).map(|(known, line)| known.unwrap_or((line.seen, TimeSource::File))).collect();
    for gap in time_gaps(&times) {
        let count = gap.end - gap.start;
        let unknown = resolved.iter_mut().skip(gap.start).take(count).zip(1..);
        match (gap.after, gap.before) {
            (Some(after), Some(before)) => {
                for (time, position) in unknown {
                    *time = (between(after, before, position, count), TimeSource::Interpolated);
                }
            }
            (after, before) => {
                let stated = match (after, before) {
                    (Some(after), _) => bounds.end(Some(after)),
                    (None, before) => {
                        bounds.begin(before).or_else(|| bounds.end(None).filter(|_| before.is_none()))
                    }
                };
                let neighbour = after.or(before).map(|ts| (ts, TimeSource::Interpolated));
                let given = stated.map(|ts| (ts, TimeSource::Session)).or(neighbour);
                for (time, _) in unknown {
                    *time = given.unwrap_or(*time);
                }
            }
        }
    }
    resolved
}

/// The time of message `position` of `count` between two others: they are spaced evenly. If the two are in the wrong
/// order, the earlier time.
fn between(after: Timestamp, before: Timestamp, position: usize, count: usize) -> Timestamp {
    let (from, to) = (i128::from(after.as_micros()), i128::from(before.as_micros()));
    if to <= from {
        return before;
    }
    let ts = from + (to - from) * position as i128 / (count as i128 + 1);
    Timestamp::from_micros(i64::try_from(ts).unwrap_or(before.as_micros()))
}

/// The known times, from lines and from events.
///
/// Ids match messages and events with certainty, and then texts. The remaining prompts and responses are matched by
/// their order, between messages with known times. Without any events, times from earlier events stay.
pub(super) fn known(
    lines: &[LineTime],
    clock: &EventClock,
    is_fork: bool,
) -> Vec<Option<(Timestamp, TimeSource)>> {
    Basis::new(lines, clock, is_fork).known(lines).times
}

/// The events from which times of messages are derived, and what is known about their log.
#[derive(Debug)]
pub(super) struct Basis {
    pub(super) times: Times,
    pub(super) has_events: bool,
    pub(super) overlap: Overlap,
    /// The time of the first message, if it is known already.
    pub(super) first: Option<(Timestamp, TimeSource)>,
    /// Whether an earlier message and an event have the same text.
    pub(super) has_texts: bool,
}

/// The known times of messages.
#[derive(Debug)]
pub(super) struct KnownTimes {
    /// The times, in order.
    pub(super) times: Vec<Option<(Timestamp, TimeSource)>>,
    /// The position of the first message with the same text as an event.
    pub(super) first_by_text: Option<usize>,
}

impl Basis {
    pub(super) fn new(lines: &[LineTime], clock: &EventClock, is_fork: bool) -> Self {
        let overlap = Overlap {
            is_shortened: lines.iter().any(|line| line.part == Part::Continuation),
            is_late: is_fork || !clock.has_beginning(),
        };
        let has_events = !clock.is_empty();
        Self { times: clock.times(), has_events, overlap, first: None, has_texts: false }
    }

    /// The time of a message from the line itself, or from the events of its tool calls.
    pub(super) fn certain(&self, line: &LineTime) -> Option<Timestamp> {
        line.own.or_else(|| by_id(&line.part, &self.times))
    }

    /// As [`known`].
    pub(super) fn known(&self, lines: &[LineTime]) -> KnownTimes {
        let known = known_by_id(lines, self);
        known_by_order(lines, self, known)
    }
}

fn known_by_id(lines: &[LineTime], basis: &Basis) -> Vec<Option<(Timestamp, TimeSource)>> {
    let of_event = |line: &LineTime| {
        by_id(&line.part, &basis.times).or(line.of_event_before().filter(|_| !basis.has_events))
    };
    let mut known: Vec<Option<(Timestamp, TimeSource)>> = lines
        .iter()
        .map(|line| match line.own {
            Some(own) => Some((own, TimeSource::Stated)),
            None => of_event(line).map(|ts| (ts, TimeSource::Event)),
        })
        .collect();
    if let (Some(first), Some(time)) = (basis.first, known.first_mut()) {
        *time = Some(first);
    }
    known
}

/// Gives messages the times of events.
type Assign = fn(&mut TimedEvents, TimeGap, &[Slot]) -> Vec<(usize, Timestamp)>;

fn known_by_order(
    lines: &[LineTime],
    basis: &Basis,
    mut known: Vec<Option<(Timestamp, TimeSource)>>,
) -> KnownTimes {
    let mut first_by_text: Option<usize> = None;
    let Times { prompts, responses, .. } = &basis.times;
    let prompt: fn(&Part) -> Option<Option<TextId>> = |part| match part {
        Part::Prompt(text) => Some(*text),
        _ => None,
    };
    let answer: fn(&Part) -> Option<Option<TextId>> = |part| matches!(part, Part::Answer(_)).then_some(None);
    for (events, text_of, has_texts) in [(prompts, prompt, basis.has_texts), (responses, answer, false)] {
        if events.is_empty() {
            continue;
        }
        let mut events = TimedEvents::new(events.clone(), basis.overlap, has_texts);
        for (assign, is_by_text) in
            [(TimedEvents::assign_by_text as Assign, true), (TimedEvents::assign_in_order, false)]
        {
            let anchors: Vec<Option<Timestamp>> = known.iter().map(|known| known.map(|(ts, _)| ts)).collect();
            for gap in time_gaps(&anchors) {
                let slot = |position: usize| {
                    let text = text_of(&lines.get(position)?.part)?;
                    Some(Slot { position, text })
                };
                let mut slots: Vec<Slot> = (gap.start..gap.end).filter_map(slot).collect();
                // This includes events of messages whose time comes from another event, such as responses with a tool
                // call.
                slots.extend(slot(gap.end));
                if slots.is_empty() {
                    continue;
                }
                for (position, ts) in assign(&mut events, gap, &slots) {
                    if is_by_text {
                        first_by_text = Some(first_by_text.map_or(position, |first| first.min(position)));
                    }
                    if let Some(time @ None) = known.get_mut(position) {
                        *time = Some((ts, TimeSource::Event));
                    }
                }
            }
        }
    }
    KnownTimes { times: known, first_by_text }
}

/// The time from the events of tool calls: results came when the last of their calls ended, and a response came before
/// the first of its calls began.
fn by_id(part: &Part, times: &Times) -> Option<Timestamp> {
    match part {
        Part::Results(calls) => calls.iter().filter_map(|call| times.ended.get(call)).max().copied(),
        Part::Answer(calls) => calls.iter().filter_map(|call| times.begun.get(call)).min().copied(),
        Part::Prompt(_) | Part::Continuation | Part::Other => None,
    }
}
