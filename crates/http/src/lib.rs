//! The HTTP client of everything that uses a service: embedding providers, downloads of models, and other stores.
//!
//! It makes one attempt per call and follows no redirects by default. Its errors distinguish a broken connection, which
//! is worth another attempt, from an invalid response. TLS is rustls with ring and trusts the operating system's
//! certificates.

use std::{net::IpAddr, sync::Arc, time::Duration};

use amplifier_session_core::{Error, ErrorField, ErrorKind, Result};
use reqwest::{Client, Response, Url, redirect, retry};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The environment variable that allows a key to be sent over plain `http://`.
pub const ALLOW_HTTP: &str = "AMPLIFIER_SESSIONS_ALLOW_HTTP";

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long to wait for the next part of a response. Default: 120 seconds.
    pub read_timeout: Duration,
    /// How long a call may take in total. Default: no limit.
    pub timeout: Option<Duration>,
    /// How many redirects to follow. Default: 0, so that a key is sent only to the intended address.
    pub redirects: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { read_timeout: Duration::from_secs(120), timeout: None, redirects: 0 }
    }
}

/// Parses an `http` or `https` URL without user and password. `field` names it in errors.
///
/// # Errors
///
/// `Validation`. The message does not repeat the URL, which may hold a password.
pub fn parse_url(field: ErrorField, text: &str) -> Result<Url> {
    let url = Url::parse(text.trim()).map_err(|source| {
        Error::validation(field, "must be a URL such as https://example.com/v1").with_source(source)
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::validation(field, "must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::validation(field, "must not contain a user or a password"));
    }
    Ok(url)
}

/// The address shown in errors: without the query and without the path that providers append.
#[must_use]
pub fn address(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let shown = shown.as_str();
    let base = shown.strip_suffix("/embeddings").unwrap_or(shown);
    base.split("/openai/deployments/").next().unwrap_or(base).trim_end_matches('/').to_owned()
}

/// Whether data goes to `url` without encryption, and to another machine.
#[must_use]
pub fn is_unencrypted(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// The address of `url` if data goes there over plain `http://`, and to another machine.
#[must_use]
pub fn plain_http_address(url: &str) -> Option<String> {
    let url = parse_url(ErrorField::BaseUrl, url).ok()?;
    is_unencrypted(&url).then(|| address(&url))
}

/// Checks that a key does not go to `url` without encryption, unless that is allowed.
///
/// # Errors
///
/// `Validation`, with the user's options in the message.
pub fn check_key_is_safe(url: &Url, has_key: bool, allow_http: bool) -> Result<()> {
    if !is_unencrypted(url) {
        return Ok(());
    }
    if has_key && !allow_http {
        let rule = format!(
            "{}: a key sent over plain http:// can be read by others: use https://, leave the key out, or allow it with \
             --allow-http (or {ALLOW_HTTP}=true)",
            address(url)
        );
        return Err(Error::validation(ErrorField::BaseUrl, rule));
    }
    Ok(())
}

/// Whether data sent to `url` certainly stays on this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// Builds a client for `url` and the addresses that it redirects to. `kind` is the kind of errors.
///
/// # Errors
///
/// Of this kind when `url` needs TLS and the system has no certificates to trust.
pub fn client(url: &Url, options: &ClientOptions, kind: ErrorKind) -> Result<Client> {
    let redirects = match options.redirects {
        0 => redirect::Policy::none(),
        most => redirect::Policy::limited(most),
    };
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(url.scheme() == "https" || options.redirects > 0, kind)?)
        .user_agent(concat!("amplifier-sessions/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(options.read_timeout)
        .redirect(redirects)
        .retry(retry::never());
    if let Some(timeout) = options.timeout {
        builder = builder.timeout(timeout);
    }
    if is_loopback(url) {
        // Through a proxy, the data would leave this machine.
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| Error::new(kind, "the HTTP client can't be built").with_source(error.without_url()))
}

/// The TLS configuration. If TLS is not `needed`, it trusts no one and reads no certificates, so that a container
/// without certificates can use a server over plain HTTP.
fn tls(needed: bool, kind: ErrorKind) -> Result<ClientConfig> {
    let no_tls = |source: rustls::Error| {
        let message = "TLS can't be set up; are the system's CA certificates installed?";
        Error::new(kind, message).with_source(source)
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(no_tls)?;
    let builder = if needed {
        builder.with_platform_verifier().map_err(no_tls)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

/// Reads the body of `response`, at most `limit` bytes. `kind` is the kind of errors.
///
/// # Errors
///
/// Of this kind: permanent if the body is longer, retryable if the connection broke.
pub async fn read_body(mut response: Response, limit: usize, kind: ErrorKind) -> Result<Vec<u8>> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let mut body = Vec::with_capacity(announced.min(limit));
    while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(error, kind))? {
        if body.len() + chunk.len() > limit {
            return Err(Error::new(kind, format!("the response is longer than {limit} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Turns a failed request or response into an error of this kind. Most are worth another attempt; an untrusted certificate and a
/// refused connection are not, because somebody must start the service or correct the address.
#[must_use]
pub fn transport_error(error: reqwest::Error, kind: ErrorKind) -> Error {
    // The URL may contain something private, for example in its query.
    let error = error.without_url();
    let (message, is_temporary) = if let Some(reason) = tls_reason(&error) {
        (format!("the TLS connection failed: {reason}"), false)
    } else if is_refused(&error) {
        ("connection refused".to_owned(), false)
    } else if error.is_timeout() {
        ("the service did not answer in time".to_owned(), true)
    } else if error.is_connect() {
        (reason_of(&error), true)
    } else if error.is_builder() {
        ("the request can't be built".to_owned(), false)
    } else if error.is_redirect() {
        ("too many redirects".to_owned(), false)
    } else {
        ("the connection was lost".to_owned(), true)
    };
    let failed = Error::new(kind, message).with_source(error);
    if is_temporary { failed.retryable() } else { failed }
}

/// The causes of an error, outermost first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |error| error.source())
}

fn is_refused(error: &reqwest::Error) -> bool {
    let is = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::ConnectionRefused;
    causes(error).any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(is))
}

/// Why there is no connection, in the words of the innermost error: `dns error: …`, `Network is unreachable`.
fn reason_of(error: &reqwest::Error) -> String {
    match causes(error).last() {
        Some(last) => format!("the service can't be reached: {last}"),
        None => "the service can't be reached".to_owned(),
    }
}

/// Why TLS failed, if it was the certificate or the settings of either side. An alert or garbage in the middle of a
/// connection may not happen again, so it does not count.
fn tls_reason(error: &reqwest::Error) -> Option<String> {
    causes(error).find_map(|cause| {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let inner = inner.map_or(cause, |inner| inner as &(dyn std::error::Error + 'static));
        match inner.downcast_ref::<rustls::Error>() {
            Some(reason @ (rustls::Error::InvalidCertificate(_) | rustls::Error::PeerIncompatible(_))) => {
                Some(reason.to_string())
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        parse_url(ErrorField::BaseUrl, text).unwrap()
    }

    #[test]
    fn only_loopback_addresses_are_local() {
        for local in
            ["http://localhost:11434/v1", "http://127.0.0.1", "http://127.1.2.3:80", "https://[::1]:1"]
        {
            assert!(is_loopback(&url(local)), "{local}");
        }
        for remote in [
            "https://api.openai.com/v1",
            "http://192.168.1.7:8000",
            "http://0.0.0.0:8000",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://[fe80::1]",
        ] {
            assert!(!is_loopback(&url(remote)), "{remote}");
        }
    }

    #[test]
    fn errors_about_invalid_urls_do_not_repeat_them() {
        for bad in ["", "api.openai.com/v1", "ftp://example.com", "https://ana:hunter2@example.com"] {
            let error = parse_url(ErrorField::BaseUrl, bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Validation, "{bad}");
            assert_eq!(error.field(), Some(ErrorField::BaseUrl));
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn plain_http_needs_no_certificates() {
        // Without TLS, no certificates are read from the system.
        assert!(client(&url("http://localhost:1"), &ClientOptions::default(), ErrorKind::Embedding).is_ok());
    }

    #[test]
    fn addresses_are_shown_without_query_and_appended_path() {
        for (full, shown) in [
            ("http://localhost:59999/v1/embeddings?key=hunter2", "http://localhost:59999/v1"),
            ("http://localhost/embeddings", "http://localhost"),
            (
                "https://x.openai.azure.com/openai/deployments/a/embeddings?api-version=1",
                "https://x.openai.azure.com",
            ),
        ] {
            assert_eq!(address(&url(full)), shown);
        }
    }

    #[test]
    fn a_key_is_sent_over_plain_http_only_if_allowed() {
        let check = |text: &str, has_key, allow| check_key_is_safe(&url(text), has_key, allow);
        let error = check("http://192.168.1.7:8000/v1", true, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Validation);
        assert!(
            error.to_string().contains("--allow-http") && error.to_string().contains("192.168.1.7"),
            "{error}"
        );
        assert!(check("http://192.168.1.7:8000/v1", true, true).is_ok());
        assert!(check("http://192.168.1.7:8000/v1", false, false).is_ok());
        assert!(check("https://192.168.1.7:8000/v1", true, false).is_ok());
        assert!(check("http://localhost:8000/v1", true, false).is_ok());
    }
}
