//! Statistics over sessions, messages and events.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    PeriodStatistics, SessionStatistics, SessionStorage,
    find::PAGE,
    periods::{months, weeks, with_gaps},
};
use crate::{
    ErrorKind, Result, Scope,
    backend::{EventCount, MessageCount, SessionQuery, Usage},
    model::{DamagedRow, ProjectSlug, Session, SessionKey, Timestamp},
    search::{EventFilter, SearchFilter, SessionFilter},
};

/// The name of the model for calls whose events name no model.
const UNKNOWN_MODEL: &str = "unknown";

/// Options for statistics. The default is everything in scope.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StatisticsOptions {
    /// The filter for sessions.
    pub sessions: SessionFilter,
    /// The beginning of the period: sessions that were active in it, and messages and events in it.
    pub since: Option<Timestamp>,
    /// The end of the period.
    pub until: Option<Timestamp>,
}

impl StatisticsOptions {
    setters! {
        /// Sets the filter for sessions.
        with_sessions(sessions: SessionFilter);
    }

    /// Sets the period; each end may be open.
    #[must_use]
    pub fn with_period(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        (self.since, self.until) = (since, until);
        self
    }
}

/// Statistics: totals, and lists with the largest first, or days in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Totals of all sessions, with all their messages and events regardless of the period.
    pub totals: SessionStatistics,
    /// The usage of models in the period: the sum of `models`, and of `days`.
    pub usage: Usage,
    /// Sessions by project.
    pub projects: Vec<SessionGroup<ProjectSlug>>,
    /// Sessions by bundle; `None` for sessions without a bundle.
    pub bundles: Vec<SessionGroup<Option<String>>>,
    /// Events by type.
    pub event_types: Vec<EventTypeStatistics>,
    /// Uses of tools.
    pub tools: Vec<ToolStatistics>,
    /// Uses of models.
    pub models: Vec<ModelStatistics>,
    /// Days in UTC from the first to the last activity, including days without activity unless there are more than 366
    /// in a row.
    pub days: Vec<DayStatistics>,
    /// The ISO 8601 weeks of these days.
    pub weeks: Vec<PeriodStatistics>,
    /// The months of these days.
    pub months: Vec<PeriodStatistics>,
}

/// A group of sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionGroup<T> {
    /// The value that defines the group.
    pub of: T,
    /// Their counts.
    #[serde(flatten)]
    pub counts: SessionStatistics,
    /// When the last of them changed.
    pub last_updated: Timestamp,
}

/// Statistics of an event type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EventTypeStatistics {
    /// The type.
    pub event_type: String,
    /// The number of events.
    pub events: u64,
    /// The number of events that report a failure.
    pub failures: u64,
}

/// Statistics of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolStatistics {
    /// The tool.
    pub tool: String,
    /// The number of uses. A use produces an event when it begins (`tool:pre`, `tool:call`) and one when it ends
    /// (`tool:post`, `tool:result`, `tool:error`); the larger of the two counts.
    pub uses: u64,
    /// The number of events about the tool that report a failure.
    pub failures: u64,
}

/// Statistics of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelStatistics {
    /// The model; `unknown` for calls whose events name no model.
    pub model: String,
    /// The provider, if events name it.
    pub provider: Option<String>,
    /// Calls, tokens and cost, as far as events report them.
    #[serde(flatten)]
    pub usage: Usage,
    /// The number of events about the model that report a failure.
    pub failures: u64,
}

/// Activity on a day.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DayStatistics {
    /// The day in UTC: `2026-01-31`.
    pub day: String,
    /// Sessions that were created.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// User messages.
    pub user_messages: u64,
    /// Events.
    pub events: u64,
    /// The usage of models.
    pub usage: Usage,
}

impl SessionStorage {
    /// Statistics of the sessions in `scope`.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn get_statistics(&self, scope: &Scope, options: &StatisticsOptions) -> Result<Statistics> {
        let (since, until) = (options.since, options.until);
        let mut tables = Tables::default();
        let query = SessionQuery::new(scope.clone())
            .with_filter(options.sessions.clone())
            .active_in(since, until)
            .with_limit(PAGE);
        let in_period =
            |ts: Timestamp| since.is_none_or(|since| ts >= since) && until.is_none_or(|until| ts < until);
        let mut keys = Vec::new();
        self.each_page(query, |page| {
            page.iter().for_each(|session| tables.session(session, in_period));
            keys.extend(page.iter().map(Session::key));
        })
        .await?;

        let messages = SearchFilter::default()
            .with_sessions(options.sessions.clone())
            .with_since(since)
            .with_until(until);
        let events = EventFilter::default()
            .with_sessions(options.sessions.clone())
            .with_since(since)
            .with_until(until);
        match self.backend.count_messages(scope, &messages).await {
            Ok(counts) => counts.iter().for_each(|count| tables.messages(count)),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                for key in &keys {
                    let (scope, of_session) = (Scope::User(key.user_id.clone()), messages.clone());
                    let of_session = of_session.with_session(key.session_id.clone());
                    let counts = self.backend.count_messages(&scope, &of_session).await;
                    self.unless_damaged(key, counts)?.iter().for_each(|count| tables.messages(count));
                }
            }
            Err(error) => return Err(error),
        }
        match self.backend.count_events(scope, &events).await {
            Ok(counts) => counts.iter().for_each(|count| tables.events(count)),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                for key in &keys {
                    let (scope, mut of_session) = (Scope::User(key.user_id.clone()), events.clone());
                    of_session.sessions = of_session.sessions.with_session(key.session_id.clone());
                    let counts = self.backend.count_events(&scope, &of_session).await;
                    self.unless_damaged(key, counts)?.iter().for_each(|count| tables.events(count));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(tables.into_statistics())
    }

    /// The counts of a session. If they can't be read, returns nothing and records the session as damaged.
    fn unless_damaged<T>(&self, key: &SessionKey, counts: Result<Vec<T>>) -> Result<Vec<T>> {
        match counts {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.remember_damaged(vec![DamagedRow::of_session(key, &error)]);
                Ok(Vec::new())
            }
            counts => counts,
        }
    }
}

/// The statistics while they are counted.
#[derive(Default)]
struct Tables {
    totals: SessionStatistics,
    projects: BTreeMap<ProjectSlug, (SessionStatistics, Option<Timestamp>)>,
    bundles: BTreeMap<Option<String>, (SessionStatistics, Option<Timestamp>)>,
    usage: Usage,
    event_types: BTreeMap<String, EventTypeStatistics>,
    tools: BTreeMap<String, ToolUses>,
    models: BTreeMap<(String, Option<String>), ModelStatistics>,
    days: BTreeMap<String, DayStatistics>,
}

#[derive(Default)]
struct ToolUses {
    begun: u64,
    ended: u64,
    others: u64,
    failures: u64,
}

impl Tables {
    fn session(&mut self, session: &Session, in_period: impl Fn(Timestamp) -> bool) {
        self.totals.add(session);
        let groups = [
            self.projects.entry(session.project_slug.clone()).or_default(),
            self.bundles.entry(session.bundle.clone()).or_default(),
        ];
        for (counts, last) in groups {
            counts.add(session);
            *last = (*last).max(Some(session.updated));
        }
        if in_period(session.created) {
            self.day(&session.created.day()).sessions += 1;
        }
    }

    fn messages(&mut self, count: &MessageCount) {
        let day = self.day(&count.day);
        day.messages += count.messages;
        if count.role == crate::model::Role::User {
            day.user_messages += count.messages;
        }
    }

    fn events(&mut self, count: &EventCount) {
        let (group, events) = (&count.group, count.events);
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
        let unknown = || (count.usage.calls > 0).then_some(UNKNOWN_MODEL);
        if let Some(model) = group.model.as_deref().or_else(unknown) {
            let of_model = self.models.entry((model.to_owned(), group.provider.clone())).or_default();
            of_model.usage.add(count.usage);
            of_model.failures += failures;
        }
        self.usage.add(count.usage);
        let day = self.day(&group.day);
        day.events += events;
        day.usage.add(count.usage);
    }

    fn day(&mut self, day: &str) -> &mut DayStatistics {
        self.days.entry(day.to_owned()).or_default()
    }

    fn into_statistics(self) -> Statistics {
        let event_types = self.event_types.into_iter();
        let tools = self.tools.into_iter();
        let models = self.models.into_iter();
        let days = with_gaps(self.days.into_iter().map(|(day, found)| DayStatistics { day, ..found }));
        Statistics {
            totals: self.totals,
            usage: self.usage,
            projects: groups(self.projects),
            bundles: groups(self.bundles),
            event_types: largest_first(
                event_types.map(|(event_type, found)| EventTypeStatistics { event_type, ..found }),
                |one| one.events,
            ),
            tools: largest_first(tools.map(|(tool, uses)| uses.of(tool)), |one| one.uses),
            models: largest_first(
                models.map(|((model, provider), found)| ModelStatistics { model, provider, ..found }),
                |one| (one.usage.input_tokens.saturating_add(one.usage.output_tokens), one.usage.calls),
            ),
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
            uses: if reported == 0 { self.others } else { reported },
            failures: self.failures,
        }
    }
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
