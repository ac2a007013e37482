//! The files that a session read and changed.

use amplifier_session_core::{
    content::{FileUse, UsedFile},
    model::DamagedRow,
    storage::Readable,
};
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, InvalidRequest, Notice, Reach,
    ids::{address, short},
    incomplete::IncompleteReason,
    views::SessionView,
};

/// A list of the files of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// The address of the session.
    pub session: String,
    /// Whether to leave out the files that were read.
    pub changed: bool,
    /// Maximum number of files. A file that was read and changed counts twice.
    pub limit: usize,
    /// The number of the first files that an earlier response had, and that this one does not have.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
}

impl Default for FilesRequest {
    fn default() -> Self {
        Self { scope: Reach::default(), session: String::new(), changed: false, limit: 100, skip: 0 }
    }
}

impl FilesRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NothingToList`].
    pub fn check(&self) -> Result<(), ApiError> {
        if self.limit == 0 { Err(InvalidRequest::NothingToList.into()) } else { Ok(()) }
    }
}

/// The files of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesResponse {
    /// The session.
    pub session: SessionView,
    /// The files that it changed, then those that it read, each in order of the first message.
    pub files: Vec<ListedFile>,
    /// Whether there are more.
    pub has_more: bool,
    /// Messages that can't be read, and so may use more files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

/// A file that a session read, or one that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedFile {
    /// The path, relative to the working folder of the session if it is in it.
    pub path: String,
    /// Whether it was read or changed.
    pub used: FileUse,
    /// The number of tool calls that did so.
    pub times: u32,
    /// The number of tool calls that failed.
    pub failed: u32,
    /// The address of the first message with such a call; with one that failed, if all did.
    pub first: String,
    /// The address of the last such message.
    pub last: String,
}

impl ListedFile {
    fn new(file: UsedFile, session: &str) -> Self {
        let UsedFile { path, used, times, failed, first, last, .. } = file;
        Self { path, used, times, failed, first: address(session, first), last: address(session, last) }
    }
}

impl Api<'_> {
    /// Lists the files that a session read and changed, from the calls of its tools for files.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn files(&self, request: &FilesRequest) -> Result<ApiAnswer<FilesResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        request.check()?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let id = &session.session_id;
        let Readable { rows: mut used, damaged, .. } = self.storage.reading().used_files(&scope, id).await?;
        used.retain(|file| !request.changed || file.used == FileUse::Changed);
        if used.is_empty() {
            let what = if request.changed { FoundKind::ChangedFile } else { FoundKind::File };
            notices.push(Notice::NothingFound { what, nearest: None });
        }
        used.drain(..request.skip.min(used.len()));
        let has_more = used.len() > request.limit;
        let short_ids = self.storage.sessions().short_ids(&scope, [id]).await?;
        let listed = |file| ListedFile::new(file, short(&short_ids, id));
        let files = used.into_iter().take(request.limit).map(listed).collect();
        let session = self.session_view(&session).await?;
        let incomplete = IncompleteReason::of_damage(&damaged);
        Ok(ApiAnswer { response: FilesResponse { session, files, has_more, damaged, incomplete }, notices })
    }
}
