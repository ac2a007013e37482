//! Removes superseded lines.

use serde::Serialize;

use super::{SupersededSession, all_pieces};
use crate::{
    Result, Scope,
    backend::{NotErased, SupersededQuery},
    model::{SessionId, SupersededPiece, Timestamp, UserId},
    search::SessionFilter,
    storage::store::SupersededHistory,
};

/// Which superseded lines to remove. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneOptions {
    /// Only lines of these sessions.
    pub sessions: Option<Vec<SessionId>>,
    /// Only lines of sessions that match this filter.
    pub filter: SessionFilter,
    /// Only lines that were superseded before this time.
    pub until: Option<Timestamp>,
    /// Only lines of these sessions that were superseded before the time of their session. Instead of `sessions`.
    pub until_of: Option<Vec<(SessionId, Timestamp)>>,
    /// Whether to only report what would be removed. Default: no.
    pub dry_run: bool,
}

impl PruneOptions {
    optional_setters! {
        /// Only lines of these sessions.
        with_sessions(sessions: Vec<SessionId>);
        /// Only lines that were superseded before `until`.
        with_until(until: Timestamp);
        /// Only lines of these sessions that were superseded before the time of their session.
        with_until_of(until_of: Vec<(SessionId, Timestamp)>);
    }

    setters! {
        /// Only lines of sessions that match `filter`.
        with_filter(filter: SessionFilter);
        /// Sets whether to only report.
        with_dry_run(dry_run: bool);
    }
}

/// The result of pruning, or of a dry run.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct PruneReport {
    /// The sessions, with the removed lines of each.
    pub sessions: Vec<SupersededSession>,
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The size of the lines in bytes.
    pub bytes: u64,
    /// The files that still contain removed lines. The next write of any process tries again to erase them.
    #[serde(skip)]
    pub remains: Vec<NotErased>,
}

impl SupersededHistory<'_> {
    /// Removes superseded lines of `user`, and erases them from all files.
    ///
    /// # Errors
    ///
    /// Errors of the backend. Lines of some sessions may already be removed; repeating the call completes it.
    pub async fn prune_superseded(self, user: &UserId, options: &PruneOptions) -> Result<PruneReport> {
        let filter = &options.filter;
        let of_session = |id: &SessionId| filter.clone().with_session(id.clone());
        let parts = match (&options.until_of, &options.sessions) {
            (Some(sessions), _) => {
                sessions.iter().map(|(id, until)| (of_session(id), Some(*until))).collect()
            }
            (None, Some(sessions)) => sessions.iter().map(|id| (of_session(id), options.until)).collect(),
            (None, None) => vec![(filter.clone(), options.until)],
        };
        let (mut report, mut pieces) = (PruneReport::default(), Vec::new());
        for (filter, until) in parts {
            let query = SupersededQuery::new(Scope::User(user.clone())).with_filter(filter).with_until(until);
            report.sessions.extend(self.superseded_sessions(&query).await?);
            let found = all_pieces(&*self.store.backend, query).await?;
            pieces.extend(found.iter().map(SupersededPiece::piece_ref));
        }
        for session in &report.sessions {
            report.messages += session.messages;
            report.events += session.events;
            report.bytes += session.bytes;
        }
        if !options.dry_run && !pieces.is_empty() {
            let pruned = self.store.backend.prune_superseded(&pieces).await;
            pruned.deleted.into_iter().collect::<Result<Vec<bool>>>()?;
            report.remains = pruned.remains;
        }
        Ok(report)
    }
}
