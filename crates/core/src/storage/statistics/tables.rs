//! The tables of the statistics, while they are filled.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    DayStatistics, EventTypeStatistics, LeftOut, ModelStatistics, SessionGroup, Statistics, ToolStatistics,
    copied::Copied,
    periods::{months, weeks, with_gaps},
};
use jiff::{civil::Date, tz::TimeZone};

use crate::{
    backend::{EventCount, MessageCount, Tally, Usage},
    model::{ProjectSlug, Role, Session, Timestamp},
    storage::sessions::SessionStatistics,
};

/// The name of the model for calls whose events name no model.
const UNKNOWN_MODEL: &str = "unknown";

/// The statistics while they are counted.
pub(super) struct Tables<'a> {
    /// The time zone of the days.
    zone: &'a TimeZone,
    totals: SessionStatistics,
    left_out: LeftOut,
    compacted_events: u64,
    /// The sessions with events.
    logged: HashSet<String>,
    projects: BTreeMap<ProjectSlug, (SessionStatistics, Option<Timestamp>)>,
    bundles: BTreeMap<Option<String>, (SessionStatistics, Option<Timestamp>)>,
    usage: Usage,
    event_types: BTreeMap<String, EventTypeStatistics>,
    tools: BTreeMap<String, ToolUses>,
    models: BTreeMap<String, ModelUses>,
    days: BTreeMap<Date, DayStatistics>,
}

#[derive(Default)]
struct ToolUses {
    begun: u64,
    ended: u64,
    others: u64,
    /// Calls in transcripts.
    called: u64,
    failures: u64,
}

#[derive(Default)]
struct ModelUses {
    usage: Usage,
    failures: u64,
    providers: BTreeSet<String>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(zone: &'a TimeZone) -> Self {
        Self {
            zone,
            totals: SessionStatistics::default(),
            left_out: LeftOut::default(),
            compacted_events: 0,
            logged: HashSet::new(),
            projects: BTreeMap::new(),
            bundles: BTreeMap::new(),
            usage: Usage::default(),
            event_types: BTreeMap::new(),
            tools: BTreeMap::new(),
            models: BTreeMap::new(),
            days: BTreeMap::new(),
        }
    }

    pub(super) fn session(&mut self, session: &Session, in_period: impl Fn(Timestamp) -> bool) {
        self.totals.add(session);
        if session.event_count > 0 {
            self.logged.insert(session.session_id.to_string());
        }
        let groups = [
            self.projects.entry(session.project_slug.clone()).or_default(),
            self.bundles.entry(session.bundle.clone()).or_default(),
        ];
        for (counts, last) in groups {
            counts.add(session);
            *last = (*last).max(Some(session.updated));
        }
        if in_period(session.created) {
            self.of_day(session.created, |day| day.sessions += 1);
        }
    }

    pub(super) fn messages(&mut self, count: &MessageCount) {
        self.of_day(count.quarter, |day| {
            day.messages += count.messages;
            if count.role == Role::User {
                day.user_messages += count.messages;
            }
        });
    }

    pub(super) fn events(&mut self, count: &EventCount) {
        let (group, mut left_out) = (&count.group, count.left_out);
        // The log of that session has the event too.
        let is_logged = group.of_session.as_ref().is_some_and(|session| self.logged.contains(session));
        if is_logged {
            left_out.add(count.once);
        }
        self.left_out.events += left_out.events;
        self.left_out.usage.add(left_out.usage);
        self.totals.events = self.totals.events.saturating_sub(left_out.events);
        if is_logged || count.once == Tally::default() {
            return;
        }
        let Tally { events, usage } = count.once;
        let failures = if group.failed { events } else { 0 };
        let of_type = self.event_types.entry(group.event_type.clone()).or_default();
        of_type.events += events;
        of_type.failures += failures;
        if let Some(tool) = &group.tool_name {
            let uses = self.tools.entry(tool.clone()).or_default();
            match group.event_type.as_str() {
                "tool:pre" | "tool:call" => uses.begun += events,
                "tool:post" | "tool:result" | "tool:error" => uses.ended += events,
                _ => uses.others += events,
            }
            uses.failures += failures;
        }
        let unknown = || (usage.calls > 0).then_some(UNKNOWN_MODEL);
        if let Some(model) = group.model.as_deref().map(base_name).or_else(unknown) {
            let of_model = self.models.entry(model.to_owned()).or_default();
            of_model.usage.add(usage);
            of_model.failures += failures;
            of_model.providers.extend(group.provider.clone());
        }
        self.usage.add(usage);
        self.of_day(group.quarter, |day| {
            day.events += events;
            day.usage.add(usage);
        });
    }

    /// Removes what a session has of others from the totals and groups. Its events are among the counted ones.
    pub(super) fn leave_out(&mut self, session: &Session, copied: &Copied) {
        self.left_out.sessions += 1;
        self.left_out.messages += u64::from(copied.messages);
        self.left_out.turns += u64::from(copied.turns);
        let groups = [
            self.projects.get_mut(&session.project_slug).map(|(counts, _)| counts),
            self.bundles.get_mut(&session.bundle).map(|(counts, _)| counts),
        ];
        for counts in groups.into_iter().flatten() {
            counts.events = counts.events.saturating_sub(copied.events);
            counts.leave_out(copied);
        }
        self.totals.leave_out(copied);
    }

    /// Removes copied messages from their day.
    pub(super) fn copied_messages(&mut self, count: &MessageCount) {
        self.of_day(count.quarter, |day| {
            day.messages = day.messages.saturating_sub(count.messages);
            if count.role == Role::User {
                day.user_messages = day.user_messages.saturating_sub(count.messages);
            }
        });
    }

    /// Adds the events that are only superseded lines now, which are among the counted ones.
    pub(super) fn compacted(&mut self, events: u64) {
        self.compacted_events += events;
        self.totals.events += events;
    }

    pub(super) fn called_tool(&mut self, tool: &str) {
        self.tools.entry(tool.to_owned()).or_default().called += 1;
    }

    /// Changes the counts of the day of a time. A time that is too far away to be a date has no day.
    fn of_day(&mut self, time: Timestamp, change: impl FnOnce(&mut DayStatistics)) {
        if let Some(day) = time.day(self.zone) {
            change(self.days.entry(day).or_default());
        }
    }

    pub(super) fn into_statistics(self) -> Statistics {
        let event_types = self.event_types.into_iter();
        let tools = self.tools.into_iter();
        let models = self.models.into_iter();
        let days = self.days.into_iter();
        let days = with_gaps(days.map(|(day, found)| DayStatistics { day: day.to_string(), ..found }));
        Statistics {
            totals: self.totals,
            left_out: self.left_out,
            compacted_events: self.compacted_events,
            usage: self.usage,
            projects: groups(self.projects),
            bundles: groups(self.bundles),
            event_types: largest_first(
                event_types.map(|(event_type, found)| EventTypeStatistics { event_type, ..found }),
                |one| one.events,
            ),
            tools: largest_first(tools.map(|(tool, uses)| uses.of(tool)), |one| one.uses),
            models: largest_first(models.map(|(model, uses)| uses.of(model)), |one| {
                (one.usage.input_tokens.saturating_add(one.usage.output_tokens), one.usage.calls)
            }),
            weeks: weeks(&days),
            months: months(&days),
            days,
        }
    }
}

impl ToolUses {
    fn of(self, tool: String) -> ToolStatistics {
        let reported = self.begun.max(self.ended);
        ToolStatistics {
            tool,
            uses: if reported == 0 { self.others } else { reported } + self.called,
            failures: self.failures,
        }
    }
}

impl ModelUses {
    fn of(self, model: String) -> ModelStatistics {
        let providers: Vec<String> = self.providers.into_iter().collect();
        let provider = (!providers.is_empty()).then(|| providers.join(", "));
        ModelStatistics { model, provider, usage: self.usage, failures: self.failures }
    }
}

/// The name of a model without the provider or path that some writers put before it.
fn base_name(model: &str) -> &str {
    model.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(model)
}

fn groups<T>(found: BTreeMap<T, (SessionStatistics, Option<Timestamp>)>) -> Vec<SessionGroup<T>> {
    let groups = found.into_iter();
    let groups =
        groups.filter_map(|(of, (counts, last))| Some(SessionGroup { of, counts, last_updated: last? }));
    largest_first(groups, |group| (group.counts.sessions, group.counts.messages))
}

/// Equal ones keep the order of their names.
fn largest_first<T, N: Ord>(items: impl Iterator<Item = T>, size: impl Fn(&T) -> N) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_by_key(|item| std::cmp::Reverse(size(item)));
    items
}

impl SessionStatistics {
    /// Removes copied messages and their turns.
    fn leave_out(&mut self, copied: &Copied) {
        self.messages = self.messages.saturating_sub(u64::from(copied.messages));
        self.turns = self.turns.saturating_sub(u64::from(copied.turns));
    }
}
