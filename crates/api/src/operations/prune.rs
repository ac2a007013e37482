//! Removes superseded lines: stored lines of files that no longer contain them.

use std::collections::HashSet;

use amplifier_session_core::{
    backend::NotErased,
    model::{SessionId, Timestamp},
    storage::{PruneOptions, PruneReport, SupersededSession},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    AccessRight, Api, ApiAnswer, ApiError, CallerPlace, FoundKind, Notice, dates::parse_age, with_causes,
    zone::in_zone,
};

/// A preview of the superseded lines that [`Api::prune`] would remove. The default is all of the caller's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrunePreviewRequest {
    /// Only lines of these sessions: their addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Only this project: its slug, a unique part of the slug, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Only lines that were superseded before this date, as [`crate::dates::parse`] reads it: `90d` is 90 days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// The time zone of `older_than`: an IANA name such as `Europe/Berlin`, `UTC`, or an offset such as `+05:45`. Default:
    /// the time zone of [`Api::now`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
}

impl PrunePreviewRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        parse_age(self.older_than.as_deref(), &in_zone(now, self.tz.as_deref())?).map(|_| ())
    }
}

/// The lines to remove.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// The sessions. They may have all fields that they have in a preview.
    pub sessions: Vec<PrunedSession>,
}

/// The superseded lines of a session that were shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedSession {
    /// The session.
    pub session_id: SessionId,
    /// The time when the last of the lines was superseded: later ones stay.
    pub last_superseded_at: Timestamp,
}

impl From<&SupersededSession> for PrunedSession {
    fn from(session: &SupersededSession) -> Self {
        let SupersededSession { session_id, last_superseded_at, .. } = session.clone();
        Self { session_id, last_superseded_at }
    }
}

impl PruneRequest {
    /// The lines of these sessions, each once, and no later ones.
    fn options(&self) -> PruneOptions {
        let mut seen = HashSet::new();
        let sessions = self.sessions.iter().filter(|session| seen.insert(&session.session_id));
        let until_of = sessions.map(|PrunedSession { session_id, last_superseded_at }| {
            let until = Timestamp::from_micros(last_superseded_at.as_micros().saturating_add(1));
            (session_id.clone(), until)
        });
        PruneOptions::default().with_until_of(until_of.collect::<Vec<_>>())
    }
}

/// Superseded lines that were removed, or that would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PruneResponse {
    /// The sessions whose lines were removed.
    pub pruned: Vec<SupersededSession>,
    /// The files that still contain removed lines.
    pub remains: Vec<String>,
    /// In a preview, the sessions whose lines would be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_prune: Option<Vec<SupersededSession>>,
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The size of the lines in bytes.
    pub bytes: u64,
}

impl PruneResponse {
    fn new(report: PruneReport, is_preview: bool, place: CallerPlace<'_>) -> Self {
        let PruneReport { sessions, messages, events, bytes, remains, .. } = report;
        let (pruned, would_prune) = if is_preview { (Vec::new(), Some(sessions)) } else { (sessions, None) };
        let remains = remains.iter().map(|of| place.file(&of.file)).collect();
        Self { pruned, remains, would_prune, messages, events, bytes }
    }

    /// The sessions whose lines were or would be removed.
    #[must_use]
    pub fn sessions(&self) -> &[SupersededSession] {
        self.would_prune.as_ref().unwrap_or(&self.pruned)
    }
}

fn not_erased(NotErased { file, error }: &NotErased, place: CallerPlace<'_>) -> Notice {
    Notice::LinesNotErased { file: place.file(file), reason: place.reason(with_causes(error)) }
}

impl Api<'_> {
    /// Reports which superseded lines of the caller's sessions [`Self::prune`] would remove.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or the right to delete is missing; `SessionNotFound`; errors of the
    /// store.
    #[crate::compiled_here]
    pub async fn prune_preview(
        &self,
        request: &PrunePreviewRequest,
    ) -> Result<ApiAnswer<PruneResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Delete)?;
        let until = parse_age(request.older_than.as_deref(), &in_zone(self.now, request.tz.as_deref())?)?;
        let mut notices = Vec::new();
        let named = self.find_all(&scope, &request.sessions, &mut notices).await?;
        let named: Vec<SessionId> = named.into_iter().map(|session| session.session_id).collect();
        let PrunePreviewRequest { project, repo, .. } = request;
        let filter = self.sessions_of(&scope, project.as_deref(), repo.as_deref(), &mut notices).await?;
        let options = PruneOptions::default()
            .with_sessions(Some(named).filter(|named| !named.is_empty()))
            .with_filter(filter)
            .with_until(until)
            .with_dry_run(true);
        let report = self.storage.superseded().prune_superseded(self.caller.user(), &options).await?;
        if report.sessions.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::SupersededLine, nearest: None });
        }
        Ok(ApiAnswer { response: PruneResponse::new(report, true, self.place), notices })
    }

    /// Removes superseded lines of the caller's sessions, and erases their words from all files of the store.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to delete; errors of the store.
    #[crate::compiled_here]
    pub async fn prune(&self, request: &PruneRequest) -> Result<ApiAnswer<PruneResponse>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Delete)?;
        let user = self.caller.user();
        let report = self.storage.superseded().prune_superseded(user, &request.options()).await?;
        let notices = report.remains.iter().map(|of| not_erased(of, self.place)).collect();
        Ok(ApiAnswer { response: PruneResponse::new(report, false, self.place), notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InvalidRequest;

    #[test]
    fn later_lines_than_those_shown_stay() {
        let session = |id: &str, micros| PrunedSession {
            session_id: SessionId::new(id).unwrap(),
            last_superseded_at: Timestamp::from_micros(micros),
        };
        let request = PruneRequest { sessions: vec![session("b", 7), session("a", 5), session("b", 9)] };
        let until_of = request.options().until_of.unwrap();
        let times: Vec<_> = until_of.iter().map(|(id, until)| (id.as_str(), until.as_micros())).collect();
        assert_eq!(times, [("b", 8), ("a", 6)]);
        assert_eq!(PruneRequest::default().options().until_of, Some(Vec::new()));
    }

    #[test]
    fn an_age_in_the_future_is_refused() {
        let of_age = |age: &str| PrunePreviewRequest {
            older_than: Some(age.to_owned()),
            ..PrunePreviewRequest::default()
        };
        let check = |age| of_age(age).check(&"2026-01-05T08:00:00+00:00[UTC]".parse().unwrap());
        assert!(check("90d").is_ok());
        assert!(matches!(check("2026-01-06"), Err(ApiError::Invalid(InvalidRequest::AgeInTheFuture { .. }))));
    }
}
