//! Events that their logs lost when they were compacted, or when their beginning was removed: they happened.

use std::collections::BTreeSet;

use crate::{
    Result, Scope,
    backend::SupersededQuery,
    events::parse_event_line,
    model::{Digest, Event, LineKind, Session, SessionKey, SupersededReason},
    search::SessionFilter,
    storage::{
        store::StoreStatistics,
        superseded::{SupersededLine, all_pieces, unpack_all},
    },
};

impl StoreStatistics<'_> {
    /// The sessions with events that were compacted away.
    pub(super) async fn compacted_sessions(
        self,
        scope: &Scope,
        filter: &SessionFilter,
    ) -> Result<BTreeSet<SessionKey>> {
        let query =
            SupersededQuery::new(scope.clone()).with_filter(filter.clone()).with_kind(LineKind::Event);
        let pieces = all_pieces(&*self.store.backend, query).await?;
        let compacted = pieces.into_iter().filter(|piece| piece.reason.still_counts());
        Ok(compacted.map(|piece| piece.session).collect())
    }

    /// The events of a session that were compacted away, and whether each may only have been edited.
    pub(in crate::storage) async fn compacted_events(self, key: &SessionKey) -> Result<Vec<(Event, bool)>> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(Vec::new()) };
        let query = SupersededQuery::new(Scope::User(key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(key.session_id.clone()))
            .with_kind(LineKind::Event);
        let mut events = Vec::new();
        unpack_all(self.store, query, |line| {
            if line.reason.still_counts() {
                let is_edited = line.reason == SupersededReason::Edited;
                events.extend(event(&stored.session, &line).map(|event| (event, is_edited)));
            }
        })
        .await?;
        Ok(events)
    }
}

/// The event of a superseded line.
fn event(session: &Session, line: &SupersededLine) -> Option<Event> {
    if line.is_summary {
        return serde_json::from_slice(line.raw.as_bytes()).ok();
    }
    let fields = parse_event_line(&line.raw).ok()?.in_log_of(&session.session_id);
    Some(Event {
        event_id: format!("{}_evt_{}", session.session_id, line.sequence),
        user_id: session.user_id.clone(),
        host_id: session.host_id.clone(),
        project_slug: session.project_slug.clone(),
        session_id: session.session_id.clone(),
        sequence: line.sequence,
        event_type: fields.event_type,
        ts: fields.ts.unwrap_or(line.ts),
        ts_estimated: fields.ts.is_none(),
        turn: fields.turn,
        level: fields.level,
        tool_name: fields.tool_name,
        error_type: fields.error_type,
        model: fields.model,
        provider: fields.provider,
        summary: fields.summary,
        is_chunked: false,
        chunk_count: None,
        data_size_bytes: fields.data_size_bytes,
        synced_at: None,
        digest: Digest::of(line.raw.as_bytes()),
    })
}
