//! The address under which clients know the server.

use std::{fmt, str::FromStr};

use axum::http::Uri;

/// The address under which clients know the server: `https://sessions.example.com`, without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl PublicUrl {
    /// The values of the header `Host` that name this address. Clients leave the usual port out.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let mut hosts = vec![format!("{}:{}", self.host, self.port)];
        if self.has_usual_port() {
            hosts.push(self.host.clone());
        }
        hosts
    }

    /// The value of the header `Origin` of pages at this address.
    pub(crate) fn origin(&self) -> String {
        self.to_string()
    }

    fn has_usual_port(&self) -> bool {
        self.port == if self.scheme == "https" { 443 } else { 80 }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.has_usual_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a URL such as https://sessions.example.com");
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let scheme = match uri.scheme_str() {
            Some("https") => "https",
            Some("http") => "http",
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(wrong());
        }
        if !matches!(uri.path(), "" | "/") {
            return Err(format!("{text:?} has a path; the server answers only at the root of a host"));
        }
        let host = authority.host().to_ascii_lowercase();
        let is_loopback = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        if scheme == "http" && !is_loopback {
            return Err(format!("{text:?} must begin with https://: tokens are sent with each request"));
        }
        let port = authority.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        Ok(Self { scheme, host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_with_and_without_its_usual_port() {
        let url: PublicUrl = "https://Sessions.example.com/".parse().unwrap();
        assert_eq!(url.hosts(), ["sessions.example.com:443", "sessions.example.com"]);
        assert_eq!(url.origin(), "https://sessions.example.com");
        let url: PublicUrl = "https://sessions.example.com:8443".parse().unwrap();
        assert_eq!(url.hosts(), ["sessions.example.com:8443"]);
        assert_eq!(url.origin(), "https://sessions.example.com:8443");
        assert!("http://localhost:8080".parse::<PublicUrl>().is_ok());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "sessions.example.com",
            "ftp://sessions.example.com",
            "http://sessions.example.com",
            "https://sessions.example.com/sessions",
            "https://ana:secret@sessions.example.com",
            "https://sessions.example.com?a=b",
        ] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
