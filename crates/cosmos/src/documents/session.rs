//! A session, and what is kept beside its fields.

use amplifier_session_core::{
    Result,
    backend::{SessionChange, SkippedLine, StoredSession, Version},
    model::{MetadataFile, RawJson, Session, SessionId, UserId},
};
use serde::{Deserialize, Serialize};

use super::{Bytes, kind};
use crate::ids;

/// The fields of a session, and where its writing stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SessionDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(flatten)]
    pub(crate) session: Session,
    /// Changes with every write that came to its end, or that was broken off.
    pub(crate) version: String,
    /// Whether a write of it ever came to its end; before that, no read shows it.
    pub(crate) committed: bool,
    /// Who is writing it.
    pub(crate) pending: Option<String>,
    /// What it is a copy of, from a rename until the next write.
    #[serde(default)]
    pub(crate) renamed_from: Option<RenamedFrom>,
    /// How many texts its messages have.
    pub(crate) texts: u64,
    /// How many tokens are in them.
    pub(crate) text_tokens: u64,
    /// What is known of its rows in the container of messages. Nothing while it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_rows: Option<Rows>,
    /// The same of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event_rows: Option<Rows>,
    #[serde(rename = "_etag", default, skip_serializing)]
    pub(crate) etag: String,
}

/// The session that another one is a copy of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RenamedFrom {
    /// Whose it was.
    pub(crate) user_id: UserId,
    /// As which it was copied.
    pub(crate) version: String,
}

/// What the last writer left in a partition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rows {
    /// No row has this sequence or a higher one.
    pub(crate) end: u32,
    /// The ETag of the fence, if there is one.
    pub(crate) fence: Option<String>,
}

impl SessionDocument {
    /// A session of which nothing is written yet.
    pub(crate) fn new(session: Session) -> Self {
        Self {
            id: session.session_id.as_str().to_owned(),
            kind: kind::SESSION.to_owned(),
            session,
            version: new_version(),
            committed: false,
            pending: None,
            renamed_from: None,
            texts: 0,
            text_tokens: 0,
            message_rows: None,
            event_rows: None,
            etag: String::new(),
        }
    }

    pub(crate) fn into_stored(self, files: Option<FilesDocument>) -> Result<StoredSession> {
        let (metadata_files, skipped, sync_state) = match files {
            Some(files) => files.into_parts()?,
            None => Default::default(),
        };
        let version = Version(self.version);
        Ok(StoredSession { session: self.session, version, metadata_files, skipped, sync_state })
    }
}

/// A version that no session had before.
pub(crate) fn new_version() -> String {
    azure_core::Uuid::new_v4().simple().to_string()
}

/// Metadata files, lines that were left out, and how far the files were read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FilesDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) user_id: UserId,
    pub(crate) session_id: SessionId,
    pub(crate) metadata_files: Vec<File>,
    pub(crate) skipped: Vec<SkippedLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sync_state: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct File {
    name: String,
    raw: Bytes,
}

impl FilesDocument {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            id: ids::files(&session.session_id),
            kind: kind::FILES.to_owned(),
            user_id: session.user_id.clone(),
            session_id: session.session_id.clone(),
            metadata_files: Vec::new(),
            skipped: Vec::new(),
            sync_state: None,
        }
    }

    /// Takes over what `change` replaces.
    pub(crate) fn merge(&mut self, change: &mut SessionChange) {
        if let Some(files) = change.metadata_files.take() {
            let file = |file: MetadataFile| File { name: file.name, raw: Bytes::of(file.raw.as_bytes()) };
            self.metadata_files = files.into_iter().map(file).collect();
        }
        if let Some(skipped) = change.skipped.take() {
            self.skipped = skipped;
        }
        if let Some(state) = change.sync_state.take() {
            self.sync_state = Some(state);
        }
    }

    fn into_parts(self) -> Result<(Vec<MetadataFile>, Vec<SkippedLine>, Option<String>)> {
        let files = self
            .metadata_files
            .into_iter()
            .map(|file| Ok(MetadataFile { name: file.name, raw: RawJson::new(file.raw.into_bytes()?) }));
        Ok((files.collect::<Result<_>>()?, self.skipped, self.sync_state))
    }
}

/// Tells that a session was deleted. It stays when the session comes again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeletedDocument {
    pub(crate) id: String,
    #[serde(rename = "type")]
    kind: String,
    user_id: UserId,
    pub(crate) session_id: SessionId,
}

impl DeletedDocument {
    pub(crate) fn new(user: &UserId, session: &SessionId) -> Self {
        Self {
            id: ids::deleted(session),
            kind: kind::DELETED.to_owned(),
            user_id: user.clone(),
            session_id: session.clone(),
        }
    }
}
