//! Operations of the API, as programs of this project ask for them.

use amplifier_session_api::{
    AccessRight, Reach,
    operations::export::ExportRequest,
    remote::{ApiOperation, ExportEnd, OperationAnswer, read_request},
};
use jiff::Zoned;
use serde_json::Value;

use super::reading::JSON_LINES;
use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering, stream};

/// POST /v1/operations/{operation}
pub(crate) fn answer(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let operation = ApiOperation::ALL.iter().find(|one| one.path() == call.path());
        let operation = *operation.ok_or_else(|| HttpProblem::internal("the route has no operation"))?;
        let request = request(&mut call)?;
        // Another request may compare versions of a session before it changes it.
        let _change = match operation.right() {
            AccessRight::Read => None,
            _ => call.state().begin_change(call.signed_in().caller().user().as_str()).await,
        };
        let answer = operation.answer(&call.api(), &request).await;
        Ok(HttpAnswer::text(answer.map_err(|error| call.problem_with_error(error))?))
    })
}

/// The request. Also sets the caller's time and whatever else the call states.
fn request(call: &mut HttpCall) -> Result<Value, HttpProblem> {
    let now = call.take_text("now").unwrap_or_default();
    let now: Zoned = now
        .parse()
        .map_err(|_| HttpProblem::of_parameter("now", "it is not a time with a time zone that is known"))?;
    call.set_now(now);
    if call.take_flag("masked") {
        call.mask_all()?;
    }
    let mut request = call.take("request").unwrap_or_default();
    let most = call.state().sizes.items;
    // The answer says that there is more, and programs of this project ask for it.
    if let Some(limit) = request.get_mut("limit")
        && limit.as_u64().is_some_and(|limit| limit > most as u64)
    {
        *limit = most.into();
    }
    Ok(request)
}

/// POST /v1/operations/export
pub(crate) fn export(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let permit = call.begin_export()?;
        let request = request(&mut call)?;
        let request: ExportRequest =
            read_request(&request).map_err(|error| call.problem_with_error(error))?;
        call.signed_in().caller().scope(request.scope).map_err(|error| call.problem_with_error(error))?;
        if request.scope > Reach::Own {
            // Archives have superseded lines, which are only for their owner.
            return Err(HttpProblem::of_parameter("scope", "only your own sessions are exported: own"));
        }
        let patience = call.meter().patience();
        let write = async move |out: &mut stream::PieceWriter| -> Result<(), HttpProblem> {
            let _permit = permit;
            let exported = call.api().export(&request, out).await;
            let exported = exported.map_err(|error| call.problem_with_error(error))?;
            let end = ExportEnd { exported: OperationAnswer::from(exported) };
            stream::put_json(out, &end)
        };
        let body = stream::written(patience, write).await?;
        Ok(HttpAnswer::Stream { body, content_type: JSON_LINES, file: "sessions.jsonl" })
    })
}
