//! Updates a store that an earlier version of this library wrote, by deriving data again.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::SessionStorage;
use crate::{
    Result, Scope,
    backend::{
        MessagesToEmbed, PROMPT, RESPONSE, SequenceRange, SessionChange, SessionQuery, StorageBackendExt,
        meta, repeats_usage,
    },
    content::{EXTRACTION, extract, renewed},
    events::{EventFields, SUMMARIES, assemble, parse_event_line},
    metadata::Metadata,
    model::{ContentType, Event, Message, Payload, SessionKey, StoredEvent, VectorState},
};

/// Number of messages read at a time.
const PAGE: usize = 1_000;
/// Number of events read at a time.
const EVENT_PAGE: usize = 1_000;
/// Number of event lines read and written at a time, because a line may have megabytes.
const PAYLOADS_AT_ONCE: usize = 16;
/// Requests with a larger payload are not read again. Those that a program makes by itself, which is what their summary
/// says, are small.
const LARGEST_REQUEST: u64 = 64 * 1024;

impl SessionStorage {
    /// Updates the data derived from lines to the current rules: stored texts, and the summaries of events. If a text
    /// that is embedded changed, its vectors become pending; nothing is embedded here. Returns the number of these
    /// messages. A storage and its clones check the store once, at the latest before their first write.
    ///
    /// # Errors
    ///
    /// Errors of the backend. If it is interrupted, the next call starts over.
    pub async fn renew(&self) -> Result<u64> {
        self.renewed.get_or_try_init(|| self.renew_store()).await.copied()
    }

    async fn renew_store(&self) -> Result<u64> {
        let held = self.backend.meta().await?;
        let (mut pending, mut summaries) = (0, 0);
        let texts = older_rules(&held, meta::EXTRACTION, EXTRACTION);
        let summaries_are_old = older_rules(&held, meta::SUMMARIES, SUMMARIES).is_some();
        if texts.is_some() || summaries_are_old {
            for session in self.all_sessions(SessionQuery::new(Scope::Everyone)).await? {
                let key = session.key();
                if let Some(from) = texts {
                    self.retry_conflicts(|| self.renew_parent_of_session(&key)).await?;
                    pending += self.retry_conflicts(|| self.renew_texts_of_session(&key, from)).await?;
                }
                if summaries_are_old {
                    summaries += self.retry_conflicts(|| self.renew_summaries_of_session(&key)).await?;
                }
            }
        }
        if texts.is_some() {
            self.note_rules(&held, meta::EXTRACTION, EXTRACTION).await?;
        }
        if summaries_are_old {
            self.note_rules(&held, meta::SUMMARIES, SUMMARIES).await?;
        }
        if pending + summaries > 0 {
            tracing::info!(pending, summaries, "the store was updated to the rules of this version");
        }
        Ok(pending)
    }

    async fn note_rules(&self, held: &BTreeMap<String, String>, key: &str, rules: u32) -> Result<()> {
        let value = rules.to_string();
        match held.get(key) {
            Some(stored) => self.backend.replace_meta(key, stored, &value).await.map(drop),
            None => self.backend.put_meta_if_absent(key, &value).await.map(drop),
        }
    }

    /// Sets the parent that the metadata of a fork names: earlier rules did not read it.
    async fn renew_parent_of_session(&self, key: &SessionKey) -> Result<()> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
        let mut session = stored.session;
        if let Ok(metadata) = Metadata::read(&stored.metadata_files)
            && metadata.is_fork()
            && session.parent_id.is_none()
        {
            metadata.apply_parent(&mut session);
            self.backend.write_one(SessionChange::new(session, Some(stored.version))).await?;
        }
        Ok(())
    }

    /// Derives the summaries of a session's events again, if the line is stored. Returns how many changed.
    async fn renew_summaries_of_session(&self, key: &SessionKey) -> Result<u64> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(0) };
        let (mut version, mut renewed) = (stored.version, 0);
        let mut range = SequenceRange { start: 0, limit: EVENT_PAGE };
        loop {
            // Events that can't be read do not change.
            let page: Vec<Event> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else { return Ok(renewed) };
            range.start = last.sequence.saturating_add(1);
            let may_differ: Vec<Event> = page.into_iter().filter(may_differ).collect();
            for events in may_differ.chunks(PAYLOADS_AT_ONCE) {
                let put = self.renewed_events(key, events).await?;
                if put.is_empty() {
                    continue;
                }
                renewed += put.len() as u64;
                let mut change = SessionChange::new(stored.session.clone(), Some(version));
                change.events.put = put;
                version = self.backend.write_one(change).await?;
            }
        }
    }

    async fn renewed_events(&self, key: &SessionKey, events: &[Event]) -> Result<Vec<StoredEvent>> {
        let sequences: Vec<u32> = events.iter().map(|event| event.sequence).collect();
        let mut payloads: HashMap<u32, Payload> =
            self.backend.event_payloads(key, &sequences).await?.into_iter().collect();
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

    async fn renew_texts_of_session(&self, key: &SessionKey, from: u32) -> Result<u64> {
        let Some(stored) = self.backend.get_session(key).await? else { return Ok(0) };
        let (mut version, mut pending) = (stored.version, 0);
        let mut range = SequenceRange { start: 0, limit: PAGE };
        loop {
            let page: Vec<Message> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else { return Ok(pending) };
            range.start = last.sequence.saturating_add(1);
            let (mut texts, mut embedded, mut put) = (Vec::new(), Vec::new(), Vec::new());
            for message in page {
                let Ok(line) = message.raw.parse_object() else { continue };
                let renewed = renewed(&line, message.role, from);
                if renewed.embedded && begins_to_be_embedded(&message, &line) {
                    put.push(Message { vectors: VectorState::Pending, ..message });
                    continue;
                }
                texts.extend(renewed.texts.then_some(message.sequence));
                embedded.extend(renewed.embedded.then_some(message.sequence));
            }
            if !texts.is_empty() {
                self.backend.renew_texts(key, &texts).await?;
            }
            if !embedded.is_empty() {
                pending += self.backend.mark_pending(key, MessagesToEmbed::At(embedded)).await?;
            }
            if !put.is_empty() {
                pending += put.len() as u64;
                let mut change = SessionChange::new(stored.session.clone(), Some(version));
                change.messages.put = put;
                version = self.backend.write_one(change).await?;
            }
        }
    }
}

/// Whether a message had nothing to embed by earlier rules, but has now.
fn begins_to_be_embedded(message: &Message, line: &Map<String, Value>) -> bool {
    let is_embedded = |content_type| ContentType::EMBEDDED.contains(&content_type);
    message.vectors == VectorState::Nothing
        && extract(line, message.role).iter().any(|text| is_embedded(text.content_type))
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
