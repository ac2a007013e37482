//! Events that several sessions have, or that only superseded lines have: these sessions are counted one by one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::copied::{Brief, Copied};
use crate::{
    Result, Scope,
    backend::{CountedEvents, EventCounter, REQUEST_ID, RESPONSE, SESSION_ID},
    model::{Event, SessionKey},
    search::{EventFilter, SessionFilter},
    storage::{session_rows::SessionRows, store::StoreStatistics},
};

/// The counts of sessions that are counted one by one.
#[derive(Debug, Default)]
pub(super) struct SharedRows {
    /// These sessions.
    pub(super) counted: BTreeSet<SessionKey>,
    /// Their events.
    pub(super) counts: CountedEvents,
    /// What sessions have of others.
    pub(super) copied: BTreeMap<SessionKey, Copied>,
    /// How many of the events are only superseded lines.
    pub(super) compacted: u64,
}

/// Events that were counted.
#[derive(Debug, Default)]
struct KnownEvents {
    /// How often each event occurs, by a hash.
    events: HashMap<u64, u32>,
    /// The requests that they report.
    requests: HashSet<String>,
    /// Hashes of their types and times.
    moments: HashSet<u64>,
}

impl StoreStatistics<'_> {
    /// Counts the events that `filter` admits of all sessions that are related to others or were compacted.
    pub(super) async fn shared_rows(
        self,
        scope: &Scope,
        sessions: &SessionFilter,
        briefs: &[Brief],
        filter: &EventFilter,
    ) -> Result<SharedRows> {
        let compacted = self.compacted_sessions(scope, sessions).await?;
        let mut shared = SharedRows::default();
        let mut counter = EventCounter::default();
        for family in self.families(briefs).await? {
            let members: Vec<&SessionKey> = family.members.iter().map(|(brief, _)| &brief.key).collect();
            let mut known = KnownEvents::default();
            for (brief, copied) in &family.members {
                let mut copied = *copied;
                let is_compacted = compacted.contains(&brief.key);
                let counts = (&mut counter, &mut known, &mut shared.compacted);
                copied.events = self.count_member(&brief.key, &members, is_compacted, filter, counts).await?;
                shared.counted.insert(brief.key.clone());
                if copied != Copied::default() {
                    shared.copied.insert(brief.key.clone(), copied);
                }
            }
        }
        // Compacted sessions that belong to no family.
        for Brief { key, .. } in briefs {
            if compacted.contains(key) && shared.counted.insert(key.clone()) {
                let counts = (&mut counter, &mut KnownEvents::default(), &mut shared.compacted);
                self.count_member(key, &[key], true, filter, counts).await?;
            }
        }
        shared.counts = counter.into_counts();
        Ok(shared)
    }

    /// Counts the events of a session, and returns how many of them are copies of those in `known`.
    async fn count_member(
        self,
        key: &SessionKey,
        members: &[&SessionKey],
        is_compacted: bool,
        filter: &EventFilter,
        (counter, known, compacted): (&mut EventCounter, &mut KnownEvents, &mut u64),
    ) -> Result<u64> {
        let (mut own, mut copies) = (KnownEvents::default(), 0);
        let mut events = SessionRows::new(self.store, key).events(0);
        while let Some(page) = events.next().await? {
            for mut event in page {
                forget_members(&mut event, members);
                if event.event_type == RESPONSE && event.summary.contains_key("usage") {
                    counter.set_answered([key.clone()]);
                }
                let is_again = counter.is_again(&event);
                let is_copy = !is_again && own.note(&event) <= known.count(&event);
                if filter.admits(&event) {
                    counter.add_once(&event, is_again || is_copy);
                    copies += u64::from(is_copy);
                }
            }
        }
        if is_compacted {
            let mut lost = KnownEvents::default();
            for (mut event, is_edited) in self.compacted_events(key).await? {
                forget_members(&mut event, members);
                let times = lost.note(&event);
                // The line may be in the log again, or in another form.
                let is_counted = times <= known.count(&event).max(own.count(&event))
                    || (is_edited && own.moments.contains(&moment(&event)));
                if !is_counted && filter.admits(&event) {
                    counter.add_once(&event, false);
                    *compacted += 1;
                }
            }
            known.merge(lost);
        }
        known.merge(own);
        Ok(copies)
    }
}

/// A line that names a member of the family is of the session in whose log it is, unless that member has it too.
fn forget_members(event: &mut Event, members: &[&SessionKey]) {
    let named = event.summary.get(SESSION_ID).and_then(|id| id.as_str());
    if named.is_some_and(|id| members.iter().any(|key| key.session_id.as_str() == id)) {
        event.summary.remove(SESSION_ID);
    }
}

impl KnownEvents {
    /// Counts an event, and returns how often it occurred.
    fn note(&mut self, event: &Event) -> u32 {
        self.requests.extend(request(event).map(str::to_owned));
        self.moments.insert(moment(event));
        let count = self.events.entry(identity(event)).or_default();
        *count += 1;
        *count
    }

    /// How often the event, or another one about the same request, occurred.
    fn count(&self, event: &Event) -> u32 {
        if request(event).is_some_and(|id| self.requests.contains(id)) {
            return u32::MAX;
        }
        self.events.get(&identity(event)).copied().unwrap_or(0)
    }

    fn merge(&mut self, other: Self) {
        self.requests.extend(other.requests);
        for (identity, count) in other.events {
            let known = self.events.entry(identity).or_default();
            *known = count.max(*known);
        }
    }
}

/// The id of the model call that an event with usage reports.
fn request(event: &Event) -> Option<&str> {
    event.summary.get(REQUEST_ID)?.as_str()
}

fn moment(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&event.event_type, event.ts).hash(&mut hasher);
    hasher.finish()
}

/// The same for an event in the logs of several sessions, even if the host wrote the line in another form or with
/// another session id. An event without a time is known by its line.
fn identity(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    if event.ts_estimated {
        event.digest.hash(&mut hasher);
    } else {
        (&event.event_type, event.ts, &event.tool_name, &event.model, &event.provider).hash(&mut hasher);
        for (name, value) in event.summary.iter().filter(|(name, _)| *name != SESSION_ID) {
            (name, value.to_string()).hash(&mut hasher);
        }
    }
    hasher.finish()
}
