//! The HTTP client of the hosted providers and of model downloads. Its errors are those of embedding.

use amplifier_session_core::{ErrorKind, Result};
use reqwest::{Client, Response, Url};

pub(crate) use amplifier_session_http::{
    ALLOW_HTTP, ClientOptions, address, check_key_is_safe, is_loopback, parse_url,
};

/// As [`amplifier_session_http::client`].
pub(crate) fn client(url: &Url, options: &ClientOptions) -> Result<Client> {
    amplifier_session_http::client(url, options, ErrorKind::Embedding)
}

/// As [`amplifier_session_http::read_body`].
pub(crate) async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>> {
    amplifier_session_http::read_body(response, limit, ErrorKind::Embedding).await
}

/// As [`amplifier_session_http::transport_error`].
pub(crate) fn transport_error(error: reqwest::Error) -> amplifier_session_core::Error {
    amplifier_session_http::transport_error(error, ErrorKind::Embedding)
}
