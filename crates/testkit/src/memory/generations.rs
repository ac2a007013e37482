//! Vectors of several generations side by side, and the messages that owe them.

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{
        OweAgain, OwingQuery, VectorCounts,
        meta::{EMBEDDING_SPACE, Generations, NEXT_EMBEDDING_SPACE},
    },
    model::{ContentType, Message, SessionKey, VectorState},
    search::SessionFilter,
};

use super::{
    MemoryBackend,
    documents::{Documents, VectorId},
};

impl MemoryBackend {
    pub(super) fn generations(&self) -> Generations {
        Generations::of(&self.documents().meta)
    }

    pub(super) fn owing(&self, query: &OwingQuery) -> Vec<Message> {
        let held = self.generations();
        let limit = self.page_limit(query.limit);
        let mut owing = Vec::new();
        let mut after = query.after.as_ref().map(|place| (place.session.clone(), place.sequence));
        while owing.len() < limit {
            let page = self.documents().messages.page_across(after.as_ref(), self.settings.page_size);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            owing.extend(page.into_iter().map(|(_, message)| message).filter(|message| {
                message.user_id == query.user
                    && query.session.as_ref().is_none_or(|session| message.session_id == *session)
                    && self.documents().owes(message, query.generation, &held)
            }));
        }
        owing.truncate(limit);
        owing
    }

    pub(super) fn owe(&self, key: &SessionKey, which: &OweAgain) -> u64 {
        let generation = self.generations().current_number();
        let mut documents = self.documents();
        let mut owed = 0;
        for (sequence, message) in documents.messages.page(key, .., usize::MAX) {
            let failed = documents.failures.get(key, &(sequence, generation)).is_some();
            if message.vectors == VectorState::Stored && which.means(sequence, failed) {
                documents.messages.patch(key, &sequence, |message| message.vectors = VectorState::Outdated);
                owed += 1;
            }
        }
        owed
    }

    pub(super) fn complete(&self, generation: u32) -> Result<bool> {
        let held = self.generations();
        if held.current_number() == generation {
            return Ok(true);
        }
        if !held.is_next(generation) {
            let rule = format!("generation {generation} is not the next one");
            return Err(Error::validation("generation", rule));
        }
        let mut owed = Vec::new();
        let mut complete = true;
        self.each_message(|message| {
            complete &= !self.documents().owes(&message, generation, &held);
            if message.vectors.is_owed() {
                owed.push(message.place());
            }
        });
        if !complete {
            return Ok(false);
        }
        let mut documents = self.documents();
        for place in owed {
            let stored = |message: &mut Message| message.vectors = VectorState::Stored;
            documents.messages.patch(&place.session, &place.sequence, stored);
        }
        let next = documents.meta.get(NEXT_EMBEDDING_SPACE).cloned().unwrap_or_default();
        documents.meta.insert(EMBEDDING_SPACE.to_owned(), next);
        Ok(true)
    }

    pub(super) fn prune(&self, limit: usize) -> usize {
        let held = self.generations();
        let is_kept = |generation| generation == held.current_number() || held.is_next(generation);
        let keys: Vec<SessionKey> = self.all_sessions().iter().map(|session| session.key()).collect();
        let mut documents = self.documents();
        let mut pruned = 0;
        for key in keys {
            for id in documents.vectors.ids(&key, ..).into_iter().filter(|id| !is_kept(id.1)) {
                if pruned < limit {
                    pruned += usize::from(documents.vectors.remove(&key, &id));
                }
            }
            for id in documents.failures.ids(&key, ..).into_iter().filter(|id| !is_kept(id.1)) {
                pruned += usize::from(documents.failures.remove(&key, &id));
            }
        }
        pruned
    }

    pub(super) fn counted_vectors(&self, scope: &Scope) -> VectorCounts {
        let held = self.generations();
        let sessions = self.sessions_within(scope, &SessionFilter::default());
        let mut counts = VectorCounts::default();
        self.each_message(|message| {
            if !sessions.contains(&message.place().session) {
                return;
            }
            if message.vectors == VectorState::Nothing {
                counts.nothing += 1;
                return;
            }
            counts.embeddable += 1;
            for generation in held.numbers() {
                if self.documents().owes(&message, generation, &held) {
                    counts.generations.entry(generation).or_default().owing += 1;
                }
            }
        });
        let documents = self.documents();
        for key in &sessions {
            let mut ids = documents.vectors.ids(key, ..);
            for (_, generation, ..) in &ids {
                counts.generations.entry(*generation).or_default().vectors += 1;
            }
            ids.dedup_by_key(|(sequence, generation, ..)| (*sequence, *generation));
            for (_, generation, ..) in &ids {
                counts.generations.entry(*generation).or_default().messages += 1;
            }
            for ((_, generation), reason) in documents.failures.page(key, .., usize::MAX) {
                let failed = &mut counts.generations.entry(generation).or_default().failed;
                *failed.entry(reason).or_default() += 1;
            }
        }
        counts
    }
}

impl Documents {
    fn owes(&self, message: &Message, generation: u32, held: &Generations) -> bool {
        let place = message.place();
        if generation == held.current_number() {
            return message.vectors.is_owed();
        }
        held.is_next(generation)
            && message.vectors != VectorState::Nothing
            && self.rebuilt.get(&place.session, &place.sequence) != Some(generation)
    }

    /// Removes what is known of a message's vectors.
    pub(super) fn forget_vectors(&mut self, key: &SessionKey, sequence: u32) {
        self.remove_vectors(key, sequence, |_| true);
        self.rebuilt.remove(key, &sequence);
    }

    /// Removes the vectors and failures of a message that are of these generations.
    pub(super) fn remove_vectors(&mut self, key: &SessionKey, sequence: u32, of: impl Fn(u32) -> bool) {
        let first = (sequence, 0, ContentType::ALL[0], 0);
        let last = (sequence, u32::MAX, ContentType::System, u32::MAX);
        let vectors: Vec<VectorId> = self.vectors.ids(key, first..=last);
        for id in vectors.into_iter().filter(|id| of(id.1)) {
            self.vectors.remove(key, &id);
        }
        let failures = self.failures.ids(key, (sequence, 0)..=(sequence, u32::MAX));
        for id in failures.into_iter().filter(|id| of(id.1)) {
            self.failures.remove(key, &id);
        }
    }
}
