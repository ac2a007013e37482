//! Rewinds a session: removes everything after one of its turns.

use serde::Serialize;

use crate::{
    Error, ErrorKind, Result,
    backend::SequenceRange,
    model::SessionKey,
    storage::{
        ingest::IngestTarget,
        store::{Ingestion, Rederivation},
    },
    text::counted,
};

/// Number of messages read at a time.
const PAGE: usize = 1_000;

/// The options of [`Ingestion::rewind`](crate::storage::Ingestion::rewind).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RewindOptions {
    /// The last turn to keep. With 0, keeps only what comes before the first turn.
    pub to_turn: u32,
    /// Whether to keep all events. Default: no.
    pub keep_events: bool,
    /// Whether to only report what would be removed. Default: no.
    pub dry_run: bool,
    /// The report of a dry run. If the session has grown since, so that more would be removed, nothing is.
    pub at_most: Option<RewindReport>,
}

impl RewindOptions {
    /// A rewind to the end of a turn.
    #[must_use]
    pub fn to_turn(to_turn: u32) -> Self {
        Self { to_turn, ..Self::default() }
    }

    optional_setters! {
        /// Removes nothing if that would be more than in the report of a dry run.
        with_at_most(at_most: RewindReport);
    }

    setters! {
        /// Sets whether to keep all events.
        with_keep_events(keep_events: bool);
        /// Sets whether to only report.
        with_dry_run(dry_run: bool);
    }
}

/// The result of a rewind, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RewindReport {
    /// The last turn that the session had before; `None` if it had none.
    pub last_turn: Option<u32>,
    /// Number of turns.
    pub turns: u64,
    /// Number of messages.
    pub messages: u64,
    /// How many of these messages have vectors, which are removed with them.
    pub messages_with_vectors: u64,
    /// Number of events.
    pub events: u64,
}

impl RewindReport {
    /// Fails if more is removed than in `most`.
    fn check_at_most(&self, most: &Self) -> Result<()> {
        let Self { messages, events, .. } = self;
        if *messages <= most.messages && *events <= most.events {
            return Ok(());
        }
        let (messages, events) = (counted(*messages, "message"), counted(*events, "event"));
        let message = format!("the session has grown: {messages} and {events} would be removed");
        Err(Error::new(ErrorKind::Rewind, message))
    }

    /// Whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages == 0 && self.events == 0
    }
}

impl Ingestion<'_> {
    /// Removes everything after turn [`RewindOptions::to_turn`] from a session, on behalf of the owner: messages with
    /// their vectors and index entries, and events.
    ///
    /// - Messages are removed from the first message of a later turn on.
    /// - Events are removed from the event that belongs to that message on, in the order of the log: normally, its
    ///   `prompt:submit`. If there is no such event, the time of the message decides. `docs/data-model.md` has the
    ///   details.
    /// - Counts, title and times are derived from the remaining rows. Fields that a user set, metadata files, skipped
    ///   lines and sub-agents' sessions stay.
    /// - Files that the session was read from count as read, although they may still contain the removed rows: a sync
    ///   reads them again only if they change, and then stores everything in them.
    /// - If the session has no later turn, nothing is written.
    ///
    /// With [`atomic_writes`](crate::backend::StoreInfo::atomic_writes), either everything is removed or nothing, even
    /// if the process is killed. Otherwise, repeating the call completes it.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Rewind` if turns do not follow each other in order, if it can't be determined which events to
    /// remove, or if more would be removed than [`RewindOptions::at_most`]; errors of the backend.
    pub async fn rewind(self, key: &SessionKey, options: &RewindOptions) -> Result<RewindReport> {
        let rewound = self.store.retry_conflicts(|| self.rewind_once(key, options)).await;
        rewound.map_err(|error| error.with_operation("rewind"))
    }

    async fn rewind_once(self, key: &SessionKey, options: &RewindOptions) -> Result<RewindReport> {
        if !options.dry_run {
            Rederivation::new(self.store).rederive().await?;
        }
        let stored = self.store.backend.get_session(key).await?;
        let session = &stored.as_ref().ok_or_else(|| Error::session_not_found(&key.session_id))?.session;
        if !options.dry_run {
            self.store.check_unchanged(session)?;
        }
        let target = IngestTarget {
            key: key.clone(),
            host_id: session.host_id.clone(),
            project_slug: session.project_slug.clone(),
        };
        let mut ingest = self.ingest_of(target, stored);
        let report = ingest.rewind(options).await?;
        if let Some(most) = &options.at_most {
            report.check_at_most(most).map_err(|error| error.with("session", &key.session_id))?;
        }
        if !report.is_empty() && !options.dry_run {
            ingest.commit_rewind().await?;
        }
        Ok(report)
    }

    /// How many messages of a session from `start` on have vectors.
    pub(super) async fn count_with_vectors(self, key: &SessionKey, start: u32) -> Result<u64> {
        let generation = self.store.generations().await?.current_number();
        let (mut count, mut range) = (0, SequenceRange { start, limit: PAGE });
        loop {
            let page = self.store.backend.vector_texts(generation, key, range).await?;
            let Some((last, _)) = page.last() else { return Ok(count) };
            count += page.len() as u64;
            range.start = last.saturating_add(1);
        }
    }
}
