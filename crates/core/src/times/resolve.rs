//! Derives all times of a session.

use super::{
    clock::{EventClock, Times},
    line::{LineTime, Part, TextId},
    matching::{Events, Overlap, Slot, stretches},
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
    let known = known(lines, clock, bounds.is_fork);
    let times: Vec<Option<Timestamp>> = known.iter().map(|known| known.map(|(ts, _)| ts)).collect();
    let mut resolved: Vec<(Timestamp, TimeSource)> =
        known.iter().zip(lines).map(|(known, line)| known.unwrap_or((line.seen, TimeSource::File))).collect();
    for stretch in stretches(&times) {
        let count = stretch.end - stretch.start;
        let unknown = resolved.iter_mut().skip(stretch.start).take(count).zip(1..);
        match (stretch.after, stretch.before) {
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
    let times = clock.times();
    let of_event = |line: &LineTime| {
        by_id(&line.part, &times).or(match clock.is_empty() {
            true => line.of_event_before(),
            false => line.by_id_before(),
        })
    };
    let mut known: Vec<Option<(Timestamp, TimeSource)>> = lines
        .iter()
        .map(|line| match line.own {
            Some(own) => Some((own, TimeSource::Stated)),
            None => of_event(line).map(|ts| (ts, TimeSource::Event)),
        })
        .collect();
    let overlap = Overlap {
        is_shortened: lines.iter().any(|line| line.part == Part::Continuation),
        is_late: is_fork || !clock.has_beginning(),
    };
    let Times { prompts, responses, .. } = times;
    let prompt: fn(&Part) -> Option<Option<TextId>> = |part| match part {
        Part::Prompt(text) => Some(*text),
        _ => None,
    };
    let answer: fn(&Part) -> Option<Option<TextId>> = |part| matches!(part, Part::Answer(_)).then_some(None);
    for (events, text_of) in [(prompts, prompt), (responses, answer)] {
        if events.is_empty() {
            continue;
        }
        let mut events = Events::new(events, overlap);
        for give in [Events::give_by_text, Events::give_in_order] {
            let anchors: Vec<Option<Timestamp>> = known.iter().map(|known| known.map(|(ts, _)| ts)).collect();
            for stretch in stretches(&anchors) {
                let slot = |position: usize| {
                    let text = text_of(&lines.get(position)?.part)?;
                    Some(Slot { position, text })
                };
                let mut slots: Vec<Slot> = (stretch.start..stretch.end).filter_map(slot).collect();
                // This includes events of messages whose time comes from another event, such as responses with a tool
                // call.
                slots.extend(slot(stretch.end));
                if slots.is_empty() {
                    continue;
                }
                for (position, ts) in give(&mut events, stretch, &slots) {
                    if let Some(time @ None) = known.get_mut(position) {
                        *time = Some((ts, TimeSource::Event));
                    }
                }
            }
        }
    }
    known
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
