//! A session, and the data stored beside its fields.

use amplifier_session_core::{
    Result, SessionReaders,
    backend::{SessionChange, SkippedLine, StoredSession, StoredSyncState, Version},
    model::{MetadataFile, RawJson, Session, SessionId, SessionKey, UserId, Visibility},
};
use serde::{Deserialize, Serialize};

use super::{Bytes, Document, kind};
use crate::ids;

/// The fields of a session, and the state of its writes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SessionFields {
    #[serde(flatten)]
    pub(crate) session: Session,
    /// Changes with every write that completes or is abandoned.
    pub(crate) version: String,
    /// Whether any write has completed. Until then, reads do not show the session.
    pub(crate) committed: bool,
    /// The writer that currently writes the session.
    pub(crate) pending: Option<String>,
    /// The session of which this one is a copy, from a rename until the next write.
    #[serde(default)]
    pub(crate) renamed_from: Option<RenamedFrom>,
    #[serde(flatten)]
    pub(crate) texts: TextTotals,
    #[serde(flatten)]
    pub(crate) rows: KnownRows,
}

pub(crate) type SessionDocument = Document<SessionFields>;

/// The session of which another one is a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RenamedFrom {
    pub(crate) user_id: UserId,
    /// Its version when it was copied.
    pub(crate) version: String,
}

/// The number of texts in the messages of a session, and the number of their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextTotals {
    pub(crate) texts: u64,
    pub(crate) text_tokens: u64,
}

impl std::ops::Add for TextTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { texts: self.texts + other.texts, text_tokens: self.text_tokens + other.text_tokens }
    }
}

/// The known state of a session's rows in each container. Absent during a write.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct KnownRows {
    #[serde(rename = "message_rows", default, skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<RowsState>,
    #[serde(rename = "event_rows", default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<RowsState>,
}

/// The state of a partition after the last write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowsState {
    /// One more than the highest sequence.
    pub(crate) end: u32,
    /// The ETag of the fence, if there is one.
    pub(crate) fence: Option<String>,
}

impl SessionDocument {
    /// A session of which nothing was written yet.
    pub(crate) fn new(session: Session) -> Self {
        let fields = SessionFields {
            session,
            version: new_version(),
            committed: false,
            pending: None,
            renamed_from: None,
            texts: TextTotals::default(),
            rows: KnownRows { messages: Some(RowsState::default()), events: Some(RowsState::default()) },
        };
        Self::of(kind::SESSION, ids::session(&fields.session.session_id), fields)
    }

    pub(crate) fn into_stored(self, files: Option<FilesDocument>) -> Result<StoredSession> {
        let SessionFields { session, version, .. } = self.fields;
        let FilesFields { metadata_files, skipped, sync_state, .. } =
            files.unwrap_or_else(|| FilesDocument::new(&session)).fields;
        let metadata_files =
            metadata_files.into_iter().map(StoredFile::into_metadata).collect::<Result<_>>()?;
        Ok(StoredSession { session, version: Version(version), metadata_files, skipped, sync_state })
    }
}

/// A version that no session has had before.
pub(crate) fn new_version() -> String {
    azure_core::Uuid::new_v4().simple().to_string()
}

/// Metadata files, skipped lines, and how far the files were read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FilesFields {
    pub(crate) user_id: UserId,
    session_id: SessionId,
    metadata_files: Vec<StoredFile>,
    skipped: Vec<SkippedLine>,
    #[serde(flatten)]
    sync_state: Option<StoredSyncState>,
}

pub(crate) type FilesDocument = Document<FilesFields>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredFile {
    name: String,
    raw: Bytes,
}

impl StoredFile {
    fn into_metadata(self) -> Result<MetadataFile> {
        Ok(MetadataFile { name: self.name, raw: RawJson::new(self.raw.into_bytes()?) })
    }
}

impl FilesDocument {
    pub(crate) fn new(session: &Session) -> Self {
        let fields = FilesFields {
            user_id: session.user_id.clone(),
            session_id: session.session_id.clone(),
            metadata_files: Vec::new(),
            skipped: Vec::new(),
            sync_state: None,
        };
        Self::of(kind::FILES, ids::files(&session.session_id), fields)
    }

    /// Moves the data that `change` replaces into the document.
    pub(crate) fn merge(&mut self, change: &mut SessionChange) {
        if let Some(files) = change.metadata_files.take() {
            let file =
                |file: MetadataFile| StoredFile { name: file.name, raw: Bytes::of(file.raw.as_bytes()) };
            self.metadata_files = files.into_iter().map(file).collect();
        }
        if let Some(skipped) = change.skipped.take() {
            self.skipped = skipped;
        }
        if let Some(state) = change.sync_state.take() {
            self.sync_state = Some(state);
        }
    }
}

/// Records that a session was deleted. It stays when the session is created again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeletedFields {
    user_id: UserId,
    pub(crate) session_id: SessionId,
}

pub(crate) type DeletedDocument = Document<DeletedFields>;

impl DeletedDocument {
    pub(crate) fn new(user: &UserId, session: &SessionId) -> Self {
        let fields = DeletedFields { user_id: user.clone(), session_id: session.clone() };
        Self::of(kind::DELETED, ids::deleted(session), fields)
    }
}

/// A session that left a scope, with how it was shared before, for the feed of changes. It stays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemovalFields {
    user_id: UserId,
    session_id: SessionId,
    visibility: Visibility,
    org_id: Option<String>,
    team_ids: Vec<String>,
}

pub(crate) type RemovalDocument = Document<RemovalFields>;

impl RemovalDocument {
    /// The removal of a session as it was shared before. Each has a document of its own, because the feed has only the
    /// last version of a document.
    pub(crate) fn new(session: &Session) -> Self {
        let fields = RemovalFields {
            user_id: session.user_id.clone(),
            session_id: session.session_id.clone(),
            visibility: session.visibility,
            org_id: session.org_id.clone(),
            team_ids: session.team_ids.clone(),
        };
        Self::of(kind::REMOVAL, ids::removal(&new_version()), fields)
    }

    pub(crate) fn key(&self) -> SessionKey {
        SessionKey::new(self.user_id.clone(), self.session_id.clone())
    }

    pub(crate) fn readers(&self) -> SessionReaders<'_> {
        SessionReaders {
            owner: &self.user_id,
            visibility: self.visibility,
            org_id: self.org_id.as_deref(),
            team_ids: &self.team_ids,
        }
    }
}
