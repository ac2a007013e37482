//! Remarks about a request or its answer, as data.

use amplifier_session_core::{
    model::{DamagedRow, LineKind, ProjectSlug, SessionId, UserId},
    search::SearchExplanation,
};
use serde::{Deserialize, Serialize};

use crate::fields::{FieldProblem, SearchCondition};

/// A remark about a request or its answer. A face puts it into words, with the names of its own commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// A sentence of the storage.
    Sentence {
        /// The sentence.
        text: String,
    },
    /// A sentence of the storage about a search, which is also in the response.
    Search {
        /// The sentence.
        text: String,
    },
    /// The store can only be read.
    ReadOnlyStore {
        /// The reason, for callers on its machine.
        reason: Option<String>,
    },
    /// The store belongs to another user, because the account has probably changed.
    StoreOfOtherUser {
        /// The user that the store belongs to, for callers who may read everyone's sessions.
        owner: Option<UserId>,
        /// The caller.
        user: UserId,
    },
    /// The period begins in the future.
    SinceIsInTheFuture {
        /// The beginning, as it was typed.
        since: String,
    },
    /// The sessions of the project are those of a folder above the given one.
    ProjectOfFolderAbove {
        /// The given folder.
        folder: String,
        /// The project.
        project: ProjectSlug,
    },
    /// A name selects several projects.
    SeveralProjects {
        /// The name, as it was typed.
        typed: String,
        /// The projects.
        projects: Vec<ProjectSlug>,
    },
    /// The sessions of a folder include those of the same folder in other work trees of its repository.
    OtherWorkTrees {
        /// The folder.
        folder: String,
        /// The projects of the other work trees.
        projects: Vec<ProjectSlug>,
    },
    /// Sessions of the project that ran in other folders are left out.
    OtherFoldersLeftOut {
        /// The project.
        project: ProjectSlug,
        /// The folder whose sessions were requested.
        folder: String,
        /// The other folders.
        others: Vec<String>,
    },
    /// No session ran in the folder, but others have the project that it would have.
    NoSessionInFolder {
        /// The folder.
        folder: String,
        /// The project.
        project: ProjectSlug,
    },
    /// The sessions to delete ran in several folders that have the slug of the project, and may not all be meant.
    ProjectRanInFolders {
        /// The project, as it was typed.
        project: String,
        /// The folders.
        folders: Vec<String>,
    },
    /// The store has no session of the repository, which may be mistyped.
    UnknownRepository {
        /// The name of the repository that says most.
        repository: String,
    },
    /// The store has no session of the project, which may be mistyped.
    UnknownProject {
        /// The project.
        project: ProjectSlug,
    },
    /// Bundles have names with a colon, and this one has none.
    IncompleteBundle {
        /// The bundle.
        bundle: String,
    },
    /// Types of events have names with a separator, and this one has none.
    IncompleteEventType {
        /// The type.
        event_type: String,
    },
    /// No session has a tool call on the file.
    NoCallOnFile {
        /// The file.
        file: String,
    },
    /// Something about the sessions with tool calls on the file.
    CallsOnFile {
        /// The file.
        file: String,
        /// A sentence of the storage.
        text: String,
    },
    /// Messages have no vectors yet, so that they are not found by meaning.
    MissingVectors {
        /// The number of messages.
        messages: u64,
        /// The number of messages with and without vectors.
        of: u64,
        /// Whether the search has filters, which the numbers ignore.
        is_filtered: bool,
        /// Whether some of them belong to the caller, who can make their vectors.
        can_be_made: bool,
    },
    /// The terms and candidates of a search that explains itself.
    SearchedFor {
        /// The explanation.
        explanation: SearchExplanation,
    },
    /// No text has all of the words, so the results have only some.
    NotTogether {
        /// The words, as they were typed.
        words: Vec<String>,
    },
    /// Nothing was found.
    NothingFound {
        /// The kind of thing that was looked for.
        what: FoundKind,
        /// The message nearest in meaning, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<NearestMessage>,
    },
    /// The session has no message or event with the requested number, nor any after it.
    NoLine {
        /// Whether a message or an event was requested.
        kind: LineKind,
        /// The number.
        sequence: u32,
        /// The number of messages or events of the session.
        count: u32,
    },
    /// A field of the query has a value that can't be one, so it is searched for as text.
    SearchedAsText {
        /// The field with its value.
        text: String,
        /// Why it can't be used.
        problem: FieldProblem,
    },
    /// A field of the query names nothing that could be found, so nothing is; or nothing is excluded by it.
    UnmetField {
        /// The field with its value.
        text: String,
        /// Why nothing meets it.
        problem: FieldProblem,
    },
    /// Nothing can match both conditions, so nothing is found.
    NothingMatchesBoth {
        /// One of them.
        one: SearchCondition,
        /// The other, which comes from the query.
        other: SearchCondition,
    },
    /// Nothing was found, and this field of the query may have been meant as text.
    MeantAsText {
        /// The field with its value.
        text: String,
    },
    /// The query leaves out messages with this word or phrase.
    LeavesOut {
        /// The word or phrase.
        text: String,
    },
    /// The session does not have a tag that should be removed.
    TagNotFound {
        /// The tag.
        tag: String,
    },
    /// Superseded lines were removed, but a file still contains their words. The next write erases them.
    LinesNotErased {
        /// The file: its path, or its name for callers elsewhere.
        file: String,
        /// The reason, for callers on this machine.
        reason: Option<String>,
    },
    /// Lines were stored, but their vectors could not be made yet.
    VectorsNotMade {
        /// The reason.
        reason: String,
    },
    /// The session in which the caller works is left out, and so is its parent.
    CurrentSessionLeftOut {
        /// The session.
        session: SessionId,
        /// The session that started it.
        parent: Option<SessionId>,
    },
    /// Messages in which sessions were searched and read a moment ago are left out.
    OwnCallsLeftOut {
        /// The number of messages.
        messages: usize,
    },
    /// Only the best messages or turns were grouped by session, because many match, so sessions with others are missing.
    OnlyTheBestGrouped {
        /// Their number.
        results: usize,
    },
    /// The caller has no sessions, but others do.
    OnlyOthersHaveSessions {
        /// The caller.
        user: UserId,
        /// A user with sessions.
        other: UserId,
    },
    /// Sessions were skipped because they can't be read.
    DamagedSessions {
        /// The sessions.
        damaged: Vec<DamagedRow>,
    },
}

/// A kind of thing that an operation finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// Messages.
    Message,
    /// Superseded messages.
    SupersededMessage,
    /// Turns.
    Turn,
    /// Sessions.
    Session,
    /// Sessions with superseded lines.
    SupersededSession,
    /// Sessions to write to an archive.
    ExportedSession,
    /// Superseded lines.
    SupersededLine,
    /// Events.
    Event,
    /// Files that a session read or changed.
    File,
    /// Files that a session changed.
    ChangedFile,
}

/// The message nearest in meaning to a query that matches nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearestMessage {
    /// Its address.
    pub address: String,
    /// Its similarity to the query.
    pub similarity: Option<f32>,
    /// Its beginning.
    pub snippet: String,
}
