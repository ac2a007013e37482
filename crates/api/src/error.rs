//! The reasons why a request can't be answered.

use std::{error::Error as _, fmt, fmt::Write as _};

use amplifier_session_core::{
    Error,
    model::{SessionField, UserId},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Reach};

/// The reason why a request can't be answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiError {
    /// The request contradicts itself, or has a value that means nothing.
    Invalid(InvalidRequest),
    /// The caller lacks a right.
    MissingRight(AccessRight),
    /// The request asks for more sessions than the caller may read.
    BeyondReach {
        /// The sessions that the request asks for.
        requested: Reach,
        /// The most that the caller may ask for.
        reach: Reach,
    },
    /// The store reads and writes only sessions of another user.
    NotTheUser {
        /// The user of the store, for callers who may read everyone's sessions.
        only: Option<UserId>,
        /// The caller.
        user: UserId,
    },
    /// The latest session was requested, but the caller has none, and others do.
    OnlyOthersHaveSessions {
        /// The caller.
        user: UserId,
        /// A user with sessions.
        other: UserId,
    },
    /// An error of the store, or about an argument that the store checks: see [`Error::kind`].
    Storage(Error),
}

/// Something that is wrong with a request. A face that calls the fields of a request by other names has its own words;
/// [`fmt::Display`] uses the names of the fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidRequest {
    /// A text is not a date.
    NotADate {
        /// The text.
        text: String,
    },
    /// A time zone is not known.
    UnknownTimeZone {
        /// Its name in the request.
        tz: String,
    },
    /// `until` is before `since`.
    EndsBeforeItBegins {
        /// The beginning of the period, as it was typed.
        since: String,
        /// Its end.
        until: String,
    },
    /// `max_turns` is less than `min_turns`.
    NoTurns {
        /// The minimum.
        min_turns: u32,
        /// The maximum.
        max_turns: u32,
    },
    /// A list is limited to 0 items.
    NothingToList,
    /// An edit changes nothing.
    NothingToChange,
    /// An edit sets, clears or resets a field more than once.
    FieldGivenTwice(SessionField),
    /// A tag is both added and removed.
    TagAddedAndRemoved {
        /// The tag.
        tag: String,
    },
    /// A summary of a list can't be set.
    WrongSummary {
        /// Its position in the list, from 0.
        position: usize,
        /// The reason.
        reason: Error,
    },
    /// A deletion has neither addresses nor filters nor `all`.
    NothingNamedToDelete,
    /// A deletion has more than one of addresses, filters and `all`.
    NotOneWayToDelete,
    /// The minimum age of sessions or lines to delete is a time in the future, which everything would match.
    AgeInTheFuture {
        /// The age, as it was typed.
        age: String,
    },
    /// A folder is given by a caller who is not on this machine, and is not an absolute path.
    RelativeFolder {
        /// The folder.
        folder: String,
    },
    /// A folder is in no repository, and no session worked in it.
    NoRepository {
        /// The folder.
        folder: String,
    },
    /// An address names a message, but the request is about events.
    NamesMessage {
        /// The address.
        address: String,
        /// The number of the message.
        sequence: u32,
    },
    /// An address names an event, but the request is about messages.
    NamesEvent {
        /// The address.
        address: String,
        /// The fields that could name a message.
        fields: PlaceFields,
    },
    /// More than one field names the place in a session.
    PlaceNamedTwice {
        /// The address.
        address: String,
        /// The fields.
        fields: PlaceFields,
    },
    /// No field names the place in a session.
    NoPlaceNamed {
        /// The fields.
        fields: PlaceFields,
    },
    /// A text is not a cursor that an earlier response had.
    NotACursor {
        /// The text.
        text: String,
    },
    /// A request of another program can't be read, or has a field that this version does not know.
    Unreadable {
        /// The reason why it is refused.
        reason: String,
    },
    /// The answer does not fit into the budget, even without any item.
    BudgetTooSmall {
        /// The budget in tokens.
        budget: usize,
        /// The tokens that the answer needs at least.
        least: usize,
    },
}

/// The fields of a request that can name a place in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceFields {
    /// The address, and the number of the first line.
    First,
    /// The address, a turn and a message.
    TurnOrMessage,
    /// The address and a turn.
    Turn,
}

impl PlaceFields {
    /// Their names in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "session and from",
            Self::TurnOrMessage => "session, turn and message",
            Self::Turn => "session and turn",
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

impl From<InvalidRequest> for ApiError {
    fn from(invalid: InvalidRequest) -> Self {
        Self::Invalid(invalid)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::MissingRight(right) => write!(f, "the right to {} is missing", right.as_str()),
            Self::BeyondReach { requested, reach } => {
                write!(f, "scope {} is not allowed, only {}", requested.as_str(), reach.as_str())
            }
            Self::NotTheUser { only, user } => {
                let only = only.as_ref().map_or("another user", UserId::as_str);
                write!(f, "this role reads and writes only sessions of {only}, but you are {user}")
            }
            Self::OnlyOthersHaveSessions { user, .. } => write!(f, "{user} has no sessions in this store"),
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(error) => error.source(),
            _ => None,
        }
    }
}

impl fmt::Display for InvalidRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADate { text } => write!(f, "{text:?} is not a date"),
            Self::UnknownTimeZone { tz } => write!(f, "{tz:?} is not a time zone"),
            Self::EndsBeforeItBegins { since, until } => write!(f, "until {until} is before since {since}"),
            Self::NoTurns { min_turns, max_turns } => {
                write!(f, "max_turns {max_turns} is less than min_turns {min_turns}")
            }
            Self::NothingToList => f.write_str("limit must be at least 1"),
            Self::NothingToChange => f.write_str("nothing to change"),
            Self::FieldGivenTwice(field) => write!(f, "the {field} is given more than once"),
            Self::TagAddedAndRemoved { tag } => write!(f, "the tag {tag:?} is both added and removed"),
            Self::WrongSummary { position, reason } => write!(f, "summaries[{position}]: {reason}"),
            Self::NothingNamedToDelete => f.write_str("the sessions to delete are required"),
            Self::NotOneWayToDelete => {
                f.write_str("only one of sessions, of project, repo and older_than, and of all is allowed")
            }
            Self::AgeInTheFuture { age } => write!(f, "older_than {age} is in the future"),
            Self::RelativeFolder { folder } => write!(f, "the folder {folder} must be an absolute path"),
            Self::NoRepository { folder } => write!(f, "{folder} is in no repository"),
            Self::NamesMessage { address, .. } => write!(f, "{address} names a message, not an event"),
            Self::NamesEvent { address, .. } => write!(f, "{address} names an event, not a message"),
            Self::PlaceNamedTwice { address, fields } => {
                write!(f, "only one of {} can name a place in {address}", fields.as_str())
            }
            Self::NoPlaceNamed { fields } => {
                write!(f, "one of {} must name a message or a turn", fields.as_str())
            }
            Self::NotACursor { text } => write!(f, "{text:?} is not a cursor"),
            Self::Unreadable { reason } => write!(f, "the request can't be read: {reason}"),
            Self::BudgetTooSmall { budget, least } => {
                write!(f, "budget {budget} is too small: this answer needs at least {least} tokens")
            }
        }
    }
}

/// The message of an error, followed by the messages of those causes that add information.
#[must_use]
pub fn with_causes(error: &Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors have advice for programmers after the first line.
        let line = text.lines().next().unwrap_or_default();
        if !message.contains(line) {
            let _ = write!(message, ": {line}");
        }
        cause = error.source();
    }
    message
}
