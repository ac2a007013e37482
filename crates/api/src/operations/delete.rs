//! Deletes sessions.

use std::collections::{BTreeSet, HashSet};

use amplifier_session_core::{
    CHANGED_SINCE, Scope,
    backend::{Deletion, NotErased, SessionQuery},
    model::{ProjectSlug, Session, SessionId, SessionKey},
    storage::Relation,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    AccessRight, Api, ApiAnswer, ApiError, CallerPlace, FoundKind, InvalidRequest, Notice, dates::parse_age,
    folders::folder_of, ids::ShortIds, views::SessionView, with_causes, zone::in_zone,
};

/// The number of sessions that are read at once.
const PAGE: usize = 1_000;

/// A preview of a deletion: of sessions by their addresses, of those that match filters, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeletePreviewRequest {
    /// The addresses of sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// The sessions of this project: its slug, a unique part of the slug, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The sessions of this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Sessions without activity since this date, as [`crate::dates::parse`] reads it: `90d` is 90 days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// The time zone of `older_than`: an IANA name such as `Europe/Berlin`, `UTC`, or an offset such as `+05:45`. Default:
    /// the time zone of [`Api::now`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// All of the caller's sessions.
    pub all: bool,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

impl DeletePreviewRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        let has_filter = self.project.is_some() || self.repo.is_some() || self.older_than.is_some();
        let ways = [!self.sessions.is_empty(), has_filter, self.all];
        match ways.into_iter().filter(|is_used| *is_used).count() {
            0 => Err(InvalidRequest::NothingNamedToDelete.into()),
            1 => parse_age(self.older_than.as_deref(), &in_zone(now, self.tz.as_deref())?).map(|_| ()),
            _ => Err(InvalidRequest::NotOneWayToDelete.into()),
        }
    }
}

/// A deletion of sessions. Sub-agents, forks and copies are only deleted if they are named too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// The ids of the sessions, such as those in a preview.
    pub session_ids: Vec<SessionId>,
}

/// Deleted sessions, or those that would be deleted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteResponse {
    /// The deleted sessions.
    pub deleted: Vec<DeletedSession>,
    /// The sessions that could not be deleted.
    pub failed: Vec<NotDeleted>,
    /// The files that still contain words of deleted sessions. The next write to the store erases them.
    pub remains: Vec<FileWithWords>,
    /// Other sessions that contain text of the deleted ones.
    pub keep_text: Vec<KeptSession>,
    /// In a preview, the sessions that would be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_delete: Option<Vec<SessionView>>,
    /// In a preview, the short ids of all these sessions, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

/// A deleted session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeletedSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// The folder that it was read from, if known. Its files are not deleted.
    pub folder: Option<String>,
}

/// A session that could not be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotDeleted {
    /// The session.
    pub session_id: SessionId,
    /// The reason.
    pub error: String,
}

/// A file that still contains words of deleted sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileWithWords {
    /// Its path, or its name for callers elsewhere.
    pub file: String,
    /// The reason why they could not be erased, for callers on this machine.
    pub reason: Option<String>,
}

impl FileWithWords {
    fn new(NotErased { file, error }: &NotErased, place: CallerPlace<'_>) -> Self {
        Self { file: place.file(file), reason: place.reason(with_causes(error)) }
    }
}

/// A session that is not deleted, and its relation to a deleted one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// The relation.
    pub relation: Relation,
}

impl Api<'_> {
    /// Reports which of the caller's sessions would be deleted, for [`Self::delete`].
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or the right to delete is missing; `SessionNotFound`; errors of the
    /// store.
    #[crate::compiled_here]
    pub async fn delete_preview(
        &self,
        request: &DeletePreviewRequest,
    ) -> Result<ApiAnswer<DeleteResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Delete)?;
        request.check(self.now)?;
        let mut notices = Vec::new();
        let sessions = if request.sessions.is_empty() {
            self.matching(&scope, request, &mut notices).await?
        } else {
            self.find_all(&scope, &request.sessions, &mut notices).await?
        };
        notices.extend(request.project.as_ref().and_then(|typed| several_folders(typed, &sessions)));
        let keep_text = self.keep_text(&scope, &sessions).await?;
        let all = sessions.iter().chain(keep_text.iter().map(|kept| &kept.session.session));
        let short_ids = if request.short_ids {
            self.storage.sessions().short_ids(&scope, all.map(|session| &session.session_id)).await?
        } else {
            ShortIds::new()
        };
        let would_delete = Some(sessions.iter().map(SessionView::from).collect());
        let response = DeleteResponse { keep_text, would_delete, short_ids, ..DeleteResponse::default() };
        Ok(ApiAnswer { response, notices })
    }

    /// Deletes sessions of the caller with everything in them. If one fails, the others are still deleted.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to delete; errors of the store before the first session is deleted;
    /// `Conflict` if a session is not as the caller has seen it
    /// ([`only_unchanged`](amplifier_session_core::SessionStorage::only_unchanged)).
    #[crate::compiled_here]
    pub async fn delete(&self, request: &DeleteRequest) -> Result<ApiAnswer<DeleteResponse>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Delete)?;
        let (mut sessions, mut failed) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for id in request.session_ids.iter().filter(|id| seen.insert(*id)) {
            let key = SessionKey::new(self.caller.user().clone(), id.clone());
            match self.storage.backend().get_session(&key).await {
                Ok(Some(stored)) => sessions.push((folder_of(&stored), stored.session)),
                Ok(None) => failed.push(NotDeleted::gone(id)),
                Err(error) => failed.push(NotDeleted { session_id: id.clone(), error: with_causes(&error) }),
            }
        }
        let found: Vec<Session> = sessions.iter().map(|(_, session)| session.clone()).collect();
        let keep_text = self.keep_text(&scope, &found).await?;
        let keys: Vec<SessionKey> = found.iter().map(Session::key).collect();
        let Deletion { deleted, remains } = self.storage.sessions().delete_sessions(&keys).await;
        let remains = remains.iter().map(|of| FileWithWords::new(of, self.place)).collect();
        let mut response = DeleteResponse { failed, remains, keep_text, ..DeleteResponse::default() };
        for ((folder, session), deleted) in sessions.into_iter().zip(deleted) {
            let session_id = session.session_id.clone();
            match deleted {
                Ok(true) => {
                    response.deleted.push(DeletedSession { session: SessionView::from(&session), folder });
                }
                Ok(false) => response.failed.push(NotDeleted::gone(&session_id)),
                Err(error) if error.context(CHANGED_SINCE).is_some() => return Err(error.into()),
                Err(error) => {
                    response.failed.push(NotDeleted { session_id, error: with_causes(&error) });
                }
            }
        }
        Ok(response.into())
    }

    /// The sessions that match the filters.
    async fn matching(
        &self,
        scope: &Scope,
        request: &DeletePreviewRequest,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Session>, ApiError> {
        let DeletePreviewRequest { project, repo, .. } = request;
        let filter = self.sessions_of(scope, project.as_deref(), repo.as_deref(), notices).await?;
        let query = SessionQuery::new(scope.clone())
            .with_filter(filter.clone())
            .with_until(parse_age(request.older_than.as_deref(), &in_zone(self.now, request.tz.as_deref())?)?)
            .with_limit(PAGE);
        let sessions = self.storage.sessions().all_sessions(query).await?;
        if sessions.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::Session, nearest: None });
            notices.extend(self.unknown_names(scope, &filter).await?);
            notices.extend(self.only_others(scope).await?);
        }
        notices.extend(self.damaged_sessions(scope));
        Ok(sessions)
    }

    /// The other sessions that contain text of these.
    async fn keep_text(&self, scope: &Scope, sessions: &[Session]) -> Result<Vec<KeptSession>, ApiError> {
        let keys = sessions.iter().map(Session::key).collect();
        let kept = self.storage.statistics().sessions_with_text_of(scope, &keys).await?;
        let view = |(session, relation): &(Session, Relation)| KeptSession {
            session: SessionView::from(session),
            relation: *relation,
        };
        Ok(kept.iter().map(view).collect())
    }
}

impl NotDeleted {
    fn gone(session_id: &SessionId) -> Self {
        let error = "the store has no such session".to_owned();
        Self { session_id: session_id.clone(), error }
    }
}

/// A notice if the sessions of a slug ran in several folders.
fn several_folders(typed: &str, sessions: &[Session]) -> Option<Notice> {
    let is_of_slug = |session: &&Session| {
        let slug = session.working_dir.as_deref().and_then(|folder| ProjectSlug::of_folder(folder).ok());
        slug.as_ref() == Some(&session.project_slug)
    };
    let folders: BTreeSet<&str> = sessions
        .iter()
        .filter(is_of_slug)
        .filter_map(|session| Some(session.working_dir.as_deref()?.trim_end_matches('/')))
        .collect();
    (folders.len() > 1).then(|| Notice::ProjectRanInFolders {
        project: typed.to_owned(),
        folders: folders.into_iter().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(request: &DeletePreviewRequest) -> Result<(), ApiError> {
        request.check(&"2026-01-05T08:00:00+00:00[UTC]".parse().unwrap())
    }

    #[test]
    fn a_deletion_has_exactly_one_way_to_name_sessions() {
        let none = DeletePreviewRequest::default();
        let named = DeletePreviewRequest { sessions: vec!["3a7c1e90".to_owned()], ..none.clone() };
        let project = DeletePreviewRequest { project: Some("bakery".to_owned()), ..none.clone() };
        let all = DeletePreviewRequest { all: true, ..none.clone() };
        let filters = DeletePreviewRequest { older_than: Some("90d".to_owned()), ..project.clone() };
        for request in [&named, &project, &filters, &all] {
            assert!(checked(request).is_ok(), "{request:?}");
        }
        let refused = checked(&none);
        assert!(matches!(refused, Err(ApiError::Invalid(InvalidRequest::NothingNamedToDelete))));
        for request in [
            DeletePreviewRequest { sessions: named.sessions, ..project.clone() },
            DeletePreviewRequest { all: true, ..project },
        ] {
            let refused = checked(&request);
            assert!(matches!(refused, Err(ApiError::Invalid(InvalidRequest::NotOneWayToDelete))));
        }
    }
}
