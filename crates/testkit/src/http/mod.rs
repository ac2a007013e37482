//! A local mock of an embedding service.
//!
//! [`MockEmbeddings`] speaks HTTP in the formats of OpenAI and Azure OpenAI. It checks requests as strictly as the
//! services do, records them, and can simulate failures: see [`Fault`]. Its vectors are those of [`FakeEmbedding`].

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

use crate::{embedding::FakeEmbedding, loopback::Counted};

/// The options of a [`MockEmbeddings`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MockOptions {
    /// The port. Default: a free port.
    pub port: u16,
    /// The required key. Default: `None`, which accepts calls with any key and without one.
    pub key: Option<String>,
    /// The token of Microsoft Entra ID that is accepted instead of a key. Default: `None`.
    pub token: Option<String>,
    /// The models with the lengths of their vectors. Default: OpenAI's models.
    pub models: Vec<(String, usize)>,
    /// Azure deployments whose names differ from their models, with their models. Default: empty.
    pub deployments: Vec<(String, String)>,
    /// Whether vectors are always lists of numbers, even if base64 is requested, as in LM Studio. Default: no.
    pub decimals: bool,
    /// The factor by which vectors are multiplied, because some servers do not return unit vectors. Default: 1.
    pub length: f32,
    /// Whether all texts have the same vector, which needs almost no computation, for benchmarks. Default: no.
    pub one_vector: bool,
    /// The duration of every call. Default: 0.
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
    /// Sets the required key.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sets the token that is accepted instead of a key.
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

    /// Adds an Azure deployment.
    #[must_use]
    pub fn with_deployment(mut self, name: &str, model: &str) -> Self {
        self.deployments.push((name.to_owned(), model.to_owned()));
        self
    }

    /// Always returns lists of numbers.
    #[must_use]
    pub fn with_decimals(mut self) -> Self {
        self.decimals = true;
        self
    }

    /// Sets the factor by which vectors are multiplied.
    #[must_use]
    pub fn with_length(mut self, length: f32) -> Self {
        self.length = length;
        self
    }

    /// Returns the same vector for all texts.
    #[must_use]
    pub fn with_one_vector(mut self) -> Self {
        self.one_vector = true;
        self
    }

    /// Sets the duration of every call.
    #[must_use]
    pub fn with_latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    fn dimensions_of(&self, model: &str) -> Option<usize> {
        self.models.iter().find(|(name, _)| name == model).map(|(_, dimensions)| *dimensions)
    }
}

/// A server that acts as an embedding service until it is dropped.
///
/// The base URLs are [`openai_url`](Self::openai_url) and [`azure_endpoint`](Self::azure_endpoint).
#[derive(Debug)]
pub struct MockEmbeddings {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// The state shared by the server and its calls.
#[derive(Debug)]
struct Shared {
    options: MockOptions,
    state: Mutex<State>,
    /// The number of calls in flight.
    in_flight: watch::Sender<usize>,
    /// The number of calls that are answered before all others wait.
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
    /// If the port cannot be opened.
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
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The endpoint for Azure OpenAI, in the form of a resource without a path.
    pub fn azure_endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The recorded calls in order, including rejected ones.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// The number of calls, including rejected ones.
    pub fn calls(&self) -> usize {
        self.shared.state().recorded.len()
    }

    /// The number of vectors made.
    pub fn texts(&self) -> usize {
        self.shared.state().texts
    }

    /// The maximum number of concurrent calls.
    pub fn most_in_flight(&self) -> usize {
        self.shared.state().most_in_flight
    }

    /// Forgets the recorded calls.
    pub fn reset_counts(&self) {
        let mut state = self.shared.state();
        state.recorded.clear();
        state.texts = 0;
        state.most_in_flight = 0;
    }

    /// Sets the faults of the next calls, one for each call. Later calls are answered.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state().script.next.extend(faults);
    }

    /// Sets the fault of every call after the script; `None` for no fault.
    pub fn fail_always(&self, fault: Option<Fault>) {
        self.shared.state().script.always = fault;
    }

    /// Fails this share of all calls from now on, each with a random retryable fault. The same `seed` fails the same
    /// calls.
    pub fn fail_share(&self, share: f64, seed: u64) {
        self.shared.state().script.fail_share(share, seed);
    }

    /// Rejects every call with a text that contains `part`; `None` rejects no call.
    pub fn refuse_text(&self, part: Option<&str>) {
        self.shared.state().script.refused_text = part.map(str::to_owned);
    }

    /// Makes calls wait until [`release`](Self::release).
    pub fn hold(&self) {
        self.hold_after(0);
    }

    /// Answers `calls` calls since the last reset of the counts, and makes all others wait until
    /// [`release`](Self::release).
    pub fn hold_after(&self, calls: usize) {
        self.shared.answered.send_replace(calls);
    }

    /// Answers calls again.
    pub fn release(&self) {
        self.shared.answered.send_replace(usize::MAX);
    }

    /// Waits until `calls` calls are waiting for their response.
    pub async fn until_in_flight(&self, calls: usize) {
        // The sender lives as long as `self`.
        let _ = self.shared.in_flight.subscribe().wait_for(|in_flight| *in_flight >= calls).await;
    }

    /// Waits until `calls` calls have been received since the last reset of the counts, answered or not.
    pub async fn until_calls(&self, calls: usize) {
        // A call is recorded before it counts as in flight.
        let _ = self.shared.in_flight.subscribe().wait_for(|_| self.calls() >= calls).await;
    }

    /// The vector of `text` with this number of dimensions.
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

    /// Counts a call as in flight until the returned value is dropped.
    fn enter(&self) -> Counted<'_> {
        let call = Counted::new(&self.in_flight);
        let mut state = self.state();
        state.most_in_flight = state.most_in_flight.max(*self.in_flight.borrow());
        call
    }
}
