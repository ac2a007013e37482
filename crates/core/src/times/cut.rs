//! Finds where the events of a message and of those after it begin in the log.

use super::{
    clock::EventClock,
    line::LineTime,
    resolve::{Bounds, known, resolve},
};
use crate::model::Timestamp;

/// Where to cut an event log to remove the events of a message and of those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the event with this sequence.
    At(u32),
    /// Nowhere: no event belongs to them.
    Nowhere,
    /// Unknown, because no time is known.
    Unknown,
}

/// Where to cut the log before message `first` of `lines`, whose line must be known.
///
/// - If an event belongs to the message, such as its `prompt:submit`, there. A time that the message states is used
///   only if there is no such event, because it is usually a little later.
/// - Otherwise, at the estimate between the nearest messages with known times, or at the next one if there is none
///   before.
/// - If no later message has a known time, but an earlier one has, no event belongs to the message.
pub(crate) fn cut(first: usize, lines: &[LineTime], clock: &EventClock, is_fork: bool) -> Cut {
    if clock.is_empty() {
        return Cut::Nowhere;
    }
    if clock.span().is_none() {
        return Cut::Unknown;
    }
    let mut lines = lines.to_vec();
    let stated = lines.get_mut(first).and_then(|line| line.own.take());
    let times = known(&lines, clock, is_fork);
    let of_event = times.get(first).copied().flatten().map(|(ts, _)| ts);
    let is_known = |range: &[Option<_>]| range.iter().any(Option::is_some);
    let (before, from) = times.split_at(first.min(times.len()));
    let estimated = || -> Result<Timestamp, Cut> {
        match (is_known(before), is_known(from)) {
            (_, true) => {
                let bounds = Bounds { is_fork, ..Bounds::default() };
                resolve(&lines, clock, &bounds).get(first).map(|(ts, _)| *ts).ok_or(Cut::Unknown)
            }
            (true, false) => Err(Cut::Nowhere),
            (false, false) => Err(Cut::Unknown),
        }
    };
    match of_event.or(stated).map_or_else(estimated, Ok) {
        Ok(ts) => clock.first_since(ts).map_or(Cut::Nowhere, Cut::At),
        Err(cut) => cut,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        backend::EventTime,
        content::{MessageLine, prompt_digest},
        model::{RawJson, Role, SessionSource, TimeSource},
    };

    fn at(second: u32) -> Timestamp {
        Timestamp::from_micros((1_767_600_000 + i64::from(second)) * 1_000_000)
    }

    /// Messages: a word is a user's text, `-` an answer; `word@7` states the time 7.
    fn lines(texts: &str) -> Vec<LineTime> {
        let line = |text: &str| {
            let (text, ts) = text.split_once('@').map_or((text, None), |(text, ts)| (text, Some(ts)));
            let role = if text == "-" { Role::Assistant } else { Role::User };
            let time = ts.map_or(Value::Null, |ts| json!(String::from(at(ts.parse().unwrap()))));
            let line = json!({"role": role, "content": text, "timestamp": time});
            let line = RawJson::new(line.to_string());
            LineTime::of(&MessageLine::stored(&line, role, SessionSource::default()), at(1_000_000))
        };
        texts.split_whitespace().map(line).collect()
    }

    /// Events in the order of the log: `word@7` is a prompt, `-@7` a response, `.@7` another event, `.` one without time.
    fn clock(events: &str) -> EventClock {
        let mut clock = EventClock::default();
        for (sequence, event) in (0..).zip(events.split_whitespace()) {
            let (text, ts) = event.split_once('@').map_or((event, None), |(text, ts)| (text, Some(ts)));
            let event_type = match text {
                "-" => "llm:response",
                "." => "other",
                _ => "prompt:submit",
            };
            clock.note(&EventTime {
                sequence,
                event_type: event_type.to_owned(),
                ts: at(ts.map_or(0, |ts| ts.parse().unwrap())),
                ts_estimated: ts.is_none(),
                tool_call_id: None,
                model: None,
                prompt_digest: prompt_digest(&json!(text)),
                is_background: false,
            });
        }
        clock
    }

    #[test]
    fn the_log_is_cut_at_the_prompt() {
        let cases = [
            // By text, by order, and the same with stated times, which are later than the events.
            ("a - b - c -", "a@1 .@2 -@3 .@4 b@5 .@6 -@7 c@8 -@9", 2, Cut::At(4)),
            ("x - y -", "p@1 -@3 .@4 q@5 -@7", 2, Cut::At(3)),
            ("a@2 -@4 b@7 -@9", "a@1 .@2 -@3 .@5 b@6 .@6 .@7 -@8", 2, Cut::At(4)),
            // A prompt whose message is gone is part of the turn before it.
            ("a@2 -@4 b@9 -@12", "a@1 -@3 gone@5 .@6 b@8 -@11", 2, Cut::At(4)),
            // The log is in another order than the times: the prompt's own place counts.
            ("a - b -", "a@1 .@90 -@3 b@5 .@2 -@7", 2, Cut::At(3)),
            // Before everything.
            ("a - b -", ".@0 a@1 -@3 b@5 -@7", 0, Cut::At(1)),
            // Events without a time are where they are in the log.
            ("a - b -", "a@1 . -@3 . b@5 . -@7", 2, Cut::At(4)),
        ];
        for (messages, events, first, expected) in cases {
            assert_eq!(
                cut(first, &lines(messages), &clock(events), false),
                expected,
                "{messages} | {events}"
            );
        }
    }

    #[test]
    fn without_a_prompt_times_decide() {
        let cases = [
            // The stated time.
            ("a@2 -@4 b@7 -@9", ".@1 .@4 .@6 .@7 .@8", 2, Cut::At(3)),
            ("a@2 -@4 b@7 -@9", ".@1 .@4 .@6", 2, Cut::Nowhere),
            // Between the answers.
            ("a - b -", "-@10 .@11 .@19 .@21 -@30", 2, Cut::At(3)),
            // Nothing is known before: at the next message with a known time.
            ("a b@7", ".@1 .@8 .@9", 0, Cut::At(1)),
            // Nothing is known after: the log ends before.
            ("a@2 - b -", ".@1 .@3", 2, Cut::Nowhere),
            ("a - b -", "", 2, Cut::Nowhere),
            // Nothing is known.
            ("a - b -", ".@1 .@2", 2, Cut::Unknown),
            ("a@1 -@2 b@3 -@4", ". .", 2, Cut::Unknown),
        ];
        for (messages, events, first, expected) in cases {
            assert_eq!(
                cut(first, &lines(messages), &clock(events), false),
                expected,
                "{messages} | {events}"
            );
        }
    }

    #[test]
    fn stored_times_count_as_known() {
        let mut messages = lines("a - b -");
        for (line, second) in messages.iter_mut().zip([1, 3, 5, 7]) {
            *line = line.clone().with_stored((at(second), TimeSource::Stated));
        }
        assert_eq!(cut(2, &messages, &clock(".@1 .@4 .@5 .@6"), false), Cut::At(2));
    }
}
