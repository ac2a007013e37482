//! Treatment of secrets in stored lines.

use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{
        SessionChange, SessionQuery, StorageBackendExt, SupersededQuery,
        meta::{self, MASKED, SECRETS},
    },
    blocking,
    content::{MASKING, MessageLine, Redactor},
    events::{assemble, parse_event_line, store},
    model::{
        Digest, Event, Message, MetadataFile, Payload, SessionKey, StoredEvent, SupersededPiece, TurnSummary,
    },
    search::SessionFilter,
    storage::{
        at_rest::{SecretDecisions, SecretsAtRest, StoredAtRest},
        ingest::ReceivedRows,
        line_masker::{LineDigester, LineMasker},
        session_rows::SessionRows,
        session_writer::SessionWriter,
        store::{StoreContext, StoredSecrets, SupersededHistory},
        superseded::{LineHead, OldLine, PiecePacker, unpack},
    },
};

/// Number of lines of events read at a time: a line may have megabytes.
const LINES: usize = 16;

impl StoredSecrets<'_> {
    /// How secrets in stored lines are treated: according to the settings, or else to the store.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn secrets_at_rest(self) -> Result<SecretsAtRest> {
        match self.store.settings.secrets {
            Some(chosen) => Ok(chosen),
            None => Ok(self.stored_secrets_at_rest().await?.0),
        }
    }

    async fn stored_secrets_at_rest(self) -> Result<StoredAtRest> {
        if let Some(known) = self.store.at_rest.get() {
            return Ok(known);
        }
        let held = self.store.backend.meta().await?;
        let stored = SecretsAtRest::stored(&held)?.unwrap_or_default();
        let judged = SecretDecisions::of(&held);
        self.store.at_rest.set(stored, judged.clone());
        Ok((stored, judged))
    }

    /// Returns the computation of digests for lines as this store would store them. Changes nothing.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn line_digester(self) -> Result<LineDigester> {
        let (stored, judged) = self.stored_secrets_at_rest().await?;
        let masks_all = stored == SecretsAtRest::Mask;
        Ok(LineDigester(LineMasker::new(self.store.redactor.as_ref(), masks_all, judged)))
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
    pub async fn apply_secrets_setting(self) -> Result<u64> {
        let held = self.store.backend.meta().await?;
        let stored = SecretsAtRest::stored(&held)?;
        let wanted = self.store.settings.secrets.or(stored).unwrap_or_default();
        if wanted == SecretsAtRest::Mask && self.store.redactor.is_none() {
            let message = "this build of the library can't mask secrets, but the store masks them";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if wanted != stored.unwrap_or_default() {
            let expected = held.get(SECRETS).map(String::as_str);
            self.store.backend.swap_meta(SECRETS, expected, wanted.as_str()).await?;
        }
        self.store.at_rest.set(wanted, SecretDecisions::of(&held));
        let masked = held.get(MASKED).map_or("0", String::as_str);
        let goal = if wanted == SecretsAtRest::Mask { MASKING } else { 0 }.to_string();
        if masked == goal {
            return Ok(0);
        }
        let mut count = 0;
        for session in self.store.all_sessions(SessionQuery::new(Scope::Everyone)).await? {
            let key = session.key();
            match wanted {
                SecretsAtRest::Mask => {
                    count += self.store.retry_conflicts(|| self.mask_session(&key)).await?
                }
                SecretsAtRest::Off | SecretsAtRest::Mark => {
                    self.store.retry_conflicts(|| self.forget_files(&key)).await?;
                }
            }
        }
        if wanted == SecretsAtRest::Mask {
            self.erase_replaced().await?;
        }
        // Last, so that an interrupted call starts over.
        self.store.backend.swap_meta(MASKED, held.get(MASKED).map(String::as_str), &goal).await?;
        Ok(count)
    }

    /// Whether [`Self::apply_secrets_setting`] would mask the stored lines for the first time: the settings say so, and the
    /// store has not been masked.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn is_first_masking(self) -> Result<bool> {
        let is_wanted = self.store.settings.secrets == Some(SecretsAtRest::Mask);
        Ok(is_wanted && self.stored_secrets_at_rest().await?.0 != SecretsAtRest::Mask)
    }

    /// Makes the next sync read the files of a session again.
    async fn forget_files(self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(()) };
        let posted = ReceivedRows::of(&stored).posted;
        if stored.sync_state.is_none_or(|state| state.files.is_empty()) {
            return Ok(());
        }
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        change.sync_state = Some(ReceivedRows::only_posted(posted));
        self.store.backend.write_one(change).await.map(drop)
    }

    /// Masks the stored lines of a session. Returns the number of secrets.
    async fn mask_session(self, key: &SessionKey) -> Result<u64> {
        // Not `line_masker`, which would apply the settings first.
        let judged = SecretDecisions::of(&self.store.backend.meta().await?);
        self.mask_session_with(key, LineMasker::new(self.store.redactor.as_ref(), true, judged)).await
    }

    /// Masks the stored lines of a session that are purged. Returns the number of secrets.
    pub(in crate::storage) async fn mask_purged(self, key: &SessionKey) -> Result<u64> {
        let judged = SecretDecisions::of(&self.store.backend.meta().await?);
        self.mask_session_with(key, LineMasker::new(self.store.redactor.as_ref(), false, judged)).await
    }

    async fn mask_session_with(self, key: &SessionKey, masker: LineMasker) -> Result<u64> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(0) };
        let writer = SessionWriter::of_stored(self.store.backend.clone(), &stored);
        let metadata_files = stored.metadata_files;
        let mut masking = MaskingSession { store: self.store, masker, key, count: 0, writer, metadata_files };
        masking.messages().await?;
        masking.events().await?;
        masking.superseded().await?;
        masking.session()?;
        masking.writer.finish(None).await?;
        Ok(masking.count)
    }

    /// Erases replaced lines from files, as after a deletion.
    pub(in crate::storage) async fn erase_replaced(self) -> Result<()> {
        if self.store.backend.info().places.iter().all(|place| place.files.is_empty()) {
            return Ok(());
        }
        let held = self.store.backend.meta().await?;
        for key in meta::TO_ERASE {
            self.store.backend.swap_meta(key, held.get(key).map(String::as_str), "masked").await?;
        }
        for remains in self.store.backend.delete_sessions(&[]).await.remains {
            let (file, error) = (remains.file.display(), remains.error);
            tracing::warn!(%file, %error, "masked secrets could not be erased yet");
        }
        Ok(())
    }
}

impl StoredSecrets<'_> {
    /// The masker for lines before they are stored.
    pub(in crate::storage) async fn line_masker(self) -> Result<LineMasker> {
        if self.store.at_rest.get().is_none() {
            self.apply_secrets_setting().await?;
        }
        let masks_all = self.secrets_at_rest().await? == SecretsAtRest::Mask;
        let (_, judged) = self.stored_secrets_at_rest().await?;
        Ok(LineMasker::new(self.store.redactor.as_ref(), masks_all, judged))
    }
}

/// A session whose stored lines are masked.
struct MaskingSession<'a> {
    store: &'a StoreContext,
    masker: LineMasker,
    key: &'a SessionKey,
    /// The number of secrets in messages and events.
    count: u64,
    writer: SessionWriter,
    /// The metadata files, as they are stored.
    metadata_files: Vec<MetadataFile>,
}

impl MaskingSession<'_> {
    /// Replaces messages that have secrets, with the summaries of their turns. A message whose summary has secrets is
    /// written again, so that the embedding of the summary is removed.
    async fn messages(&mut self) -> Result<()> {
        let mut summaries = self.store.summaries_of(self.key).await?;
        let mut messages = SessionRows::new(self.store, self.key).messages(0);
        while let Some(page) = messages.next().await? {
            let mut masked = Vec::new();
            for message in page {
                let mut summary = summaries.remove(&message.sequence);
                let has_secret = match (&mut summary, self.masker.redactor_of(&message.raw)) {
                    (Some(summary), Some(redactor)) => mask_summary(redactor, summary)?,
                    _ => false,
                };
                let (raw, secrets) = self.masker.mask(message.raw.clone()).await?;
                let line = MessageLine::stored(&raw, message.role, message.session_id.source());
                self.count += secrets as u64;
                if secrets > 0 || has_secret {
                    let digest = Digest::of(raw.as_bytes());
                    masked.extend(summary.map(|summary| TurnSummary { digest, ..summary }));
                    self.writer.line(Message { digest, raw, ..message }, line.fields(), &line.texts());
                } else {
                    self.writer.derived.observe(line.fields(), message.turn);
                }
            }
            self.writer.flush().await?;
            if !masked.is_empty() {
                self.store.backend.write_summaries(self.key, masked).await?;
            }
        }
        Ok(())
    }

    async fn events(&mut self) -> Result<()> {
        let mut events = SessionRows::new(self.store, self.key).events(0);
        while let Some(page) = events.next().await? {
            for events in page.chunks(LINES) {
                let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
                let payloads = self.store.backend.event_payloads(self.key, &sequences).await?;
                for (sequence, payload) in payloads {
                    if let Some(event) = events.iter().find(|event| event.sequence == sequence)
                        && let Some(masked) = self.masked_event(event, payload).await?
                    {
                        self.writer.event(masked);
                    }
                }
                self.writer.flush().await?;
            }
        }
        Ok(())
    }

    /// Replaces superseded lines that have secrets.
    async fn superseded(&mut self) -> Result<()> {
        let query = SupersededQuery::new(Scope::User(self.key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(self.key.session_id.clone()));
        let mut lines = SupersededHistory::new(self.store).superseded_lines(query);
        let mut replaced = Vec::new();
        while let Some(group) = lines.next_group().await? {
            let Some(pieces) = self.masked_pieces(&group).await? else { continue };
            replaced.extend(group.iter().map(SupersededPiece::piece_ref));
            self.writer.superseded(pieces);
            self.writer.flush().await?;
        }
        let deletion = self.store.backend.prune_superseded(&replaced).await;
        deletion.deleted.into_iter().try_for_each(|deleted| deleted.map(drop))
    }

    /// The pieces that replace a group, if it has secrets. A damaged group stays unchanged.
    async fn masked_pieces(&self, group: &[SupersededPiece]) -> Result<Option<Vec<SupersededPiece>>> {
        let (Some(first), Ok(lines)) = (group.first(), unpack(group)) else { return Ok(None) };
        let mut packer = PiecePacker::new(self.key.clone(), first.kind, first.superseded_at, first.reason);
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
        let event = Event {
            tool_name: fields.tool_name,
            error_type: fields.error_type,
            summary: fields.summary,
            data_size_bytes: fields.data_size_bytes,
            digest: Digest::of(line.as_bytes()),
            ..event.clone()
        };
        Ok(Some(StoredEvent::new(event, payload)))
    }

    /// Masks metadata files, and the fields of the session that come from lines.
    fn session(&mut self) -> Result<()> {
        let files = self.masker.mask_files(self.metadata_files.clone())?;
        if files != self.metadata_files {
            self.writer.set_files(files);
        }
        let title = self.writer.title().map(str::to_owned);
        let session = self.writer.session_mut();
        session.name = self.masker.mask_text(session.name.take())?;
        session.description = self.masker.mask_text(session.description.take())?;
        // The beginning of a prompt may contain the beginning of a secret.
        if session.first_prompt.is_some() && title.is_some() {
            session.first_prompt = title;
        }
        Ok(())
    }
}

/// Masks a summary. Returns whether it has secrets.
fn mask_summary(redactor: &dyn Redactor, summary: &mut TurnSummary) -> Result<bool> {
    let masked = redactor.mask(&summary.text)?.text.into_owned();
    let has_secret = masked != summary.text;
    summary.text = masked;
    Ok(has_secret)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_unknown_stored_setting_is_an_error() {
        let stored = |value: &str| SecretsAtRest::stored(&BTreeMap::from([(SECRETS.into(), value.into())]));
        assert_eq!(stored("mask").unwrap(), Some(SecretsAtRest::Mask));
        assert_eq!(stored("masked").unwrap_err().kind(), ErrorKind::Damaged);
        assert_eq!(SecretsAtRest::stored(&BTreeMap::new()).unwrap(), None);
    }
}
