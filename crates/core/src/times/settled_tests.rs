#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
//! Appended data gets the same times as if the whole session were resolved again.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Bounds, EventClock, LineTime, Resolved, Settled, resolve_all};
use crate::{
    backend::{EventTime, PROMPT, RESPONSE},
    content::{MessageLine, prompt_digest},
    model::{RawJson, SessionSource, TimeSource, Timestamp},
};

/// The first second of the tests, because lines do not state times before 2000.
const EPOCH: i64 = 1_767_600_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros((EPOCH + second) * 1_000_000)
}

fn line(line: Value) -> LineTime {
    let raw = RawJson::new(line.to_string());
    LineTime::of(&MessageLine::parse(&raw, SessionSource::default()).unwrap(), at(1_000_000))
}

/// A session: its lines and its events.
#[derive(Debug, Clone, Default)]
struct Conversation {
    lines: Vec<LineTime>,
    events: Vec<EventTime>,
}

impl Conversation {
    fn event(&mut self, event_type: &str, second: i64, call: Option<&str>, text: Option<&str>) {
        self.events.push(EventTime {
            sequence: self.events.len() as u32,
            event_type: event_type.to_owned(),
            ts: at(second),
            ts_estimated: false,
            tool_call_id: call.map(str::to_owned),
            model: (second % 3 > 0).then(|| format!("model-{}", second % 3)),
            prompt_digest: text.and_then(|text| prompt_digest(&json!(text))),
            is_background: false,
        });
    }

    /// Builds a session from steps, in order, with gaps in both files.
    fn of(steps: &[(u8, i64, u8)]) -> Self {
        let (mut conversation, mut second) = (Self::default(), 0);
        for (n, (kind, gap, flags)) in steps.iter().enumerate() {
            second += gap;
            let (is_logged, is_written) =
                (flags & 1 == 0 || flags & 2 != 0, flags & 4 == 0 || flags & 8 != 0);
            // Some ids and texts occur several times.
            let name = if flags & 48 == 48 { format!("{}", n % 3) } else { format!("id{n}") };
            let (events, message): (Vec<(&str, i64)>, Option<Value>) = match kind {
                0..=2 => (vec![(PROMPT, second)], Some(json!({"role": "user", "content": name}))),
                3 | 4 => {
                    (vec![(RESPONSE, second)], Some(json!({"role": "assistant", "content": "so be it"})))
                }
                5..=7 => {
                    let call = json!([{"type": "tool_call", "id": name, "name": "bash"}]);
                    (vec![("tool:pre", second)], Some(json!({"role": "assistant", "content": call})))
                }
                8 => (vec![], Some(json!({"role": "system", "content": "x", "ts": EPOCH + second}))),
                9 => (vec![("content_block:end", second)], None),
                10 => (vec![(PROMPT, second - 7)], None),
                11 => (vec![("session:start", second)], None),
                12 => (vec![("session:resume", second)], None),
                _ => {
                    let summary = "This session is being continued from a previous conversation";
                    (vec![], Some(json!({"role": "user", "content": summary})))
                }
            };
            for (event_type, ts) in events.into_iter().filter(|_| is_logged) {
                conversation.event(
                    event_type,
                    ts,
                    Some(&name),
                    Some(&name).filter(|_| flags & 64 == 0).map(|x| &**x),
                );
            }
            conversation.lines.extend(message.filter(|_| is_written).map(line));
            if (5..=7).contains(kind) {
                second += gap;
                conversation.event("tool:post", second, Some(&name), None);
                conversation
                    .lines
                    .push(line(json!({"role": "tool", "content": "done", "tool_call_id": name})));
            }
        }
        conversation
    }

    fn clock(&self, from: u32, to: usize) -> EventClock {
        let mut clock = EventClock::default();
        self.events
            .iter()
            .take(to)
            .filter(|event| event.sequence >= from)
            .for_each(|event| clock.note(event));
        clock
    }
}

fn bounds(stated: (Option<i64>, bool), clock: Option<&EventClock>) -> Bounds {
    let span = clock.and_then(EventClock::span);
    let created = stated.0.map(at);
    Bounds {
        begun: [created, span.map(|(first, _)| first)],
        ended: [created, span.map(|(_, last)| last)],
        is_fork: stated.1,
    }
}

/// Resolves a session that grows to these lengths, and returns how often it was continued.
fn grow(conversation: &Conversation, stages: &[(usize, usize)], stated: (Option<i64>, bool)) -> usize {
    let mut lines: Vec<LineTime> = Vec::new();
    let (mut settled, mut continued): (Option<Settled>, _) = (None, 0);
    for (messages, events) in stages {
        lines.extend(conversation.lines.iter().take(*messages).skip(lines.len()).cloned());
        let clock = conversation.clock(0, *events);
        let whole = resolve_all(&lines, &clock, &bounds(stated, Some(&clock)));
        let part = settled.as_ref().and_then(|settled| {
            let later = conversation.clock(settled.event, *events);
            let resolved =
                settled.resolve(lines.get(settled.message as usize..)?, &later, bounds(stated, None))?;
            assert_eq!(settled.model(&later).as_deref(), clock.model());
            Some((settled.message as usize, resolved))
        });
        let before: Vec<(Timestamp, TimeSource)> = lines.iter().map(|line| line.stored).collect();
        if let Some((first, Resolved { times, logged, known, settled: _ })) = &part {
            assert_eq!(times.get(1..), whole.times.get(first + 1..), "after message {first}");
            assert_eq!(before.get(..=*first), whole.times.get(..=*first), "up to message {first}");
            assert_eq!((logged, known), (&whole.logged, &whole.known));
            continued += 1;
        }
        // The settled state then comes from either of them.
        settled = match part {
            Some((_, part)) if messages % 3 > 0 => part.settled,
            _ => whole.settled,
        };
        let stored = serde_json::to_string(&settled).unwrap();
        settled = serde_json::from_str(&stored).unwrap();
        for (line, time) in lines.iter_mut().zip(whole.times) {
            *line = line.clone().with_stored(time);
        }
    }
    continued
}

#[test]
fn a_usual_session_is_continued() {
    let steps: Vec<(u8, i64, u8)> = (0..200).map(|n| ([0, 5, 9, 4][n % 4], 2, 0)).collect();
    let conversation = Conversation::of(&steps);
    let stages: Vec<(usize, usize)> = (20..200).map(|n| (n, n * 5 / 4)).collect();
    assert_eq!(grow(&conversation, &stages, (None, false)), stages.len() - 1);
    let clock = conversation.clock(0, usize::MAX);
    let settled = resolve_all(&conversation.lines, &clock, &Bounds::default()).settled.unwrap();
    assert!(conversation.lines.len() - (settled.message as usize) < 5);
    assert!(conversation.events.len() - (settled.event as usize) < 5);
}

/// Cases that the property test found.
#[test]
fn found_cases_get_the_same_times() {
    // A response whose call is not in the log got the time of an event by its order. The next resolution must not take
    // this time for that of the call.
    let steps =
        [(5, 0, 0), (0, 0, 176), (3, 1, 18), (3, 0, 0), (0, 1, 242), (5, 1, 41), (0, 1, 0), (0, 0, 0)];
    grow(&Conversation::of(&steps), &[(8, 7), (8, 7)], (None, false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_appended_gets_the_same_times(
        steps in prop::collection::vec((0..14_u8, 0..4_i64, any::<u8>()), 1..40),
        stages in prop::collection::vec((0..50_usize, 0..60_usize), 2..6),
        stated in (prop::option::of(0..60_i64), any::<bool>()),
    ) {
        let conversation = Conversation::of(&steps);
        let (mut messages, mut events): (Vec<_>, Vec<_>) = stages.into_iter().unzip();
        messages.sort_unstable();
        events.sort_unstable();
        let stages: Vec<(usize, usize)> = messages.into_iter().zip(events).collect();
        grow(&conversation, &stages, stated);
    }
}
