//! Why a call has no answer, in words for an agent.

use amplifier_session_api::{ApiError, InvalidRequest, cut, text::printable, with_causes};
use amplifier_session_core::{Error, ErrorField, ErrorKind};

use crate::AccessError;

/// Longer errors are cut.
const MOST_CHARS: usize = 1_900;

/// Why a call has no answer. The text begins with the parameter that is wrong, if one is.
#[derive(Debug)]
pub(crate) struct CallFailure(String);

impl CallFailure {
    /// A parameter is wrong.
    pub(crate) fn of_parameter(name: &str, problem: impl AsRef<str>) -> Self {
        Self(format!("{name}: {}", problem.as_ref()))
    }

    /// Something else is wrong.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text of the answer. Clients may show it like any other result, so it says that it is an error.
    pub(crate) fn text(&self) -> String {
        let text = printable(&self.0);
        let (shown, left_out) = cut::beginning(&text, MOST_CHARS);
        format!("error: {shown}{}", if left_out > 0 { "…" } else { "" })
    }

    /// An error of an operation. `address` is the parameter that names a session or a message.
    pub(crate) fn of_operation(error: ApiError, address: &str) -> Self {
        match error {
            ApiError::Invalid(invalid) => of_request(&invalid, address),
            ApiError::Storage(error) => of_store(&error, address),
            error => Self(error.to_string()),
        }
    }
}

impl From<AccessError> for CallFailure {
    fn from(error: AccessError) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for CallFailure {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("the answer can't be written as JSON: {error}"))
    }
}

fn of_request(invalid: &InvalidRequest, address: &str) -> CallFailure {
    const DATES: &str = "dates are 7d, 12h, '3 months ago', today, monday, 2026-01-31 or 2026-01-31T09:30";
    let (parameter, problem) = match invalid {
        InvalidRequest::NotADate { .. } => ("since or until", format!("{invalid}; {DATES}")),
        InvalidRequest::EndsBeforeItBegins { .. } => ("until", invalid.to_string()),
        InvalidRequest::NothingToList => ("limit", "must be at least 1".to_owned()),
        InvalidRequest::NotACursor { text } => {
            ("after", format!("{text:?} is no place to go on from; use the one that the last answer names"))
        }
        InvalidRequest::NamesMessage { .. } => (address, format!("{invalid}; `read` reads messages")),
        InvalidRequest::NamesEvent { .. } => (address, format!("{invalid}; `events` lists events")),
        InvalidRequest::RelativeFolder { .. } | InvalidRequest::NoRepository { .. } => {
            ("project", invalid.to_string())
        }
        InvalidRequest::PlaceNamedTwice { .. } => {
            (address, "it names a message, so `from` and `turn` can't be given".to_owned())
        }
        other => return CallFailure(other.to_string()),
    };
    CallFailure::of_parameter(parameter, problem)
}

fn of_store(error: &Error, address: &str) -> CallFailure {
    if error.kind() == ErrorKind::SessionNotFound {
        let session = error.context("session").unwrap_or_default();
        let problem = format!("no session matches {session:?}; `search` and `list` give addresses");
        return CallFailure::of_parameter(address, problem);
    }
    let is_argument =
        error.kind() == ErrorKind::Validation && error.field().is_some_and(ErrorField::is_argument);
    let Some(field) = error.field().filter(|_| is_argument) else {
        let hint = error.hint().map(|hint| format!("\nhint for the user: {hint}"));
        return CallFailure(with_causes(error) + &hint.unwrap_or_default());
    };
    let parameter = match field {
        ErrorField::Address | ErrorField::SessionId => address,
        ErrorField::Sequence => address,
        ErrorField::ContentType | ErrorField::ContentTypes => "in",
        ErrorField::ProjectSlug => "project",
        field => field.as_str(),
    };
    CallFailure::of_parameter(parameter, error.message())
}
