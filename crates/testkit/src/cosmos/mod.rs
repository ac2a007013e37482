//! A server on this machine that stands in for an account of Azure Cosmos DB.
//!
//! [`CosmosAccount`] speaks HTTP/1.1 and forwards what it is asked to the SDK's emulator in memory. It checks keys and
//! tokens as the service does, keeps the policies of containers that the emulator forgets, and answers the queries with
//! `VectorDistance` and `FullTextContainsAny` that the emulator can't: those of `crates/cosmos`, and no others. It fails
//! on demand: see [`Fault`].
//!
//! What it can't tell: how the service prices a request, how exact its vector index is, how it splits texts into words.

mod credentials;
mod fault;
mod nearest;
mod queries;
mod request;
mod server;

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use azure_core::http::Url;
use azure_data_cosmos_driver::in_memory_emulator::{
    ConsistencyLevel, InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion,
};
use serde_json::{Map, Value};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use fault::{Calls, Fault};
use fault::{Script, When};
pub use request::{Call, Kind};

/// The key when none is set. Its bytes say what it is.
pub const DEFAULT_KEY: &str = "b25seSBmb3IgdGVzdHMgb24gdGhpcyBtYWNoaW5lLCBubyBzZWNyZXQ=";

/// What a [`CosmosAccount`] is like.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AccountOptions {
    /// The port. Default: one that is free.
    pub port: u16,
    /// The key that calls are signed with, in base64. Default: [`DEFAULT_KEY`].
    pub key: String,
    /// The tokens of Microsoft Entra ID that are taken in place of a key. Default: none.
    pub tokens: Vec<String>,
    /// Whether the messages' container has a policy for full text. Default: yes.
    pub full_text: bool,
}

impl Default for AccountOptions {
    fn default() -> Self {
        Self { port: 0, key: DEFAULT_KEY.to_owned(), tokens: Vec::new(), full_text: true }
    }
}

impl AccountOptions {
    /// Sets the port.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets whether the messages' container has a policy for full text.
    #[must_use]
    pub fn with_full_text(mut self, full_text: bool) -> Self {
        self.full_text = full_text;
        self
    }
}

/// An account on this machine; it ends when it is dropped.
#[derive(Debug)]
pub struct CosmosAccount {
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// What the server and its calls share.
#[derive(Debug)]
struct Shared {
    options: AccountOptions,
    endpoint: Url,
    emulator: Arc<InMemoryEmulatorHttpClient>,
    state: Mutex<State>,
    /// How many calls wait.
    held: watch::Sender<usize>,
    /// How often the waiting ones were let go.
    released: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    calls: Vec<Call>,
    faults: usize,
    tokens: Vec<String>,
    refused_queries: Vec<String>,
    /// The policies of containers, by the names of database and container.
    policies: HashMap<(String, String), Map<String, Value>>,
    /// When calls that were throttled may come again.
    not_before: HashMap<u64, Instant>,
    too_early: usize,
}

impl CosmosAccount {
    /// Starts an account that holds nothing.
    ///
    /// # Errors
    ///
    /// Those of the operating system, when the port is taken.
    pub async fn start(options: AccountOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let endpoint = format!("http://{}/", listener.local_addr()?);
        let endpoint: Url = endpoint.parse().map_err(io::Error::other)?;
        // Clients receive the region's address, so it has to be the server's own.
        let region = VirtualRegion::new("East US", endpoint.clone());
        let account = VirtualAccountConfig::new(vec![region]).map_err(io::Error::other)?;
        let account = account.with_consistency(ConsistencyLevel::Session);
        let emulator = InMemoryEmulatorHttpClient::try_new(account).map_err(io::Error::other)?;
        let state = State { tokens: options.tokens.clone(), ..State::default() };
        let shared = Arc::new(Shared {
            options,
            endpoint,
            emulator: Arc::new(emulator),
            state: Mutex::new(state),
            held: watch::Sender::new(0),
            released: watch::Sender::new(0),
        });
        let server = tokio::spawn(server::serve(listener, Arc::clone(&shared)));
        Ok(Self { shared, server })
    }

    /// The address of the account.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.shared.endpoint.as_str()
    }

    /// The key that calls are signed with.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.shared.options.key
    }

    /// Takes these tokens of Microsoft Entra ID from now on, and no others.
    pub fn accept_tokens(&self, tokens: &[&str]) {
        self.shared.state().tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
    }

    /// Lets the next so many of these calls meet a fault.
    pub fn fail_next(&self, times: usize, calls: Calls, fault: Fault) {
        self.fail_after(0, times, calls, fault);
    }

    /// Answers so many of these calls, and lets as many as `times` says after them meet a fault.
    pub fn fail_after(&self, after: usize, times: usize, calls: Calls, fault: Fault) {
        self.shared.state().script.add(calls, When::Next { after, times }, fault);
    }

    /// Lets each `nth` of these calls meet a fault, until [`heal`](Self::heal).
    pub fn fail_every(&self, nth: usize, calls: Calls, fault: Fault) {
        self.shared.state().script.add(calls, When::Every { nth: nth.max(1), seen: 0 }, fault);
    }

    /// No call meets a fault any more.
    pub fn heal(&self) {
        self.shared.state().script.clear();
    }

    /// Carries out the calls that wait because of [`Fault::Hold`].
    pub fn release(&self) {
        self.shared.released.send_modify(|times| *times += 1);
    }

    /// Waits until so many calls wait because of [`Fault::Hold`].
    pub async fn until_held(&self, calls: usize) {
        // The sender lives as long as `self`.
        let _ = self.shared.held.subscribe().wait_for(|held| *held >= calls).await;
    }

    /// How many of these calls came, met by a fault or not.
    #[must_use]
    pub fn count(&self, calls: &Calls) -> usize {
        self.shared.state().calls.iter().filter(|call| calls.include(call)).count()
    }

    /// All calls that came, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// Forgets the calls that came.
    pub fn reset_counts(&self) {
        let mut state = self.shared.state();
        state.calls.clear();
        state.faults = 0;
        state.too_early = 0;
    }

    /// How many calls met a fault.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.shared.state().faults
    }

    /// How many calls came again before the time that their refusal named.
    #[must_use]
    pub fn too_early(&self) -> usize {
        self.shared.state().too_early
    }

    /// The queries that were refused because nobody sends them. A test that meets one has found a mistake.
    #[must_use]
    pub fn refused_queries(&self) -> Vec<String> {
        self.shared.state().refused_queries.clone()
    }
}

impl Drop for CosmosAccount {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next release.
    async fn hold(&self) {
        let mut released = self.released.subscribe();
        let before = *released.borrow_and_update();
        let _held = Held::new(&self.held);
        // The sender lives as long as `self`.
        let _ = released.wait_for(|times| *times > before).await;
    }
}

/// Counts a call as waiting while it lives.
struct Held<'a>(&'a watch::Sender<usize>);

impl<'a> Held<'a> {
    fn new(held: &'a watch::Sender<usize>) -> Self {
        held.send_modify(|calls| *calls += 1);
        Self(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}
