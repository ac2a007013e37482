//! Finding events, and event lines in and out.

use std::collections::HashMap;

use serde::Serialize;

use super::{IngestReport, IngestTarget, SessionStorage, SyncLines, transcript::all_good};
use crate::{
    Result, Scope,
    backend::SequenceRange,
    events::assemble,
    model::{Event, RawJson, SessionId, SessionKey},
    search::EventSearchOptions,
};

/// Which events of a session to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventLines {
    /// Only events behind this sequence. Default: all.
    pub after_sequence: Option<u32>,
    /// The most events. Default: 1,000.
    pub limit: usize,
    /// Whether to read the whole lines too. Default: no.
    pub with_payload: bool,
}

impl Default for EventLines {
    fn default() -> Self {
        Self { after_sequence: None, limit: 1_000, with_payload: false }
    }
}

impl EventLines {
    /// Continues behind `after_sequence`.
    #[must_use]
    pub fn after(mut self, after_sequence: Option<u32>) -> Self {
        self.after_sequence = after_sequence;
        self
    }

    /// Sets the most events.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Asks for the whole lines.
    #[must_use]
    pub fn with_payload(mut self, with_payload: bool) -> Self {
        self.with_payload = with_payload;
        self
    }
}

/// An event as it is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventLine {
    /// The fields.
    #[serde(flatten)]
    pub event: Event,
    /// The line as it came in, where it was asked for and is kept.
    #[serde(skip)]
    pub raw: Option<RawJson>,
}

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

    /// Stores event lines. All are stored or none.
    ///
    /// # Errors
    ///
    /// `Validation` naming the line when one is bad, or when `start_sequence` lies beyond the end; those of the
    /// backend.
    pub async fn sync_event_lines(&self, target: &IngestTarget, lines: SyncLines) -> Result<IngestReport> {
        self.retry_conflicts(|| async {
            let mut ingest = self.ingest(target.clone()).await?.all_at_once();
            ingest.begin_events(lines.start_sequence).await?;
            let seen = lines.seen.unwrap_or_else(|| self.now());
            for (index, line) in lines.lines.iter().enumerate() {
                all_good(index, ingest.event_line(line.clone(), seen).await?)?;
            }
            ingest.end_events(lines.extent);
            ingest.commit().await
        })
        .await
        .map_err(|error| error.with_operation("sync_event_lines"))
    }

    /// Events of a session, in order.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` when the session is not in `scope`; those of the backend.
    pub async fn get_event_lines(
        &self,
        scope: &Scope,
        session_id: &SessionId,
        lines: EventLines,
    ) -> Result<Vec<EventLine>> {
        let key = self.existing_session(scope, session_id).await?.key();
        let mut events: Vec<EventLine> = Vec::new();
        let mut start = lines.after_sequence.map_or(0, |sequence| sequence.saturating_add(1));
        while events.len() < lines.limit {
            let range = SequenceRange { start, limit: lines.limit - events.len() };
            let page = self.backend.read_events(&key, range).await?;
            let Some(last) = page.last() else { break };
            start = last.sequence.saturating_add(1);
            let mut payloads = match lines.with_payload {
                true => self.event_payloads(&key, &page).await?,
                false => HashMap::new(),
            };
            events.extend(
                page.into_iter().map(|event| EventLine { raw: payloads.remove(&event.sequence), event }),
            );
        }
        Ok(events)
    }

    async fn event_payloads(&self, key: &SessionKey, events: &[Event]) -> Result<HashMap<u32, RawJson>> {
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let stored = self.backend.event_payloads(key, &sequences).await?;
        let assembled = stored.into_iter().map(|(sequence, payload)| Ok((sequence, assemble(payload)?)));
        let assembled: Vec<(u32, Option<RawJson>)> = assembled.collect::<Result<_>>()?;
        Ok(assembled.into_iter().filter_map(|(sequence, raw)| Some((sequence, raw?))).collect())
    }
}
