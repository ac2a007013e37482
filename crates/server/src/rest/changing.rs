//! Changes of sessions.

use amplifier_session_api::{
    Reach,
    operations::{
        edit::EditRequest, purge_secrets::PurgePreviewRequest, purge_secrets::PurgeSecretsRequest,
        session::SessionRequest, share::ShareRequest, summaries::SummariesRequest, tag::TagRequest,
    },
};
use tokio::sync::OwnedMutexGuard;

use super::operations;
use crate::{
    answer::HttpAnswer, call::HttpCall, problem::HttpProblem, rest::reading::version_of, routes::Answering,
};

operations! {
    /// POST /v1/summaries
    summaries: SummariesRequest => summaries;
}

/// Handlers of changes of one session.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident: $request:ty => $operation:ident;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(call: HttpCall) -> Answering {
                Box::pin(async move {
                    let mut call = call;
                    let request: $request = call.request()?;
                    let _change = begin_change(&mut call, &request.session).await?;
                    call.answer(call.api().$operation(&request).await)
                })
            }
        )*
    };
}

changes! {
    /// PATCH /v1/sessions/{id}
    edit: EditRequest => edit;
    /// PUT /v1/sessions/{id}/sharing
    share: ShareRequest => share;
    /// POST /v1/sessions/{id}/tags
    tag: TagRequest => tag;
}

/// Waits until no other request changes a session of the caller, and checks the version that the client has seen. If it
/// has seen one, the session is changed only if no other process has changed it meanwhile.
pub(super) async fn begin_change(
    call: &mut HttpCall,
    session: &str,
) -> Result<Option<OwnedMutexGuard<()>>, HttpProblem> {
    let change = call.state().begin_change(call.signed_in().caller().user().as_str()).await;
    if call.expects_version() {
        let request = SessionRequest { scope: Reach::Own, session: session.to_owned(), short_ids: false };
        let answer = call.api().session(&request).await.map_err(|error| call.problem(error))?;
        if !call.has_seen(&version_of(&answer.response)?) {
            return Err(HttpProblem::changed());
        }
        call.only_unchanged(answer.response.session.session);
    }
    Ok(change)
}

/// POST /v1/sessions/{id}/secrets/purge
pub(crate) fn purge_secrets(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let dry_run = call.take_flag("dry_run");
        let request: PurgePreviewRequest = call.request()?;
        let _change = begin_change(&mut call, &request.address).await?;
        let preview =
            call.api().purge_secrets_preview(&request).await.map_err(|error| call.problem(error))?;
        if dry_run {
            return HttpAnswer::of(&preview);
        }
        let preview = preview.response;
        let request = PurgeSecretsRequest {
            address: preview.address,
            session_id: preview.session_id,
            lines: preview.lines,
        };
        call.answer(call.api().purge_secrets(&request).await)
    })
}
