//! Calls: requests of callers who have signed in. This file is the only way from a request to the store.
//!
//! [`ServedStore`] gives its store to nothing but [`CallParts::of`], which makes a [`HttpCall`] with one that masks secrets of
//! all but its caller, who has [signed in](crate::sign_in::SignedIn). What everyone may ask is
//! [`ServedStore::answers`], which reads no session.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use amplifier_session_api::{AccessRight, Api, ApiAnswer, ApiCaller, ApiError, CallerPlace, Reach};
use amplifier_session_core::{
    Error, Scope, SessionStorage,
    model::{Session, Timestamp, UserId},
};
use amplifier_session_mcp::{AccessError, OpenedSessions};
use axum::{
    body::Bytes,
    extract::ws::WebSocketUpgrade,
    http::{HeaderMap, HeaderValue, Request, header},
};
use jiff::{Zoned, tz::TimeZone};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::{
    answer::{HttpAnswer, names},
    answer_meter::AnswerMeter,
    body_stream::BodyStream,
    cursor,
    problem::HttpProblem,
    quota::StoredAmount,
    routes::{HttpRoute, RoutePace},
    settings::ServerError,
    sign_in::SignedIn,
    slots::TakenSlot,
    state::ServerState,
};

/// The time in which the store must answer to be ready.
const READY: Duration = Duration::from_secs(2);
/// The time between a change and the update of the search index.
const INDEX_DELAY: Duration = Duration::from_secs(1);

/// The field of a request with the owner of the session that it reads.
pub(crate) const SESSION_OWNER: &str = "owner";

/// The store of a server, and what is to be done after changes.
#[derive(Debug, Clone)]
pub struct ServedStore {
    storage: SessionStorage,
    /// Sessions were changed.
    changed: Arc<Notify>,
    /// The users with rows that came without vectors, and that there are some.
    without_vectors: Arc<(Mutex<BTreeSet<UserId>>, Notify)>,
}

impl ServedStore {
    /// A store to be served.
    ///
    /// # Errors
    ///
    /// If it has no [redactor](SessionStorage::with_redactor): secrets of others could not be masked.
    pub fn new(storage: SessionStorage) -> Result<Self, ServerError> {
        if !storage.clone().with_masked_reads().masks_reads() {
            return Err(ServerError::new("secrets can't be masked: the store has no rules for them", ""));
        }
        Ok(Self { storage, changed: Arc::default(), without_vectors: Arc::default() })
    }

    /// The store for a caller: secrets in what it reads are masked, except those of the caller.
    fn for_caller(&self, caller: &ApiCaller) -> SessionStorage {
        self.storage.clone().with_masked_reads_of_others(caller.user().clone())
    }

    /// The time by the clock of the store, in UTC: the time zones of clients are not known.
    pub(crate) fn now(&self) -> Zoned {
        let now = jiff::Timestamp::from_microsecond(self.storage.now().as_micros());
        now.unwrap_or(jiff::Timestamp::MAX).to_zoned(TimeZone::UTC)
    }

    /// The time by the clock of the store.
    pub(crate) fn timestamp(&self) -> Timestamp {
        self.storage.now()
    }

    /// Says that sessions may have been changed.
    pub(crate) fn note_change(&self) {
        self.changed.notify_one();
    }

    /// Updates the search index after changes, for ever. Searches are correct without it, but slower.
    pub(crate) async fn keep_index(self) {
        loop {
            self.changed.notified().await;
            // Changes that follow soon are updated together.
            tokio::time::sleep(INDEX_DELAY).await;
            if let Err(error) = self.storage.update_index_if_due().await {
                tracing::warn!(%error, "the search index was not updated");
            }
        }
    }

    /// Makes the vectors of rows that came without, for ever: user by user, in steps of a limited size. Those that were
    /// pending before are made at the next write of their user, or by `embeddings backfill`.
    pub(crate) async fn keep_vectors(self) {
        let (users, some) = &*self.without_vectors;
        loop {
            some.notified().await;
            loop {
                let next = users.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
                let Some(user) = next else { break };
                let failed = match self.storage.vectors().embed_pending(&user, None).await {
                    Ok(report) => report.failure,
                    Err(error) => Some(error),
                };
                if let Some(error) = failed {
                    tracing::warn!(%error, "vectors were not made");
                }
                self.note_change();
            }
        }
    }

    /// The number of messages whose vectors are not made yet. `None` if the server makes none, or can't count them soon.
    pub(crate) async fn pending_vectors(&self) -> Option<u64> {
        self.storage.embedding()?;
        // Only a number of everyone's messages.
        let everyone = Scope::Everyone;
        let counting = self.storage.search().missing_vectors(&everyone);
        let missing = tokio::time::timeout(READY, counting).await.ok()?.ok()?;
        Some(missing.map_or(0, |missing| missing.messages))
    }

    /// Whether the store answers soon.
    pub(crate) async fn answers(&self) -> bool {
        // The cheapest read that there is, of no session.
        let answer = tokio::time::timeout(READY, self.storage.users().pinned_user()).await;
        matches!(answer, Ok(Ok(_)))
    }
}

/// A request of a caller who has signed in.
#[derive(Debug)]
pub(crate) struct HttpCall {
    state: Arc<ServerState>,
    storage: SessionStorage,
    signed_in: SignedIn,
    route: &'static HttpRoute,
    now: Zoned,
    headers: HeaderMap,
    fields: Map<String, Value>,
    body: Bytes,
    upgrade: Option<WebSocketUpgrade>,
    meter: Arc<AnswerMeter>,
    /// In a lock, because a body that is read can't be shared between threads.
    stream: Mutex<Option<BodyStream>>,
}

/// The parts of a call.
#[derive(Debug)]
pub(crate) struct CallParts {
    pub(crate) route: &'static HttpRoute,
    pub(crate) headers: HeaderMap,
    pub(crate) fields: Map<String, Value>,
    pub(crate) body: Bytes,
    /// The handshake of a WebSocket, if the route is for one.
    pub(crate) upgrade: Option<WebSocketUpgrade>,
    /// The body of a route that reads it piece by piece.
    pub(crate) stream: Option<BodyStream>,
}

impl CallParts {
    /// The call of a caller.
    pub(crate) fn of(self, signed_in: SignedIn, state: Arc<ServerState>) -> HttpCall {
        let Self { route, headers, fields, body, upgrade, stream } = self;
        let storage = state.store().for_caller(signed_in.caller());
        let meter = state.limits.answers.meter(signed_in.by());
        // A stream is never in memory as a whole.
        let storage = match route.pace {
            RoutePace::Stream | RoutePace::Wait => storage,
            _ => storage.with_read_meter(meter.clone()),
        };
        let now = state.store().now();
        let stream = Mutex::new(stream);
        HttpCall { state, storage, signed_in, route, now, headers, fields, body, upgrade, meter, stream }
    }
}

impl HttpCall {
    /// The operations, for the caller.
    pub(crate) fn api(&self) -> Api<'_> {
        let caller = self.signed_in.caller();
        Api { storage: &self.storage, caller, now: &self.now, place: CallerPlace::Elsewhere }
    }

    /// The sessions of the caller, for an agent: it sees no secrets, not even theirs.
    pub(crate) fn sessions_for_agents(&self) -> Result<OpenedSessions, AccessError> {
        let caller = self.signed_in.caller().clone();
        OpenedSessions::new(self.storage.clone(), caller, self.now.clone())
    }

    /// The request as it came, without what the caller has shown to sign in. Takes the body.
    pub(crate) fn take_request(&mut self) -> Request<Vec<u8>> {
        let mut request = Request::new(std::mem::take(&mut self.body).into());
        *request.method_mut() = self.route.method.into();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().remove(header::AUTHORIZATION);
        // HTTP/2 has it elsewhere. It was checked before the request got here.
        request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("localhost"));
        request
    }

    /// The same call with the rights that the caller has now, if they are others than at its beginning. For calls that
    /// last: whoever has no rights any more must learn nothing more.
    pub(crate) fn again(&self) -> Result<Option<Self>, HttpProblem> {
        let signed_in = self.state.again(&self.signed_in, self.route)?;
        if signed_in.caller() == self.signed_in.caller() {
            return Ok(None);
        }
        let (headers, fields, body) = (self.headers.clone(), self.fields.clone(), self.body.clone());
        let parts = CallParts { route: self.route, headers, fields, body, upgrade: None, stream: None };
        Ok(Some(parts.of(signed_in, self.state.clone())))
    }

    /// Waits until the caller has other rights than at the beginning, or none.
    pub(crate) async fn rights_change(&self) {
        let mut checks = tokio::time::interval(self.state.sizes.access_check);
        loop {
            checks.tick().await;
            if !matches!(self.again(), Ok(None)) {
                return;
            }
        }
    }

    /// Counts the memory of the answer.
    pub(crate) fn meter(&self) -> &Arc<AnswerMeter> {
        &self.meter
    }

    /// A place among the exports of the token and of all.
    pub(crate) fn begin_export(&self) -> Result<TakenSlot<String>, HttpProblem> {
        self.state.limits.export(self.signed_in.by())
    }

    /// The place of a caller who waits for changes, among the readers of their token and of all.
    pub(crate) fn begin_to_wait(&self) -> Result<TakenSlot<String>, HttpProblem> {
        self.state.limits.reader(self.signed_in.by())
    }

    /// The handshake of a WebSocket.
    pub(crate) fn take_upgrade(&mut self) -> Option<WebSocketUpgrade> {
        self.upgrade.take()
    }

    /// Lets the server make the vectors of what the caller has stored.
    pub(crate) fn note_pending_vectors(&self) {
        if self.storage.embedding().is_none() {
            return;
        }
        let (users, some) = &*self.state.store().without_vectors;
        let user = self.signed_in.caller().user().clone();
        users.lock().unwrap_or_else(PoisonError::into_inner).insert(user);
        some.notify_one();
    }

    /// Checks that the caller may store more, also another session if `is_new`.
    pub(crate) async fn check_quota(&self, is_new: bool) -> Result<(), HttpProblem> {
        let quota = self.signed_in.quota().or(self.state.quota);
        if quota.is_unlimited() {
            return Ok(());
        }
        let caller = self.signed_in.caller();
        let own = caller.scope_of_changes(AccessRight::Write).map_err(|error| self.problem(error))?;
        let counts = self.storage.sessions().get_session_statistics(&own, None).await;
        let counts = counts.map_err(|error| self.problem(error.into()))?;
        // Otherwise, lines that replace each other would be stored without end.
        let superseded = match quota.rows {
            Some(_) => self.storage.superseded().count_superseded(&own).await,
            None => Ok(0),
        };
        let superseded = superseded.map_err(|error| self.problem(error.into()))?;
        let rows = counts.messages + counts.events + superseded;
        let stored = StoredAmount { sessions: counts.sessions, rows };
        quota.check(stored, is_new)
    }

    /// From now on, changes this session only if it is still as it was seen.
    pub(crate) fn only_unchanged(&mut self, seen: Session) {
        self.storage = self.storage.clone().only_unchanged(seen);
    }

    pub(crate) fn signed_in(&self) -> &SignedIn {
        &self.signed_in
    }

    pub(crate) fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// The fields of the request, of the type that an operation wants.
    pub(crate) fn request<T: DeserializeOwned>(&self) -> Result<T, HttpProblem> {
        serde_json::from_value(Value::Object(self.fields.clone()))
            .map_err(|error| HttpProblem::of_parameter("body", error.to_string()).without_field())
    }

    /// The path of the route.
    pub(crate) fn path(&self) -> &'static str {
        self.route.path
    }

    /// Sets the time to that at the caller: dates in their requests are relative to it.
    pub(crate) fn set_now(&mut self, now: Zoned) {
        self.now = now;
    }

    /// From now on, reads only sessions of the owner whom the request names, if it names one. Without a scope, those of
    /// others are searched for as far as the caller reaches.
    pub(crate) fn choose_owner(&mut self) -> Result<(), HttpProblem> {
        let Some(owner) = self.take_text(SESSION_OWNER) else { return Ok(()) };
        let owner = UserId::new(owner).map_err(|error| HttpProblem::of_parameter("user", error.message()))?;
        let caller = self.signed_in.caller();
        if owner != *caller.user() {
            let reach = caller.reach();
            self.set_default("scope", reach.as_str());
            if self.fields.get("scope").is_some_and(|scope| scope == Reach::Own.as_str()) {
                let session = self.fields.get("session").and_then(Value::as_str).unwrap_or_default();
                return Err(self.problem(Error::session_not_found(session).into()));
            }
        }
        self.signed_in = self.signed_in.clone().reading_of(owner);
        Ok(())
    }

    /// From now on, masks secrets in the caller's own sessions too.
    pub(crate) fn mask_all(&mut self) -> Result<(), HttpProblem> {
        if self.route.right != AccessRight::Read {
            // Otherwise, a client could write masked text back to the store.
            return Err(HttpProblem::of_parameter("masked", "only what is read can be masked"));
        }
        self.storage = self.storage.clone().with_masked_reads();
        Ok(())
    }

    /// Removes a field that the operation does not have.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.fields.shift_remove(field)
    }

    /// Removes a field with a number.
    pub(crate) fn take_count(&mut self, field: &str) -> Option<usize> {
        self.take(field)?.as_u64().and_then(|count| count.try_into().ok())
    }

    /// Removes a field with a text.
    pub(crate) fn take_text(&mut self, field: &str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether a flag is set. Removes it.
    pub(crate) fn take_flag(&mut self, field: &str) -> bool {
        self.take(field).is_some_and(|value| value == Value::Bool(true))
    }

    /// Whether there is a field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Sets a field that has no value.
    pub(crate) fn set_default(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.entry(field).or_insert_with(|| value.into());
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    /// The bytes of the body.
    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// Takes the body that is read piece by piece.
    pub(crate) fn take_stream(&mut self) -> Option<BodyStream> {
        self.stream.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Replaces the cursor of the client by that of the API.
    pub(crate) fn read_cursor(&mut self) -> Result<(), HttpProblem> {
        let user = self.signed_in.caller().user().clone();
        cursor::unwrap(self.route.path, user.as_str(), &mut self.fields)
    }

    /// The cursor for the client. `fields` are those of the request, without those that were taken.
    pub(crate) fn cursor(&self, position: Option<String>) -> Option<String> {
        let user = self.signed_in.caller().user().as_str();
        position.map(|position| cursor::wrapped(self.route.path, user, &self.fields, &position))
    }

    /// Whether a session may be changed, as far as the client says which version it has seen.
    pub(crate) fn has_seen(&self, current: &str) -> bool {
        names(self.headers.get(header::IF_MATCH), current)
    }

    /// Whether the client says which version it has seen.
    pub(crate) fn expects_version(&self) -> bool {
        self.headers.contains_key(header::IF_MATCH)
    }

    /// The problem of an operation.
    pub(crate) fn problem(&self, error: ApiError) -> HttpProblem {
        HttpProblem::of_operation(error, self.route)
    }

    /// The problem of an operation, with its error for a program that knows the errors of the API.
    pub(crate) fn problem_with_error(&self, error: ApiError) -> HttpProblem {
        HttpProblem::with_error_of(error, self.route)
    }

    /// The answer of an operation.
    pub(crate) fn answer<T: Serialize>(
        &self,
        answer: Result<ApiAnswer<T>, ApiError>,
    ) -> Result<HttpAnswer, HttpProblem> {
        HttpAnswer::of(&answer.map_err(|error| self.problem(error))?)
    }
}
