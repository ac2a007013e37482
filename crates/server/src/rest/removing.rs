//! Deletions and rewinds.

use amplifier_session_api::operations::{
    delete::{DeletePreviewRequest, DeleteRequest},
    prune::{PrunePreviewRequest, PruneRequest},
    rewind::{RewindPreviewRequest, RewindRequest},
};
use serde_json::{Value, json};

use super::changing::begin_change;
use crate::{answer::HttpAnswer, call::HttpCall, routes::Answering};

/// DELETE /v1/sessions/{id}
pub(crate) fn delete_one(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let session = call.take_text("session").unwrap_or_default();
        let _change = begin_change(&mut call, &session).await?;
        call.set("sessions", json!([session]));
        delete(call).await
    })
}

/// POST /v1/sessions/delete
pub(crate) fn delete(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let dry_run = call.take_flag("dry_run");
        let request: DeletePreviewRequest = call.request()?;
        let preview = call.api().delete_preview(&request).await.map_err(|error| call.problem(error))?;
        if dry_run {
            return HttpAnswer::of(&preview);
        }
        let found = preview.response.would_delete.unwrap_or_default();
        let session_ids = found.into_iter().map(|view| view.session.session_id).collect();
        let deleted = call.api().delete(&DeleteRequest { session_ids }).await;
        let deleted = deleted.map_err(|error| call.problem(error))?;
        Ok(HttpAnswer::of(&deleted)?.with_rows(deleted.response.deleted.len() as u64))
    })
}

/// POST /v1/superseded/delete
pub(crate) fn prune(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let dry_run = call.take_flag("dry_run");
        let request: PrunePreviewRequest = call.request()?;
        let preview = call.api().prune_preview(&request).await.map_err(|error| call.problem(error))?;
        if dry_run {
            return HttpAnswer::of(&preview);
        }
        let sessions = preview.response.sessions().iter().map(Into::into).collect();
        let pruned =
            call.api().prune(&PruneRequest { sessions }).await.map_err(|error| call.problem(error))?;
        Ok(HttpAnswer::of(&pruned)?.with_rows(pruned.response.messages + pruned.response.events))
    })
}

/// POST /v1/sessions/{id}/rewind
pub(crate) fn rewind(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let dry_run = call.take_flag("dry_run");
        let at_most = call.take("at_most");
        let request: RewindPreviewRequest = call.request()?;
        let _change = begin_change(&mut call, &request.session).await?;
        let preview = call.api().rewind_preview(&request).await.map_err(|error| call.problem(error))?;
        if dry_run {
            return HttpAnswer::of(&preview);
        }
        call.take("session");
        call.set("session_id", preview.response.session.session.session_id.as_str());
        call.set("at_most", at_most.unwrap_or_else(|| Value::Null));
        let request: RewindRequest = call.request()?;
        let rewound = call.api().rewind(&request).await.map_err(|error| call.problem(error))?;
        let removed = rewound.response.removed;
        Ok(HttpAnswer::of(&rewound)?.with_rows(removed.messages + removed.events))
    })
}
