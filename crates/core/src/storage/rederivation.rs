//! Updates a store that an earlier version of this library wrote, by deriving data again.

use std::collections::{BTreeMap, HashMap};

use super::{
    ingest::ReceivedRows, session_rows::SessionRows, session_writer::SessionWriter, store::Rederivation,
};
use crate::{
    Result, Scope,
    backend::{
        MessagesToEmbed, PROMPT, RESPONSE, SessionChange, SessionQuery, StorageBackendExt, StoredSyncState,
        meta, repeats_usage,
    },
    content::{EXTRACTION, TITLES, renewed},
    events::{EventFields, SUMMARIES, assemble, parse_event_line},
    metadata::Metadata,
    model::{Event, Payload, SessionKey, StoredEvent, VectorState},
};

/// Number of event lines read and written at a time, because a line may have megabytes.
const PAYLOADS_AT_ONCE: usize = 16;
/// Requests with a larger payload are not read again. Those that a program makes by itself, which is what their summary
/// says, are small.
const LARGEST_REQUEST: u64 = 64 * 1024;

impl Rederivation<'_> {
    /// Updates the data derived from lines to the current rules: stored texts, titles, and the summaries of events. If a text
    /// that is embedded changed, its vectors become pending; nothing is embedded here. Returns the number of these
    /// messages. A storage and its clones check the store once, at the latest before their first write.
    ///
    /// # Errors
    ///
    /// Errors of the backend. If it is interrupted, the next call starts over.
    pub async fn rederive(self) -> Result<u64> {
        self.store.renewed.get_or_try_init(|| self.rederive_store()).await.copied()
    }

    async fn rederive_store(self) -> Result<u64> {
        let held = self.store.backend.meta().await?;
        let (mut pending, mut summaries) = (0, 0);
        let texts = older_rules(&held, meta::EXTRACTION, EXTRACTION);
        let summaries_are_old = older_rules(&held, meta::SUMMARIES, SUMMARIES).is_some();
        let titles_are_old = older_rules(&held, meta::TITLES, TITLES).is_some();
        if texts.is_some() || summaries_are_old || titles_are_old {
            for session in self.store.all_sessions(SessionQuery::new(Scope::Everyone)).await? {
                let key = session.key();
                if let Some(from) = texts {
                    self.store.retry_conflicts(|| self.rederive_parent_of_session(&key)).await?;
                    pending +=
                        self.store.retry_conflicts(|| self.rederive_texts_of_session(&key, from)).await?;
                }
                if titles_are_old {
                    self.store.retry_conflicts(|| self.rederive_title_of_session(&key)).await?;
                }
                if summaries_are_old {
                    summaries +=
                        self.store.retry_conflicts(|| self.rederive_summaries_of_session(&key)).await?;
                }
            }
        }
        if texts.is_some() {
            self.note_rules(&held, meta::EXTRACTION, EXTRACTION).await?;
        }
        if summaries_are_old {
            self.note_rules(&held, meta::SUMMARIES, SUMMARIES).await?;
        }
        if titles_are_old {
            self.note_rules(&held, meta::TITLES, TITLES).await?;
        }
        if pending + summaries > 0 {
            tracing::info!(pending, summaries, "the store was updated to the rules of this version");
        }
        Ok(pending)
    }

    async fn note_rules(self, held: &BTreeMap<String, String>, key: &str, rules: u32) -> Result<()> {
        let value = rules.to_string();
        match held.get(key) {
            Some(stored) => self.store.backend.replace_meta(key, stored, &value).await.map(drop),
            None => self.store.backend.put_meta_if_absent(key, &value).await.map(drop),
        }
    }

    /// Sets the parent that the metadata of a fork names: earlier rules did not read it.
    async fn rederive_parent_of_session(self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(()) };
        let mut session = stored.session;
        if let Ok(metadata) = Metadata::read(&stored.metadata_files)
            && metadata.is_fork()
            && session.parent_id.is_none()
        {
            metadata.apply_parent(&mut session);
            self.store.backend.write_one(SessionChange::new(session, Some(stored.version))).await?;
        }
        Ok(())
    }

    async fn rederive_title_of_session(self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(()) };
        let title = SessionRows::new(self.store, key).title(stored.session.message_count).await?;
        let mut change = SessionChange::new(stored.session, Some(stored.version));
        if !title.is_final()
            && let Some(state) = stored.sync_state.filter(|state| state.settled.is_some())
        {
            // It says that later messages do not change the title.
            let settled = ReceivedRows::without_rows(state.settled.as_deref());
            change.sync_state = Some(StoredSyncState { settled, ..state });
        }
        let has_other_title =
            title.found().is_some() && title.found() != change.session.first_prompt.as_deref();
        if has_other_title {
            change.session.first_prompt = title.found().map(str::to_owned);
        }
        if has_other_title || change.sync_state.is_some() {
            self.store.backend.write_one(change).await?;
        }
        Ok(())
    }

    /// Derives the summaries of a session's events again, if the line is stored. Returns how many changed.
    async fn rederive_summaries_of_session(self, key: &SessionKey) -> Result<u64> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(0) };
        let mut writer = SessionWriter::of_stored(self.store.backend.clone(), &stored);
        // Events that can't be read do not change.
        let mut events = SessionRows::new(self.store, key).events(0);
        while let Some(page) = events.next().await? {
            let may_differ: Vec<Event> = page.into_iter().filter(may_differ).collect();
            for events in may_differ.chunks(PAYLOADS_AT_ONCE) {
                self.renewed_events(key, events).await?.into_iter().for_each(|event| writer.event(event));
                writer.flush_when_full().await?;
            }
        }
        Ok(writer.finish(None).await?.rows.events)
    }

    async fn renewed_events(self, key: &SessionKey, events: &[Event]) -> Result<Vec<StoredEvent>> {
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let mut payloads: HashMap<u32, Payload> =
            self.store.backend.event_payloads(key, &sequences).await?.into_iter().collect();
        let mut renewed = Vec::new();
        for event in events {
            let Some(payload) = payloads.remove(&event.sequence) else { continue };
            let fields = match assemble(payload.clone()) {
                Ok(Some(line)) => parse_event_line(&line).map(|fields| fields.in_log_of(&key.session_id)),
                // An event without a line, or with a damaged one, does not change.
                Ok(None) | Err(_) => continue,
            };
            if let Ok(EventFields { summary, error_type, .. }) = fields
                && (summary != event.summary || error_type != event.error_type)
            {
                let event = Event { summary, error_type, ..event.clone() };
                renewed.push(StoredEvent { event, payload });
            }
        }
        Ok(renewed)
    }

    async fn rederive_texts_of_session(self, key: &SessionKey, from: u32) -> Result<u64> {
        let Some(stored) = self.store.backend.get_session(key).await? else { return Ok(0) };
        let mut writer = SessionWriter::of_stored(self.store.backend.clone(), &stored);
        let mut pending = 0;
        let mut messages = SessionRows::new(self.store, key).messages(0);
        while let Some(page) = messages.next().await? {
            let (mut texts, mut embedded) = (Vec::new(), Vec::new());
            for message in page {
                let line = message.line();
                let renewed = renewed(line.fields(), message.role, from);
                if renewed.embedded && message.vectors == VectorState::Nothing {
                    let now = line.texts();
                    if VectorState::before_embedding(now.iter().map(|text| text.content_type)).is_pending() {
                        writer.line(message, line.fields(), &now);
                        continue;
                    }
                }
                texts.extend(renewed.texts.then_some(message.sequence));
                embedded.extend(renewed.embedded.then_some(message.sequence));
            }
            if !texts.is_empty() {
                self.store.backend.reindex_texts(key, &texts).await?;
            }
            if !embedded.is_empty() {
                pending += self.store.backend.mark_pending(key, MessagesToEmbed::At(embedded)).await?;
            }
            writer.flush_when_full().await?;
        }
        Ok(pending + writer.finish(None).await?.rows.messages)
    }
}

/// The version of the rules that a store follows, if it is earlier. Stores of newer versions are left alone.
fn older_rules(held: &BTreeMap<String, String>, key: &str, rules: u32) -> Option<u32> {
    held.get(key).map_or(Some(1), |held| held.parse::<u32>().ok()).filter(|held| *held < rules)
}

/// Whether the summary of an event may differ from that by earlier rules: it reports usage, an error, a duration, a
/// submitted prompt, or that a program made a call by itself. Large requests, which make up most of a log, do not. A line
/// of another session is only found among these.
fn may_differ(event: &Event) -> bool {
    let reports = |prefix: &str| event.event_type.starts_with(prefix);
    event.failed()
        || (reports("llm:") && event.data_size_bytes <= LARGEST_REQUEST)
        || event.event_type == RESPONSE
        || event.event_type == PROMPT
        || repeats_usage(&event.event_type)
        || event.summary.contains_key("usage")
        || reports("tool:")
        || ["end", "complete", "post", "result"].iter().any(|end| event.event_type.ends_with(end))
}
