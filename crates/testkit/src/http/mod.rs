//! A server on this machine that answers like an embedding service.
//!
//! [`MockEmbeddings`] speaks HTTP, in the formats of OpenAI and of Azure OpenAI. It checks what it is sent as strictly
//! as they do, remembers it, and fails on demand: see [`Fault`]. Its vectors are those of
//! [`FakeEmbedding`].

mod answer;
mod fault;
mod request;
mod server;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use fault::Fault;
use fault::Script;
pub use request::{Credential, Recorded};

use crate::FakeEmbedding;

/// What a [`MockEmbeddings`] serves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MockOptions {
    /// The port. Default: one that is free.
    pub port: u16,
    /// The key that is asked for. Default: none, so that any call is taken, with or without a key.
    pub key: Option<String>,
    /// The token of Microsoft Entra ID that is taken in place of a key. Default: none.
    pub token: Option<String>,
    /// The models, each with the length of its vectors. Default: those of OpenAI.
    pub models: Vec<(String, usize)>,
    /// Deployments of Azure that are not called like their model, each with its model. Default: none.
    pub deployments: Vec<(String, String)>,
    /// Whether vectors are lists of numbers whatever is asked for, as LM Studio's are. Default: no.
    pub decimals: bool,
    /// What vectors are multiplied by, as some servers' are not one long. Default: 1.
    pub length: f32,
    /// Whether all texts have the same vector, which costs the server next to nothing: for benchmarks. Default: no.
    pub one_vector: bool,
    /// How long every call takes. Default: no time.
    pub latency: Duration,
}

impl Default for MockOptions {
    fn default() -> Self {
        let models = [
            ("text-embedding-3-large", 3072),
            ("text-embedding-3-small", 1536),
            ("text-embedding-ada-002", 1536),
        ];
        Self {
            port: 0,
            key: None,
            token: None,
            models: models.map(|(name, dimensions)| (name.to_owned(), dimensions)).to_vec(),
            deployments: Vec::new(),
            decimals: false,
            length: 1.0,
            one_vector: false,
            latency: Duration::ZERO,
        }
    }
}

impl MockOptions {
    /// Sets the port.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the key that is asked for.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sets the token that is taken in place of a key.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Adds a model.
    #[must_use]
    pub fn with_model(mut self, name: &str, dimensions: usize) -> Self {
        self.models.push((name.to_owned(), dimensions));
        self
    }

    /// Adds a deployment of Azure.
    #[must_use]
    pub fn with_deployment(mut self, name: &str, model: &str) -> Self {
        self.deployments.push((name.to_owned(), model.to_owned()));
        self
    }

    /// Answers lists of numbers whatever is asked for.
    #[must_use]
    pub fn with_decimals(mut self) -> Self {
        self.decimals = true;
        self
    }

    /// Sets what vectors are multiplied by.
    #[must_use]
    pub fn with_length(mut self, length: f32) -> Self {
        self.length = length;
        self
    }

    /// Gives all texts the same vector.
    #[must_use]
    pub fn with_one_vector(mut self) -> Self {
        self.one_vector = true;
        self
    }

    /// Sets how long every call takes.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    fn dimensions_of(&self, model: &str) -> Option<usize> {
        self.models.iter().find(|(name, _)| name == model).map(|(_, dimensions)| *dimensions)
    }
}

/// A server that answers like an embedding service, until it is dropped.
///
/// Base URLs are [`openai_url`](Self::openai_url) and [`azure_endpoint`](Self::azure_endpoint).
#[derive(Debug)]
pub struct MockEmbeddings {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// What the server and its calls share.
#[derive(Debug)]
struct Shared {
    options: MockOptions,
    state: Mutex<State>,
    /// How many calls are being answered.
    in_flight: watch::Sender<usize>,
    /// How many calls are answered before all others wait.
    answered: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    recorded: Vec<Recorded>,
    texts: usize,
    most_in_flight: usize,
}

impl MockEmbeddings {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Those of the operating system, when the port is taken.
    pub async fn start(options: MockOptions) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            options,
            state: Mutex::default(),
            in_flight: watch::Sender::new(0),
            answered: watch::Sender::new(usize::MAX),
        });
        let server = tokio::spawn(server::serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    /// The base URL for OpenAI and compatible services.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The endpoint for Azure OpenAI, in the form of a bare resource.
    #[must_use]
    pub fn azure_endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked, in order; refused calls included.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// How many calls there were; refused ones included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.state().recorded.len()
    }

    /// How many vectors were made.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.shared.state().texts
    }

    /// The most calls that there were at the same time.
    #[must_use]
    pub fn most_in_flight(&self) -> usize {
        self.shared.state().most_in_flight
    }

    /// Forgets what was asked.
    pub fn reset_counts(&self) {
        let mut state = self.shared.state();
        state.recorded.clear();
        state.texts = 0;
        state.most_in_flight = 0;
    }

    /// What the next calls meet, one each; those after them are answered.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state().script.next.extend(faults);
    }

    /// What every call meets from now on, after the script; nothing with `None`.
    pub fn fail_always(&self, fault: Option<Fault>) {
        self.shared.state().script.always = fault;
    }

    /// Lets this share of all calls fail from now on, each in one of the ways that another attempt helps against.
    /// The same `seed` fails the same calls.
    pub fn fail_share(&self, share: f64, seed: u64) {
        self.shared.state().script.fail_share(share, seed);
    }

    /// Refuses every call with a text that contains `part`; none with `None`.
    pub fn refuse_text(&self, part: Option<&str>) {
        self.shared.state().script.refused_text = part.map(str::to_owned);
    }

    /// Lets calls wait before they are answered, until [`release`](Self::release).
    pub fn hold(&self) {
        self.hold_after(0);
    }

    /// Answers so many calls since the counts began, and lets all others wait, until [`release`](Self::release).
    pub fn hold_after(&self, calls: usize) {
        self.shared.answered.send_replace(calls);
    }

    /// Answers calls again.
    pub fn release(&self) {
        self.shared.answered.send_replace(usize::MAX);
    }

    /// Waits until so many calls are waiting for their answer.
    pub async fn until_in_flight(&self, calls: usize) {
        // The sender lives as long as `self`.
        let _ = self.shared.in_flight.subscribe().wait_for(|in_flight| *in_flight >= calls).await;
    }

    /// Waits until so many calls have come since the counts began, answered or not.
    pub async fn until_calls(&self, calls: usize) {
        // A call is remembered before it counts as in flight.
        let _ = self.shared.in_flight.subscribe().wait_for(|_| self.calls() >= calls).await;
    }

    /// The vector that `text` has in vectors of this length.
    #[must_use]
    pub fn vector(text: &str, dimensions: usize) -> Vec<f32> {
        FakeEmbedding::new().with_dimensions(dimensions).vector(text)
    }
}

impl Drop for MockEmbeddings {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call while the returned value lives.
    fn enter(&self) -> InFlight<'_> {
        self.in_flight.send_modify(|calls| *calls += 1);
        let mut state = self.state();
        state.most_in_flight = state.most_in_flight.max(*self.in_flight.borrow());
        InFlight(self)
    }
}

/// A call that is being answered. Also one that nobody waits for any more comes to its end.
struct InFlight<'a>(&'a Shared);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|calls| *calls = calls.saturating_sub(1));
    }
}
