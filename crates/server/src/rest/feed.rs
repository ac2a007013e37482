//! The feed of changed sessions, for readers that ask again and again.

use std::time::Duration;

use amplifier_session_api::operations::changes::ChangesRequest;

use crate::{call::HttpCall, routes::Answering};

/// GET /v1/changes
pub(crate) fn changes(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let seconds = call.take_count("wait").unwrap_or_default();
        let patience = Duration::from_secs(seconds as u64);
        let request: ChangesRequest = call.request()?;
        let _place = if patience.is_zero() { None } else { Some(call.begin_to_wait()?) };
        let answer = {
            let (state, api) = (call.state().clone(), call.api());
            tokio::select! {
                answer = api.wait_for_changes(&request, patience) => answer,
                // Nothing is lost: the client goes on after the same cursor.
                () = state.stopped() => api.changes(&request).await,
                () = call.rights_change() => api.changes(&request).await,
            }
        };
        // A token that was revoked meanwhile gets nothing, and one with other rights what it may read now.
        match call.again()? {
            None => call.answer(answer),
            Some(call) => call.answer(call.api().changes(&request).await),
        }
    })
}
