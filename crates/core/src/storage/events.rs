//! Finding events.

use super::SessionStorage;
use crate::{Result, Scope, model::Event, search::EventSearchOptions};

impl SessionStorage {
    /// Finds events, newest first, one page. [`SessionStorage::get_event_lines`] gives their payloads.
    ///
    /// # Errors
    ///
    /// `Validation` when an option is out of range; those of the backend.
    pub async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        options.validate()?;
        self.backend.search_events(scope, options).await
    }
}
