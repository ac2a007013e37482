//! Searches.

use amplifier_session_api::{
    Reach,
    budget::Items,
    operations::{search::SearchRequest, search_vector::VectorSearchRequest, timeline::TimelineRequest},
};

use super::{answer_limits, operations, within};
use crate::{call::HttpCall, problem::HttpProblem, routes::Answering};

operations! {
    /// GET /v1/timeline
    timeline: TimelineRequest => timeline;
}

/// POST /v1/search/vector
pub(crate) fn search_vector(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let limits = answer_limits(&mut call);
        let request: VectorSearchRequest = call.request()?;
        let answer = call.api().search_vector(&request).await.map_err(|error| call.problem(error))?;
        let items = answer.response.items();
        within(&call, &answer, limits, items, |response, portion| response.portion(portion, limits))
    })
}

/// GET and POST /v1/search
pub(crate) fn search(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let limits = answer_limits(&mut call);
        let group = call.take_text("group");
        call.set("by_session", group.as_deref() == Some("session"));
        let unit = call.take_text("unit");
        let request: SearchRequest = call.request()?;
        if request.query.query.trim().is_empty() && request.query.files.is_empty() {
            return Err(HttpProblem::of_parameter("q", "it is missing"));
        }
        let api = call.api();
        match unit.as_deref() {
            Some("turn") => {
                let answer = api.search_turns(&request).await.map_err(|error| call.problem(error))?;
                let items = Items { count: answer.response.count(), can_be_cut: false };
                within(&call, &answer, limits, items, |response, portion| response.first(portion.items))
            }
            Some("superseded") if request.query.scope > Reach::Own => {
                Err(HttpProblem::of_parameter("scope", "superseded messages are only for their owner: own"))
            }
            Some("superseded") => call.answer(api.search_superseded(&request).await),
            _ => {
                let answer = api.search(&request).await.map_err(|error| call.problem(error))?;
                let items = answer.response.items();
                within(&call, &answer, limits, items, |response, portion| response.portion(portion, limits))
            }
        }
    })
}
