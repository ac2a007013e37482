//! Changes need their right, and reach only the caller's own sessions.

use std::{fmt::Debug, sync::Arc};

use amplifier_session_core::{
    ErrorKind, Scope, SessionStorage,
    model::{Session, SessionId},
    storage::Sharing,
};
use amplifier_session_testkit::{
    MemoryBackend, lines,
    store::{target_of, whole},
};
use jiff::Zoned;

use super::{
    delete::{DeletePreviewRequest, DeleteRequest},
    edit::EditRequest,
    prune::{PrunePreviewRequest, PruneRequest, PrunedSession},
    rewind::{RemovedRows, RewindPreviewRequest, RewindRequest},
    share::{ShareRequest, SharedWith},
    summaries::{SummariesRequest, SummaryOfTurn},
    tag::TagRequest,
    tags::TagsRequest,
};
use crate::{AccessRight, Api, ApiCaller, ApiError, CallerPlace, InvalidRequest, Reach};

/// A store with sessions of two users, which both may see.
async fn store() -> SessionStorage {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    for (user, session) in [("ana", "of-ana"), ("ana", "of-ana-agent"), ("eve", "of-eve")] {
        let target = target_of(user, "shop", session);
        let turns = vec![lines::user("one"), lines::assistant("first"), lines::user("two")];
        storage.ingestion().sync_transcript_lines(&target, whole(turns)).await.unwrap();
        storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
    }
    storage
}

fn ana() -> ApiCaller {
    ApiCaller::new(target_of("ana", "shop", "x").key.user_id).with_reach(Reach::All)
}

/// The answer that a caller with these rights gets.
async fn asked<T>(
    storage: &SessionStorage,
    rights: impl IntoIterator<Item = AccessRight>,
    call: impl AsyncFn(Api<'_>) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let caller = ana().with_rights(rights);
    let now: Zoned = "2026-01-05T08:00:00+00:00[UTC]".parse().unwrap();
    call(Api { storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere }).await
}

/// The operation is answered for callers who have only this right, and for no others.
async fn needs<T: Debug>(right: AccessRight, call: impl AsyncFn(Api<'_>) -> Result<T, ApiError>) {
    let storage = store().await;
    let others = AccessRight::ALL.into_iter().filter(|other| *other != right);
    let refused = asked(&storage, others, &call).await;
    assert!(matches!(refused, Err(ApiError::MissingRight(missing)) if missing == right), "{refused:?}");
    let answered = asked(&storage, [right], &call).await;
    assert!(answered.is_ok(), "{answered:?}");
}

async fn sessions(storage: &SessionStorage) -> Vec<Session> {
    let mut sessions = Vec::new();
    for id in ["of-ana", "of-ana-agent", "of-eve"] {
        sessions.extend(storage.sessions().get_session(&Scope::Everyone, &id_of(id)).await.unwrap());
    }
    sessions
}

fn id_of(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

fn edit_of(session: &str) -> EditRequest {
    EditRequest { session: session.to_owned(), name: Some("x".to_owned()), ..EditRequest::default() }
}

fn tag_of(session: &str) -> TagRequest {
    TagRequest { session: session.to_owned(), add: vec!["x".to_owned()], remove: Vec::new() }
}

fn share_of(session: &str) -> ShareRequest {
    ShareRequest { session: session.to_owned(), with: SharedWith::Private }
}

fn summaries_of(session: &str) -> SummariesRequest {
    let summary =
        |message: u32| SummaryOfTurn { message_id: format!("{session}#{message}"), text: "x".to_owned() };
    SummariesRequest { summaries: vec![summary(0), summary(2)] }
}

fn rewind_preview_of(session: &str) -> RewindPreviewRequest {
    RewindPreviewRequest { session: session.to_owned(), to_turn: 1, keep_events: false, short_ids: false }
}

fn rewind_of(session: &str) -> RewindRequest {
    RewindRequest { session_id: id_of(session), to_turn: 1, keep_events: false, at_most: None }
}

fn delete_preview_of(session: &str) -> DeletePreviewRequest {
    DeletePreviewRequest { sessions: vec![session.to_owned()], ..DeletePreviewRequest::default() }
}

fn delete_of(session: &str) -> DeleteRequest {
    DeleteRequest { session_ids: vec![id_of(session)] }
}

fn prune_preview_of(session: &str) -> PrunePreviewRequest {
    PrunePreviewRequest { sessions: vec![session.to_owned()], ..PrunePreviewRequest::default() }
}

#[tokio::test]
async fn every_change_needs_its_right() {
    const OWN: &str = "of-ana";
    needs(AccessRight::Write, async |api: Api<'_>| api.edit(&edit_of(OWN)).await).await;
    needs(AccessRight::Write, async |api: Api<'_>| api.tag(&tag_of(OWN)).await).await;
    needs(AccessRight::Write, async |api: Api<'_>| api.share(&share_of(OWN)).await).await;
    needs(AccessRight::Write, async |api: Api<'_>| api.summaries(&summaries_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.rewind_preview(&rewind_preview_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.rewind(&rewind_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.delete_preview(&delete_preview_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.delete(&delete_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.prune_preview(&prune_preview_of(OWN)).await).await;
    needs(AccessRight::Delete, async |api: Api<'_>| api.prune(&PruneRequest::default()).await).await;
    let reading = TagRequest { add: Vec::new(), ..tag_of(OWN) };
    needs(AccessRight::Read, async |api: Api<'_>| api.tag(&reading).await).await;
    needs(AccessRight::Read, async |api: Api<'_>| api.tags(&TagsRequest::default()).await).await;
}

#[tokio::test]
async fn sessions_of_others_are_not_changed() {
    const OTHER: &str = "of-eve";
    async fn check<T: Debug>(storage: &SessionStorage, call: impl AsyncFn(Api<'_>) -> Result<T, ApiError>) {
        let refused = asked(storage, AccessRight::ALL, call).await.unwrap_err();
        let error = match refused {
            ApiError::Storage(error)
            | ApiError::Invalid(InvalidRequest::WrongSummary { reason: error, .. }) => error,
            refused => panic!("{refused}"),
        };
        assert_eq!(error.kind(), ErrorKind::SessionNotFound);
    }
    let storage = store().await;
    let before = sessions(&storage).await;
    check(&storage, async |api: Api<'_>| api.edit(&edit_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.tag(&tag_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.share(&share_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.summaries(&summaries_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.rewind_preview(&rewind_preview_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.rewind(&rewind_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.delete_preview(&delete_preview_of(OTHER)).await).await;
    check(&storage, async |api: Api<'_>| api.prune_preview(&prune_preview_of(OTHER)).await).await;
    let all = DeletePreviewRequest { all: true, ..DeletePreviewRequest::default() };
    let all = asked(&storage, AccessRight::ALL, async |api: Api<'_>| api.delete_preview(&all).await).await;
    let listed = all.unwrap().response.would_delete.unwrap();
    assert!(listed.len() == 2 && listed.iter().all(|view| view.session.session_id.as_str() != OTHER));
    let deleted =
        asked(&storage, AccessRight::ALL, async |api: Api<'_>| api.delete(&delete_of(OTHER)).await).await;
    let deleted = deleted.unwrap().response;
    let failed: Vec<&str> = deleted.failed.iter().map(|failed| failed.error.as_str()).collect();
    assert_eq!((deleted.deleted.len(), failed), (0, vec!["the store has no such session"]));
    let last_superseded_at = before[0].updated;
    let lines =
        PruneRequest { sessions: vec![PrunedSession { session_id: id_of(OTHER), last_superseded_at }] };
    let pruned = asked(&storage, AccessRight::ALL, async |api: Api<'_>| api.prune(&lines).await).await;
    assert!(pruned.unwrap().response.pruned.is_empty());
    assert_eq!(sessions(&storage).await, before);
}

/// An id that is gone would be the beginning of another one, if it counted as an address.
#[tokio::test]
async fn a_deletion_takes_ids_not_addresses() {
    let storage = store().await;
    let ids = || async {
        sessions(&storage).await.iter().map(|session| session.session_id.to_string()).collect::<Vec<_>>()
    };
    for (deleted, failed) in [(1, 0), (0, 1)] {
        let request = DeleteRequest { session_ids: vec![id_of("of-ana"); 2] };
        let answer =
            asked(&storage, [AccessRight::Delete], async |api: Api<'_>| api.delete(&request).await).await;
        let response = answer.unwrap().response;
        assert_eq!((response.deleted.len(), response.failed.len()), (deleted, failed));
        assert_eq!(ids().await, ["of-ana-agent", "of-eve"]);
    }
}

#[tokio::test]
async fn a_rewind_removes_what_its_preview_reported() {
    let storage = store().await;
    let rewound = async |at_most: Option<RemovedRows>| {
        let request = RewindRequest { at_most, ..rewind_of("of-ana") };
        asked(&storage, [AccessRight::Delete], async |api: Api<'_>| api.rewind(&request).await).await
    };
    let request = rewind_preview_of("of-ana");
    let preview =
        asked(&storage, [AccessRight::Delete], async |api: Api<'_>| api.rewind_preview(&request).await).await;
    let planned = preview.unwrap().response.removed;
    assert_eq!((planned.turns, planned.messages), (1, 1));
    let refused = rewound(Some(RemovedRows { messages: 0, ..planned })).await;
    assert!(matches!(refused, Err(ApiError::Storage(error)) if error.kind() == ErrorKind::Rewind));
    assert_eq!(rewound(Some(planned)).await.unwrap().response.removed, planned);
}

#[tokio::test]
async fn a_wrong_summary_is_named_by_its_position() {
    let storage = store().await;
    let mut request = summaries_of("of-ana");
    request.summaries[1].text = " ".to_owned();
    let refused =
        asked(&storage, [AccessRight::Write], async |api: Api<'_>| api.summaries(&request).await).await;
    assert!(matches!(refused, Err(ApiError::Invalid(InvalidRequest::WrongSummary { position: 1, .. }))));
}
