//! Fields of a query that can't narrow a search. A query may be pasted, so they are never errors.

use amplifier_session_core::{
    Error, ErrorField, ErrorKind,
    search::{Field, FieldName},
};
use serde::{Deserialize, Serialize};

use crate::{ApiError, InvalidRequest, Notice};

/// Why a field of a query can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum FieldProblem {
    /// There is no such role.
    UnknownRole,
    /// The value is not a date.
    NotADate {
        /// The value.
        text: String,
    },
    /// No session has an address like the value.
    UnknownSession {
        /// The value.
        session: String,
    },
    /// A field that can't be excluded is.
    CannotBeExcluded,
    /// The folder is in no repository, and no session worked in it.
    NoRepository {
        /// The folder.
        folder: String,
    },
    /// The folder is given by a caller who is not on this machine, and is not an absolute path.
    RelativeFolder {
        /// The folder.
        folder: String,
    },
    /// Another reason, for example that several projects match.
    Storage {
        /// A sentence of the storage.
        text: String,
    },
}

/// A condition of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum SearchCondition {
    /// A field of the query.
    Query {
        /// The field with its value, as in a query.
        text: String,
    },
    /// A field of the request.
    Request {
        /// The field.
        field: String,
        /// Its value.
        value: String,
    },
}

impl SearchCondition {
    pub(crate) fn of_request(field: &str, value: &str) -> Self {
        Self::Request { field: field.to_owned(), value: value.to_owned() }
    }
}

impl From<&Field> for SearchCondition {
    fn from(field: &Field) -> Self {
        Self::Query { text: field.to_string() }
    }
}

/// How a field fails to narrow a search.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// Its value can't be one, so it is searched for as text.
    Text(FieldProblem),
    /// No message meets it, as the notice says.
    Unmet(Notice),
    /// The store can't answer.
    Failed(ApiError),
}

impl Misfit {
    /// Two values of something that a message has only once. `other` is in the request if the request has such a field,
    /// or else in an earlier field of the query.
    pub(crate) fn contradiction(field: &Field, is_in_request: bool, other: &str) -> Self {
        let name = field.name.as_str();
        let one = if is_in_request {
            SearchCondition::of_request(name, other)
        } else {
            SearchCondition::Query { text: format!("{name}:{other}") }
        };
        Self::Unmet(Notice::NothingMatchesBoth { one, other: field.into() })
    }

    /// The value of `field` was looked up in the store, without success.
    pub(crate) fn of_lookup(field: &Field, error: ApiError) -> Self {
        let problem = match error {
            ApiError::Invalid(InvalidRequest::NoRepository { folder }) => {
                FieldProblem::NoRepository { folder }
            }
            ApiError::Invalid(InvalidRequest::RelativeFolder { folder }) => {
                FieldProblem::RelativeFolder { folder }
            }
            ApiError::Storage(error) if error.kind() == ErrorKind::SessionNotFound => {
                FieldProblem::UnknownSession { session: field.value.clone() }
            }
            ApiError::Storage(error) if is_about_value(&error) => {
                FieldProblem::Storage { text: error.message().to_owned() }
            }
            error => return Self::Failed(error),
        };
        if field.name == FieldName::Session && !may_name_session(&field.value) {
            Self::Text(problem)
        } else {
            Self::Unmet(Notice::UnmetField { text: field.to_string(), problem })
        }
    }

    /// The value of a field is no valid name.
    pub(crate) fn of_name(error: &Error) -> Self {
        Self::Text(FieldProblem::Storage { text: error.message().to_owned() })
    }
}

impl From<ApiError> for Misfit {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

fn is_about_value(error: &Error) -> bool {
    use ErrorField::{Address, ProjectSlug, Repository, SessionId};
    error.kind() == ErrorKind::Validation
        && matches!(error.field(), Some(Address | ProjectSlug | Repository | SessionId))
}

/// Whether a text is so like the address of a session that nothing else can be meant: `session:new` is text.
fn may_name_session(text: &str) -> bool {
    const SHORTEST: usize = 4;
    let id = text.rsplit(':').next().unwrap_or_default();
    let name = id.split(['-', '_', '#']).next().unwrap_or_default();
    let is_number = name.len() >= SHORTEST && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.eq_ignore_ascii_case("latest") || is_number && name.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a field that has a meaning may yet be meant as text, in a query that was pasted.
pub(crate) fn may_be_text(field: &Field) -> bool {
    use FieldName::{After, Before, Session};
    let is_precise = field.value.bytes().any(|byte| byte.is_ascii_digit());
    !(is_precise && matches!(field.name, After | Before | Session))
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::search::TypedQuery;

    use super::*;

    #[test]
    fn addresses_of_sessions_differ_from_words() {
        for id in [
            "3a7c",
            "3a7c1e90",
            "3a7c1e90#4",
            "0000-7fb8_explorer",
            "amplifier-agent:7f3c",
            "latest",
            "Latest#2",
        ] {
            assert!(may_name_session(id), "{id}");
        }
        for word in ["new", "3a7", "dead", "face-off", "v2", "storage", "", "1-on-1"] {
            assert!(!may_name_session(word), "{word}");
        }
    }

    #[test]
    fn dates_and_numbers_of_sessions_are_not_text() {
        let field = |typed: &str| TypedQuery::parse(typed).fields.remove(0);
        for typed in ["tool:bash", "role:user", "project:x2", "after:today", "session:latest", "file:a1"] {
            assert!(may_be_text(&field(typed)), "{typed}");
        }
        for typed in ["after:2026-01-31", "before:7d", "session:3a7c", "-session:3a7c"] {
            assert!(!may_be_text(&field(typed)), "{typed}");
        }
    }
}
