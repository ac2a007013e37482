//! The whole store: imports, vectors, harmless secrets, users, checks, metrics.

use std::io::Cursor;

use amplifier_session_api::operations::{
    check_store::CheckStoreRequest, ignore_secrets::IgnoreSecretsRequest, import::ImportRequest,
    users::RenameUserRequest, vectors::EmbedRequest,
};
use amplifier_session_core::storage::JsonLinesReader;
use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};

use super::operations;
use crate::{answer::HttpAnswer, call::HttpCall, metrics::OPEN_METRICS, routes::Answering};

operations! {
    /// GET /v1/check
    check: CheckStoreRequest => check_store;
    /// POST /v1/users/rename
    rename_user: RenameUserRequest => rename_user;
}

/// POST /v1/import
pub(crate) fn import(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: ImportRequest = call.request()?;
        call.check_quota(false).await?;
        let mut archive = JsonLinesReader::new(Cursor::new(call.body().clone()));
        let answer = call.api().import(&request, &mut archive).await.map_err(|error| call.problem(error))?;
        call.note_pending_vectors();
        let rows = answer.response.messages + answer.response.events;
        Ok(HttpAnswer::of(&answer)?.with_rows(rows))
    })
}

/// POST /v1/vectors
pub(crate) fn make_vectors(call: HttpCall) -> Answering {
    Box::pin(async move {
        let request: EmbedRequest = call.request()?;
        call.answer(call.api().make_vectors(&request, &mut |_| {}).await)
    })
}

/// POST /v1/sessions/{id}/secrets/ignore
pub(crate) fn ignore_secrets(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        call.set_default("ignore", true);
        let request: IgnoreSecretsRequest = call.request()?;
        call.answer(call.api().ignore_secrets(&request).await)
    })
}

/// GET /metrics
pub(crate) fn metrics(call: HttpCall) -> Answering {
    Box::pin(async move {
        let text = call.state().metrics.text(call.state()).await?;
        let mut response = Response::new(Body::from(text));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
        Ok(HttpAnswer::Whole(response))
    })
}
