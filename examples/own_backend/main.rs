//! A backend of one's own: everything in memory, behind one lock. It is small because it keeps what lies together
//! together and looks at all of it for every question; a real one has indexes and a disk, and the same promises to
//! keep. `conformance_suite!`, at the end, tests each of them.
//!
//! What a method must do is written at the traits of `core::backend`. What no backend has to do again stands in `core`: whether a
//! session lies in a scope and passes a filter, which texts a line holds, how they are cut into words and scored.
//!
//!     cargo run -p amplifier-session-testkit --example own_backend

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{meta::Generations, *},
    content::extract,
    model::*,
    search::*,
    storage::*,
    text::Analyzer,
    text::bm25,
};
use amplifier_session_testkit::FakeEmbedding;
use async_trait::async_trait;

use store::{Kept, KeptMessage, KeptVectors, Store, rows};

/// The lock makes every call happen as a whole: nobody sees half of a write.
#[derive(Debug)]
struct OwnBackend(Mutex<Store>);

impl OwnBackend {
    fn new() -> Self {
        let meta = BTreeMap::from([
            (meta::VERSION.to_owned(), meta::SCHEMA_VERSION.to_string()),
            (meta::WRITER.to_owned(), meta::WRITER_NAME.to_owned()),
        ]);
        Self(Mutex::new(Store { meta, sessions: BTreeMap::new(), deleted: BTreeSet::new(), writes: 0 }))
    }

    /// The store, for one call. After a panic in the midst of a write nobody knows what holds.
    fn store(&self) -> Result<MutexGuard<'_, Store>> {
        self.0.lock().map_err(|_| Error::new(ErrorKind::StorageIo, "a write was broken off"))
    }

    /// Reads from a session; an unknown one is no error but an empty answer.
    fn read<T: Default>(&self, key: &SessionKey, read: impl FnOnce(&Kept) -> T) -> Result<T> {
        Ok(self.store()?.sessions.get(key).map(read).unwrap_or_default())
    }

    /// One change, as a whole.
    fn write_change(&self, change: SessionChange) -> Result<Version> {
        let mut store = self.store()?;
        let key = change.session.key();
        if store.sessions.get(&key).map(|kept| &kept.stored.version) != change.expected.as_ref() {
            return Err(conflict("the session was written by somebody else").retryable());
        }
        // `core` has looked for ids that are taken, but a write of another session may have come in between.
        let ids = change.events.put.iter().map(|stored| &stored.event.event_id);
        if store.places_of(&key.user_id, ids).iter().any(|(_, place)| place.session != key) {
            return Err(conflict("another session has an event of this id").retryable());
        }
        // From here on nothing fails, so that the write happens as a whole.
        store.writes += 1;
        let version = Version(store.writes.to_string());
        let kept = store.sessions.entry(key).or_insert_with(|| Kept::new(change.session.clone()));
        kept.change(change, version.clone());
        Ok(version)
    }
}

#[async_trait]
impl Meta for OwnBackend {
    fn info(&self) -> StoreInfo {
        StoreInfo::new("own")
            .with_persistent(false)
            .with_places(vec![StorePlace::remote("store", "memory".to_owned())])
    }

    async fn meta(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.store()?.meta.clone())
    }

    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
        let entries = &mut self.store()?.meta;
        if entries.get(key).map(String::as_str) == expected {
            entries.insert(key.to_owned(), value.to_owned());
        }
        Ok(entries.get(key).cloned())
    }
}

#[async_trait]
impl Sessions for OwnBackend {
    async fn get_session(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        self.read(key, |kept| Some(kept.stored.clone()))
    }

    async fn list_sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let rank = |cursor: SessionCursor| (Reverse(cursor.updated), cursor.key);
        // Where there is no `after`, everything is behind it: `None` is less than any place.
        let after = query.after.clone().map(rank);
        let store = self.store()?;
        let mut sessions: Vec<&Session> = store.sessions.values().map(|kept| &kept.stored.session).collect();
        sessions.retain(|session| query.admits(session) && after < Some(rank((*session).into())));
        sessions.sort_by_key(|session| rank((*session).into()));
        Ok(sessions.into_iter().take(query.limit).cloned().collect())
    }

    async fn session_names(&self, scope: &Scope) -> Result<Vec<SessionName>> {
        let store = self.store()?;
        let sessions = store.sessions.values().map(|kept| &kept.stored.session);
        let names = sessions.filter(|session| scope.allows(session));
        let name =
            |session: &Session| SessionName::new(session.session_id.clone(), session.parent_id.clone());
        Ok(names.map(name).collect())
    }

    async fn session_rows(&self, key: &SessionKey) -> Result<SessionRows> {
        let current = Generations::of(&self.store()?.meta).current_number();
        self.read(key, |kept| {
            let mut rows = SessionRows::default();
            for kept in kept.messages.values() {
                let message = &kept.message;
                rows.messages.add(message.sequence, message.ts);
                rows.vectors += kept.records(current).len() as u64;
                rows.owing_vectors += u64::from(message.vectors.is_owed());
                rows.synced_at = rows.synced_at.max(Some(message.synced_at));
            }
            kept.events().for_each(|event| rows.events.add(event.sequence, event.ts));
            rows
        })
    }

    async fn sync_states(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<(SessionId, String)>> {
        let store = self.store()?;
        let state =
            |kept: &Kept| Some((kept.stored.session.session_id.clone(), kept.stored.sync_state.clone()?));
        let states = store.of_user(user).filter_map(state);
        Ok(states.filter(|(session, _)| after < Some(session)).take(limit).collect())
    }

    async fn write(&self, changes: Vec<SessionChange>) -> Vec<Result<Version>> {
        changes.into_iter().map(|change| self.write_change(change)).collect()
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<bool> {
        let mut store = self.store()?;
        let deleted = store.sessions.remove(key).is_some();
        if deleted {
            store.deleted.insert(key.clone());
        }
        Ok(deleted)
    }

    async fn deleted_sessions(&self, user: &UserId) -> Result<Vec<SessionId>> {
        let store = self.store()?;
        let is_gone = |key: &&SessionKey| key.user_id == *user && !store.sessions.contains_key(key);
        Ok(store.deleted.iter().filter(is_gone).map(|key| key.session_id.clone()).collect())
    }

    async fn rename_user(&self, from: &UserId, to: &UserId) -> Result<u64> {
        let mut store = self.store()?;
        let old: Vec<SessionKey> = store.of_user(from).map(|kept| kept.stored.session.key()).collect();
        let renamed = |key: &SessionKey| SessionKey::new(to.clone(), key.session_id.clone());
        let ids = store.of_user(from).flat_map(Kept::events).map(|event| &event.event_id);
        let has_event = !store.places_of(to, ids).is_empty();
        if has_event || old.iter().any(|key| store.sessions.contains_key(&renamed(key))) {
            return Err(conflict("both users have a session or an event of the same id"));
        }
        let deleted = std::mem::take(&mut store.deleted).into_iter();
        store.deleted = deleted.map(|key| if key.user_id == *from { renamed(&key) } else { key }).collect();
        for key in &old {
            if let Some(mut kept) = store.sessions.remove(key) {
                kept.give_to(to);
                store.sessions.insert(renamed(key), kept);
            }
        }
        Ok(old.len() as u64)
    }
}

#[async_trait]
impl Messages for OwnBackend {
    async fn message_states(&self, key: &SessionKey) -> Result<Vec<MessageState>> {
        let state = |KeptMessage { message, .. }: &KeptMessage| MessageState {
            digest: message.digest,
            turn: message.turn,
            ts: message.ts,
            ts_source: message.ts_source,
        };
        self.read(key, |kept| kept.messages.values().map(state).collect())
    }

    async fn read_messages(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Message>> {
        self.read(key, |kept| rows(&kept.messages, range).map(|kept| kept.message.clone()).collect())
    }

    async fn messages_at(&self, places: &[Place]) -> Result<Vec<Message>> {
        let store = self.store()?;
        Ok(places.iter().filter_map(|place| Some(store.message(place)?.message.clone())).collect())
    }

    async fn count_messages(&self, scope: &Scope, filter: &SearchFilter) -> Result<Vec<MessageCount>> {
        let mut counts: BTreeMap<(String, &str), MessageCount> = BTreeMap::new();
        for KeptMessage { message, .. } in self.store()?.messages(scope, filter) {
            let (day, role) = (message.ts.day(), message.role);
            let count = counts.entry((day.clone(), role.as_str()));
            count.or_insert(MessageCount { day, role, messages: 0 }).messages += 1;
        }
        Ok(counts.into_values().collect())
    }
}

#[async_trait]
impl Events for OwnBackend {
    async fn event_digests(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Digest>> {
        self.read(key, |kept| rows(&kept.events, range).map(|stored| stored.event.digest).collect())
    }

    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>> {
        self.read(key, |kept| rows(&kept.events, range).map(|stored| stored.event.clone()).collect())
    }

    async fn event_times(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<EventTime>> {
        Ok(self.read_events(key, range).await?.into_iter().map(EventTime::from).collect())
    }

    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>> {
        self.read(key, |kept| {
            let payload = |sequence: &u32| Some((*sequence, kept.events.get(sequence)?.payload.clone()));
            sequences.iter().filter_map(payload).collect()
        })
    }

    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, Place)>> {
        Ok(self.store()?.places_of(user, event_ids.iter()))
    }

    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>> {
        let store = self.store()?;
        let mut events: Vec<&Event> = store.events(scope, &options.filter).collect();
        events.retain(|event| options.after.as_ref().is_none_or(|after| EventCursor::from(*event) < *after));
        events.sort_by_key(|event| Reverse(EventCursor::from(*event)));
        Ok(events.into_iter().take(options.limit).cloned().collect())
    }

    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        let (store, mut counter) = (self.store()?, EventCounter::default());
        store.events(scope, filter).for_each(|event| counter.add(event));
        // What a call took counts once: the counter has to know which sessions have responses.
        let responses = EventFilter::default().with_event_type(RESPONSE.to_owned());
        let told = store.events(scope, &responses).filter(|event| Usage::of(&event.summary).calls > 0);
        counter
            .set_answered(told.map(|event| SessionKey::new(event.user_id.clone(), event.session_id.clone())));
        Ok(counter.into_counts())
    }
}

#[async_trait]
impl Vectors for OwnBackend {
    async fn messages_owing_vectors(&self, query: &OwingQuery) -> Result<Vec<Message>> {
        let store = self.store()?;
        let held = Generations::of(&store.meta);
        let messages = store.of_user(&query.user).flat_map(|kept| kept.messages.values());
        let owing = messages.filter(|kept| {
            kept.owes(query.generation, &held)
                && query.session.as_ref().is_none_or(|session| *session == kept.message.session_id)
                && query.after < Some(kept.message.place())
        });
        Ok(owing.take(query.limit).map(|kept| kept.message.clone()).collect())
    }

    async fn write_vectors(
        &self,
        key: &SessionKey,
        generation: u32,
        vectors: Vec<MessageVectors>,
    ) -> Result<usize> {
        let mut store = self.store()?;
        let held = Generations::of(&store.meta);
        let space = held.space(generation)?;
        vectors.iter().flat_map(|of| &of.records).try_for_each(|record| record.validate(space))?;
        let mut count = 0;
        for MessageVectors { sequence, digest, mut records, failure, .. } in vectors {
            let kept = store.sessions.get_mut(key).and_then(|kept| kept.messages.get_mut(&sequence));
            // Making vectors takes its time: the message may say something else by now.
            if let Some(kept) = kept.filter(|kept| kept.message.digest == digest) {
                count += records.len();
                records.sort_by_key(|record| (record.content_type, record.chunk_index));
                kept.vectors.insert(generation, KeptVectors { records, failure });
                if generation == held.current_number() {
                    kept.message.vectors = VectorState::Stored;
                }
            }
        }
        Ok(count)
    }

    async fn owe_vectors(&self, key: &SessionKey, which: OweAgain) -> Result<u64> {
        let mut store = self.store()?;
        let current = Generations::of(&store.meta).current_number();
        let mut owed = 0;
        for kept in store.sessions.get_mut(key).into_iter().flat_map(|kept| kept.messages.values_mut()) {
            let failed = kept.vectors.get(&current).is_some_and(|kept| kept.failure.is_some());
            if kept.message.vectors == VectorState::Stored && which.means(kept.message.sequence, failed) {
                kept.message.vectors = VectorState::Outdated;
                owed += 1;
            }
        }
        Ok(owed)
    }

    async fn complete_generation(&self, generation: u32) -> Result<bool> {
        let mut store = self.store()?;
        let held = Generations::of(&store.meta);
        if held.current_number() == generation {
            return Ok(true);
        }
        if !held.is_next(generation) {
            return Err(Error::validation("generation", "is not the next one"));
        }
        let mut messages: Vec<_> =
            store.sessions.values_mut().flat_map(|kept| kept.messages.values_mut()).collect();
        if messages.iter().any(|kept| kept.owes(generation, &held)) {
            return Ok(false);
        }
        for kept in messages.iter_mut().filter(|kept| kept.message.vectors.is_owed()) {
            kept.message.vectors = VectorState::Stored;
        }
        let next = store.meta.get(meta::NEXT_EMBEDDING_SPACE).cloned().unwrap_or_default();
        store.meta.insert(meta::EMBEDDING_SPACE.to_owned(), next);
        Ok(true)
    }

    async fn prune_vectors(&self, _limit: usize) -> Result<usize> {
        let mut store = self.store()?;
        let held = Generations::of(&store.meta);
        let mut pruned = 0;
        for kept in store.sessions.values_mut().flat_map(|kept| kept.messages.values_mut()) {
            let before = kept.vectors.len();
            kept.vectors.retain(|generation, _| held.numbers().any(|number| number == *generation));
            pruned += before - kept.vectors.len();
        }
        Ok(pruned)
    }

    async fn count_vectors(&self, scope: &Scope) -> Result<VectorCounts> {
        let store = self.store()?;
        let held = Generations::of(&store.meta);
        let mut counts = VectorCounts::default();
        for kept in store.messages(scope, &SearchFilter::default()) {
            if kept.message.vectors == VectorState::Nothing {
                counts.nothing += 1;
                continue;
            }
            counts.embeddable += 1;
            for number in held.numbers().filter(|number| kept.owes(*number, &held)) {
                counts.generations.entry(number).or_default().owing += 1;
            }
            for (number, KeptVectors { records, failure }) in &kept.vectors {
                let of_generation = counts.generations.entry(*number).or_default();
                of_generation.messages += u64::from(!records.is_empty());
                of_generation.vectors += records.len() as u64;
                if let Some(reason) = failure {
                    *of_generation.failed.entry(reason.clone()).or_default() += 1;
                }
            }
        }
        Ok(counts)
    }

    async fn vectors_of(
        &self,
        generation: u32,
        texts: &[(Place, ContentType)],
    ) -> Result<Vec<(Place, VectorRecord)>> {
        let store = self.store()?;
        let mut found = Vec::new();
        for (place, content_type) in texts {
            let records = store.message(place).into_iter().flat_map(|kept| kept.records(generation));
            let records = records.filter(|record| record.content_type == *content_type);
            found.extend(records.map(|record| (place.clone(), record.clone())));
        }
        Ok(found)
    }

    async fn vector_types(
        &self,
        generation: u32,
        key: &SessionKey,
        range: SequenceRange,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        self.read(key, |kept| {
            let types = |kept: &KeptMessage| {
                kept.records(generation).iter().map(|record| record.content_type).collect()
            };
            let all = kept.messages.range(range.start..).map(|(sequence, kept)| (*sequence, types(kept)));
            // Messages without vectors don't count towards the limit.
            all.filter(|(_, types): &(u32, ContentTypes)| !types.is_empty()).take(range.limit).collect()
        })
    }
}

#[async_trait]
impl Search for OwnBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let mut analyzer = Analyzer::new();
        // How rare a word is shows in all texts, not only in those that are asked for.
        let mut statistics = bm25::CollectionStatistics::new(query.terms.len());
        let mut matching = Vec::new();
        for kept in self.store()?.sessions.values() {
            let is_within = kept.is_within(&query.scope, &query.filter.sessions);
            for KeptMessage { message, .. } in kept.messages.values() {
                let is_asked_for = is_within && query.filter.admits_message(message.role, message.ts);
                for text in extract(&message.raw.parse_object().unwrap_or_default(), message.role) {
                    let terms = bm25::count_terms(&mut analyzer, &text.text, &query.terms);
                    statistics.add_document(&terms);
                    if is_asked_for && terms.matches() && query.content_types.contains(text.content_type) {
                        matching.push((message.place(), text.content_type, terms));
                    }
                }
            }
        }
        let candidates = matching.into_iter().map(|(place, content_type, terms)| {
            let score = bm25::score(&statistics, &terms);
            TextCandidate { place, content_type, score }
        });
        Ok(best(candidates.collect(), |candidate| candidate.score, query.limit))
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let mut candidates = Vec::new();
        for kept in self.store()?.messages(&query.scope, &query.filter) {
            let records = kept.records(query.generation).iter();
            let records = records.filter(|record| query.content_types.contains(record.content_type));
            candidates.extend(records.map(|record| VectorCandidate {
                place: kept.message.place(),
                content_type: record.content_type,
                span_start: record.span_start,
                span_end: record.span_end,
                // Both are of unit length, so that this is the cosine.
                similarity: query.vector.iter().zip(&record.vector).map(|(x, y)| x * y).sum(),
                vector: record.vector.clone(),
            }));
        }
        Ok(best(candidates, |candidate| candidate.similarity, query.limit))
    }

    async fn update_index(&self) -> Result<()> {
        Ok(())
    }

    async fn renew_texts(&self, _: &SessionKey, _: &[u32]) -> Result<()> {
        Ok(())
    }
}

impl Scheduling for OwnBackend {}

/// The best first. The sort is stable: equals stay in the order of their places, the same at every call.
fn best<T>(mut items: Vec<T>, score: impl Fn(&T) -> f32, limit: usize) -> Candidates<T> {
    items.sort_by(|a, b| score(b).total_cmp(&score(a)));
    items.truncate(limit);
    Candidates { items, notice: None }
}

fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, message)
}

#[tokio::main]
async fn main() -> Result<()> {
    for result in run().await? {
        println!("{:.2} #{}: {}", result.score, result.sequence, result.snippet);
    }
    Ok(())
}

async fn run() -> Result<Vec<SearchResult>> {
    let storage = SessionStorage::new(Arc::new(OwnBackend::new()));
    let storage = storage.with_embedding(Some(Arc::new(FakeEmbedding::new())));
    let ana = UserId::new("ana")?;
    let target = IngestTarget {
        key: SessionKey::new(ana.clone(), SessionId::new("session-1")?),
        host_id: HostId::new("laptop")?,
        project_slug: ProjectSlug::unnamed(),
    };
    let lines = [
        r#"{"role":"user","content":"why are payments retried?"}"#.into(),
        r#"{"role":"assistant","content":"because the bank times out"}"#.into(),
    ];
    storage.sync_transcript_lines(&target, SyncLines::whole(lines.into())).await?;
    let question = SearchOptions::new("the bank's answer");
    Ok(storage.search_transcripts(&Scope::from(ana), &question).await?.results)
}

#[cfg(test)]
mod tests {
    use amplifier_session_testkit::{conformance::Subject, conformance_suite};

    use super::*;

    /// How the suite opens a store: a second handle is the same one, as nothing else can reach into this memory.
    struct Own(Arc<OwnBackend>);

    #[async_trait::async_trait]
    impl Subject for Own {
        async fn open(&self) -> Arc<dyn StorageBackend> {
            self.0.clone()
        }

        async fn open_again(&self) -> Arc<dyn StorageBackend> {
            self.0.clone()
        }
    }

    conformance_suite!(Own(Arc::new(OwnBackend::new())));

    #[tokio::test]
    async fn the_answer_about_the_bank_comes_first() {
        assert_eq!(run().await.unwrap()[0].sequence, 1);
    }
}
