//! The handlers.

pub(crate) mod about;
pub(crate) mod asking;
pub(crate) mod changing;
pub(crate) mod feed;
pub(crate) mod hook;
pub(crate) mod ingesting;
pub(crate) mod listing;
pub(crate) mod managing;
pub(crate) mod reading;
pub(crate) mod removing;
pub(crate) mod rows;
pub(crate) mod searching;

use amplifier_session_api::{
    ApiAnswer,
    budget::{AnswerLimits, Items, Portion, largest},
};
use serde::Serialize;

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem};

/// Handlers that pass a request to an operation, and its response to the client.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $request:ty => $operation:ident;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(call: HttpCall) -> Answering {
                Box::pin(async move {
                    let request: $request = call.request()?;
                    call.answer(call.api().$operation(&request).await)
                })
            }
        )*
    };
}
use operations;

/// The limits of the length of an answer, which are no fields of operations.
fn answer_limits(call: &mut HttpCall) -> AnswerLimits {
    AnswerLimits { max_chars: call.take_count("max_chars"), budget: call.take_count("budget") }
}

/// The largest portion of a response that fits into the budget.
fn within<T: Serialize, P: Serialize>(
    call: &HttpCall,
    answer: &ApiAnswer<T>,
    limits: AnswerLimits,
    items: Items,
    portion: impl Fn(&T, Portion) -> P,
) -> Result<HttpAnswer, HttpProblem> {
    let portion = |of| portion(&answer.response, of);
    let fitting = match limits.budget {
        None => Portion::all(items.count),
        Some(budget) => {
            let rendered = |of| serde_json::to_string(&portion(of)).map_err(Unfit::Json);
            let (fitting, _) = largest(budget, items, rendered).map_err(|unfit| match unfit {
                Unfit::Json(error) => HttpProblem::internal(error.to_string()),
                Unfit::Api(error) => call.problem(error),
            })?;
            fitting
        }
    };
    let shown = ApiAnswer { response: portion(fitting), notices: answer.notices.clone() };
    Ok(HttpAnswer::of(&shown)?.with_rows(fitting.items as u64))
}

/// Why no portion fits.
enum Unfit {
    Json(serde_json::Error),
    Api(amplifier_session_api::ApiError),
}

impl From<amplifier_session_api::ApiError> for Unfit {
    fn from(error: amplifier_session_api::ApiError) -> Self {
        Self::Api(error)
    }
}
