//! Filters and options for searching events.

use crate::{
    Error, ErrorField, Result,
    model::{Event, Level, MessageRef, Timestamp, normalised_type},
    search::SessionFilter,
};

/// A filter for events, which must match all fields. The default is all events. Names must match exactly.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EventFilter {
    /// Only events of these sessions.
    pub sessions: SessionFilter,
    /// Only events that contain all these words: [`Event::mentions`].
    pub text: Option<String>,
    /// Only this type, for example `llm:request`.
    pub event_type: Option<String>,
    /// Only events of this category, the part of the type before the first colon, for example `llm`.
    pub category: Option<String>,
    /// Only events about this tool.
    pub tool: Option<String>,
    /// Only events about this model.
    pub model: Option<String>,
    /// Only events about this provider.
    pub provider: Option<String>,
    /// Only events with exactly this level.
    pub level: Option<Level>,
    /// Only events with this kind of error.
    pub error_type: Option<String>,
    /// Only events at this time or later.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    setters! {
        /// Only events of these sessions.
        with_sessions(sessions: SessionFilter);
    }

    /// Only events of this type. Dots are read as colons: `tool.call` is `tool:call`.
    #[must_use]
    pub fn with_event_type(mut self, event_type: impl Into<Option<String>>) -> Self {
        self.event_type = event_type.into().map(|name| normalised_type(&name));
        self
    }

    /// Only events of this category. Dots are read as colons.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Option<String>>) -> Self {
        self.category = category.into().map(|name| normalised_type(&name));
        self
    }

    optional_setters! {
        /// Only events that contain all these words.
        with_text(text: String);
        /// Only events about this tool.
        with_tool(tool: String);
        /// Only events about this model.
        with_model(model: String);
        /// Only events about this provider.
        with_provider(provider: String);
        /// Only events with this level.
        with_level(level: Level);
        /// Only events with this kind of error.
        with_error_type(error_type: String);
        /// Only events at `since` or later.
        with_since(since: Timestamp);
        /// Only events before `until`.
        with_until(until: Timestamp);
    }

    /// Whether `event` matches, regardless of its session.
    #[must_use]
    pub fn admits(&self, event: &Event) -> bool {
        let is = |wanted: &Option<String>, found: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| found.as_ref() == Some(wanted))
        };
        self.event_type.as_ref().is_none_or(|wanted| *wanted == event.event_type)
            && self.category.as_ref().is_none_or(|wanted| wanted == event.category())
            && self.text.as_ref().is_none_or(|words| event.mentions(words))
            && is(&self.tool, &event.tool_name)
            && is(&self.model, &event.model)
            && is(&self.provider, &event.provider)
            && is(&self.error_type, &event.error_type)
            && self.level.is_none_or(|level| level == event.level)
            && self.since.is_none_or(|since| event.ts >= since)
            && self.until.is_none_or(|until| event.ts < until)
    }
}

/// A search for events. Results come newest first: by time, then owner, session and sequence, all descending.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventSearchOptions {
    /// The filter.
    pub filter: EventFilter,
    /// Maximum number of events, 1 to 10,000. Default: 100. Fewer results mean the end of the list.
    pub limit: usize,
    /// Continue after this event, the last one of the previous page.
    pub after: Option<EventCursor>,
    /// Events to leave out because they are known to be unreadable.
    pub without: Vec<MessageRef>,
}

impl Default for EventSearchOptions {
    fn default() -> Self {
        Self { filter: EventFilter::default(), limit: 100, after: None, without: Vec::new() }
    }
}

impl EventSearchOptions {
    /// The maximum number of events in a page.
    pub const MAX_LIMIT: usize = 10_000;

    /// The newest 100 events that match `filter`.
    #[must_use]
    pub fn new(filter: EventFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    setters! {
        /// Sets the maximum number of events.
        with_limit(limit: usize);
    }

    optional_setters! {
        /// Continues after an event.
        with_after(after: EventCursor);
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// `Validation` with the field that is out of range.
    pub fn validate(&self) -> Result<()> {
        if !(1..=Self::MAX_LIMIT).contains(&self.limit) {
            return Err(Error::validation(ErrorField::Limit, "must be 1 to 10000"));
        }
        Ok(())
    }
}

/// A position in a list of events, which is in descending order of these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// The time of the event.
    pub ts: Timestamp,
    /// The event: owner, session and sequence.
    pub event: MessageRef,
}

impl From<&Event> for EventCursor {
    fn from(event: &Event) -> Self {
        let key = event.key();
        Self { ts: event.ts, event: MessageRef::new(key, event.sequence) }
    }
}
