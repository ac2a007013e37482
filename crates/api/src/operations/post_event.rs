//! Stores an event that a program posts as it happens.

use amplifier_session_core::{
    model::{ProjectSlug, SessionId, SessionKey},
    storage::{PostResult, PostedEvent},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AccessRight, Api, ApiAnswer, ApiError};

/// An event, as the hook of Amplifier's context intelligence posts it. Other fields are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PostEventRequest {
    /// Its name.
    pub event: String,
    /// The project of its session.
    pub workspace: ProjectSlug,
    /// The folder in which the session runs. Default: not known.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// A digest of the event, by which the program repeats it. It is not needed here: an event is known by its content.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Its data, among them `session_id` and `timestamp`.
    pub data: Map<String, Value>,
}

/// The result of posting an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PostedStatus {
    /// It is stored. The name is that of the wire.
    Queued,
    /// It was stored before: it was posted twice, or its log came first.
    Duplicate,
    /// It belongs to no session, or to one that was deleted from the store, and was not stored.
    Skipped,
}

/// The answer to an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostEventResponse {
    /// The result.
    pub status: PostedStatus,
    /// Its session.
    pub session_id: Option<SessionId>,
}

impl Api<'_> {
    /// Stores an event of a session of the caller, which is created if it does not exist. When the log of its program comes,
    /// by a sync or from another store, the line there replaces it. If the store has no user yet, it becomes the
    /// caller's.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write; `Validation` if the event has no name, states no time, or
    /// names a session that is no id; errors of the store.
    #[crate::compiled_here]
    pub async fn post_event(
        &self,
        request: &PostEventRequest,
    ) -> Result<ApiAnswer<PostEventResponse>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        let named = request.data.get("session_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let Some(named) = named else {
            return Ok(PostEventResponse { status: PostedStatus::Skipped, session_id: None }.into());
        };
        let session_id = SessionId::new(named)?;
        let user = self.caller.user();
        self.storage.users().pin_user(user).await?;
        let posted = PostedEvent {
            session: SessionKey::new(user.clone(), session_id.clone()),
            project_slug: request.workspace.clone(),
            working_dir: request.working_dir.clone().filter(|folder| folder.starts_with('/')),
            event: request.event.clone(),
            data: request.data.clone(),
        };
        let status = match self.storage.exchange().post_event(&posted).await? {
            PostResult::Stored => PostedStatus::Queued,
            PostResult::Known => PostedStatus::Duplicate,
            PostResult::Deleted => PostedStatus::Skipped,
        };
        Ok(PostEventResponse { status, session_id: Some(session_id) }.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amplifier_session_core::{SessionStorage, backend::StorageBackendExt as _};
    use amplifier_session_testkit::{
        MemoryBackend, lines,
        store::{target_of, whole},
    };
    use serde_json::json;

    use super::*;
    use crate::{ApiCaller, CallerPlace};

    async fn post(storage: &SessionStorage, data: Value) -> Result<PostEventResponse, ApiError> {
        let user = target_of("ana", "shop", "x").key.user_id;
        let caller = ApiCaller::new(user).with_rights([AccessRight::Write]);
        let now = "2026-01-05T08:00:00+00:00[UTC]".parse().unwrap();
        let api = Api { storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
        let request = json!({
            "event": "tool:pre", "workspace": "shop", "working_dir": "/srv/shop", "idempotency_key": "k", "data": data,
            "more": 1,
        });
        Ok(api.post_event(&serde_json::from_value(request).unwrap()).await?.response)
    }

    fn data(session: &str, second: u32) -> Value {
        json!({"session_id": session, "timestamp": format!("2026-01-05T08:00:{second:02}.000Z"), "tool_name": "bash"})
    }

    #[tokio::test]
    async fn an_event_is_stored_once() {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        let first = post(&storage, data("s1", 1)).await.unwrap();
        assert_eq!((first.status, first.session_id.unwrap().as_str()), (PostedStatus::Queued, "s1"));
        assert_eq!(post(&storage, data("s1", 1)).await.unwrap().status, PostedStatus::Duplicate);
        assert_eq!(post(&storage, data("s1", 2)).await.unwrap().status, PostedStatus::Queued);
        let key = target_of("ana", "shop", "s1").key;
        let session = storage.backend().get_session(&key).await.unwrap().unwrap().session;
        assert_eq!((session.event_count, session.working_dir.as_deref()), (2, Some("/srv/shop")));
    }

    #[tokio::test]
    async fn what_belongs_to_no_session_is_skipped_and_what_is_wrong_is_refused() {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        assert_eq!(post(&storage, json!({})).await.unwrap().status, PostedStatus::Skipped);
        for wrong in [
            json!({"session_id": "s1"}),
            json!({"session_id": "a/../b\n", "timestamp": "2026-01-05T08:00:00Z"}),
        ] {
            assert!(matches!(post(&storage, wrong).await.unwrap_err(), ApiError::Storage(_)));
        }
        let target = target_of("ana", "shop", "gone");
        storage.ingestion().sync_transcript_lines(&target, whole(vec![lines::user("hi")])).await.unwrap();
        storage.backend().delete_session(&target.key).await.unwrap();
        assert_eq!(post(&storage, data("gone", 1)).await.unwrap().status, PostedStatus::Skipped);
    }
}
