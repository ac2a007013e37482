#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Bounds, EventClock, LineTime, resolve};
use crate::{
    backend::EventTime,
    content::{MessageLine, prompt_digest},
    model::{RawJson, SessionSource, TimeSource, Timestamp},
};

/// The file was modified long after all events.
const SEEN: i64 = 1_000_000;

/// The first second of the tests, because lines do not state times before 2000.
const EPOCH: i64 = 1_767_600_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros((EPOCH + second) * 1_000_000)
}

fn line(line: Value) -> LineTime {
    let raw = RawJson::new(line.to_string());
    LineTime::of(&MessageLine::parse(&raw, SessionSource::default()).unwrap(), at(SEEN))
}

fn user(text: &str) -> LineTime {
    line(json!({"role": "user", "content": text}))
}

fn answer() -> LineTime {
    line(json!({"role": "assistant", "content": "so be it"}))
}

fn call(id: &str) -> LineTime {
    line(json!({"role": "assistant", "content": [{"type": "tool_call", "id": id, "name": "bash"}]}))
}

fn result(id: &str) -> LineTime {
    line(json!({"role": "tool", "content": "done", "tool_call_id": id}))
}

fn stated(second: i64) -> LineTime {
    line(json!({"role": "system", "content": "x", "ts": EPOCH + second}))
}

/// A clock of events: type, second, the id of a tool call or the text of a prompt.
fn clock(events: &[(&str, i64, &str)]) -> EventClock {
    let mut clock = EventClock::default();
    for (sequence, (event_type, second, said)) in (0..).zip(events) {
        let is_prompt = *event_type == PROMPT;
        clock.note(&EventTime {
            sequence,
            event_type: (*event_type).to_owned(),
            ts: at(*second),
            ts_estimated: false,
            tool_call_id: (!said.is_empty() && !is_prompt).then(|| (*said).to_owned()),
            model: None,
            prompt_digest: prompt_digest(&json!(said)).filter(|_| is_prompt),
            is_background: false,
        });
    }
    clock
}

/// The times in seconds, with the first letter of their source.
fn times(lines: &[LineTime], clock: &EventClock, begun: Option<i64>, ended: Option<i64>) -> Vec<(i64, char)> {
    let bounds = Bounds { begun: [begun.map(at), None], ended: [ended.map(at), None], is_fork: false };
    shown(resolve(lines, clock, &bounds))
}

fn shown(resolved: Vec<(Timestamp, TimeSource)>) -> Vec<(i64, char)> {
    let letter = |source: TimeSource| source.as_str().chars().next().unwrap();
    let resolved = resolved.into_iter();
    resolved.map(|(ts, source)| (ts.as_micros() / 1_000_000 - EPOCH, letter(source))).collect()
}

const PROMPT: &str = "prompt:submit";
const RESPONSE: &str = "llm:response";
const PRE: &str = "tool:pre";
const POST: &str = "tool:post";

#[test]
fn each_message_has_its_event() {
    let lines = [user("a"), call("1"), result("1"), call("2"), result("2"), answer(), user("b"), answer()];
    let clock = clock(&[
        ("session:start", 1, ""),
        (PROMPT, 10, ""),
        (RESPONSE, 12, ""),
        (PRE, 13, "1"),
        (POST, 14, "1"),
        (RESPONSE, 15, ""),
        (PRE, 16, "2"),
        (POST, 17, "2"),
        (RESPONSE, 18, ""),
        (PROMPT, 20, ""),
        (RESPONSE, 25, ""),
        ("session:end", 99, ""),
    ]);
    let expected = [10, 13, 14, 16, 17, 18, 20, 25].map(|second| (second, 'e'));
    assert_eq!(times(&lines, &clock, Some(50), None), expected);
}

#[test]
fn a_stated_time_is_used() {
    let lines = [user("a"), stated(11), answer()];
    let clock = clock(&[(PROMPT, 10, ""), (RESPONSE, 12, "")]);
    assert_eq!(times(&lines, &clock, None, None), [(10, 'e'), (11, 's'), (12, 'e')]);
    assert_eq!(times(&[stated(5), stated(3)], &clock, None, None), [(5, 's'), (3, 's')]);
}

#[test]
fn other_times_are_interpolated() {
    let lines = [user("a"), stated(10), user("b"), answer(), user("c"), stated(14), answer()];
    let none = EventClock::default();
    assert_eq!(
        times(&lines, &none, None, None),
        [(10, 'i'), (10, 's'), (11, 'i'), (12, 'i'), (13, 'i'), (14, 's'), (14, 'i')]
    );
    let bounded = times(&lines, &none, Some(4), Some(20));
    assert_eq!((bounded[0], bounded[6]), ((4, 's'), (20, 's')));
    // Times that contradict the lines are not used.
    let bounded = times(&lines, &none, Some(50), Some(2));
    assert_eq!((bounded[0], bounded[6]), ((10, 'i'), (14, 'i')));
    assert_eq!(times(&[stated(9), user("a"), stated(5)], &none, None, None)[1], (5, 'i'));
}

#[test]
fn without_neighbours_the_time_is_that_of_the_session_or_the_file() {
    let lines = [user("a"), answer()];
    let none = EventClock::default();
    let both = |second, source| [(second, source); 2];
    assert_eq!(times(&lines, &none, Some(4), Some(9)), both(4, 's'));
    assert_eq!(times(&lines, &none, None, Some(9)), both(9, 's'));
    assert_eq!(times(&lines, &none, None, None), both(SEEN, 'f'));
}

#[test]
fn a_rewind_leaves_the_later_prompts() {
    let lines = [user("a"), call("1"), result("1"), answer(), user("c"), call("3"), result("3")];
    let clock = clock(&[
        (PROMPT, 10, ""),
        (RESPONSE, 11, ""),
        (PRE, 12, "1"),
        (POST, 13, "1"),
        (RESPONSE, 14, ""),
        // Rewound, with everything that followed.
        (PROMPT, 20, ""),
        (RESPONSE, 21, ""),
        (PRE, 22, "2"),
        (POST, 23, "2"),
        (PROMPT, 30, ""),
        (RESPONSE, 31, ""),
        (PRE, 32, "3"),
        (POST, 33, "3"),
    ]);
    let found = times(&lines, &clock, None, None);
    assert_eq!(found[4..], [(30, 'e'), (32, 'e'), (33, 'e')]);
    assert_eq!(found[..3], [(10, 'e'), (12, 'e'), (13, 'e')]);
    assert!((14..=30).contains(&found[3].0), "{found:?}");
}

#[test]
fn a_compaction_leaves_the_last_messages() {
    let summary = "This session is being continued from a previous conversation that ran out of context.";
    let lines = [user(summary), user("c"), answer()];
    let clock = clock(&[
        (PROMPT, 10, ""),
        (RESPONSE, 11, ""),
        (PROMPT, 20, ""),
        (RESPONSE, 21, ""),
        (PROMPT, 30, ""),
        (RESPONSE, 31, ""),
    ]);
    assert_eq!(times(&lines, &clock, Some(5), None), [(5, 's'), (30, 'e'), (31, 'e')]);
}

#[test]
fn a_retried_answer_is_the_last_before_the_next_message() {
    let lines = [user("a"), answer(), user("b"), call("1"), result("1")];
    let clock = clock(&[
        (PROMPT, 10, ""),
        (RESPONSE, 11, ""),
        (RESPONSE, 12, ""),
        (PROMPT, 20, ""),
        (RESPONSE, 21, ""),
        (PRE, 22, "1"),
        (POST, 23, "1"),
    ]);
    let expected = [10, 12, 20, 22, 23].map(|second| (second, 'e'));
    assert_eq!(times(&lines, &clock, None, None), expected);
}

#[test]
fn a_log_that_is_ahead_matches_the_first_messages() {
    let lines = [user("a"), answer()];
    let clock = clock(&[(PROMPT, 10, ""), (RESPONSE, 11, ""), (PROMPT, 20, ""), (RESPONSE, 21, "")]);
    assert_eq!(times(&lines, &clock, None, None), [(10, 'e'), (11, 'e')]);
}

#[test]
fn events_out_of_order_are_found_and_missing_ones_leave_a_gap() {
    let lines = [user("a"), call("1"), result("1"), user("b"), answer()];
    let clock = clock(&[(RESPONSE, 30, ""), (PRE, 12, "1"), (PROMPT, 20, ""), (PROMPT, 10, "")]);
    assert_eq!(times(&lines, &clock, None, None), [(10, 'e'), (12, 'e'), (16, 'i'), (20, 'e'), (30, 'e')]);
}

/// Prompts of these texts, each with an answer.
fn turns(texts: &[&str]) -> Vec<LineTime> {
    texts.iter().flat_map(|text| [user(text), answer()]).collect()
}

#[test]
fn a_log_that_begins_late_matches_the_last_turns() {
    let lines = turns(&["a", "b", "c", "d"]);
    let expected = [(30, 'i'), (30, 'i'), (30, 'i'), (30, 'i'), (30, 'e'), (31, 'e'), (40, 'e'), (41, 'e')];
    for [c, d] in [["c", "d"], ["", ""]] {
        let log = [(PROMPT, 30, c), (RESPONSE, 31, ""), (PROMPT, 40, d), (RESPONSE, 41, "")];
        assert_eq!(times(&lines, &clock(&log), None, None), expected);
        // A fork's log begins with the fork, not with the messages that are copies.
        let log = [&[("session:start", 29, "")][..], &log].concat();
        let fork = Bounds { is_fork: true, ..Bounds::default() };
        assert_eq!(shown(resolve(&lines, &clock(&log), &fork)), expected);
    }
    let resumed =
        clock(&[("session:resume", 29, ""), (PROMPT, 30, "c"), (PROMPT, 40, ""), (RESPONSE, 41, "")]);
    let found = times(&lines, &resumed, None, None);
    assert_eq!((found[4], found[6], found[7]), ((30, 'e'), (40, 'e'), (41, 'e')));
}

#[test]
fn a_log_that_is_cut_off_matches_the_first_turns() {
    let lines = turns(&["a", "b", "c", "d"]);
    let expected = [(10, 'e'), (11, 'e'), (20, 'e'), (21, 'e'), (21, 'i'), (21, 'i'), (21, 'i'), (21, 'i')];
    for [a, b] in [["a", "b"], ["", ""]] {
        let log = [
            ("session:start", 9, ""),
            (PROMPT, 10, a),
            (RESPONSE, 11, ""),
            (PROMPT, 20, b),
            (RESPONSE, 21, ""),
        ];
        assert_eq!(times(&lines, &clock(&log), None, None), expected);
    }
    // The texts decide, whatever the log begins with.
    let log = [(PROMPT, 10, "a"), (RESPONSE, 11, ""), (PROMPT, 20, "b"), (RESPONSE, 21, "")];
    assert_eq!(times(&lines, &clock(&log), None, None), expected);
}

#[test]
fn responses_without_prompts_are_at_the_same_end() {
    let lines = [user("a"), answer(), user("b"), answer()];
    let late = clock(&[(RESPONSE, 40, "")]);
    assert_eq!(times(&lines, &late, None, None)[3], (40, 'e'));
    let cut = clock(&[("session:start", 1, ""), (RESPONSE, 11, "")]);
    assert_eq!(times(&lines, &cut, None, None)[1], (11, 'e'));
}

#[test]
fn equal_prompts_are_distinguished_by_their_context() {
    let lines = [user("a"), user("go on"), user("b"), user("go on"), user("c")];
    let late = clock(&[(PROMPT, 30, "b"), (PROMPT, 40, "go on"), (PROMPT, 50, "c")]);
    let found = times(&lines, &late, None, None);
    assert_eq!(found, [(30, 'i'), (30, 'i'), (30, 'e'), (40, 'e'), (50, 'e')]);
    let lines = [user("go on"), user("go on"), user("go on")];
    let log = [(PROMPT, 30, "go on"), (PROMPT, 40, "go on")];
    assert_eq!(times(&lines, &clock(&log), None, None), [(30, 'i'), (30, 'e'), (40, 'e')]);
    let cut = [&[("session:start", 29, "")][..], &log].concat();
    assert_eq!(times(&lines, &clock(&cut), None, None), [(30, 'e'), (40, 'e'), (40, 'i')]);
    // Rewound and submitted again: the last one led to the call.
    let lines = [user("go on"), call("1")];
    let again = clock(&[(PROMPT, 30, "go on"), (PROMPT, 40, "go on"), (PRE, 45, "1")]);
    assert_eq!(times(&lines, &again, None, None)[0], (40, 'e'));
}

#[test]
fn reminders_have_no_prompt() {
    let reminder = || user("<system-reminder>be careful</system-reminder>");
    let lines = [reminder(), user("a"), reminder(), reminder(), user("b"), reminder()];
    for [a, b] in [["a", "b"], ["", ""]] {
        let log = clock(&[("session:start", 9, ""), (PROMPT, 10, a), (PROMPT, 20, b)]);
        let found = times(&lines, &log, None, None);
        assert_eq!(found[1..5], [(10, 'e'), (13, 'i'), (16, 'i'), (20, 'e')]);
    }
}

#[test]
fn a_prompt_that_the_log_masks_is_counted() {
    let lines = [user("a"), user("the key is k1"), user("c")];
    let masked = clock(&[(PROMPT, 10, "a"), (PROMPT, 20, "the key is ***"), (PROMPT, 30, "c")]);
    assert_eq!(times(&lines, &masked, None, None), [(10, 'e'), (20, 'e'), (30, 'e')]);
    let other = clock(&[(PROMPT, 10, "A"), (PROMPT, 20, "B"), (PROMPT, 30, "C")]);
    assert_eq!(times(&lines, &other, None, None), [(10, 'e'), (20, 'e'), (30, 'e')]);
}

#[test]
fn copies_do_not_get_events_of_prompts_that_were_rewound() {
    let lines = [user("old"), user("older"), user("c")];
    let log = clock(&[(PROMPT, 20, "taken back"), (PROMPT, 30, "c")]);
    assert_eq!(times(&lines, &log, None, None), [(30, 'i'), (30, 'i'), (30, 'e')]);
}

#[test]
fn a_message_keeps_the_time_of_its_event_when_the_log_is_gone() {
    let lines = [user("a").with_stored((at(10), TimeSource::Event)), answer()];
    assert_eq!(times(&lines, &EventClock::default(), None, None), [(10, 'e'), (10, 'i')]);
}

#[test]
fn results_of_several_calls_came_when_the_last_ended() {
    let blocks =
        json!([{"type": "tool_result", "tool_use_id": "1"}, {"type": "tool_result", "tool_use_id": "2"}]);
    let lines = [line(json!({"role": "user", "content": blocks}))];
    let clock = clock(&[(POST, 12, "1"), (POST, 11, "2"), (POST, 99, "2")]);
    assert_eq!(times(&lines, &clock, None, None), [(12, 'e')]);
}

#[test]
fn the_model_is_the_most_frequent_one() {
    let mut clock = EventClock::default();
    for (sequence, model) in (0..).zip(["a", "b", "b", "a", "c"]) {
        clock.note(&EventTime {
            sequence,
            event_type: RESPONSE.to_owned(),
            ts: at(1),
            ts_estimated: false,
            tool_call_id: None,
            model: Some(model.to_owned()),
            prompt_digest: None,
            is_background: false,
        });
    }
    assert_eq!(clock.model(), Some("a"));
    clock.truncate(3);
    assert_eq!(clock.model(), Some("b"));
    assert_eq!(EventClock::default().model(), None);
}

/// A line of a random kind. Some lines share ids.
fn any_line() -> impl Strategy<Value = LineTime> {
    (0..6_u8, 0..5_u8, 0..40_i64).prop_map(|(kind, id, second)| match kind {
        0 => user(&id.to_string()),
        1 => answer(),
        2 => call(&id.to_string()),
        3 => result(&id.to_string()),
        4 => line(json!({"role": "system", "content": "x"})),
        _ => stated(second),
    })
}

fn any_events() -> impl Strategy<Value = Vec<(&'static str, i64, String)>> {
    let event = (prop::sample::select(vec![PROMPT, RESPONSE, PRE, POST]), 0..40_i64, 0..5_u8);
    prop::collection::vec(event.prop_map(|(kind, second, id)| (kind, second, id.to_string())), 0..20)
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    let times = || prop::array::uniform2(prop::option::of((0..40_i64).prop_map(at)));
    (times(), times(), any::<bool>()).prop_map(|(begun, ended, is_fork)| Bounds { begun, ended, is_fork })
}

proptest! {
    /// Estimates are between their neighbours, event times come from events, times of the session are on the right side
    /// of known times, and the time of the file is the last resort.
    #[test]
    fn no_time_is_made_up(
        lines in prop::collection::vec(any_line(), 0..20),
        events in any_events(),
        bounds in any_bounds(),
    ) {
        let events: Vec<(&str, i64, &str)> = events.iter().map(|(kind, s, id)| (*kind, *s, id.as_str())).collect();
        let found = resolve(&lines, &clock(&events), &bounds);
        let of_session = || bounds.begun.into_iter().chain(bounds.ended).flatten();
        let is_known = |source: TimeSource| !source.is_estimated();
        for (position, (ts, source)) in found.iter().enumerate() {
            let before = found[..position].iter().rev().find(|(_, source)| is_known(*source));
            let after = found[position + 1..].iter().find(|(_, source)| is_known(*source));
            let of_event = events.iter().any(|(_, second, _)| at(*second) == *ts);
            match source {
                TimeSource::Stated => prop_assert_eq!(lines[position].own, Some(*ts)),
                TimeSource::Event => prop_assert!(of_event),
                TimeSource::Interpolated => {
                    let (before, after) = (before.or(after).unwrap().0, after.or(before).unwrap().0);
                    prop_assert!(before.min(after) <= *ts && *ts <= before.max(after));
                }
                TimeSource::Session => {
                    prop_assert!(of_session().any(|stated| stated == *ts));
                    prop_assert!(before.is_none() || after.is_none());
                    prop_assert!(before.is_none_or(|(before, _)| before <= ts));
                    prop_assert!(after.is_none_or(|(after, _)| ts <= after));
                }
                TimeSource::File => {
                    prop_assert!(before.is_none() && after.is_none() && of_session().next().is_none());
                }
            }
        }
    }
}
