//! Statistics over sessions, messages and events.

mod called;
mod compacted;
mod copied;
mod periods;
mod related;
mod shared;
mod sorted;
mod sync_statistics;
mod tables;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use self::{
    copied::{Brief, Copied},
    tables::Tables,
};
pub use self::{
    periods::PeriodStatistics,
    related::Relation,
    sorted::{SessionOrder, SortedProject, SortedSession},
    sync_statistics::SyncStatistics,
};
use super::{
    session_rows::SessionRows,
    sessions::{PAGE, SessionStatistics},
    store::StoreStatistics,
};
use crate::{
    ErrorKind, Result, Scope,
    backend::{CountedEvents, MessageCount, SessionQuery, Usage},
    model::{DamagedRow, ProjectSlug, SessionKey, Timestamp},
    search::{EventFilter, SearchFilter, SessionFilter},
};

/// Options for statistics. The default is everything in scope.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StatisticsOptions {
    /// The filter for sessions.
    pub sessions: SessionFilter,
    /// The beginning of the period: sessions that were active in it, and messages and events in it.
    pub since: Option<Timestamp>,
    /// The end of the period.
    pub until: Option<Timestamp>,
    /// The time zone of the days. The default is UTC.
    pub zone: TimeZone,
}

impl Default for StatisticsOptions {
    fn default() -> Self {
        Self { sessions: SessionFilter::default(), since: None, until: None, zone: TimeZone::UTC }
    }
}

impl StatisticsOptions {
    setters! {
        /// Sets the filter for sessions.
        with_sessions(sessions: SessionFilter);
        /// Sets the time zone of the days.
        with_zone(zone: TimeZone);
    }

    /// Sets the period; each end may be open.
    #[must_use]
    pub fn with_period(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        (self.since, self.until) = (since, until);
        self
    }
}

/// Statistics: totals, and lists with the largest first, or days in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Statistics {
    /// Totals of all sessions, with all their messages and events regardless of the period, except `left_out`.
    pub totals: SessionStatistics,
    /// What is left out of all other numbers.
    pub left_out: LeftOut,
    /// How many of the events were removed from their logs when these were compacted. Backends have them as superseded
    /// lines.
    pub compacted_events: u64,
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
    /// Days in the time zone of the options, from the first to the last activity, including days without activity unless there are more than 366
    /// in a row.
    pub days: Vec<DayStatistics>,
    /// The ISO 8601 weeks of these days.
    pub weeks: Vec<PeriodStatistics>,
    /// The months of these days.
    pub months: Vec<PeriodStatistics>,
}

/// A list of [`Statistics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breakdown {
    /// [`Statistics::projects`].
    Project,
    /// [`Statistics::bundles`].
    Bundle,
    /// [`Statistics::event_types`].
    EventType,
    /// [`Statistics::tools`].
    Tool,
    /// [`Statistics::models`].
    Model,
    /// [`Statistics::days`].
    Day,
    /// [`Statistics::weeks`].
    Week,
    /// [`Statistics::months`].
    Month,
}

impl Statistics {
    /// Empties the lists that are not among `kept`, for readers who need few of them. Numbers do not change.
    pub fn keep_only(&mut self, kept: &[Breakdown]) {
        let is_left_out = |breakdown: Breakdown| !kept.contains(&breakdown);
        if is_left_out(Breakdown::Project) {
            self.projects.clear();
        }
        if is_left_out(Breakdown::Bundle) {
            self.bundles.clear();
        }
        if is_left_out(Breakdown::EventType) {
            self.event_types.clear();
        }
        if is_left_out(Breakdown::Tool) {
            self.tools.clear();
        }
        if is_left_out(Breakdown::Model) {
            self.models.clear();
        }
        if is_left_out(Breakdown::Day) {
            self.days.clear();
        }
        if is_left_out(Breakdown::Week) {
            self.weeks.clear();
        }
        if is_left_out(Breakdown::Month) {
            self.months.clear();
        }
    }
}

/// A group of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventTypeStatistics {
    /// The type.
    pub event_type: String,
    /// The number of events.
    pub events: u64,
    /// The number of events that report a failure.
    pub failures: u64,
}

/// Statistics of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolStatistics {
    /// The tool.
    pub tool: String,
    /// The number of uses. A use produces an event when it begins (`tool:pre`, `tool:call`) and one when it ends
    /// (`tool:post`, `tool:result`, `tool:error`); the larger of the two counts. In a session without events, it is a
    /// call in the transcript.
    pub uses: u64,
    /// The number of events about the tool that report a failure.
    pub failures: u64,
}

/// Statistics of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelStatistics {
    /// The model without a path before it: `X` for `anthropic/X`; `unknown` for calls whose events name no model.
    pub model: String,
    /// The provider, if events name it; several are separated by commas.
    pub provider: Option<String>,
    /// Calls, tokens and cost, as far as events report them.
    #[serde(flatten)]
    pub usage: Usage,
    /// The number of events about the model that report a failure.
    pub failures: u64,
}

/// Activity on a day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DayStatistics {
    /// The day: `2026-01-31`.
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

/// What statistics leave out, because it is counted elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LeftOut {
    /// The number of sessions that begin with a copy of another session that was counted: forks, and copied folders.
    pub sessions: u64,
    /// The number of their messages that are copies.
    pub messages: u64,
    /// The number of turns of these messages.
    pub turns: u64,
    /// The number of events of the period that are copies, that are in the same log again, or that are of another session
    /// with a log of its own.
    pub events: u64,
    /// The usage in these events.
    pub usage: Usage,
}

impl StoreStatistics<'_> {
    /// Statistics of the sessions in `scope`. What several of them have, or one of them several times, counts once:
    /// [`Statistics::left_out`] is the rest.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn get_statistics(self, scope: &Scope, options: &StatisticsOptions) -> Result<Statistics> {
        let (since, until) = (options.since, options.until);
        let query = SessionQuery::new(scope.clone())
            .with_filter(options.sessions.clone())
            .active_in(since, until)
            .with_limit(PAGE);
        let in_period =
            |ts: Timestamp| since.is_none_or(|since| ts >= since) && until.is_none_or(|until| ts < until);
        let (mut tables, mut briefs) = (Tables::new(&options.zone), Vec::new());
        self.store
            .each_page(query, |page| {
                page.iter().for_each(|session| tables.session(session, in_period));
                briefs.extend(page.iter().map(Brief::of));
            })
            .await?;

        let messages = SearchFilter::default()
            .with_sessions(options.sessions.clone())
            .with_since(since)
            .with_until(until);
        for count in self.message_counts(scope, &messages, &briefs).await? {
            tables.messages(&count);
        }
        let mut events = EventFilter::default()
            .with_sessions(options.sessions.clone())
            .with_since(since)
            .with_until(until);
        let shared = self.shared_rows(scope, &options.sessions, &briefs, &events).await?;
        for (session, copied) in &shared.copied {
            self.leave_out(session, copied, in_period, &mut tables).await?;
        }
        // These sessions are counted; those that share nothing are counted by the database.
        events.sessions.without.extend(shared.counted);
        tables.compacted(shared.compacted);
        let counts = self.event_counts(scope, &events, &briefs).await?;
        counts.groups.iter().chain(&shared.counts.groups).for_each(|count| tables.events(count));
        // Without a log of events, only the messages show which tools were called.
        for brief in briefs.iter().filter(|brief| brief.events == 0 && brief.messages > 0) {
            let copied = shared.copied.get(&brief.key).map_or(0, |copied| copied.messages);
            self.each_called_tool(&brief.key, copied, in_period, |tool| tables.called_tool(tool)).await?;
        }
        Ok(tables.into_statistics())
    }

    async fn message_counts(
        self,
        scope: &Scope,
        filter: &SearchFilter,
        briefs: &[Brief],
    ) -> Result<Vec<MessageCount>> {
        let error = match self.store.backend.count_messages(scope, filter).await {
            Err(error) if error.kind() == ErrorKind::Damaged => error,
            counts => return counts,
        };
        tracing::debug!(%error, "messages are counted session by session");
        let mut counts = Vec::new();
        for Brief { key, .. } in briefs {
            let of_session = filter.clone().with_session(key.session_id.clone());
            let found =
                self.store.backend.count_messages(&Scope::User(key.user_id.clone()), &of_session).await;
            counts.extend(self.unless_damaged(key, found)?);
        }
        Ok(counts)
    }

    async fn event_counts(
        self,
        scope: &Scope,
        filter: &EventFilter,
        briefs: &[Brief],
    ) -> Result<CountedEvents> {
        let error = match self.store.backend.count_events(scope, filter).await {
            Err(error) if error.kind() == ErrorKind::Damaged => error,
            counts => return counts,
        };
        tracing::debug!(%error, "events are counted session by session");
        let mut counts = CountedEvents::default();
        for Brief { key, .. } in briefs.iter().filter(|brief| !filter.sessions.without.contains(&brief.key)) {
            let mut of_session = filter.clone();
            of_session.sessions = of_session.sessions.with_session(key.session_id.clone());
            let found = self.store.backend.count_events(&Scope::User(key.user_id.clone()), &of_session).await;
            counts.append(self.unless_damaged(key, found)?);
        }
        Ok(counts)
    }

    /// Removes the copied messages and events of a session from the counts.
    async fn leave_out(
        self,
        key: &SessionKey,
        copied: &Copied,
        in_period: impl Fn(Timestamp) -> bool,
        tables: &mut Tables<'_>,
    ) -> Result<()> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(()) };
        tables.leave_out(&stored.session, copied);
        let mut messages = SessionRows::new(self.store, key).messages(0);
        while let Some(page) = messages.next().await? {
            if page.first().is_none_or(|message| message.sequence >= copied.messages) {
                break;
            }
            let copies = page.iter().filter(|message| message.sequence < copied.messages);
            let copies = copies.filter(|message| in_period(message.ts));
            MessageCount::of(copies.map(|message| (message.ts, message.role)))
                .iter()
                .for_each(|count| tables.copied_messages(count));
        }
        Ok(())
    }

    /// The counts of a session. If they can't be read, returns nothing and records the session as damaged.
    fn unless_damaged<T: Default>(self, key: &SessionKey, counts: Result<T>) -> Result<T> {
        match counts {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.store.remember_damaged(vec![DamagedRow::of_session(key, &error)]);
                Ok(T::default())
            }
            counts => counts,
        }
    }
}
