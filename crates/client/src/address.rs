//! The address of a server.

use std::{fmt, str::FromStr};

use amplifier_session_core::{Error, ErrorField, Result};
use amplifier_session_http::parse_url;
use reqwest::Url;

/// The address of a server: `https://sessions.example.com`, or also with a path, if a proxy has it at one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerAddress(Url);

impl ServerAddress {
    /// Whether a text looks like the address of a server, and not like that of another store.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        ["http://", "https://"].iter().any(|scheme| {
            text.trim_start().get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
    }

    /// The host, with the port if it is not the usual one. Tokens belong to it.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        match self.0.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    /// The address of the route with these parts of its path.
    pub(crate) fn route(&self, parts: &[&str]) -> Url {
        let mut url = self.0.clone();
        // Only URLs without a host have no path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }
}

impl FromStr for ServerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let url = parse_url(ErrorField::BaseUrl, text)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(Error::validation(ErrorField::BaseUrl, "must have no `?` and no `#`"));
        }
        Ok(Self(url))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ServerAddress {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_shown_as_they_are_typed() {
        for (text, shown, host) in [
            ("https://sessions.example.com/", "https://sessions.example.com", "sessions.example.com"),
            ("https://example.com:443/sessions", "https://example.com/sessions", "example.com"),
            ("http://127.0.0.1:7878", "http://127.0.0.1:7878", "127.0.0.1:7878"),
        ] {
            assert_eq!(
                (address(text).to_string(), address(text).host()),
                (shown.to_owned(), host.to_owned())
            );
        }
        assert!(ServerAddress::is_one("HTTPS://example.com") && !ServerAddress::is_one("sqlite:x.sqlite"));
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for wrong in
            ["example.com", "ftp://example.com", "https://ana:hunter2@example.com", "https://x/?a=1", ""]
        {
            let error = wrong.parse::<ServerAddress>().unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{wrong}");
        }
    }

    #[test]
    fn routes_come_after_the_path_and_ids_are_one_part_of_it() {
        let url = address("https://example.com/sessions/").route(&["v1", "rows", "a/b?c"]);
        assert_eq!(url.as_str(), "https://example.com/sessions/v1/rows/a%2Fb%3Fc");
        assert_eq!(address("https://example.com").route(&["v1"]).as_str(), "https://example.com/v1");
    }
}
