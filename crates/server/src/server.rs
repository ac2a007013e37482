//! The server: listens, and answers until it is told to stop.

use std::{
    future::Future,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::{RawPathParams, Request, rejection::RawPathParamsRejection},
    http::StatusCode,
    routing::{MethodFilter, MethodRouter},
};
use axum_server::{
    Handle, Server,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use crate::{
    audit::AuditLog,
    call::ServedStore,
    connection::{AcceptedConnections, ConnectionSlots},
    dispatch,
    gate::Gate,
    routes::{HttpVerb, OPEN_ROUTES, routes},
    settings::{ServerError, ServerSettings, TlsFiles},
    sign_in::SignIn,
    state::ServerState,
    tls,
    tokens::TokenBook,
};

/// The largest headers of a request in bytes.
const HEADERS: u32 = 32 * 1024;
/// The requests that an HTTP/2 connection may have at the same time.
const STREAMS: u32 = 64;

/// The path of metrics on their own address.
const METRICS: &str = "/metrics";
/// The connections of those who read metrics.
const MONITORS: usize = 16;

/// The time that WebSockets have to end after all other connections.
const SOCKETS: Duration = Duration::from_secs(5);

/// A server that listens. Connections are answered by [`Self::run`].
#[derive(Debug)]
pub struct SessionServer {
    settings: ServerSettings,
    state: Arc<ServerState>,
    tls: Option<(TlsFiles, RustlsConfig)>,
    listener: TcpListener,
    metrics: Option<TcpListener>,
    address: SocketAddr,
}

impl SessionServer {
    /// Listens with these settings, for the sessions of a store.
    ///
    /// # Errors
    ///
    /// As [`ServerSettings::check`]; if the address is in use, or a file can't be read.
    pub fn bind(settings: ServerSettings, store: ServedStore) -> Result<Self, ServerError> {
        settings.check()?;
        let unreadable =
            |error: std::io::Error| ServerError::new(format!("can't read the tokens: {error}"), "");
        let tokens = TokenBook::open(settings.tokens.clone()).map_err(unreadable)?;
        let audit = settings.audit_log.as_deref().map(AuditLog::open).transpose();
        let audit = audit.map_err(|error| {
            ServerError::new(format!("can't write the audit log: {error}"), "pass another --audit-log")
        })?;
        let tls = match &settings.tls {
            Some(files) => Some((files.clone(), tls::configuration(files)?)),
            None => None,
        };
        let sign_in = SignIn::new(tokens, settings.trusted_proxies.clone(), settings.proxy_sign_in.clone());
        let state = Arc::new(ServerState::new(store, sign_in, &settings, audit));
        let in_use = |error: std::io::Error| {
            ServerError::new(format!("can't listen on {}: {error}", settings.listen), "pass another --listen")
        };
        let listener = TcpListener::bind(settings.listen).map_err(in_use)?;
        let address = listener.local_addr().map_err(in_use)?;
        let metrics = settings.metrics.map(TcpListener::bind).transpose().map_err(|error| {
            ServerError::new(format!("can't listen for metrics: {error}"), "pass another --metrics")
        })?;
        Ok(Self { settings, state, tls, listener, metrics, address })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address on which it listens for requests for metrics, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// The address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.settings.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Answers until `stop` is ready. Then it is not ready any more, accepts no connections, and lets requests finish
    /// for [`ServerLimits::shutdown`](crate::ServerLimits::shutdown), or until `stop_now` is ready.
    ///
    /// # Errors
    ///
    /// If listening fails.
    pub async fn run(
        self,
        stop: impl Future<Output = ()> + Send,
        stop_now: impl Future<Output = ()> + Send,
    ) -> Result<(), ServerError> {
        let Self { settings, state, tls, listener, metrics, address } = self;
        let failed = |error: std::io::Error| ServerError::new(format!("can't listen: {error}"), "");
        let handle = Handle::new();
        let mut server = axum_server::from_tcp(listener).map_err(failed)?.handle(handle.clone());
        limit_requests(&mut server, &settings);
        let server = server.first_request_timeout(settings.limits.headers);
        let connections = connections(&settings, &state, address);
        let metrics = serve_metrics(metrics, &settings, &state);
        // Tasks of their own, so that their work does not keep the server from accepting connections. They end with this.
        let mut background = JoinSet::new();
        background.spawn(state.store().clone().keep_index());
        background.spawn(state.store().clone().keep_vectors());
        let (readers, at_once) = (state.clone(), Notify::new());
        let stopping = async {
            stop.await;
            state.stop();
            handle.graceful_shutdown(Some(settings.limits.shutdown));
            stop_now.await;
            handle.shutdown();
            at_once.notify_one();
            std::future::pending::<()>().await;
        };
        let served = async {
            match tls {
                None => server.serve(connections).await.map_err(failed),
                Some((files, tls)) => {
                    let acceptor =
                        RustlsAcceptor::new(tls.clone()).handshake_timeout(settings.limits.headers);
                    tokio::select! {
                        served = server.acceptor(acceptor).serve(connections) => served.map_err(failed),
                        () = tls::follow(files, tls) => Ok(()),
                    }
                }
            }
        };
        let served = async {
            let served = served.await;
            // WebSockets are no connections of HTTP any more. They are told to end.
            tokio::select! {
                _ = timeout(SOCKETS, readers.limits.readers_gone()) => {}
                () = at_once.notified() => {}
            }
            served
        };
        tokio::select! {
            served = served => served,
            () = stopping => Ok(()),
            served = metrics => served,
        }
    }
}

/// Answers requests for metrics on an address of their own, for ever.
async fn serve_metrics(
    listener: Option<TcpListener>,
    settings: &ServerSettings,
    state: &Arc<ServerState>,
) -> Result<(), ServerError> {
    let Some(listener) = listener else { return std::future::pending().await };
    let failed = |error: std::io::Error| ServerError::new(format!("can't listen for metrics: {error}"), "");
    let address = listener.local_addr().map_err(failed)?;
    let mut server = axum_server::from_tcp(listener).map_err(failed)?;
    limit_requests(&mut server, settings);
    let (of_request, gate) = (state.clone(), Gate::new(address, false, None));
    let answer = move || dispatch::answer_metrics(of_request);
    let router = Router::new().route(METRICS, MethodRouter::new().on(MethodFilter::GET, answer));
    let slots = ConnectionSlots::new(MONITORS, MONITORS, |_| false);
    let connections =
        AcceptedConnections { router, gate: Arc::new(gate), slots, patience: settings.limits.piece };
    server.first_request_timeout(settings.limits.headers).serve(connections).await.map_err(failed)
}

/// Sets the limits of hyper. By default, axum-server turns the one for headers off.
fn limit_requests(server: &mut Server<SocketAddr>, settings: &ServerSettings) {
    let builder = server.http_builder();
    builder.http1().header_read_timeout(settings.limits.headers).max_buf_size(HEADERS as usize);
    builder.http2().max_header_list_size(HEADERS).max_concurrent_streams(STREAMS);
}

fn connections(
    settings: &ServerSettings,
    state: &Arc<ServerState>,
    address: SocketAddr,
) -> AcceptedConnections {
    let gate = Gate::new(address, settings.tls.is_some(), settings.public_url.as_ref());
    let proxies = state.clone();
    let is_proxy = move |peer| proxies.sign_in.is_proxy(peer);
    let limits = &settings.limits;
    let slots = ConnectionSlots::new(limits.connections, limits.connections_of_peer, is_proxy);
    AcceptedConnections { router: router(state), gate: Arc::new(gate), slots, patience: limits.piece }
}

/// The router of the tables of routes.
fn router(state: &Arc<ServerState>) -> Router {
    let unknown = |status: StatusCode| {
        let state = state.clone();
        move |request: Request| dispatch::answer_unknown(state, request, status)
    };
    let mut router = Router::new();
    for route in OPEN_ROUTES {
        let state = state.clone();
        let answer = move || dispatch::answer_everyone(state, route);
        router = router.route(route.path, MethodRouter::new().on(MethodFilter::GET, answer));
    }
    for route in routes() {
        let state = state.clone();
        let answer = move |path: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
            dispatch::answer(state, route, path, request)
        };
        router = router.route(route.path, MethodRouter::new().on(filter(route.method), answer));
    }
    router
        .fallback(unknown(StatusCode::NOT_FOUND))
        .method_not_allowed_fallback(unknown(StatusCode::METHOD_NOT_ALLOWED))
}

fn filter(verb: HttpVerb) -> MethodFilter {
    match verb {
        HttpVerb::Get => MethodFilter::GET,
        HttpVerb::Post => MethodFilter::POST,
        HttpVerb::Put => MethodFilter::PUT,
        HttpVerb::Patch => MethodFilter::PATCH,
        HttpVerb::Delete => MethodFilter::DELETE,
    }
}
