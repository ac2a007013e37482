//! The settings of a storage.

use super::at_rest::SecretsAtRest;
use crate::content::TOOL_OUTPUT_LIMIT;

/// How much of events to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventDetail {
    /// Fields, summary and the original line.
    #[default]
    Full,
    /// Fields and summary.
    Summary,
    /// Nothing: events are not stored.
    None,
}

/// Settings of a [`SessionStorage`](crate::SessionStorage).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StorageSettings {
    /// How much of events to store. Default: everything.
    pub events: EventDetail,
    /// How many characters of tool output to embed. Default: 10,000.
    pub tool_output_chars: usize,
    /// Whether ids of new sessions must be UUIDs. Default: no.
    pub uuid_session_ids: bool,
    /// Whether turns are embedded with their messages. Default: no.
    pub turns: bool,
    /// How secrets in stored lines are treated. The store remembers it. Default: what the store remembers, or else
    /// [`SecretsAtRest::Mark`].
    pub secrets: Option<SecretsAtRest>,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            events: EventDetail::Full,
            tool_output_chars: TOOL_OUTPUT_LIMIT,
            uuid_session_ids: false,
            turns: false,
            secrets: None,
        }
    }
}

impl StorageSettings {
    setters! {
        /// Sets how much of events to store.
        with_events(events: EventDetail);
        /// Sets how many characters of tool output to embed.
        with_tool_output_chars(tool_output_chars: usize);
        /// Sets whether ids of new sessions must be UUIDs.
        with_uuid_session_ids(uuid_session_ids: bool);
        /// Sets whether turns are embedded with their messages.
        with_turns(turns: bool);
        /// Sets how secrets in stored lines are treated.
        with_secrets(secrets: Option<SecretsAtRest>);
    }
}
