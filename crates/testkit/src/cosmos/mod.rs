//! A local substitute for an account of Azure Cosmos DB.
//!
//! [`CosmosAccount`] speaks HTTP/1.1 and forwards calls to the in-memory emulator of the SDK. It checks keys and tokens
//! as the service does, keeps the container policies that the emulator ignores, and answers the queries of
//! `crates/cosmos` with `VectorDistance` and `FullTextContainsAny`, which the emulator does not support. It rejects
//! other queries with these functions. It can simulate failures: see [`Fault`].
//!
//! It does not simulate the request charges, the accuracy of the vector index or the tokenizer of the service.

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

use crate::loopback::Counted;

/// The default key. It decodes to a text which says that it is not a secret.
pub const DEFAULT_KEY: &str = "b25seSBmb3IgdGVzdHMgb24gdGhpcyBtYWNoaW5lLCBubyBzZWNyZXQ=";

/// The options of a [`CosmosAccount`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AccountOptions {
    /// The port. Default: a free port.
    pub port: u16,
    /// The key that signs calls, in base64. Default: [`DEFAULT_KEY`].
    pub key: String,
    /// The tokens of Microsoft Entra ID that are accepted instead of a key. Default: empty.
    pub tokens: Vec<String>,
    /// Whether the container of messages has a full-text policy. Default: yes.
    pub full_text: bool,
}

impl Default for AccountOptions {
    fn default() -> Self {
        Self { port: 0, key: DEFAULT_KEY.to_owned(), tokens: Vec::new(), full_text: true }
    }
}

impl AccountOptions {
    /// Sets whether the container of messages has a full-text policy.
    #[must_use]
    pub fn with_full_text(mut self, full_text: bool) -> Self {
        self.full_text = full_text;
        self
    }
}

/// An account on this machine. Dropping it stops the server.
#[derive(Debug)]
pub struct CosmosAccount {
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// The state shared by the server and its calls.
#[derive(Debug)]
struct Shared {
    options: AccountOptions,
    endpoint: Url,
    emulator: Arc<InMemoryEmulatorHttpClient>,
    state: Mutex<State>,
    /// The number of waiting calls.
    held: watch::Sender<usize>,
    /// The number of releases of waiting calls.
    released: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    calls: Vec<Call>,
    faults: usize,
    tokens: Vec<String>,
    refused_queries: Vec<String>,
    /// The policies of containers, by database and container name.
    policies: HashMap<(String, String), Map<String, Value>>,
    /// The time before which a throttled call must not be retried.
    not_before: HashMap<u64, Instant>,
    too_early: usize,
}

impl CosmosAccount {
    /// Starts an empty account.
    ///
    /// # Errors
    ///
    /// If the port cannot be opened.
    pub async fn start(options: AccountOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let endpoint = format!("http://{}/", listener.local_addr()?);
        let endpoint: Url = endpoint.parse().map_err(io::Error::other)?;
        // Clients connect to the address of the region, so it has to be the address of the server.
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
    pub fn endpoint(&self) -> &str {
        self.shared.endpoint.as_str()
    }

    /// The key that signs calls.
    pub fn key(&self) -> &str {
        &self.shared.options.key
    }

    /// Sets the tokens of Microsoft Entra ID that are accepted from now on.
    pub fn accept_tokens(&self, tokens: &[&str]) {
        self.shared.state().tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
    }

    /// Makes the next `times` of these calls fail.
    pub fn fail_next(&self, times: usize, calls: Calls, fault: Fault) {
        self.fail_after(0, times, calls, fault);
    }

    /// Answers `after` of these calls and makes the `times` calls after them fail.
    pub fn fail_after(&self, after: usize, times: usize, calls: Calls, fault: Fault) {
        self.shared.state().script.0.push((calls, When::Next { after, times }, fault));
    }

    /// Makes every `nth` of these calls fail, until [`heal`](Self::heal).
    pub fn fail_every(&self, nth: usize, calls: Calls, fault: Fault) {
        self.shared.state().script.0.push((calls, When::Every { nth: nth.max(1), seen: 0 }, fault));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.state().script.0.clear();
    }

    /// Executes the calls that wait because of [`Fault::Hold`].
    pub fn release(&self) {
        self.shared.released.send_modify(|times| *times += 1);
    }

    /// Waits until `calls` calls wait because of [`Fault::Hold`].
    pub async fn until_held(&self, calls: usize) {
        // The sender lives as long as `self`.
        let _ = self.shared.held.subscribe().wait_for(|held| *held >= calls).await;
    }

    /// The number of these calls so far, including failed ones.
    pub fn count(&self, calls: &Calls) -> usize {
        self.shared.state().calls.iter().filter(|call| calls.include(call)).count()
    }

    /// All calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// Forgets the calls so far.
    pub fn reset_counts(&self) {
        let mut state = self.shared.state();
        state.calls.clear();
        state.faults = 0;
        state.too_early = 0;
    }

    /// The number of calls to which a fault applied.
    pub fn faults(&self) -> usize {
        self.shared.state().faults
    }

    /// The number of calls that were retried earlier than allowed.
    pub fn too_early(&self) -> usize {
        self.shared.state().too_early
    }

    /// The queries that were rejected because `crates/cosmos` does not send them. If there are any, a test has found a
    /// bug.
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
        let _held = Counted::new(&self.held);
        // The sender lives as long as `self`.
        let _ = released.wait_for(|times| *times > before).await;
    }
}
