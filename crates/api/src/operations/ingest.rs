//! Stores lines of a session that its machine sends, line by line or file by file.

use amplifier_session_core::{
    Error, ErrorField, Result,
    events::{MAX_LINE_BYTES, too_large},
    model::{
        HostId, LineKind, MetadataFile, ProjectSlug, RawJson, Repository, SessionId, SessionKey,
        SessionSource, SupersededReason, Timestamp,
    },
    storage::{EventDetail, Extent, IngestReport, IngestTarget, LineOutcome, Remaining, SessionIngest},
};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, InvalidRequest, Notice, with_causes};

/// A session of the caller, or a part of it, as its machine reads it from files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestRequest {
    /// The id.
    pub session_id: SessionId,
    /// The project.
    pub project_slug: ProjectSlug,
    /// The machine on which the session was recorded.
    pub host_id: HostId,
    /// The program that wrote the files. Default: as stored before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SessionSource>,
    /// The folder in which the session ran: an absolute path on its machine. A metadata file that names one takes
    /// precedence. Default: as stored before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The repository of this folder, which only its machine can look up. Default: as stored before, or else the
    /// folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Repository>,
    /// All metadata files, the session's own first. Default: those stored before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_files: Vec<SentFile>,
    /// The time of the last change of the files, which is that of lines that state none, in 2000 to 2199. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
    /// Lines of the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<SentLines>,
    /// Lines of the event log. They are not stored if the store keeps no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<SentLines>,
    /// Whether to store the session also if it was deleted from the store.
    #[serde(default)]
    pub include_deleted: bool,
}

impl IngestRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::RelativeFolder`]; `Validation` (`seen`).
    pub fn check(&self) -> Result<(), ApiError> {
        let is_root = |folder: &str| folder.starts_with('/') && folder.trim_end_matches('/').is_empty();
        if let Some(folder) = &self.working_dir
            && !is_root(folder)
            && Repository::of_folder(folder).is_none()
        {
            return Err(InvalidRequest::RelativeFolder { folder: folder.clone() }.into());
        }
        if self.seen.is_some_and(|seen| !seen.is_plausible()) {
            return Err(Error::validation(ErrorField::Seen, "must be in 2000 to 2199").into());
        }
        Ok(())
    }
}

/// A metadata file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentFile {
    /// Its path in the session folder, with `/`.
    pub name: String,
    /// Its content, a JSON object.
    pub text: String,
}

/// Consecutive lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SentLines {
    /// The number of valid lines before them. At most [`IngestedLines::stored`] of the response before.
    pub start: u32,
    /// Whether no line follows them in the file. Then stored rows after them are superseded; otherwise, they stay.
    pub whole: bool,
    /// The lines, without their ends, and without a last line that is still being written.
    pub lines: Vec<String>,
}

/// The rows that were stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngestResponse {
    /// Whether the session is new.
    pub created: bool,
    /// Whether nothing was stored, because the session was deleted from the store.
    pub deleted: bool,
    /// The messages.
    pub messages: IngestedLines,
    /// The events.
    pub events: IngestedLines,
    /// The number of secrets that were masked in lines.
    pub secrets_masked: u64,
    /// Lines that are invalid and were not stored.
    pub skipped: Vec<LineRemark>,
    /// Lines that were stored although a part of them can't be read.
    pub doubtful: Vec<LineRemark>,
}

/// The changes of rows by the lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngestedLines {
    /// The number of new and changed rows.
    pub written: u64,
    /// The number of removed rows.
    pub removed: u64,
    /// The number of replaced and removed rows whose lines are kept as superseded lines.
    pub superseded: u64,
    /// The number of rows that the session now has: the start of the next lines.
    pub stored: u32,
}

/// A remark about a line of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineRemark {
    /// The file that it belongs to.
    pub kind: LineKind,
    /// Its position among the lines of the request, from 0.
    pub position: usize,
    /// The reason.
    pub reason: String,
}

impl Api<'_> {
    /// Stores lines of a session of the caller, which is created if it does not exist, and makes their vectors if the
    /// store has an embedding provider. Lines that are stored already change nothing, so a request can be repeated.
    /// Everything else is stored in one transaction. Invalid lines are skipped, and have no number. If the store
    /// has no user yet, it becomes the caller's.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write; as [`IngestRequest::check`]; `Validation`
    /// (`start_sequence`) if the lines begin after the stored ones, or if a metadata file is invalid; errors of the
    /// store. Then nothing is stored, except if only the numbers of stored rows could not be read; the request can be
    /// repeated in any case. If only vectors can't be made, [`Notice::VectorsNotMade`] says so.
    #[crate::compiled_here]
    pub async fn ingest(&self, request: &IngestRequest) -> Result<ApiAnswer<IngestResponse>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        request.check()?;
        let key = SessionKey::new(self.caller.user().clone(), request.session_id.clone());
        self.storage.users().pin_user(&key.user_id).await?;
        let ingestion = self.storage.ingestion();
        let written = ingestion.retry_conflicts(|| self.ingest_once(&key, request)).await?;
        let Some((report, remarks)) = written else {
            let response = IngestResponse { deleted: true, ..IngestResponse::default() };
            return Ok(response.into());
        };
        let made = self.storage.vectors().embed_pending(&key.user_id, Some(&key.session_id)).await;
        let failure = made.map_or_else(Some, |report| report.failure);
        let not_made = failure.map(|error| Notice::VectorsNotMade { reason: with_causes(&error) });
        let stored = self.storage.backend().get_session(&key).await?;
        let (messages, events) =
            stored.map_or((0, 0), |stored| (stored.session.message_count, stored.session.event_count));
        let response = IngestResponse {
            created: report.created,
            deleted: false,
            messages: IngestedLines {
                written: report.messages_written,
                removed: report.messages_removed,
                superseded: report.messages_superseded,
                stored: messages,
            },
            events: IngestedLines {
                written: report.events_written,
                removed: report.events_removed,
                superseded: report.events_superseded,
                stored: events,
            },
            secrets_masked: report.secrets_masked,
            skipped: remarks.skipped,
            doubtful: remarks.doubtful,
        };
        Ok(ApiAnswer { response, notices: not_made.into_iter().collect() })
    }

    /// `None` if the session was deleted.
    async fn ingest_once(
        &self,
        key: &SessionKey,
        request: &IngestRequest,
    ) -> Result<Option<(IngestReport, Remarks)>> {
        let target = IngestTarget {
            key: key.clone(),
            host_id: request.host_id.clone(),
            project_slug: request.project_slug.clone(),
        };
        let mut ingest = self.storage.ingestion().ingest(target).await?.all_at_once();
        if ingest.stored().is_none() && !request.include_deleted {
            let deleted = self.storage.backend().deleted_sessions(&key.user_id).await?;
            if deleted.contains(&key.session_id) {
                return Ok(None);
            }
        }
        let seen = request.seen.unwrap_or_else(|| self.storage.now());
        ingest.set_seen(seen);
        describe(&mut ingest, request)?;
        let mut remarks = Remarks::default();
        if let Some(lines) = &request.messages {
            remarks.take(&mut ingest, LineKind::Message, lines, seen).await?;
        }
        if let Some(lines) = &request.events
            && self.storage.settings().events != EventDetail::None
        {
            remarks.take(&mut ingest, LineKind::Event, lines, seen).await?;
        }
        Ok(Some((ingest.commit().await?, remarks)))
    }
}

/// Sets everything about the session that is not in its lines.
fn describe(ingest: &mut SessionIngest, request: &IngestRequest) -> Result<()> {
    if let Some(source) = request.source {
        ingest.set_source(source);
    }
    let stored_folder = || ingest.stored()?.session.working_dir.clone();
    if let Some(folder) = request.working_dir.clone().or_else(stored_folder) {
        ingest.set_working_dir(folder);
    }
    if !request.metadata_files.is_empty() {
        let file = |SentFile { name, text }: &SentFile| MetadataFile {
            name: name.clone(),
            raw: RawJson::from(text.as_str()),
        };
        ingest.set_metadata(request.metadata_files.iter().map(file).collect())?;
    }
    let session = ingest.described();
    let of_folder = || session.working_dir.as_deref().and_then(Repository::of_folder);
    let repository = match &request.repository {
        // An address may contain a password.
        Some(name) => Some(Repository::of_address(name.as_str()).unwrap_or_else(|| name.clone())),
        None => session.repository.is_none().then(of_folder).flatten(),
    };
    if let Some(repository) = repository {
        ingest.set_repository(repository);
    }
    Ok(())
}

/// Remarks about the lines of a request.
#[derive(Debug, Default)]
struct Remarks {
    skipped: Vec<LineRemark>,
    doubtful: Vec<LineRemark>,
}

impl Remarks {
    /// Passes the lines of a file to the ingest.
    async fn take(
        &mut self,
        ingest: &mut SessionIngest,
        kind: LineKind,
        sent: &SentLines,
        seen: Timestamp,
    ) -> Result<()> {
        ingest.begin(kind, sent.start).await?;
        let mut differs = false;
        for (position, line) in sent.lines.iter().enumerate() {
            let remark = |reason| LineRemark { kind, position, reason };
            if line.len() > MAX_LINE_BYTES {
                self.skipped.push(remark(too_large("line")));
                continue;
            }
            if !differs && ingest.differs(kind, line.as_bytes()) {
                differs = true;
                supersede(ingest, kind, sent, position);
            }
            match ingest.line(kind, RawJson::from(line.as_str()), seen).await? {
                LineOutcome::Taken => {}
                LineOutcome::Doubtful { reason } => self.doubtful.push(remark(reason)),
                LineOutcome::Skipped { reason, .. } => self.skipped.push(remark(reason)),
            }
        }
        if sent.whole && !differs && ingest.missing(kind) > 0 {
            supersede(ingest, kind, sent, sent.lines.len());
        }
        ingest.end(kind, if sent.whole { Extent::Whole } else { Extent::Part });
        Ok(())
    }
}

/// Keeps the stored lines that the lines from `position` on replace or remove.
fn supersede(ingest: &mut SessionIngest, kind: LineKind, sent: &SentLines, position: usize) {
    let digester = ingest.line_digester();
    let lines = sent.lines.iter().skip(position).map(|line| digester.digest(line.as_bytes())).collect();
    // Only the end of the file shows whether it was cut off.
    let decided = (!sent.whole).then_some(SupersededReason::Edited);
    ingest.supersede(kind, &Remaining { lines, decided, ..Remaining::default() });
}

#[cfg(test)]
mod tests;
