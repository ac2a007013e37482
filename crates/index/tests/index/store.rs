//! An in-memory store with everything that the index needs.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    model::{ContentType, HostId, ProjectSlug, Role, Session, SessionId, SessionKey, Timestamp, UserId},
    search::SessionFilter,
};
use amplifier_session_index::{MessageRow, Rows, SessionOfRow, StoreRevision, VectorRow};

#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) user: &'static str,
    pub(crate) project: &'static str,
    pub(crate) session: &'static str,
}

impl Place {
    fn is_of(&self, session: &Session) -> bool {
        (self.user, self.project, self.session)
            == (session.user_id.as_str(), session.project_slug.as_str(), session.session_id.as_str())
    }

    fn new_session(&self) -> Session {
        let (user, id) = (UserId::new(self.user).unwrap(), SessionId::new(self.session).unwrap());
        let (host, project) = (HostId::new("host").unwrap(), ProjectSlug::new(self.project).unwrap());
        Session::new(SessionKey::new(user, id), host, project, Timestamp::from_micros(0))
    }
}

pub(crate) const ANA: Place = Place { user: "ana", project: "shop", session: "s-1" };

#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(crate) revision: u64,
    pub(crate) place: Place,
    pub(crate) role: Role,
    pub(crate) ts: Timestamp,
    pub(crate) raw: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct StoredVector {
    pub(crate) revision: u64,
    pub(crate) place: Place,
    pub(crate) role: Role,
    pub(crate) content_type: ContentType,
    pub(crate) ts: Timestamp,
    pub(crate) vector: Vec<f32>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) store: [u8; 16],
    pub(crate) revision: u64,
    pub(crate) nonces: BTreeMap<u64, u64>,
    /// The sessions; their positions are their keys.
    pub(crate) sessions: Vec<Session>,
    pub(crate) messages: BTreeMap<u64, StoredMessage>,
    pub(crate) vectors: BTreeMap<u64, StoredVector>,
    /// The vectors of turns. Their keys are independent of those of other vectors.
    pub(crate) turns: BTreeMap<u64, StoredVector>,
    pub(crate) removed_messages: Vec<(u64, u64)>,
    pub(crate) removed_vectors: Vec<(u64, u64)>,
    pub(crate) removed_turns: Vec<(u64, u64)>,
}

impl State {
    /// The vectors of texts or turns.
    pub(crate) fn vectors_of(&self, turns: bool) -> &BTreeMap<u64, StoredVector> {
        if turns { &self.turns } else { &self.vectors }
    }

    /// The session at a place.
    pub(crate) fn session(&self, place: &Place) -> &Session {
        &self.sessions[self.session_key(place) as usize]
    }

    fn session_key(&self, place: &Place) -> u64 {
        self.sessions.iter().position(|session| place.is_of(session)).unwrap() as u64
    }

    fn session_of_row(&self, place: &Place) -> SessionOfRow<'static> {
        let Place { user, project, session } = *place;
        SessionOfRow { key: self.session_key(place), user, project, session }
    }
}

/// A store: its state, and the writes to it.
#[derive(Debug, Default)]
pub(crate) struct Store {
    state: Mutex<Arc<State>>,
    nonce_seed: u64,
}

/// A write: any number of changes with one revision.
pub(crate) struct Write<'a> {
    state: &'a mut State,
}

impl Store {
    pub(crate) fn new(id: u8) -> Self {
        let state = State { store: [id; 16], ..State::default() };
        Self { state: Mutex::new(Arc::new(state)), nonce_seed: u64::from(id) }
    }

    pub(crate) fn with_state(state: State) -> Self {
        Self { state: Mutex::new(Arc::new(state)), nonce_seed: 0 }
    }

    /// A copy that acts as a restored backup: it has another history from now on.
    pub(crate) fn restored(&self) -> Self {
        Self { state: Mutex::new(self.state()), nonce_seed: self.nonce_seed + 1_000 }
    }

    pub(crate) fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.lock().unwrap())
    }

    pub(crate) fn write(&self, change: impl FnOnce(&mut Write<'_>)) {
        let mut state = self.state.lock().unwrap();
        let state = Arc::make_mut(&mut state);
        state.revision += 1;
        state.nonces.insert(state.revision, state.revision.wrapping_mul(7_919) + self.nonce_seed);
        change(&mut Write { state });
    }

    /// Puts one user message.
    pub(crate) fn say(&self, key: u64, text: &str) {
        self.write(|write| write.say(key, ANA, text));
    }

    /// Puts one user message and its vector.
    pub(crate) fn put(&self, key: u64, text: &str, vector: Vec<f32>) {
        self.write(|write| write.put(key, ANA, text, vector));
    }

    pub(crate) fn remove(&self, key: u64) {
        self.write(|write| write.remove(key));
    }

    pub(crate) fn rows(&self) -> Snapshot<'_> {
        Snapshot { store: self, state: None, reads: 0, fails_after: u64::MAX, interruption: None }
    }
}

impl Write<'_> {
    pub(crate) fn say(&mut self, key: u64, place: Place, text: &str) {
        self.message(key, place, Role::User, 0, serde_json::json!({"role": "user", "content": text}));
    }

    /// Changes the fields of a session, and creates it if necessary. No message changes.
    pub(crate) fn session(&mut self, place: &Place, change: impl FnOnce(&mut Session)) {
        let sessions = &mut self.state.sessions;
        if !sessions.iter().any(|session| place.is_of(session)) {
            sessions.push(place.new_session());
        }
        change(sessions.iter_mut().find(|session| place.is_of(session)).unwrap());
    }

    /// Gives the key of a session without rows to another session.
    pub(crate) fn reuse_session(&mut self, gone: &Place, new: &Place) {
        let position = self.state.session_key(gone) as usize;
        self.state.sessions[position] = new.new_session();
    }

    pub(crate) fn message(&mut self, key: u64, place: Place, role: Role, ts: i64, line: serde_json::Value) {
        let (revision, ts) = (self.state.revision, Timestamp::from_micros(ts));
        let raw = line.to_string().into_bytes();
        self.session(&place, |_| {});
        self.state.messages.insert(key, StoredMessage { revision, place, role, ts, raw });
    }

    pub(crate) fn vector(
        &mut self,
        key: u64,
        place: Place,
        content_type: ContentType,
        ts: i64,
        vector: Vec<f32>,
    ) {
        let (revision, ts) = (self.state.revision, Timestamp::from_micros(ts));
        self.session(&place, |_| {});
        let role = if content_type == ContentType::UserQuery { Role::User } else { Role::Assistant };
        self.state.vectors.insert(key, StoredVector { revision, place, role, content_type, ts, vector });
    }

    /// Puts the vector of a turn.
    pub(crate) fn turn(&mut self, key: u64, place: Place, ts: i64, vector: Vec<f32>) {
        let (revision, ts) = (self.state.revision, Timestamp::from_micros(ts));
        self.session(&place, |_| {});
        let (role, content_type) = (Role::User, ContentType::UserQuery);
        self.state.turns.insert(key, StoredVector { revision, place, role, content_type, ts, vector });
    }

    /// Removes the vector of a turn.
    pub(crate) fn remove_turn(&mut self, key: u64) {
        self.state.turns.remove(&key);
        self.state.removed_turns.push((self.state.revision, key));
    }

    /// Puts a user message and the vector of its text.
    pub(crate) fn put(&mut self, key: u64, place: Place, text: &str, vector: Vec<f32>) {
        self.say(key, place.clone(), text);
        self.vector(key, place, ContentType::UserQuery, 0, vector);
    }

    /// Removes the message and the vector with this key, if they exist.
    pub(crate) fn remove(&mut self, key: u64) {
        if self.state.messages.remove(&key).is_some() {
            self.state.removed_messages.push((self.state.revision, key));
        }
        if self.state.vectors.remove(&key).is_some() {
            self.state.removed_vectors.push((self.state.revision, key));
        }
    }
}

/// A snapshot that is taken at the first call for its revision.
pub(crate) struct Snapshot<'a> {
    store: &'a Store,
    state: Option<Arc<State>>,
    /// The number of messages and vectors read.
    pub(crate) reads: u64,
    /// The number of rows that can be read before an error.
    pub(crate) fails_after: u64,
    /// Simulates another process: called once, before the first messages are read.
    pub(crate) interruption: Option<Box<dyn FnOnce() + 'a>>,
}

impl Snapshot<'_> {
    /// Makes it a snapshot of an earlier state.
    pub(crate) fn fix(&mut self, state: Arc<State>) {
        self.state = Some(state);
    }

    fn read(&mut self) -> Result<()> {
        self.reads += 1;
        let failed = || Error::new(ErrorKind::StorageIo, "the disk is gone");
        if self.reads > self.fails_after { Err(failed()) } else { Ok(()) }
    }

    fn state(&mut self) -> Arc<State> {
        Arc::clone(self.state.get_or_insert_with(|| self.store.state()))
    }
}

impl Rows for Snapshot<'_> {
    fn store_revision(&mut self) -> Result<StoreRevision> {
        let state = self.state();
        let nonce = state.nonces.get(&state.revision).copied().unwrap_or(0);
        Ok(StoreRevision { store: state.store, revision: state.revision, nonce })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        Ok(self.state().nonces.get(&revision).copied())
    }

    fn messages_after(
        &mut self,
        revision: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if let Some(interrupt) = self.interruption.take() {
            interrupt();
        }
        let state = self.state();
        let mut newer: Vec<_> =
            state.messages.iter().filter(|(_, message)| message.revision > revision).collect();
        newer.sort_by_key(|(key, message)| (message.revision, **key));
        for (key, message) in newer {
            self.read()?;
            let row = MessageRow {
                key: *key,
                revision: message.revision,
                session: state.session_of_row(&message.place),
                role: message.role,
                ts: message.ts,
                raw: (&message.raw).into(),
            };
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn vectors_after(
        &mut self,
        turns: bool,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let state = self.state();
        let mut newer: Vec<_> =
            state.vectors_of(turns).iter().filter(|(_, vector)| vector.revision > revision).collect();
        newer.sort_by_key(|(key, vector)| (vector.revision, **key));
        for (key, vector) in newer {
            self.read()?;
            let row = VectorRow {
                key: *key,
                revision: vector.revision,
                session: state.session_of_row(&vector.place),
                role: vector.role,
                content_type: vector.content_type,
                ts: vector.ts,
                generation: 0,
                vector: &vector.vector,
            };
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn removed_messages_after(&mut self, revision: u64) -> Result<Vec<u64>> {
        Ok(keys_after(&self.state().removed_messages, revision))
    }

    fn removed_vectors_after(&mut self, turns: bool, revision: u64) -> Result<Vec<u64>> {
        let state = self.state();
        let removed = if turns { &state.removed_turns } else { &state.removed_vectors };
        Ok(keys_after(removed, revision))
    }

    fn session_keys(&mut self, scope: &Scope, filter: &SessionFilter) -> Result<Vec<u64>> {
        let state = self.state();
        let sessions = (0..).zip(&state.sessions);
        Ok(sessions.filter(|(_, s)| scope.allows(s) && filter.admits(s)).map(|(key, _)| key).collect())
    }

    /// A vector has the key of its message.
    fn messages_of_vectors(&mut self, keys: &[u64]) -> Result<Vec<(u64, u64)>> {
        Ok(keys.iter().map(|key| (*key, *key)).collect())
    }

    fn vectors(
        &mut self,
        turns: bool,
        keys: &[u64],
        each: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let state = self.state();
        for key in keys {
            if let Some(vector) = state.vectors_of(turns).get(key) {
                each(*key, &vector.vector)?;
            }
        }
        Ok(())
    }
}

fn keys_after(removed: &[(u64, u64)], revision: u64) -> Vec<u64> {
    removed.iter().filter(|(removed_at, _)| *removed_at > revision).map(|(_, key)| *key).collect()
}
