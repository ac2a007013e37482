//! Treatment of secrets in stored lines.

use std::{
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;

use super::{
    SessionStorage,
    superseded::{LineHead, OldLine, Packer, unpack},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{
        SequenceRange, SessionChange, SessionQuery, StorageBackendExt, StoredSession, SupersededQuery,
        meta::{self, MASKED, SECRETS},
    },
    blocking,
    content::{MASKING, Redactor, TitleFinder, extract, mask_line},
    events::{assemble, parse_event_line, store},
    model::{
        ContentType, Digest, Event, Message, MetadataFile, Payload, RawJson, SessionKey, StoredEvent,
        SupersededPiece, SupersededReason, TurnSummary, VectorState,
    },
    search::SessionFilter,
};

/// Number of messages read at a time.
const MESSAGES: usize = 500;
/// Number of events read at a time, and of their lines: a line may have megabytes.
const EVENTS: usize = 500;
const LINES: usize = 16;
/// Longer lines are searched on a separate thread, so that they don't block other tasks.
const LONG: usize = 4 * 1024;

/// How secrets in stored lines are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretsAtRest {
    /// They are stored unchanged.
    Off,
    /// They are stored unchanged. [`SessionStorage::session_secrets`] lists them.
    #[default]
    Mark,
    /// Their characters are replaced before they are stored.
    Mask,
}

names! {
    SecretsAtRest { Off: "off", Mark: "mark", Mask: "mask" }
}

impl FromStr for SecretsAtRest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|value| value.as_str() == text);
        found.ok_or_else(|| Error::validation("secrets", "must be off, mark or mask"))
    }
}

/// The store's setting for secrets, if it was read already. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedAtRest(Arc<Mutex<Option<SecretsAtRest>>>);

impl CachedAtRest {
    fn get(&self) -> Option<SecretsAtRest> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, stored: SecretsAtRest) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stored);
    }
}

/// Computes the digests of stored lines. Their secrets may be masked.
#[derive(Debug, Clone, Default)]
pub struct LineDigester(pub(super) LineMasker);

impl LineDigester {
    /// The digest of the stored form of `line`.
    #[must_use]
    pub fn digest(&self, line: &[u8]) -> Digest {
        self.0.digest(line)
    }

    /// A line or a metadata file as it is stored: with its secrets masked, or unchanged if masking fails.
    #[must_use]
    pub fn stored(&self, raw: RawJson) -> RawJson {
        self.0.mask_now(raw.clone()).map_or(raw, |(masked, _)| masked)
    }
}

/// Masks lines before they are stored, if secrets are masked in the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineMasker(Option<Arc<dyn Redactor>>);

impl LineMasker {
    /// Whether secrets are masked.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The line to store, and the number of secrets that were masked in it.
    ///
    /// # Errors
    ///
    /// Errors of the redactor. The line must not be stored then.
    pub(super) async fn mask(&self, line: RawJson) -> Result<(RawJson, usize)> {
        if self.0.is_none() || line.as_bytes().len() < LONG {
            return self.mask_now(line);
        }
        let masker = self.clone();
        blocking(move || masker.mask_now(line)).await?
    }

    /// As [`Self::mask`], on this thread.
    pub(super) fn mask_now(&self, line: RawJson) -> Result<(RawJson, usize)> {
        let Some(redactor) = &self.0 else { return Ok((line, 0)) };
        Ok(mask_line(redactor.as_ref(), &line)?.unwrap_or((line, 0)))
    }

    /// The stored form of a line that can't be read: in text that is not JSON, secrets may also stand outside strings.
    ///
    /// # Errors
    ///
    /// As [`Self::mask`].
    pub(super) fn mask_unreadable(&self, line: RawJson) -> Result<(RawJson, usize)> {
        let Some(redactor) = &self.0 else { return Ok((line, 0)) };
        let (line, in_strings) = self.mask_now(line)?;
        let text = line.to_text();
        let masked = redactor.mask(&text)?;
        match masked.secrets {
            0 => Ok((line, in_strings)),
            count => Ok((RawJson::new(masked.text.into_owned().into_bytes()), in_strings + count)),
        }
    }

    /// As [`Self::mask_now`], for a superseded line.
    pub(super) fn mask_superseded(
        &self,
        line: RawJson,
        reason: SupersededReason,
    ) -> Result<(RawJson, usize)> {
        match reason {
            SupersededReason::Unreadable => self.mask_unreadable(line),
            _ => self.mask_now(line),
        }
    }

    /// Masks secrets in a text that is not JSON.
    pub(super) fn mask_text(&self, text: Option<String>) -> Result<Option<String>> {
        match (&self.0, text) {
            (Some(redactor), Some(text)) => Ok(Some(redactor.mask(&text)?.text.into_owned())),
            (_, text) => Ok(text),
        }
    }

    /// Masks secrets in metadata files.
    pub(super) fn mask_files(&self, files: Vec<MetadataFile>) -> Result<Vec<MetadataFile>> {
        let masked =
            |file: MetadataFile| Ok(MetadataFile { raw: self.mask_now(file.raw)?.0, name: file.name });
        files.into_iter().map(masked).collect()
    }

    /// The digest of the stored form of a line.
    pub(super) fn digest(&self, line: &[u8]) -> Digest {
        if self.0.is_none() {
            return Digest::of(line);
        }
        // A line that can't be masked is not stored, so no stored digest may match its own.
        self.mask_now(RawJson::new(line))
            .map_or_else(|_| Digest::of(line), |(masked, _)| Digest::of(masked.as_bytes()))
    }
}

impl SessionStorage {
    /// How secrets in stored lines are treated: according to the settings, or else to the store.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn secrets_at_rest(&self) -> Result<SecretsAtRest> {
        match self.settings.secrets {
            Some(chosen) => Ok(chosen),
            None => self.stored_secrets_at_rest().await,
        }
    }

    async fn stored_secrets_at_rest(&self) -> Result<SecretsAtRest> {
        if let Some(known) = self.at_rest.get() {
            return Ok(known);
        }
        let held = self.backend.meta().await?;
        let stored = held.get(SECRETS).and_then(|value| value.parse().ok()).unwrap_or_default();
        self.at_rest.set(stored);
        Ok(stored)
    }

    /// Returns the computation of digests for lines as this store would store them. Changes nothing.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn line_digester(&self) -> Result<LineDigester> {
        let is_masked = self.stored_secrets_at_rest().await? == SecretsAtRest::Mask;
        Ok(LineDigester(LineMasker(self.redactor.clone().filter(|_| is_masked))))
    }

    /// Updates the store to the settings about secrets, and to the choice that another process made for the store. If
    /// secrets are to be masked now and were not before, masks all stored lines and erases the original lines from
    /// files. If they are no longer masked, the next sync reads all files again. Call this before a sync. Returns the
    /// number of secrets that were masked.
    ///
    /// # Errors
    ///
    /// `Unsupported` if secrets are to be masked but there is no redactor; errors of the backend. If it is interrupted,
    /// the next call starts over.
    pub async fn settle_secrets(&self) -> Result<u64> {
        let held = self.backend.meta().await?;
        let stored: Option<SecretsAtRest> = held.get(SECRETS).and_then(|value| value.parse().ok());
        let wanted = self.settings.secrets.or(stored).unwrap_or_default();
        if wanted == SecretsAtRest::Mask && self.redactor.is_none() {
            let message = "this build of the library can't mask secrets, but the store masks them";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if wanted != stored.unwrap_or_default() {
            let expected = held.get(SECRETS).map(String::as_str);
            self.backend.swap_meta(SECRETS, expected, wanted.as_str()).await?;
        }
        self.at_rest.set(wanted);
        let masked = held.get(MASKED).map_or("0", String::as_str);
        let goal = if wanted == SecretsAtRest::Mask { MASKING } else { 0 }.to_string();
        if masked == goal {
            return Ok(0);
        }
        let mut count = 0;
        for session in self.all_sessions(SessionQuery::new(Scope::Everyone)).await? {
            let key = session.key();
            match wanted {
                SecretsAtRest::Mask => count += self.retry_conflicts(|| self.mask_session(&key)).await?,
                SecretsAtRest::Off | SecretsAtRest::Mark => {
                    self.retry_conflicts(|| self.forget_files(&key)).await?;
                }
            }
        }
        if wanted == SecretsAtRest::Mask {
            self.erase_replaced().await?;
        }
        self.backend.swap_meta(MASKED, held.get(MASKED).map(String::as_str), &goal).await?;
        Ok(count)
    }

    /// The masker for lines before they are stored.
    pub(super) async fn line_masker(&self) -> Result<LineMasker> {
        if self.at_rest.get().is_none() {
            self.settle_secrets().await?;
        }
        let is_masked = self.secrets_at_rest().await? == SecretsAtRest::Mask;
        Ok(LineMasker(self.redactor.clone().filter(|_| is_masked)))
    }

    /// Makes the next sync read the files of a session again.
    async fn forget_files(&self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        if stored.sync_state.is_none_or(|state| state.is_empty()) {
            return Ok(());
        }
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.sync_state = Some(String::new());
        self.backend.write_one(change).await.map(drop)
    }

    /// Masks the stored lines of a session. Returns the number of secrets.
    async fn mask_session(&self, key: &SessionKey) -> Result<u64> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(0) };
        let mut masking = MaskingSession {
            storage: self,
            // Not `line_masker`, which would settle the settings first.
            masker: LineMasker(self.redactor.clone()),
            key,
            title: TitleFinder::default(),
            count: 0,
            stored,
        };
        masking.messages().await?;
        masking.events().await?;
        masking.superseded().await?;
        masking.session().await?;
        Ok(masking.count)
    }

    /// Erases replaced lines from files, as after a deletion.
    async fn erase_replaced(&self) -> Result<()> {
        if self.backend.info().places.iter().all(|place| place.files.is_empty()) {
            return Ok(());
        }
        let held = self.backend.meta().await?;
        for key in meta::TO_ERASE {
            self.backend.swap_meta(key, held.get(key).map(String::as_str), "masked").await?;
        }
        for remains in self.backend.delete_sessions(&[]).await.remains {
            let (file, error) = (remains.file.display(), remains.error);
            tracing::warn!(%file, %error, "masked secrets could not be erased yet");
        }
        Ok(())
    }
}

/// A session whose stored lines are masked.
struct MaskingSession<'a> {
    storage: &'a SessionStorage,
    masker: LineMasker,
    key: &'a SessionKey,
    title: TitleFinder,
    /// The number of secrets in messages and events.
    count: u64,
    /// The session, as it was last written.
    stored: StoredSession,
}

impl MaskingSession<'_> {
    /// Replaces messages that have secrets, with the summaries of their turns. A message whose summary has secrets is
    /// written again, so that the embedding of the summary is removed.
    async fn messages(&mut self) -> Result<()> {
        let mut summaries = self.storage.summaries_of(self.key).await?;
        let mut range = SequenceRange { start: 0, limit: MESSAGES };
        loop {
            let page: Vec<Message> = self.storage.readable_page(self.key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            range.start = last.sequence.saturating_add(1);
            let (mut change, mut masked) = (self.change(), Vec::new());
            for message in page {
                let mut summary = summaries.remove(&message.sequence);
                let has_secret = match &mut summary {
                    Some(summary) => self.mask_summary(summary)?,
                    None => false,
                };
                let (raw, secrets) = self.masker.mask(message.raw.clone()).await?;
                let object = raw.parse_object().unwrap_or_default();
                self.title.observe(&object);
                self.count += secrets as u64;
                if secrets > 0 || has_secret {
                    let mut texts = extract(&object, message.role).into_iter();
                    let is_embedded = texts.any(|text| ContentType::EMBEDDED.contains(&text.content_type));
                    let vectors = if is_embedded { VectorState::Pending } else { VectorState::Nothing };
                    let digest = Digest::of(raw.as_bytes());
                    masked.extend(summary.map(|summary| TurnSummary { digest, ..summary }));
                    change.messages.put.push(Message { digest, raw, vectors, ..message });
                }
            }
            self.write(change).await?;
            if !masked.is_empty() {
                self.storage.backend.write_summaries(self.key, masked).await?;
            }
        }
    }

    /// Masks a summary. Returns whether it has secrets.
    fn mask_summary(&self, summary: &mut TurnSummary) -> Result<bool> {
        let masked = self.masker.mask_text(Some(summary.text.clone()))?.unwrap_or_default();
        let has_secret = masked != summary.text;
        summary.text = masked;
        Ok(has_secret)
    }

    async fn events(&mut self) -> Result<()> {
        let mut range = SequenceRange { start: 0, limit: EVENTS };
        loop {
            let page: Vec<Event> = self.storage.readable_page(self.key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else { return Ok(()) };
            range.start = last.sequence.saturating_add(1);
            for events in page.chunks(LINES) {
                let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
                let payloads = self.storage.backend.event_payloads(self.key, &sequences).await?;
                let mut change = self.change();
                for (sequence, payload) in payloads {
                    let event = events.iter().find(|event| event.sequence == sequence);
                    if let Some(event) = event {
                        change.events.put.extend(self.masked_event(event, payload).await?);
                    }
                }
                self.write(change).await?;
            }
        }
    }

    /// Replaces superseded lines that have secrets.
    async fn superseded(&mut self) -> Result<()> {
        let query = SupersededQuery::new(Scope::User(self.key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(self.key.session_id.clone()));
        let mut lines = self.storage.superseded_lines(query);
        let mut replaced = Vec::new();
        while let Some(group) = lines.next_group().await? {
            let Some(pieces) = self.masked_pieces(&group).await? else { continue };
            replaced.extend(group.iter().map(SupersededPiece::piece_ref));
            let mut change = self.change();
            change.superseded = pieces;
            self.write(change).await?;
        }
        let deletion = self.storage.backend.prune_superseded(&replaced).await;
        deletion.deleted.into_iter().try_for_each(|deleted| deleted.map(drop))
    }

    /// The pieces that replace a group, if it has secrets. A damaged group stays unchanged.
    async fn masked_pieces(&self, group: &[SupersededPiece]) -> Result<Option<Vec<SupersededPiece>>> {
        let (Some(first), Ok(lines)) = (group.first(), unpack(group)) else { return Ok(None) };
        let mut packer = Packer::new(self.key.clone(), first.kind, first.superseded_at, first.reason);
        let (mut pieces, mut secrets) = (Vec::new(), 0);
        for (head, raw) in lines {
            let (masker, reason) = (self.masker.clone(), first.reason);
            let (raw, found) = blocking(move || masker.mask_superseded(raw, reason)).await??;
            secrets += found;
            pieces.extend(
                packer.add(&OldLine { head: LineHead { bytes: raw.as_bytes().len(), ..head }, raw })?,
            );
        }
        pieces.extend(packer.finish()?);
        Ok(Some(pieces).filter(|_| secrets > 0))
    }

    /// The event, if its line has secrets. A damaged line stays unchanged.
    async fn masked_event(&mut self, event: &Event, payload: Payload) -> Result<Option<StoredEvent>> {
        let Ok(Some(line)) = assemble(payload) else { return Ok(None) };
        let (line, secrets) = self.masker.mask(line).await?;
        self.count += secrets as u64;
        let fields = match parse_event_line(&line) {
            Ok(fields) if secrets > 0 => fields.in_log_of(&event.session_id),
            _ => return Ok(None),
        };
        let payload = store(&line, fields.data_size_bytes)?;
        let chunk_count = match &payload {
            Payload::Chunks(chunks) => Some(chunks.len() as u32),
            _ => None,
        };
        let event = Event {
            tool_name: fields.tool_name,
            error_type: fields.error_type,
            summary: fields.summary,
            is_chunked: chunk_count.is_some(),
            chunk_count,
            data_size_bytes: fields.data_size_bytes,
            digest: Digest::of(line.as_bytes()),
            ..event.clone()
        };
        Ok(Some(StoredEvent { event, payload }))
    }

    /// Masks metadata files, and the fields of the session that come from lines.
    async fn session(&mut self) -> Result<()> {
        let mut change = self.change();
        let files = self.masker.mask_files(self.stored.metadata_files.clone())?;
        change.metadata_files = Some(files).filter(|files| *files != self.stored.metadata_files);
        let session = &mut change.session;
        session.name = self.masker.mask_text(session.name.take())?;
        session.description = self.masker.mask_text(session.description.take())?;
        // The beginning of a prompt may contain the beginning of a secret.
        if let (Some(_), Some(found)) = (&session.first_prompt, self.title.found()) {
            session.first_prompt = Some(found.to_owned());
        }
        self.write(change).await
    }

    fn change(&self) -> SessionChange {
        SessionChange::new(self.stored.session.clone(), Some(self.stored.version.clone()))
    }

    async fn write(&mut self, change: SessionChange) -> Result<()> {
        let is_same = change.messages.is_empty()
            && change.events.is_empty()
            && change.superseded.is_empty()
            && change.metadata_files.is_none()
            && change.session == self.stored.session;
        if !is_same {
            let session = change.session.clone();
            self.stored.version = self.storage.backend.write_one(change).await?;
            self.stored.session = session;
        }
        Ok(())
    }
}
