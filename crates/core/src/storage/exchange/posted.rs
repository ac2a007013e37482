//! Events that a program posts as they happen, before its log comes.

use serde_json::{Map, Value};

use crate::{
    Error, ErrorField, Result, Scope,
    backend::StoredSession,
    events::{LoggedEvent, SAME_TIME, assemble, line_of_hook},
    model::{Digest, Event, LineKind, ProjectSlug, RawJson, SessionKey, Timestamp},
    search::{EventFilter, EventSearchOptions, SessionFilter},
    storage::{
        deleted::DeletedSessions,
        ingest::{Extent, IngestTarget, LineOutcome, SessionIngest, unknown_host},
        store::{Ingestion, SessionExchange, StoreContext},
    },
};

/// The size of the lines of stored events that are compared with a posted one at once.
const COMPARED_BYTES: u64 = 4 << 20;

/// An event that a program posts.
#[derive(Debug, Clone, PartialEq)]
pub struct PostedEvent {
    /// Its session, which is created if it does not exist.
    pub session: SessionKey,
    /// The project of a new session, which the line of the event names as its workspace.
    pub project_slug: ProjectSlug,
    /// The folder in which a new session runs, if it is known.
    pub working_dir: Option<String>,
    /// The name of the event.
    pub event: String,
    /// Its data, with the time as `timestamp`.
    pub data: Map<String, Value>,
}

/// The result of posting an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostResult {
    /// It was stored.
    Stored,
    /// It was stored before: it was posted twice, or its log came first.
    Known,
    /// The session was deleted from this store, and is not stored again.
    Deleted,
}

impl SessionExchange<'_> {
    /// Stores an event of a session, as the line that the log of its program has for it. When the log comes, by a sync or
    /// from another store, its line replaces this one.
    ///
    /// # Errors
    ///
    /// `Validation` (`event`, `timestamp`) if the event has no name or states no time; errors of the backend.
    pub async fn post_event(self, posted: &PostedEvent) -> Result<PostResult> {
        let line = line_of_hook(&posted.event, posted.project_slug.as_str(), &posted.data);
        let PostedEvent { session, project_slug, working_dir, .. } = posted;
        let Some(posting) = EventPosting::of(self.store, (session, project_slug), line)? else {
            return Err(Error::validation(ErrorField::Event, "has no `timestamp` in its data"));
        };
        EventPosting { working_dir: working_dir.as_deref(), ..posting }.post().await
    }
}

/// The number of events whose lines are compared at once: one, or more if they are short.
fn fitting(events: &[Event]) -> usize {
    let mut bytes = 0_u64;
    let fit = events.iter().take_while(|event| {
        bytes = bytes.saturating_add(event.data_size_bytes);
        bytes <= COMPARED_BYTES
    });
    fit.count().max(1)
}

/// The line of an event that is not among the lines of its log.
pub(super) struct EventPosting<'a> {
    store: &'a StoreContext,
    key: &'a SessionKey,
    /// Those of a new session.
    project_slug: &'a ProjectSlug,
    working_dir: Option<&'a str>,
    line: RawJson,
    event: LoggedEvent,
    ts: Timestamp,
}

impl<'a> EventPosting<'a> {
    /// A line of a session in this project; `None` if it states no time.
    ///
    /// # Errors
    ///
    /// `Validation` if it is not an event.
    pub(super) fn of(
        store: &'a StoreContext,
        (key, project_slug): (&'a SessionKey, &'a ProjectSlug),
        line: RawJson,
    ) -> Result<Option<Self>> {
        let event = LoggedEvent::of(&line)?;
        let Some(ts) = event.ts else { return Ok(None) };
        Ok(Some(Self { store, key, project_slug, working_dir: None, line, event, ts }))
    }

    /// Stores it after all other events, unless it is stored already.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub(super) async fn post(&self) -> Result<PostResult> {
        self.store.retry_conflicts(|| self.once()).await
    }

    async fn once(&self) -> Result<PostResult> {
        let stored = self.store.backend.get_session(self.key).await?;
        if stored.is_none() && DeletedSessions::default().contains(&*self.store.backend, self.key).await? {
            return Ok(PostResult::Deleted);
        }
        let target = self.target(stored.as_ref())?;
        let mut ingest = Ingestion::new(self.store).ingest(target).await?.all_at_once();
        ingest.continue_settled();
        let line = ingest.masked(self.line.clone()).await?;
        let count = ingest.stored().map_or(0, |stored| stored.session.event_count);
        if count > 0 && self.is_known(&line).await? {
            return Ok(PostResult::Known);
        }
        self.append(&mut ingest, count, line).await?;
        ingest.commit().await?;
        Ok(PostResult::Stored)
    }

    fn target(&self, stored: Option<&StoredSession>) -> Result<IngestTarget> {
        let session = stored.map(|stored| &stored.session);
        Ok(IngestTarget {
            key: self.key.clone(),
            host_id: session.map_or_else(unknown_host, |session| Ok(session.host_id.clone()))?,
            project_slug: session.map_or(self.project_slug, |session| &session.project_slug).clone(),
        })
    }

    /// Whether one of the stored events of about the same time is this one. `line` is it as it will be stored.
    pub(super) async fn is_known(&self, line: &RawJson) -> Result<bool> {
        let key = self.key;
        let at = |offset: i64| Timestamp::from_micros(self.ts.as_micros().saturating_add(offset));
        let filter = EventFilter::default()
            .with_sessions(SessionFilter::default().with_session(key.session_id.clone()))
            .with_event_type(self.event.event_type.clone())
            .with_since(at(-SAME_TIME))
            .with_until(at(SAME_TIME + 1));
        let options = EventSearchOptions { filter, limit: 1_000, ..EventSearchOptions::default() };
        let scope = Scope::User(key.user_id.clone());
        let (digest, masked) = (Digest::of(line.as_bytes()), LoggedEvent::of(line)?);
        let found = self.store.backend.search_events(&scope, &options).await?;
        if found.iter().any(|event| event.digest == digest) {
            return Ok(true);
        }
        let mut left = found.as_slice();
        while !left.is_empty() {
            let (some, rest) = left.split_at(fitting(left));
            left = rest;
            let sequences: Vec<u32> = some.iter().map(|event| event.sequence).collect();
            for (_, payload) in self.store.backend.event_payloads(key, &sequences).await? {
                let other = assemble(payload)?.and_then(|line| LoggedEvent::of(&line).ok());
                if other.is_some_and(|other| masked.is(&other) || masked.is_in_other_log(&other)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn append(&self, ingest: &mut SessionIngest, count: u32, line: RawJson) -> Result<()> {
        let is_new = ingest.stored().is_none();
        if let Some(folder) = self.working_dir.filter(|_| is_new) {
            ingest.set_working_dir(folder.to_owned());
        }
        ingest.set_seen(self.ts);
        ingest.begin(LineKind::Event, count).await?;
        if let LineOutcome::Skipped { reason, .. } = ingest.line(LineKind::Event, line, self.ts).await? {
            return Err(Error::validation(ErrorField::Event, reason));
        }
        ingest.end(LineKind::Event, Extent::Part);
        let mut received = ingest.received().clone();
        received.posted = Some(received.posted.map_or(count, |first| first.min(count)));
        ingest.set_received(received);
        Ok(())
    }
}
