//! Counts of events by groups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher as _},
};

use serde::Serialize;
use serde_json::{Map, Value};

use super::counts::{REPEATS, REQUEST_ID, RESPONSE, SESSION_ID, Usage};
use crate::model::{Digest, Event, SessionKey, Timestamp};

/// A group of events to count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventGroup {
    /// The quarter of an hour in which they happened: [`Timestamp::quarter_hour`].
    pub quarter: Timestamp,
    /// The type.
    pub event_type: String,
    /// The tool that they are about.
    pub tool_name: Option<String>,
    /// The model that they are about.
    pub model: Option<String>,
    /// The provider that they are about.
    pub provider: Option<String>,
    /// Whether they report a failure: [`Event::failed`].
    pub failed: bool,
    /// The session that their lines name, if it is not the one in whose log they are.
    pub of_session: Option<String>,
}

impl From<&Event> for EventGroup {
    fn from(event: &Event) -> Self {
        Self {
            quarter: event.ts.quarter_hour(),
            event_type: event.event_type.clone(),
            tool_name: event.tool_name.clone(),
            model: event.model.clone(),
            provider: event.provider.clone(),
            failed: event.failed(),
            of_session: event.summary.get(SESSION_ID).and_then(Value::as_str).map(str::to_owned),
        }
    }
}

/// A number of events with their usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many there are.
    pub events: u64,
    /// The sum of their usage.
    pub usage: Usage,
}

impl Tally {
    /// Adds another number of events.
    pub fn add(&mut self, other: Self) {
        self.events += other.events;
        self.usage.add(other.usage);
    }
}

/// The counts of a group of events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventCount {
    /// The group.
    pub group: EventGroup,
    /// Each event once.
    pub once: Tally,
    /// The events that were left out: repeated lines of a log, and calls that another line reports too.
    pub left_out: Tally,
}

/// The usage of models in the log of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUsage {
    /// The session in whose log it is.
    pub session: SessionKey,
    /// The session that the lines name, if it is another one.
    pub of_session: Option<String>,
    /// The usage, each call once.
    pub usage: Usage,
}

/// The counts of events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CountedEvents {
    /// By group.
    pub groups: Vec<EventCount>,
    /// Their usage by session.
    pub sessions: Vec<SessionUsage>,
}

impl CountedEvents {
    /// Adds the counts of other events.
    pub fn append(&mut self, mut other: Self) {
        self.groups.append(&mut other.groups);
        self.sessions.append(&mut other.sessions);
    }
}

/// Usage in an event.
#[derive(Debug, Clone)]
pub struct UsageRow {
    /// The group of the event.
    pub group: EventGroup,
    /// The session in whose log it is.
    pub session: SessionKey,
    /// The digest of its line.
    pub digest: Digest,
    /// Whether its time is an estimate.
    pub ts_estimated: bool,
    /// Its summary.
    pub summary: Map<String, Value>,
}

/// Counts events, each once.
///
/// - A line that is in the same log again counts once, if it states a time and has something that no other line has:
///   usage, a tool call, or a fraction of a second. Hosts append events again when they resume a session.
/// - Several lines with usage and the same `request_id` are one call. The line with a cost counts, or else the one with
///   the most tokens.
/// - For one model call, a log may have a response and several repeats ([`REPEATS`]). These count only in sessions
///   without responses.
///
/// A database that can count groups of events only passes those with usage: see [`EventCounter::add_counts`].
#[derive(Debug, Clone, Default)]
pub struct EventCounter {
    groups: BTreeMap<EventGroup, (Tally, Tally)>,
    /// Hashes of lines, and of lines with usage.
    lines: HashSet<u64>,
    with_usage: HashSet<u64>,
    calls: Vec<Call>,
    answered: BTreeSet<SessionKey>,
}

/// The usage in an event.
#[derive(Debug, Clone)]
struct Call {
    group: EventGroup,
    session: SessionKey,
    usage: Usage,
    request: Option<String>,
    is_repeat: bool,
    is_left_out: bool,
}

impl EventCounter {
    /// Counts an event.
    pub fn add(&mut self, event: &Event) {
        let is_again = self.is_again(event);
        self.add_once(event, is_again);
    }

    /// Whether this function was called before with the same line of the same log, and it is certainly the same event.
    pub fn is_again(&mut self, event: &Event) -> bool {
        let line = || hash(&(&event.session_id, &event.user_id, event.digest));
        may_recur(event) && !self.lines.insert(line())
    }

    /// Counts an event, or leaves it out because it is counted elsewhere.
    pub fn add_once(&mut self, event: &Event, is_counted: bool) {
        let group = EventGroup::from(event);
        let (once, left_out) = self.groups.entry(group.clone()).or_default();
        if is_counted {
            left_out.events += 1
        } else {
            once.events += 1
        }
        if event.summary.contains_key("usage") {
            self.add_call(group, event.key(), &event.summary, is_counted);
        }
    }

    /// Adds the counts of a group without its usage.
    pub fn add_counts(&mut self, group: EventGroup, once: u64, left_out: u64) {
        let (of_once, of_left_out) = self.groups.entry(group).or_default();
        of_once.events += once;
        of_left_out.events += left_out;
    }

    /// Adds the usage of an event that is already counted.
    pub fn add_usage(&mut self, row: UsageRow) {
        let UsageRow { group, session, digest, ts_estimated, summary } = row;
        let identity = hash(&(&session.session_id, &session.user_id, digest));
        let is_again = !ts_estimated && !self.with_usage.insert(identity);
        self.add_call(group, session, &summary, is_again);
    }

    fn add_call(
        &mut self,
        group: EventGroup,
        session: SessionKey,
        summary: &Map<String, Value>,
        is_left_out: bool,
    ) {
        let usage = Usage::of(summary);
        if usage.calls == 0 {
            return;
        }
        if group.event_type == RESPONSE {
            self.answered.insert(session.clone());
        }
        let is_repeat = repeats_usage(&group.event_type);
        let request = summary.get(REQUEST_ID).and_then(Value::as_str).map(str::to_owned);
        self.calls.push(Call { group, session, usage, request, is_repeat, is_left_out });
    }

    /// The sessions with repeated usage for which no response was counted. Call [`EventCounter::set_answered`] with
    /// those of them that have responses among the events that were not counted.
    #[must_use]
    pub fn unanswered(&self) -> BTreeSet<SessionKey> {
        let repeats = self.calls.iter().filter(|call| call.is_repeat).map(|call| &call.session);
        repeats.filter(|session| !self.answered.contains(*session)).cloned().collect()
    }

    /// Marks sessions that have responses with usage.
    pub fn set_answered(&mut self, sessions: impl IntoIterator<Item = SessionKey>) {
        self.answered.extend(sessions);
    }

    /// The counts, in order of their groups and sessions.
    #[must_use]
    pub fn into_counts(mut self) -> CountedEvents {
        let answered = std::mem::take(&mut self.answered);
        let mut calls = std::mem::take(&mut self.calls);
        calls.retain(|call| !call.is_repeat || !answered.contains(&call.session));
        leave_out_reported(&mut calls);
        let mut sessions: BTreeMap<(SessionKey, Option<String>), Usage> = BTreeMap::new();
        for Call { group, session, usage, is_left_out, .. } in calls {
            if !is_left_out {
                sessions.entry((session, group.of_session.clone())).or_default().add(usage);
            }
            let (once, left_out) = self.groups.entry(group).or_default();
            if is_left_out { left_out.usage.add(usage) } else { once.usage.add(usage) }
        }
        let groups = self.groups.into_iter();
        let sessions = sessions.into_iter();
        CountedEvents {
            groups: groups.map(|(group, (once, left_out))| EventCount { group, once, left_out }).collect(),
            sessions: sessions
                .map(|((session, of_session), usage)| SessionUsage { session, of_session, usage })
                .collect(),
        }
    }
}

/// Leaves out all but one of the calls of a session with the same request.
fn leave_out_reported(calls: &mut [Call]) {
    /// Where a call is, and how good it is.
    type Ranked = (usize, (u64, u64));
    let mut best: HashMap<(&SessionKey, &str), Ranked> = HashMap::new();
    let mut reported = Vec::new();
    for (at, call) in calls.iter().enumerate().filter(|(_, call)| !call.is_left_out) {
        let Some(request) = call.request.as_deref() else { continue };
        let tokens = call.usage.input_tokens.saturating_add(call.usage.output_tokens);
        let rank = (call.usage.priced_calls, tokens);
        let known = best.entry((&call.session, request)).or_insert((at, rank));
        if known.0 != at {
            let loser = if rank > known.1 { std::mem::replace(known, (at, rank)).0 } else { at };
            reported.push(loser);
        }
    }
    for at in reported {
        if let Some(call) = calls.get_mut(at) {
            call.is_left_out = true;
        }
    }
}

/// Whether an equal line in the same log is certainly the same event.
fn may_recur(event: &Event) -> bool {
    let is_named = || ["usage", "tool_call_id"].iter().any(|name| event.summary.contains_key(*name));
    !event.ts_estimated && (event.ts.as_micros() % 1_000_000 != 0 || is_named())
}

/// The same in every run of the program.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether events of this type repeat the usage of a response.
#[must_use]
pub fn repeats_usage(event_type: &str) -> bool {
    REPEATS.iter().any(|prefix| event_type.starts_with(prefix))
}
