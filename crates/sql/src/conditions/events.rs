//! Conditions on events: `events` under the name `e`, and their sessions `s`.

use amplifier_session_core::{
    Result, Scope,
    model::{Level, MessageRef},
    search::{EventCursor, EventFilter},
};

use crate::{Conditions, Dialect};

impl Conditions {
    /// The events of `scope` that `filter` admits.
    pub fn of_events(dialect: Dialect, scope: &Scope, filter: &EventFilter) -> Result<Self> {
        let mut conditions = Self::of_sessions(dialect, scope, &filter.sessions)?;
        if let Scope::User(user) = scope {
            conditions.compare("e.user_id = ?", user.to_string());
        }
        conditions.compare_if("e.event_type = ?", filter.event_type.clone());
        conditions.compare_if("e.tool_name = ?", filter.tool.clone());
        conditions.compare_if("e.model = ?", filter.model.clone());
        conditions.compare_if("e.provider = ?", filter.provider.clone());
        conditions.compare_if("e.error_type = ?", filter.error_type.clone());
        if let Some(category) = &filter.category {
            conditions.of_category(category);
        }
        conditions.compare_if("e.level = ?", filter.level.map(|level| level.as_str().to_owned()));
        if filter.level.is_some_and(|level| level != Level::Info) {
            // Implied by the other condition; SQLite needs it to use a partial index.
            conditions.require("e.level <> 'INFO'");
        }
        if let Some(text) = &filter.text {
            conditions.have_words(text, dialect.event_words);
        }
        conditions.compare_if("e.ts >= ?", filter.since);
        conditions.compare_if("e.ts < ?", filter.until);
        Ok(conditions)
    }

    /// The type is `category`, or begins with it and a colon. This is one range of an index: `;` is the character after
    /// the colon. The last condition excludes other types in the range (`llm-x`).
    fn of_category(&mut self, category: &str) {
        if category.contains(':') {
            // It is a type and not a category.
            return self.require("FALSE");
        }
        let category = self.bind(category.to_owned());
        self.require(format!(
            "e.event_type >= {category} AND e.event_type < {category} || ';'
             AND (e.event_type = {category} OR e.event_type >= {category} || ':')"
        ));
    }

    /// Excludes these events.
    pub fn without_events(&mut self, events: &[MessageRef]) {
        for event in events {
            let user = self.bind(event.session.user_id.to_string());
            let session = self.bind(event.session.session_id.to_string());
            let sequence = self.bind(event.sequence);
            self.require(format!(
                "NOT (e.user_id = {user} AND e.session_id = {session} AND e.sequence = {sequence})"
            ));
        }
    }

    /// Only events after the last one of the previous page.
    pub fn after_event(&mut self, after: &EventCursor) {
        let EventCursor { ts, event } = after;
        let ts = self.bind(*ts);
        let user = self.bind(event.session.user_id.to_string());
        let session = self.bind(event.session.session_id.to_string());
        let sequence = self.bind(event.sequence);
        self.require(format!(
            "e.ts <= {ts}
             AND (e.ts < {ts} OR (e.user_id, e.session_id, e.sequence) < ({user}, {session}, {sequence}))"
        ));
    }
}
