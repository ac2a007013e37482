//! Which events a search of event logs looks for.

use crate::{
    Error, Result,
    events::normalised_type,
    model::{Event, Level, Place, SessionKey, Timestamp},
    search::SessionFilter,
};

/// Which events. Every field narrows it; the default is all of them. Names are compared as they stand, in full.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EventFilter {
    /// Only events of these sessions.
    pub sessions: SessionFilter,
    /// Only events that say all these words of themselves: [`Event::says`].
    pub text: Option<String>,
    /// Only this type, for example `llm:request`.
    pub event_type: Option<String>,
    /// Only types of this category: what stands before the first colon, for example `llm`.
    pub category: Option<String>,
    /// Only events about this tool.
    pub tool: Option<String>,
    /// Only events about this model.
    pub model: Option<String>,
    /// Only events about this provider.
    pub provider: Option<String>,
    /// Only events of exactly this level.
    pub level: Option<Level>,
    /// Only events that report this kind of error.
    pub error_type: Option<String>,
    /// Only events of this time or later.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
}

macro_rules! narrowing {
    ($($(#[$doc:meta])* $name:ident: $field:ident, $type:ty;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $field: impl Into<Option<$type>>) -> Self {
                self.$field = $field.into();
                self
            }
        )*
    };
}

impl EventFilter {
    /// Narrows to events of certain sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: SessionFilter) -> Self {
        self.sessions = sessions;
        self
    }

    /// Narrows to a type. One with dots and no colon is taken as it is stored: `tool.call` is `tool:call`.
    #[must_use]
    pub fn with_event_type(mut self, event_type: impl Into<Option<String>>) -> Self {
        self.event_type = event_type.into().map(|name| normalised_type(&name));
        self
    }

    /// Narrows to a category of types, with dots for colons as in a type.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<Option<String>>) -> Self {
        self.category = category.into().map(|name| normalised_type(&name));
        self
    }

    narrowing! {
        /// Narrows to events that say all these words of themselves.
        with_text: text, String;
        /// Narrows to events about a tool.
        with_tool: tool, String;
        /// Narrows to events about a model.
        with_model: model, String;
        /// Narrows to events about a provider.
        with_provider: provider, String;
        /// Narrows to a level.
        with_level: level, Level;
        /// Narrows to events that report a kind of error.
        with_error_type: error_type, String;
        /// Narrows to events of `since` or later.
        with_since: since, Timestamp;
        /// Narrows to events before `until`.
        with_until: until, Timestamp;
    }

    /// Whether `event` passes the event's part of the filter; its session is another question.
    #[must_use]
    pub fn admits(&self, event: &Event) -> bool {
        let is = |wanted: &Option<String>, found: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| found.as_ref() == Some(wanted))
        };
        self.event_type.as_ref().is_none_or(|wanted| *wanted == event.event_type)
            && self.category.as_ref().is_none_or(|wanted| wanted == event.category())
            && self.text.as_ref().is_none_or(|words| event.says(words))
            && is(&self.tool, &event.tool_name)
            && is(&self.model, &event.model)
            && is(&self.provider, &event.provider)
            && is(&self.error_type, &event.error_type)
            && self.level.is_none_or(|level| level == event.level)
            && self.since.is_none_or(|since| event.ts >= since)
            && self.until.is_none_or(|until| event.ts < until)
    }
}

/// A search of event logs. Answers come newest first: by time, then owner, session and sequence, all descending.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventSearchOptions {
    /// Which events.
    pub filter: EventFilter,
    /// The most events in the answer, 1 to 10,000. Default: 100. Fewer than this many is the end of the list.
    pub limit: usize,
    /// Continue behind this event of the page before.
    pub after: Option<EventCursor>,
    /// Events that are left out: those of which it is known that they can't be read.
    pub without: Vec<Place>,
}

impl Default for EventSearchOptions {
    fn default() -> Self {
        Self { filter: EventFilter::default(), limit: 100, after: None, without: Vec::new() }
    }
}

impl EventSearchOptions {
    /// The most events in one answer: a page, not an export.
    pub const MAX_LIMIT: usize = 10_000;

    /// The newest 100 events that `filter` admits.
    #[must_use]
    pub fn new(filter: EventFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Sets the most events in the answer.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues behind an event.
    #[must_use]
    pub fn with_after(mut self, after: impl Into<Option<EventCursor>>) -> Self {
        self.after = after.into();
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// `Validation` naming the field that is out of range.
    pub fn validate(&self) -> Result<()> {
        if !(1..=Self::MAX_LIMIT).contains(&self.limit) {
            return Err(Error::validation("limit", "must be 1 to 10000"));
        }
        Ok(())
    }
}

/// A place in a list of events. The list is in descending order of these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// When the event happened.
    pub ts: Timestamp,
    /// The event: owner, session and sequence.
    pub place: Place,
}

impl From<&Event> for EventCursor {
    fn from(event: &Event) -> Self {
        let key = SessionKey::new(event.user_id.clone(), event.session_id.clone());
        Self { ts: event.ts, place: Place::new(key, event.sequence) }
    }
}
