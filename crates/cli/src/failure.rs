//! How a command ends: exit codes, errors and hints.

use std::io::{self, Write as _};

use amplifier_session_api::{ApiError, InvalidRequest};
use amplifier_session_storage::{Error, ErrorField, model::DamagedRow};

use crate::{
    environment::Environment,
    out,
    problems::{advice, hint_for, is_about_arguments, is_damage, message_of, problem, salvage_hint},
    render::{
        note,
        text::{counted, grouped, printable},
    },
};

/// The exit code of success.
pub(crate) const SUCCESS: u8 = 0;

/// How a command ends if it does not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Done,
    /// Nothing matches.
    FoundNothing,
}

impl Outcome {
    /// [`Self::Done`] if something was found.
    pub(crate) fn found(something: bool) -> Self {
        if something { Self::Done } else { Self::FoundNothing }
    }

    /// The exit code of the process.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Done => SUCCESS,
            Self::FoundNothing => 3,
        }
    }
}

/// Why a command failed, with a hint about what to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command could not be carried out.
    Failed(Report),
    /// The command line is invalid.
    WrongUse(Report),
    /// The reader of stdout closed the pipe.
    OutputClosed,
    /// The process was told to end, and has reported what it did. Contains the exit code.
    Ended(u8),
}

/// An error message with its hint.
#[derive(Debug)]
pub(crate) struct Report {
    message: String,
    hint: Hint,
}

/// What the user can do about an error.
#[derive(Debug)]
enum Hint {
    Text(String),
    /// The hint for this error. Its text is made when it is printed, because it contains commands to type.
    For(Box<Error>),
    /// The hint for a request that is not valid.
    About(Box<InvalidRequest>),
    /// A part of the store can't be read.
    Salvage,
    None,
}

impl Failure {
    /// A failure with a hint.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// A failure whose hints were already printed.
    pub(crate) fn without_hint(message: impl Into<String>) -> Self {
        Self::Failed(Report { message: message.into(), hint: Hint::None })
    }

    /// The message of the failure.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed(report) | Self::WrongUse(report) => &report.message,
            Self::OutputClosed => "the output was closed",
            Self::Ended(_) => "the process was told to end",
        }
    }

    /// A usage error with a hint.
    pub(crate) fn wrong_use(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::WrongUse(Report { message: message.into(), hint: Hint::Text(hint.into()) })
    }

    /// Prints the error and its hint, and returns the exit code. `program` is the name of the program in hints, and
    /// `store` that of the store.
    pub(crate) fn report(&self, program: &str, store: Option<&str>) -> u8 {
        let (report, code) = match self {
            Self::Failed(report) => (report, 1),
            Self::WrongUse(report) => (report, 2),
            Self::OutputClosed => return SUCCESS,
            Self::Ended(code) => return *code,
        };
        say("error", &report.message);
        if let Some(hint) = self.hint(program, store) {
            say("hint", &hint);
        }
        code
    }

    /// Advice for the user, if any. For the arguments, see [`Failure::report`].
    pub(crate) fn hint(&self, program: &str, store: Option<&str>) -> Option<String> {
        let (Self::Failed(report) | Self::WrongUse(report)) = self else { return None };
        match &report.hint {
            Hint::Text(text) => Some(text.clone()),
            Hint::For(error) if is_damage(error) => Some(salvage_hint(program, store)),
            Hint::For(error) => hint_for(error, program),
            Hint::About(invalid) => Some(advice(invalid, program)),
            Hint::Salvage => Some(salvage_hint(program, store)),
            Hint::None => None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let about_arguments = is_about_arguments(&error);
        let report = Report { message: message_of(&error), hint: Hint::For(Box::new(error)) };
        if about_arguments { Self::WrongUse(report) } else { Self::Failed(report) }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Storage(error) => error.into(),
            ApiError::Invalid(invalid) => {
                let message = problem(&invalid);
                Self::WrongUse(Report { message, hint: Hint::About(Box::new(invalid)) })
            }
            ApiError::NotTheUser { only: Some(ref only), ref user } => {
                let hint = format!("pass --user {only}, or connect with the role {user}");
                Self::failed(error.to_string(), hint)
            }
            ApiError::OnlyOthersHaveSessions { ref other, .. } => {
                let hint =
                    format!("others do: pass --user {other}, or --scope all to read everyone's sessions");
                Self::failed(error.to_string(), hint)
            }
            refused => Self::Failed(Report { message: refused.to_string(), hint: Hint::None }),
        }
    }
}

/// The answer about a message or a turn; `None`, with a note, if the session does not have it.
pub(crate) fn if_there<T>(answer: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    match answer {
        Err(ApiError::Storage(error))
            if matches!(error.field(), Some(ErrorField::Turn | ErrorField::Sequence)) =>
        {
            say("note", &message_of(&error));
            Ok(None)
        }
        answer => Ok(Some(answer?)),
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(Report { message: error.to_string(), hint: Hint::None }),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Writes a line to stderr, and ignores errors of writing. `text` may contain typed or recorded text, so control
/// characters are removed.
pub(crate) fn say(label: &str, text: &str) {
    let text = printable(text);
    let environment = Environment::current();
    let line = match out::width_of_messages(&environment) {
        Some(width) => note::wrapped(label, &text, width),
        None => format!("{label}: {text}"),
    };
    let _ = environment.stderr.clone().write_all(format!("{line}\n").as_bytes());
}

/// As [`say`], with the time: for messages that follow each other for days.
#[cfg(any(feature = "watch", feature = "client"))]
pub(crate) fn say_with_time(label: &str, text: &str) {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S");
    say(&format!("{now} {label}"), text);
}

/// Prints the first `most` of `total` lines, and how many more there are.
pub(crate) fn say_some(label: &str, lines: impl Iterator<Item = String>, most: usize, total: u64) {
    for line in lines.take(most) {
        say(label, &line);
    }
    let more = total.saturating_sub(most as u64);
    if more > 0 {
        say(label, &format!("… and {} more", grouped(more)));
    }
}

/// At most this many damaged rows are listed.
const LISTED: usize = 20;

/// Lists the rows that were skipped because they can't be read, and fails if there are any. Call this after all other
/// output.
pub(crate) fn report_damage(damaged: &[DamagedRow]) -> Result<(), Failure> {
    list_damage(damaged);
    let message = match damaged.len() {
        0 => return Ok(()),
        1 => "1 row of the store can't be read and was skipped".to_owned(),
        more => format!("{} of the store can't be read and were skipped", counted(more as u64, "row")),
    };
    Err(Failure::Failed(Report { message, hint: Hint::Salvage }))
}

/// Lists rows that can't be read.
pub(crate) fn list_damage(damaged: &[DamagedRow]) {
    let line = |row: &DamagedRow| {
        let place = match row.sequence {
            Some(sequence) => format!("{} {sequence} of session {}", row.kind.as_str(), row.session_id),
            None => format!("session {}", row.session_id),
        };
        format!("{place}: {}", row.reason)
    };
    say_some("damaged", damaged.iter().map(line), LISTED, damaged.len() as u64);
}

/// A note about sessions that were skipped because they can't be read, if there are any.
pub(crate) fn damaged_sessions_note(damaged: &[DamagedRow]) -> Option<String> {
    const NAMED: usize = 5;
    let first = damaged.first()?;
    let ids: Vec<&str> = damaged.iter().take(NAMED).map(|row| row.session_id.as_str()).collect();
    let ids = ids.join(", ");
    Some(match damaged.len() {
        1 => format!("session {ids} can't be read and was skipped: {}", first.reason),
        count if count <= NAMED => format!("sessions {ids} can't be read and were skipped"),
        count => format!("sessions {ids} and {} more can't be read and were skipped", count - NAMED),
    })
}
