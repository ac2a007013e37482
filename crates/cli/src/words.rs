//! The wording of notices from the API, with the names of commands and options.

use amplifier_session_api::{FieldProblem, FoundKind, NearestMessage, Notice, SearchCondition};
use amplifier_session_storage::{
    model::{ProjectSlug, Role, UserId},
    search::{SearchExplanation, SearchedTerm},
};

use crate::{
    args::quoted,
    failure::{damaged_sessions_note, say},
    program::TypedProgram,
    render::text::{counted, fitted, grouped, one_line},
};

/// Prints notices, each with its hint. Damaged sessions are left out, because they are printed at the end of every
/// command.
pub(crate) fn say_notices(program: &TypedProgram, notices: &[Notice]) {
    for notice in notices {
        // A person knows the session in which they work.
        if matches!(notice, Notice::DamagedSessions { .. } | Notice::CurrentSessionLeftOut { .. }) {
            continue;
        }
        let label = match notice {
            Notice::NoSessionInFolder { .. }
            | Notice::StoreOfOtherUser { .. }
            | Notice::UnknownProject { .. }
            | Notice::UnknownRepository { .. }
            | Notice::UnmetField { .. }
            | Notice::NothingMatchesBoth { .. } => "warning",
            Notice::IncompleteBundle { .. }
            | Notice::LeavesOut { .. }
            | Notice::MeantAsText { .. }
            | Notice::IncompleteEventType { .. }
            | Notice::OnlyOthersHaveSessions { .. } => "hint",
            Notice::LinesNotErased { .. } => "failed",
            _ => "note",
        };
        say(label, &text(program, notice));
        let name = &program.name;
        match notice {
            Notice::UnknownProject { .. } => {
                say("hint", &format!("`{name} sessions` shows the project of each session"));
            }
            Notice::ProjectRanInFolders { .. } => {
                say("hint", "--project FOLDER names only those that ran in one of them");
            }
            Notice::StoreOfOtherUser { owner: Some(owner), user } => {
                let silence = format!("--user {user} to silence this warning");
                say("hint", &format!("pass --user {owner} to use their sessions, or {silence}"));
            }
            Notice::UnknownRepository { .. } => {
                say("hint", &format!("`{name} show SESSION` shows the repository of a session"));
            }
            _ => {}
        }
    }
}

/// The notices that are also in a response, as its field `notices`.
pub(crate) fn in_response(program: &TypedProgram, notices: &[Notice]) -> Vec<String> {
    let are_in = |notice: &&Notice| {
        matches!(
            notice,
            Notice::Search { .. }
                | Notice::NotTogether { .. }
                | Notice::SearchedAsText { .. }
                | Notice::UnmetField { .. }
                | Notice::NothingMatchesBoth { .. }
                | Notice::MissingVectors { .. }
                | Notice::DamagedSessions { .. }
        )
    };
    notices.iter().filter(are_in).map(|notice| text(program, notice)).collect()
}

/// The sentence of a notice.
pub(crate) fn text(program: &TypedProgram, notice: &Notice) -> String {
    match notice {
        Notice::Sentence { text } | Notice::Search { text } => text.clone(),
        Notice::ReadOnlyStore { reason } => format!("the store is read-only{}", because(reason.as_deref())),
        Notice::StoreOfOtherUser { owner, user } => {
            let owner = owner.as_ref().map_or("another user", UserId::as_str);
            format!("the store belongs to {owner}, but you are {user}")
        }
        Notice::SinceIsInTheFuture { since } => format!("--since {since} is in the future"),
        Notice::ProjectOfFolderAbove { folder, project } => format!("{folder} is in the project {project}"),
        Notice::SeveralProjects { typed, projects } => {
            let count = counted(projects.len() as u64, "project");
            format!("{} selects {count}: {}", one_line(typed), listed_projects(projects))
        }
        Notice::OtherWorkTrees { folder, projects } => {
            format!("with the other work trees of {}: {}", one_line(folder), listed_projects(projects))
        }
        Notice::OtherFoldersLeftOut { project, folder, others } => format!(
            "sessions of the project {project} that did not run in {folder} are left out: {}",
            other_folders(others)
        ),
        Notice::NoSessionInFolder { folder, project } => {
            format!("no session ran in {folder}; those of {project} ran elsewhere")
        }
        Notice::ProjectRanInFolders { project, folders } => {
            let folders = folders.iter().map(|folder| one_line(folder)).collect::<Vec<_>>().join(" and ");
            format!("the sessions of {} ran in {folders}", one_line(project))
        }
        Notice::UnknownRepository { repository } => {
            format!("the store has no sessions of the repository {repository}")
        }
        Notice::UnknownProject { project } => format!("the store has no project {:?}", project.as_str()),
        Notice::IncompleteBundle { bundle } => {
            format!("--bundle takes the full name: --bundle bundle:{bundle}")
        }
        Notice::IncompleteEventType { event_type } => {
            format!("--type must match exactly; for all types of a category, use --category {event_type}")
        }
        Notice::NoCallOnFile { file } => format!("no session has a tool call on {file}"),
        Notice::CallsOnFile { file, text } => format!("sessions with {file}: {text}"),
        Notice::MissingVectors { messages, of, is_filtered, can_be_made } => {
            missing_vectors(program, (*messages, *of), *is_filtered, *can_be_made)
        }
        Notice::SearchedFor { explanation } => searched_for(explanation),
        Notice::NotTogether { words } => {
            let words: Vec<String> = words.iter().map(|word| shortened(word)).collect();
            format!("no message has all of these words in one text: {}", words.join(", "))
        }
        Notice::NothingFound { what, nearest } => nothing_found(*what, nearest.as_ref()),
        Notice::NoLine { kind, sequence, count } => no_line(kind.as_str(), *sequence, *count),
        Notice::SearchedAsText { text, problem } => {
            format!("{} is searched for as text: {}", shortened(text), problem_of_field(problem))
        }
        Notice::UnmetField { text, problem } => {
            format!("{}: {}", shortened(text), problem_of_field(problem))
        }
        Notice::NothingMatchesBoth { one, other } => {
            format!("nothing can match both {} and {}", condition(one), condition(other))
        }
        Notice::MeantAsText { text } => {
            format!("{} is a filter; with --plain it is searched for as text", shortened(text))
        }
        Notice::LeavesOut { text } => {
            let one = if text.contains(' ') { format!("-\"{text}\"") } else { format!("-{text}") };
            format!("{one} leaves out messages that contain it; with --plain it is searched for")
        }
        Notice::TagNotFound { tag } => format!("the session has no tag {tag:?}"),
        Notice::LinesNotErased { file, reason } => {
            format!("the removed lines are still in {file}{}", because(reason.as_deref()))
        }
        Notice::VectorsNotMade { reason } => {
            format!("the lines are stored, but their vectors could not be made yet: {}", one_line(reason))
        }
        Notice::OnlyOthersHaveSessions { user, other } => {
            // With --scope all, the user does not matter.
            let name = &program.with_store;
            format!(
                "{user} has no sessions in this store, but others do, for example {other}; `{name} sessions --scope all` \
                 lists them"
            )
        }
        Notice::CurrentSessionLeftOut { session, parent } => {
            let parent =
                parent.as_ref().map_or_else(String::new, |parent| format!(", and its parent {parent}"));
            format!("this session, {session}, is left out{parent}")
        }
        Notice::OnlyTheBestGrouped { results } => {
            let results = grouped(*results as u64);
            format!(
                "sessions without one of the {results} best matches are left out; narrow the search to see others"
            )
        }
        Notice::OwnCallsLeftOut { messages } => {
            format!(
                "{} in which sessions were just searched are left out",
                counted(*messages as u64, "message")
            )
        }
        Notice::DamagedSessions { damaged } => damaged_sessions_note(damaged).unwrap_or_default(),
    }
}

/// A reason at the end of a sentence, if it is known.
pub(crate) fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default()
}

/// A part of a query, on one line.
fn shortened(text: &str) -> String {
    const CHARS: usize = 60;
    fitted(&one_line(text), CHARS)
}

/// Why a field of a query can't be used.
fn problem_of_field(problem: &FieldProblem) -> String {
    match problem {
        FieldProblem::UnknownRole => format!("roles are {}", Role::ALL.map(Role::as_str).join(", ")),
        FieldProblem::NotADate { text } => format!("{text:?} is not a date"),
        FieldProblem::UnknownSession { session } if session.eq_ignore_ascii_case("latest") => {
            "the store has no sessions yet".to_owned()
        }
        FieldProblem::UnknownSession { session } => format!("no session matches {session}"),
        FieldProblem::CannotBeExcluded => "only words and sessions can be excluded".to_owned(),
        FieldProblem::NoRepository { folder } => format!("{folder} is in no repository"),
        FieldProblem::RelativeFolder { folder } => format!("the folder {folder} must be an absolute path"),
        FieldProblem::Storage { text } if text.starts_with("must ") => format!("its value {text}"),
        FieldProblem::Storage { text } => text.clone(),
    }
}

/// A condition of a search, as it is typed.
fn condition(condition: &SearchCondition) -> String {
    match condition {
        SearchCondition::Query { text } => shortened(text),
        SearchCondition::Request { field, value } => format!("--{field} {}", quoted(value)),
    }
}

/// Projects, of which only the first are named.
fn listed_projects(projects: &[ProjectSlug]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = projects.iter().take(SHOWN).map(|project| one_line(project.as_str())).collect();
    let more = if projects.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn other_folders(others: &[String]) -> String {
    const SHOWN: usize = 3;
    match others {
        [one] => one_line(one),
        others if others.len() > SHOWN => counted(others.len() as u64, "other folder"),
        others => others.iter().map(|other| one_line(other)).collect::<Vec<_>>().join(" and "),
    }
}

/// A session has no line with this number, as the storage says it of a message.
fn no_line(kind: &str, sequence: u32, count: u32) -> String {
    match count {
        0 => format!("the session has no {kind}s"),
        1 => format!("no {kind} {sequence}: the session has only {kind} 0"),
        _ => format!("no {kind} {sequence}: the session has {kind}s 0 to {}", count - 1),
    }
}

/// Messages have no vectors yet, and how to make them.
fn missing_vectors(
    program: &TypedProgram,
    (messages, of): (u64, u64),
    is_filtered: bool,
    can_be_made: bool,
) -> String {
    let counted = if is_filtered { " (counted without the filters)" } else { "" };
    let note = format!("{} of {} messages have no vectors yet{counted}", grouped(messages), grouped(of));
    if can_be_made {
        format!("{note}; run `{} embeddings backfill`", program.with_embedding)
    } else {
        format!("{note}; they belong to other users, who can run `embeddings backfill`")
    }
}

/// The terms of a search and the number of its candidates, in one line.
fn searched_for(explanation: &SearchExplanation) -> String {
    let SearchExplanation { terms, text_candidates, vector_candidates, .. } = explanation;
    let terms: Vec<String> = terms
        .iter()
        .map(|SearchedTerm { term, weight, .. }| match weight {
            1.0 => term.clone(),
            _ => format!("{term} (times {weight})"),
        })
        .collect();
    let terms = if terms.is_empty() { "no words".to_owned() } else { terms.join(", ") };
    let (texts, chunks) =
        (counted(*text_candidates as u64, "text"), counted(*vector_candidates as u64, "chunk"));
    format!("searched for {terms}; ranked {texts} by words and {chunks} by meaning")
}

/// Nothing was found; if there is one, with the message nearest in meaning.
fn nothing_found(what: FoundKind, nearest: Option<&NearestMessage>) -> String {
    const CHARS: usize = 80;
    let Some(NearestMessage { address, similarity, snippet }) = nearest else {
        let text = match what {
            FoundKind::Message => "no message matches",
            FoundKind::SupersededMessage => "no superseded message matches",
            FoundKind::Turn => "no turn matches",
            FoundKind::Session => "no session matches",
            FoundKind::ExportedSession => "no session matches; no file was written",
            FoundKind::SupersededSession => "no session has superseded lines",
            FoundKind::SupersededLine => "no superseded line matches",
            FoundKind::Event => "no event matches",
            FoundKind::File => "no tool call reads or changes a file",
            FoundKind::ChangedFile => "no tool call changes a file",
        };
        return text.to_owned();
    };
    let similarity = similarity.map_or_else(String::new, |found| format!(" (similarity {found:.2})"));
    format!("no match; nearest by meaning: {address}{similarity}: {}", fitted(&one_line(snippet), CHARS))
}
