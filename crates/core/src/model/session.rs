//! Sessions: the twenty fields of the schema, plus the working folder, the source, the machine that a session moved to, the
//! repository, and the fields that a person set.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{HostId, ProjectSlug, RawJson, Repository, SessionId, SessionKey, Timestamp, UserId};
use crate::{Error, ErrorField, Result};

/// A session without its messages and events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// The id, unique per user.
    pub session_id: SessionId,
    /// The owner.
    pub user_id: UserId,
    /// The machine it was recorded on.
    pub host_id: HostId,
    /// The project folder it belongs to.
    pub project_slug: ProjectSlug,
    /// When it began.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// A name given by a person or by Amplifier.
    pub name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// The bundle that it ran with, for example `bundle:foundation`.
    pub bundle: Option<String>,
    /// The primary model.
    pub model: Option<String>,
    /// The number of distinct turns of the stored messages.
    pub turn_count: u32,
    /// The number of stored messages.
    pub message_count: u32,
    /// The number of stored events.
    pub event_count: u32,
    /// The parent, if this is a sub-agent or a fork.
    pub parent_id: Option<SessionId>,
    /// The turn of the parent at which this session was forked.
    pub forked_from_turn: Option<u32>,
    /// The tags.
    pub tags: Vec<String>,
    /// Who else can see it.
    pub visibility: Visibility,
    /// The organisation it is shared with.
    pub org_id: Option<String>,
    /// The teams it is shared with.
    pub team_ids: Vec<String>,
    /// When it was first shared.
    pub shared_at: Option<Timestamp>,
    /// The folder in which the session worked. Unlike the slug, it is not lossy.
    pub working_dir: Option<String>,
    /// The subject of the first prompt that says something, in one short line: the title of a session without a name.
    pub first_prompt: Option<String>,
    /// The fields that a person set. The session's files no longer change them.
    #[serde(default)]
    pub edited: BTreeSet<SessionField>,
    /// The program that wrote its files.
    #[serde(default)]
    pub source: SessionSource,
    /// The machine that the session was moved to, where it goes on.
    #[serde(default)]
    pub moved_to: Option<String>,
    /// The repository that `working_dir` is in.
    #[serde(default)]
    pub repository: Option<Repository>,
}

/// The program that writes the files of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SessionSource {
    /// Amplifier. Sessions that were stored before there was this field count as its sessions.
    #[default]
    Amplifier,
    /// Amplifier's engine for other programs.
    AmplifierAgent,
}

names! {
    SessionSource { Amplifier: "amplifier", AmplifierAgent: "amplifier-agent" }
}

impl SessionSource {
    /// The program that a session id names before its first colon, and the rest of the id. An id that names no known
    /// program is one of Amplifier, whose ids may contain colons.
    #[must_use]
    pub fn split(session_id: &str) -> (Self, &str) {
        let named = session_id.split_once(':').and_then(|(name, native)| Some((name.parse().ok()?, native)));
        named
            .filter(|(source, native)| *source != Self::Amplifier && !native.is_empty())
            .unwrap_or((Self::Amplifier, session_id))
    }

    /// The ids that a session with this native id has in a store, depending on its program. Text that names a program
    /// is one of them already.
    pub(crate) fn ids(native: &str) -> Vec<String> {
        let mut ids = vec![native.to_owned()];
        if Self::split(native).0 == Self::Amplifier {
            let others = Self::ALL.into_iter().filter(|source| *source != Self::Amplifier);
            ids.extend(others.map(|source| format!("{source}:{native}")));
        }
        ids
    }
}

impl std::str::FromStr for SessionSource {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|source| source.as_str() == text)
            .ok_or_else(|| Error::validation(ErrorField::Source, "must be amplifier or amplifier-agent"))
    }
}

/// A field that comes from the metadata files and that a person can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionField {
    /// [`Session::name`].
    Name,
    /// [`Session::description`].
    Description,
    /// [`Session::tags`].
    Tags,
}

names! {
    SessionField { Name: "name", Description: "description", Tags: "tags" }
}

impl Session {
    /// The time from its beginning to its last change, in seconds.
    #[must_use]
    pub fn duration_seconds(&self) -> u64 {
        let micros = self.updated.as_micros().saturating_sub(self.created.as_micros());
        u64::try_from(micros / 1_000_000).unwrap_or(0)
    }

    /// A session with only its key, origin and time of creation.
    #[must_use]
    pub fn new(key: SessionKey, host_id: HostId, project_slug: ProjectSlug, created: Timestamp) -> Self {
        Self {
            source: key.session_id.source(),
            session_id: key.session_id,
            user_id: key.user_id,
            host_id,
            project_slug,
            created,
            updated: created,
            name: None,
            description: None,
            bundle: None,
            model: None,
            turn_count: 0,
            message_count: 0,
            event_count: 0,
            parent_id: None,
            forked_from_turn: None,
            tags: Vec::new(),
            visibility: Visibility::Private,
            org_id: None,
            team_ids: Vec::new(),
            shared_at: None,
            working_dir: None,
            first_prompt: None,
            edited: BTreeSet::new(),
            moved_to: None,
            repository: None,
        }
    }

    /// Owner and id.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.user_id.clone(), self.session_id.clone())
    }

    /// The title of the session: its name, or else the subject of its first prompt that says something, or else its id.
    #[must_use]
    pub fn title(&self) -> &str {
        let given = self.name.as_deref().filter(|name| !name.trim().is_empty());
        given.or(self.first_prompt.as_deref()).unwrap_or(self.session_id.as_str())
    }
}

/// Who can see a session besides its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Nobody.
    #[default]
    Private,
    /// Members of the session's teams.
    Team,
    /// Members of the session's organisation.
    Org,
    /// Everyone.
    Public,
}

names! {
    Visibility { Private: "private", Team: "team", Org: "org", Public: "public" }
}

impl std::str::FromStr for Visibility {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|visibility| visibility.as_str() == text)
            .ok_or_else(|| Error::validation(ErrorField::Visibility, "must be private, team, org or public"))
    }
}

/// An original metadata file of a session folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataFile {
    /// The path within the session folder, for example `metadata.json`.
    pub name: String,
    /// Its content.
    pub raw: RawJson,
}
