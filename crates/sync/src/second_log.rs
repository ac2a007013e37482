//! The second event log of a session.
//!
//! Amplifier's hosts write each event to two logs, with different text: the log in the session folder, and the capture
//! in `context-intelligence`. One of them may begin later than the other, or end earlier. The store keeps the events of
//! the log that was read first, followed by those that only the second one has.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Result, Scope, SessionStorage, blocking,
    events::{MAX_LINE_BYTES, parse_event_line},
    model::{Digest, RawJson, SessionKey, Timestamp},
    storage::{EventLines, LineDigester},
};

use crate::{
    files::{self, Stamp},
    lines::{Line, LineReader},
    position::LogPosition,
};

/// The two logs may give an event times that differ by this much: their writers get it one after the other.
const TOLERANCE_MICROS: u64 = 500_000;

/// How old an event of the second log must be before it counts as missing in the first one, which may be about to get
/// it.
const SETTLED_MICROS: i64 = 60_000_000;

/// What both logs say of an event: its type and its time.
pub(crate) type EventIdentity = (String, Option<Timestamp>);

/// An event of the second log.
#[derive(Debug, Clone)]
struct SecondEvent {
    /// Its line number.
    number: u64,
    identity: EventIdentity,
    digest: Digest,
}

/// The lines of the second log.
#[derive(Debug, Default)]
pub(crate) struct SecondLog {
    /// The events that the first log does not have.
    missing: Vec<SecondEvent>,
    /// The numbers of the lines that are no events.
    invalid: Vec<u64>,
    /// The digests of the others.
    pub(crate) shared: Vec<Digest>,
    /// The first line with binary data.
    pub(crate) binary: Option<u64>,
    /// Whether there are events that the first log may be about to get. They are not among the missing ones.
    pub(crate) is_ahead: bool,
}

impl SecondLog {
    /// Compares the lines of the second log after a position with the first one, at `now`.
    pub(crate) fn compare(
        path: &Path,
        from: &LogPosition,
        first: &FirstLog,
        digester: &LineDigester,
        now: Timestamp,
    ) -> io::Result<Self> {
        let (mut log, mut second) = (Self::default(), Vec::new());
        each_line(path, from, |line, identity| match (identity, line.digest(digester)) {
            (Some(identity), Some(digest)) => {
                second.push(SecondEvent { number: line.number, identity, digest });
            }
            _ => {
                log.invalid.push(line.number);
                log.binary = log.binary.or_else(|| binary(line));
            }
        })?;
        let is_shared = Matcher::new(&first.events).shared(second.iter().map(|event| &event.identity));
        for (event, is_shared) in second.into_iter().zip(is_shared) {
            if is_shared {
                log.shared.push(event.digest);
            } else {
                log.missing.push(event);
            }
        }
        if first.modified.is_some_and(|modified| !is_complete(modified, now)) {
            log.leave_out_recent(now);
        }
        Ok(log)
    }

    /// Leaves out what the first log may be about to get at `now`.
    fn leave_out_recent(&mut self, now: Timestamp) {
        let is_recent = |event: &SecondEvent| event.identity.1.is_some_and(|ts| !is_complete(ts, now));
        if let Some(at) = self.missing.iter().position(is_recent) {
            self.missing.truncate(at);
            self.is_ahead = true;
        }
    }

    /// The numbers of the lines to read: those of the missing events, and those that are no events.
    pub(crate) fn numbers(&self) -> HashSet<u64> {
        self.missing.iter().map(|event| event.number).chain(self.invalid.iter().copied()).collect()
    }

    /// The digests of the missing events.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.missing.iter().map(|event| event.digest).collect()
    }
}

/// Finds events of the second log among those of the first one. Each of these is found once.
#[derive(Debug, Default)]
struct Matcher<'a> {
    /// The times of the events of each type that were not found yet, in order.
    times: HashMap<&'a str, VecDeque<Option<Timestamp>>>,
}

impl<'a> Matcher<'a> {
    fn new(first: &'a [EventIdentity]) -> Self {
        let mut times: HashMap<&str, VecDeque<Option<Timestamp>>> = HashMap::new();
        for (event_type, ts) in first {
            times.entry(event_type).or_default().push_back(*ts);
        }
        times.values_mut().for_each(|times| times.make_contiguous().sort_unstable());
        Self { times }
    }

    /// Whether the first log has each of these events.
    fn shared<'b>(mut self, second: impl Iterator<Item = &'b EventIdentity> + Clone) -> Vec<bool> {
        // An event with the same time must not be taken by an earlier one with a similar time.
        let same: Vec<bool> = second.clone().map(|event| self.take_same(event)).collect();
        let similar = |(event, is_same): (&EventIdentity, bool)| is_same || self.take_similar(event);
        second.zip(same).map(similar).collect()
    }

    fn take_same(&mut self, (event_type, ts): &EventIdentity) -> bool {
        let Some(times) = self.times.get_mut(event_type.as_str()) else { return false };
        let found = times.binary_search(ts).ok();
        found.and_then(|at| times.remove(at)).is_some()
    }

    fn take_similar(&mut self, (event_type, ts): &EventIdentity) -> bool {
        let Some(times) = self.times.get_mut(event_type.as_str()) else { return false };
        let Some(ts) = ts else { return false };
        let after = times.partition_point(|other| *other < Some(*ts));
        let distance = |at: usize| {
            let other = times.get(at)?.as_ref()?;
            Some((other.as_micros().abs_diff(ts.as_micros()), at))
        };
        let nearest = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(distance).min();
        let Some((_, at)) = nearest.filter(|(distance, _)| *distance <= TOLERANCE_MICROS) else {
            return false;
        };
        times.remove(at).is_some()
    }
}

/// The events of the first log.
#[derive(Debug, Default)]
pub(crate) struct FirstLog {
    events: Vec<EventIdentity>,
    /// The first line with binary data.
    pub(crate) binary: Option<u64>,
    /// When the file last changed; `None` if it gets no more events.
    modified: Option<Timestamp>,
}

impl FirstLog {
    pub(crate) async fn read(path: PathBuf) -> Result<io::Result<Self>> {
        let read = move || {
            let mut log = Self::default();
            let stamp = each_line(&path, &LogPosition::default(), |line, identity| match identity {
                Some(identity) => log.events.push(identity),
                None => log.binary = log.binary.or_else(|| binary(line)),
            })?;
            log.modified = Some(stamp.modified());
            Ok(log)
        };
        blocking(read).await
    }

    /// Events that are stored, in place of those of a log.
    pub(crate) fn of_stored(events: Vec<EventIdentity>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Its events, and those of `stored` that it does not have.
    pub(crate) fn with(mut self, stored: Vec<EventIdentity>) -> Vec<EventIdentity> {
        let is_known = Matcher::new(&self.events).shared(stored.iter());
        let lost = stored.into_iter().zip(is_known).filter(|(_, is_known)| !is_known);
        self.events.extend(lost.map(|(event, _)| event));
        self.events
    }
}

/// The stored events of a session whose sequences are in a range.
pub(crate) async fn stored_identities(
    storage: &SessionStorage,
    key: &SessionKey,
    (start, end): (u32, u32),
) -> Result<Vec<EventIdentity>> {
    let scope = Scope::User(key.user_id.clone());
    let (mut after, mut found) = (start.checked_sub(1), Vec::new());
    loop {
        let page = storage
            .reading()
            .readable_event_lines(&scope, &key.session_id, EventLines::default().after(after))
            .await?;
        let Some(last) = page.rows.last().map(|line| line.event.sequence) else { return Ok(found) };
        let events = page.rows.into_iter().map(|line| line.event).filter(|event| event.sequence < end);
        found.extend(events.map(|event| (event.event_type, (!event.ts_estimated).then_some(event.ts))));
        if last.saturating_add(1) >= end {
            return Ok(found);
        }
        after = Some(last);
    }
}

/// Whether two logs end with the same event.
pub(crate) fn end_alike(first: &Path, second: &Path) -> io::Result<bool> {
    /// Only this much of the end of a log is read; more if the last line is long.
    const TAIL_BYTES: [u64; 2] = [64 * 1024, 4 * 1024 * 1024];
    let last = |path: &Path| -> io::Result<Option<EventIdentity>> {
        let size = files::open(path)?.1.size;
        for tail in TAIL_BYTES {
            let from = LogPosition { bytes: size.saturating_sub(tail), ..LogPosition::default() };
            let mut last = None;
            each_line(path, &from, |_, identity| last = identity.or(last.take()))?;
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    };
    let (Some((first, at)), Some((second, then))) = (last(first)?, last(second)?) else { return Ok(false) };
    let distance = at.zip(then).map(|(at, then)| at.as_micros().abs_diff(then.as_micros()));
    Ok(first == second && distance.is_some_and(|distance| distance <= TOLERANCE_MICROS))
}

/// Whether something that happened at `time` is old enough at `now` to be in both logs.
fn is_complete(time: Timestamp, now: Timestamp) -> bool {
    time.as_micros() <= now.as_micros().saturating_sub(SETTLED_MICROS)
}

/// The number of a line that contains a NUL, which JSON text never does.
fn binary(line: &Line) -> Option<u64> {
    line.text().filter(|text| text.contains(&0)).map(|_| line.number)
}

/// Calls `each` for the lines of a log after a position, with what they say of an event, if they are one. Returns the
/// stamp that the log had when it was opened.
fn each_line(
    path: &Path,
    from: &LogPosition,
    mut each: impl FnMut(&Line, Option<EventIdentity>),
) -> io::Result<Stamp> {
    let (file, stamp) = files::open(path)?;
    let mut reader = LineReader::new(file, from.bytes, from.lines, MAX_LINE_BYTES)?;
    loop {
        let batch = reader.batch()?;
        for line in &batch.lines {
            let identity = line.text().and_then(|text| parse_event_line(&RawJson::new(text)).ok());
            each(line, identity.map(|fields| (fields.event_type, fields.ts)));
        }
        if batch.is_last {
            return Ok(stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, millis: i64) -> EventIdentity {
        (kind.to_owned(), Some(Timestamp::from_micros(millis * 1_000)))
    }

    fn missing(first: &[EventIdentity], second: &[EventIdentity]) -> Vec<usize> {
        let shared = Matcher::new(first).shared(second.iter());
        shared.iter().enumerate().filter(|(_, is_shared)| !**is_shared).map(|(at, _)| at).collect()
    }

    #[test]
    fn each_event_of_the_first_log_is_found_once() {
        let first = [event("a", 0), event("a", 500), event("b", 900)];
        assert_eq!(missing(&first, &first), [0; 0]);
        assert_eq!(missing(&first, &[event("a", 3), event("a", 480), event("b", 901)]), [0; 0]);
        assert_eq!(
            missing(&first, &[event("a", 1), event("a", 2), event("a", 3), event("b", 4_000)]),
            [2, 3]
        );
        // The same time counts first.
        assert_eq!(missing(&[event("a", 500)], &[event("a", 400), event("a", 500)]), [0]);
        // Another event of the same type.
        assert_eq!(missing(&[event("a", 0), event("a", 1_000)], &[event("a", 0), event("a", 1_600)]), [1]);
        assert_eq!(missing(&[], &[event("a", 0)]), [0]);
    }

    #[test]
    fn events_without_a_time_are_found_by_their_type() {
        let none = ("a".to_owned(), None);
        assert_eq!(
            missing(std::slice::from_ref(&none), &[none.clone(), none.clone(), event("a", 0)]),
            [1, 2]
        );
    }
}
