//! The settings of a server.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use amplifier_session_api::{AccessRight, Reach};
use axum::http::HeaderName;

use crate::{network::AddressRange, public_url::PublicUrl, quota::StorageQuota, tokens::TokenFile};

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The address to listen on. Port 0 is any free port.
    pub listen: SocketAddr,
    /// The address under which clients know the server. Required if it listens for other machines.
    pub public_url: Option<PublicUrl>,
    /// The certificate, for TLS.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy on the way to clients has TLS.
    pub behind_proxy: bool,
    /// The proxies whose headers about clients are believed.
    pub trusted_proxies: Vec<AddressRange>,
    /// How a trusted proxy names the user, if it signs people in.
    pub proxy_sign_in: Option<ProxySignIn>,
    /// The tokens.
    pub tokens: TokenFile,
    /// The file to which a line is added for each request.
    pub audit_log: Option<PathBuf>,
    /// The address on this machine where everyone reads metrics, without a token. Port 0 is any free port.
    pub metrics: Option<SocketAddr>,
    /// How much each user may store, unless their token says otherwise.
    pub quota: StorageQuota,
    /// The limits.
    pub limits: ServerLimits,
}

/// How a proxy names the user that it has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySignIn {
    /// The header with the id of the user.
    pub header: HeaderName,
    /// Which sessions such users may read.
    pub reach: Reach,
    /// What such users may do.
    pub rights: Vec<AccessRight>,
}

/// The files of a certificate. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate with those of its issuers, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

/// The limits of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// The time until the headers of a request must be complete. Default: 10 s.
    pub headers: Duration,
    /// The time that requests get to finish after the server is told to stop. Default: 20 s.
    pub shutdown: Duration,
    /// Connections in all, and of a trusted proxy. Default: 2,000.
    pub connections: usize,
    /// Connections of another address. Default: 256.
    pub connections_of_peer: usize,
    /// Bytes of a JSON body. Default: 1 MB.
    pub body: usize,
    /// Bytes of a message of the Model Context Protocol. Default: 256 KB.
    pub agent_body: usize,
    /// Bytes of a body with lines to store, also after decompression. Default: 80 MB.
    pub stored_body: usize,
    /// Bytes of the body of a posted event. Default: 16 MB.
    pub event_body: usize,
    /// Bytes of memory for all bodies with lines to store: others wait. At least that of one. Default: 160 MB.
    pub bodies: usize,
    /// Bytes of memory for those with the same token. At least that of one. Default: 80 MB.
    pub bodies_of_token: usize,
    /// Such bodies at the same time with the same token, and as many that are read piece by piece: others wait. Default: 2.
    pub stores_of_token: usize,
    /// Bytes of a body with sessions of another store, after decompression. It is read piece by piece. Default: 512 MB.
    pub streamed_body: usize,
    /// Bytes of memory for all such bodies, except for one long line: others wait. Default: 64 MB.
    pub streamed_bodies: usize,
    /// The time in which a client must send the next 64 KB of a body, or read the next 64 KB of an answer. Default: 30 s.
    pub piece: Duration,
    /// Bytes of an answer that is not a stream, and of the lines that are read for it. Default: 64 MB.
    pub answer: usize,
    /// Bytes of lines after which a page of them ends. Default: 16 MB.
    pub page: usize,
    /// Bytes of lines for all answers at the same time. At least those of one. Default: 128 MB.
    pub answers: usize,
    /// Bytes of lines for all answers with the same token. At least those of one. Default: 64 MB.
    pub answers_of_token: usize,
    /// Items of the answer of an operation; programs of this project ask for the rest. Default: 10,000.
    pub items: usize,
    /// Requests a second with a token. Default: 50.
    pub requests: u32,
    /// Requests at once with a token, after a pause. Default: 100.
    pub request_burst: u32,
    /// Posted events a second with a token. Default: 500.
    pub events: u32,
    /// Posted events at once with a token, after a pause. Default: 2,000.
    pub event_burst: u32,
    /// Failed attempts to sign in a minute from an address. Default: 10.
    pub failed_sign_ins: u32,
    /// Searches at the same time. Default: 2 for each processor.
    pub searches: usize,
    /// Searches that wait for others. Default: 64.
    pub waiting_searches: usize,
    /// Exports at the same time. Default: 4.
    pub exports: usize,
    /// Exports at the same time with the same token. Default: 2.
    pub exports_of_token: usize,
    /// Readers who wait for changes: WebSockets, and requests that wait. Default: 1,000.
    pub readers: usize,
    /// Such readers with the same token. Default: 16.
    pub readers_of_token: usize,
    /// Subscriptions of a WebSocket. Default: 8.
    pub subscriptions: usize,
    /// How often it is checked whether the client of a WebSocket is there. Default: 20 s.
    pub socket_check: Duration,
    /// How often it is checked whether callers who wait for changes may still read. Default: 0.5 s.
    pub access_check: Duration,
    /// The time in which a client must read a frame. Default: 30 s.
    pub stalled_reader: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            headers: Duration::from_secs(10),
            shutdown: Duration::from_secs(20),
            connections: 2_000,
            connections_of_peer: 256,
            body: 1_000_000,
            agent_body: 256_000,
            stored_body: 80_000_000,
            event_body: 16_000_000,
            bodies: 160_000_000,
            bodies_of_token: 80_000_000,
            stores_of_token: 2,
            streamed_body: 512_000_000,
            streamed_bodies: 64 << 20,
            piece: Duration::from_secs(30),
            answer: 64 << 20,
            page: 16 << 20,
            answers: 128 << 20,
            answers_of_token: 64 << 20,
            items: 10_000,
            requests: 50,
            request_burst: 100,
            events: 500,
            event_burst: 2_000,
            failed_sign_ins: 10,
            searches: 2 * processors,
            waiting_searches: 64,
            exports: 4,
            exports_of_token: 2,
            readers: 1_000,
            readers_of_token: 16,
            subscriptions: 8,
            socket_check: Duration::from_secs(20),
            access_check: Duration::from_millis(500),
            stalled_reader: Duration::from_secs(30),
        }
    }
}

impl ServerSettings {
    /// A server on `listen` with the tokens of a file.
    #[must_use]
    pub fn new(listen: SocketAddr, tokens: TokenFile) -> Self {
        Self {
            listen,
            public_url: None,
            tls: None,
            behind_proxy: false,
            trusted_proxies: Vec::new(),
            proxy_sign_in: None,
            tokens,
            audit_log: None,
            metrics: None,
            quota: StorageQuota::default(),
            limits: ServerLimits::default(),
        }
    }

    /// Checks that the settings are safe.
    ///
    /// # Errors
    ///
    /// If other machines could reach the server without TLS, or if a header of a proxy would be believed from anybody.
    pub fn check(&self) -> Result<(), ServerError> {
        let wrong = |message: &str, hint: &str| Err(ServerError::new(message, hint));
        if !self.listen.ip().is_loopback() {
            if self.public_url.is_none() {
                return wrong(
                    &format!(
                        "{} can be reached from other machines, and clients must know its name",
                        self.listen
                    ),
                    "pass --public-url https://HOST, or listen on 127.0.0.1",
                );
            }
            if self.tls.is_none() && !self.behind_proxy {
                return wrong(
                    &format!(
                        "{} can be reached from other machines, where tokens could be read on the way",
                        self.listen
                    ),
                    "pass --tls-cert and --tls-key, or --behind-proxy if a proxy has TLS",
                );
            }
        }
        if self.tls.is_some() && self.behind_proxy {
            return wrong(
                "the server has TLS, or a proxy has it",
                "pass --behind-proxy, or --tls-cert and --tls-key",
            );
        }
        if self.metrics.is_some_and(|address| !address.ip().is_loopback()) {
            return wrong(
                "metrics on an address of their own need no token, so that only this machine may reach it",
                "pass --metrics with a loopback address such as 127.0.0.1:9464, or read /metrics with a token",
            );
        }
        if self.proxy_sign_in.is_some() && self.trusted_proxies.is_empty() {
            return wrong(
                "a header with the user is believed only from a trusted proxy, and none is named",
                "pass --trusted-proxy with its address",
            );
        }
        Ok(())
    }
}

/// Why a server can't start or go on.
#[derive(Debug)]
pub struct ServerError {
    message: String,
    hint: Option<String>,
}

impl ServerError {
    pub(crate) fn new(message: impl Into<String>, hint: &str) -> Self {
        Self { message: message.into(), hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()) }
    }

    /// Advice, if there is some.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str) -> ServerSettings {
        ServerSettings::new(listen.parse().unwrap(), TokenFile::new("tokens.toml".into()))
    }

    #[test]
    fn other_machines_reach_a_server_only_with_a_name_and_tls() {
        assert!(settings("127.0.0.1:0").check().is_ok());
        assert!(settings("[::1]:0").check().is_ok());
        for address in ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080"] {
            let open = settings(address);
            assert!(open.check().unwrap_err().hint().unwrap().contains("--public-url"));
            let named = ServerSettings { public_url: Some("https://s.example.com".parse().unwrap()), ..open };
            assert!(named.check().unwrap_err().hint().unwrap().contains("--behind-proxy"));
            assert!(ServerSettings { behind_proxy: true, ..named.clone() }.check().is_ok());
            let tls = TlsFiles { certificate: "c.pem".into(), key: "k.pem".into() };
            assert!(ServerSettings { tls: Some(tls), ..named }.check().is_ok());
        }
    }

    #[test]
    fn a_header_with_the_user_needs_a_trusted_proxy() {
        let sign_in = ProxySignIn {
            header: HeaderName::from_static("x-forwarded-user"),
            reach: Reach::Own,
            rights: vec![AccessRight::Read],
        };
        let settings = ServerSettings { proxy_sign_in: Some(sign_in), ..settings("127.0.0.1:0") };
        assert!(settings.check().unwrap_err().hint().unwrap().contains("--trusted-proxy"));
        let trusted_proxies = vec!["10.0.0.1".parse().unwrap()];
        assert!(ServerSettings { trusted_proxies, ..settings }.check().is_ok());
    }
}
