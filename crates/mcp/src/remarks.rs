//! Remarks about an answer in words: what it leaves out, and why something may be missing.

use amplifier_session_api::{
    FieldProblem, Notice, SearchCondition,
    incomplete::{IncompleteReason, RefreshGap},
};
use amplifier_session_core::{
    model::{ProjectSlug, Role},
    text::{counted, grouped},
};

use crate::quoted;

/// Parts of queries and values are cut after this many characters.
const PART_CHARS: usize = 60;
/// The beginning of a message is cut after this many characters.
const SNIPPET_CHARS: usize = 200;

/// A remark about the request or its answer; `None` if it says nothing to an agent.
pub(crate) fn notice(notice: &Notice) -> Option<String> {
    let part = |text: &str| quoted::string(text, PART_CHARS);
    Some(match notice {
        Notice::Sentence { text } | Notice::Search { text } => text.clone(),
        Notice::StoreOfOtherUser { .. } => "the store belongs to another user".to_owned(),
        Notice::SinceIsInTheFuture { since } => format!("since {} is in the future", part(since)),
        Notice::ProjectOfFolderAbove { folder, project } => {
            format!("{} is in the project {}", part(folder), quoted::name(project.as_str()))
        }
        Notice::SeveralProjects { typed, projects } => {
            let count = counted(projects.len() as u64, "project");
            format!("project {} selects {count}: {}", part(typed), names(projects))
        }
        Notice::OtherWorkTrees { folder, projects } => {
            format!("with the other work trees of {}: {}", part(folder), names(projects))
        }
        Notice::OtherFoldersLeftOut { folder, others, .. } => format!(
            "left out: sessions of the project that ran in {} than {}",
            counted(others.len() as u64, "other folder"),
            part(folder)
        ),
        Notice::NoSessionInFolder { folder, .. } => format!("no session ran in {}", part(folder)),
        Notice::UnknownRepository { repository } => {
            format!("no session is of the repository {}", part(repository))
        }
        Notice::UnknownProject { project } => {
            format!("there is no project {}; `list` shows those of sessions", part(project.as_str()))
        }
        Notice::IncompleteEventType { event_type } => {
            format!("type must match exactly, such as tool:post; {} has no colon", part(event_type))
        }
        Notice::NoCallOnFile { file } => format!("no session has a tool call on {}", part(file)),
        Notice::CallsOnFile { file, text } => format!("sessions with {}: {text}", part(file)),
        Notice::NotTogether { words } => {
            let words: Vec<String> = words.iter().map(|word| part(word)).collect();
            format!("no message has all of these words in one text: {}", words.join(", "))
        }
        Notice::NothingFound { nearest: Some(nearest), .. } => format!(
            "no match; nearest by meaning, and probably about something else: {}: {}",
            nearest.address,
            quoted::string(&nearest.snippet, SNIPPET_CHARS)
        ),
        Notice::NothingFound { nearest: None, .. } => "nothing matches".to_owned(),
        Notice::NoLine { kind, sequence, count } => {
            format!(
                "there is no {} {sequence}: the session has {}",
                kind.as_str(),
                grouped(u64::from(*count))
            )
        }
        Notice::SearchedAsText { text, problem } => {
            format!("{} is searched for as text: {}", part(text), of_field(problem))
        }
        Notice::UnmetField { text, problem } => format!("{}: {}", part(text), of_field(problem)),
        Notice::NothingMatchesBoth { one, other } => {
            format!("nothing can match both {} and {}", condition(one), condition(other))
        }
        Notice::MeantAsText { text } => {
            format!("{} is a filter; put it in double quotes to search for the text", part(text))
        }
        Notice::LeavesOut { text } => {
            format!("left out: messages that contain {}, because of the minus before it", part(text))
        }
        Notice::CurrentSessionLeftOut { session, parent } => {
            let parent =
                parent.as_ref().map(|parent| format!(", and its parent {}", quoted::name(parent.as_str())));
            format!(
                "left out: this session, {}{}",
                quoted::name(session.as_str()),
                parent.unwrap_or_default()
            )
        }
        Notice::OwnCallsLeftOut { messages } => format!(
            "left out: {} of the last two minutes in which sessions were searched or read",
            counted(*messages as u64, "message")
        ),
        Notice::OnlyTheBestGrouped { results } => format!(
            "left out: sessions without one of the {} best matches; narrow the search to see others",
            grouped(*results as u64)
        ),
        Notice::OnlyOthersHaveSessions { .. } => "the user has no sessions here, but others do".to_owned(),
        // The response says it too.
        Notice::MissingVectors { .. } | Notice::DamagedSessions { .. } => return None,
        // About the store, or of operations that are no tools.
        Notice::ReadOnlyStore { .. }
        | Notice::ProjectRanInFolders { .. }
        | Notice::IncompleteBundle { .. }
        | Notice::SearchedFor { .. }
        | Notice::TagNotFound { .. }
        | Notice::LinesNotErased { .. }
        | Notice::VectorsNotMade { .. } => return None,
    })
}

/// Why something may be missing.
pub(crate) fn incomplete(reason: &IncompleteReason) -> String {
    match reason {
        IncompleteReason::NotRefreshed { because, sessions } => {
            let because = match because {
                RefreshGap::TurnedOff => "that is turned off",
                RefreshGap::TooMuch => "that would take too long; the user can run `amplifier-sessions sync`",
                RefreshGap::Busy => "a sync is running",
                RefreshGap::Failed => "reading them failed",
            };
            let changed =
                sessions.map_or_else(|| "changes".to_owned(), |count| counted(count, "changed session"));
            format!("may be missing: {changed} on disk were not read first, because {because}")
        }
        IncompleteReason::MissingVectors { messages, of } => format!(
            "may be missing: {} of {} messages can be found only by words yet",
            grouped(*messages),
            grouped(*of)
        ),
        IncompleteReason::WordsOnly => "may be missing: only words were searched, not meaning".to_owned(),
        IncompleteReason::PartlyExamined { examined } => {
            format!("may be missing: only {} were examined", counted(*examined, "candidate"))
        }
        IncompleteReason::Damaged { rows } => {
            format!("left out: {}, which can't be read", counted(*rows, "row"))
        }
        IncompleteReason::DamagedSessions { sessions } => {
            format!("left out: {}, which can't be read", counted(*sessions, "session"))
        }
    }
}

fn of_field(problem: &FieldProblem) -> String {
    let part = |text: &str| quoted::string(text, PART_CHARS);
    match problem {
        FieldProblem::UnknownRole => format!("roles are {}", Role::ALL.map(Role::as_str).join(", ")),
        FieldProblem::NotADate { text } => format!("{} is not a date", part(text)),
        FieldProblem::UnknownSession { session } => format!("no session matches {}", part(session)),
        FieldProblem::CannotBeExcluded => "only words and sessions can be excluded".to_owned(),
        FieldProblem::NoRepository { folder } => format!("{} is in no repository", part(folder)),
        FieldProblem::RelativeFolder { folder } => format!("{} must be an absolute path", part(folder)),
        FieldProblem::Storage { text } => text.clone(),
    }
}

fn condition(condition: &SearchCondition) -> String {
    match condition {
        SearchCondition::Query { text } => quoted::string(text, PART_CHARS),
        SearchCondition::Request { field, value } => format!("{field} {}", quoted::string(value, PART_CHARS)),
    }
}

fn names(projects: &[ProjectSlug]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> =
        projects.iter().take(SHOWN).map(|project| quoted::name(project.as_str())).collect();
    let more = if projects.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
