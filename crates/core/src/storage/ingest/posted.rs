//! Events that a program posted as they happened, before their log came.
//!
//! They are the last events of a session, and are replaced by the lines of a log: lines that the log has, whatever they look
//! like there, are the same events.

use super::SessionIngest;
use crate::{Result, events::LoggedEvent, model::RawJson};

impl SessionIngest {
    /// A line as it will be stored: without secrets, if they are masked.
    pub(in crate::storage) async fn masked(&self, line: RawJson) -> Result<RawJson> {
        Ok(self.masker.mask(line).await?.0)
    }

    /// A text as it will be stored.
    pub(in crate::storage) fn masked_text(&self, text: String) -> Result<String> {
        Ok(self.masker.mask_text(Some(text))?.unwrap_or_default())
    }

    /// If a log has replaced posted events, fewer of them are left.
    pub(super) fn forget_posted(&mut self) {
        if self.events.position.touched() {
            let (end, count) = (self.events.position.next(), self.writer.session().event_count);
            self.received.posted =
                self.received.posted.map(|first| first.max(end)).filter(|first| *first < count);
        }
    }
}

/// Posted events that no log has had yet, in order.
#[derive(Debug, Default)]
pub(in crate::storage) struct PostedEvents {
    /// The row of the first one; `None` if the session has none.
    pub(in crate::storage) first: Option<u32>,
    rows: Vec<(LoggedEvent, RawJson)>,
}

impl PostedEvents {
    /// Begins with the row `first`.
    pub(in crate::storage) fn from_row(first: Option<u32>) -> Self {
        Self { first, rows: Vec::new() }
    }

    /// Adds the next one. An event that can't be read is none.
    pub(in crate::storage) fn add(&mut self, line: RawJson) {
        if let Ok(event) = LoggedEvent::of(&line) {
            self.rows.push((event, line));
        }
    }

    pub(in crate::storage) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes the event of this line of a log, if it is there: the same one, or else one of the same time that was
    /// written by another program.
    pub(in crate::storage) fn take(&mut self, line: &RawJson) {
        let Ok(event) = LoggedEvent::of(line) else { return };
        let at = self.rows.iter().position(|(posted, _)| posted.is(&event));
        let at = at.or_else(|| self.rows.iter().position(|(posted, _)| posted.is_in_other_log(&event)));
        if let Some(at) = at {
            self.rows.remove(at);
        }
    }

    /// The lines that are left, from which this is emptied.
    pub(in crate::storage) fn drain(&mut self) -> Vec<RawJson> {
        self.rows.drain(..).map(|(_, line)| line).collect()
    }
}
