//! The check of Host and Origin, before anything else is done with a request.
//!
//! A page in a browser can send requests to servers on the same machine, and can give them a name of its own (DNS
//! rebinding). So the server answers only requests that use its own names, and, where a browser says which page sent
//! them, only those of its own pages.

use std::{collections::BTreeSet, net::SocketAddr};

use axum::http::{HeaderMap, Request, header};

use crate::{problem::HttpProblem, public_url::PublicUrl};

/// The names of the server.
#[derive(Debug)]
pub(crate) struct Gate {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Gate {
    /// The gate of a server that listens on `address`: the names of this machine with its port, and the public URL.
    pub(crate) fn new(address: SocketAddr, has_tls: bool, public: Option<&PublicUrl>) -> Self {
        let (scheme, usual) = if has_tls { ("https", 443) } else { ("http", 80) };
        let (mut hosts, mut origins) = (BTreeSet::new(), BTreeSet::new());
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            hosts.insert(format!("{name}:{}", address.port()));
            if address.port() == usual {
                hosts.insert(name.to_owned());
                origins.insert(format!("{scheme}://{name}"));
            } else {
                origins.insert(format!("{scheme}://{name}:{}", address.port()));
            }
        }
        if let Some(url) = public {
            hosts.extend(url.hosts());
            origins.insert(url.origin());
        }
        Self { hosts, origins }
    }

    /// Refuses requests with foreign names.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), HttpProblem> {
        let host = only(request.headers(), &header::HOST)?;
        // HTTP/2 and requests for proxies name the host in the address.
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let named: Vec<&str> = host.into_iter().chain(authority).collect();
        if named.is_empty() {
            return Err(HttpProblem::foreign("the request has no header Host"));
        }
        if let Some(foreign) = named.iter().find(|host| !self.hosts.contains(&host.to_ascii_lowercase())) {
            return Err(HttpProblem::foreign(&format!("this server is not {foreign}")));
        }
        match only(request.headers(), &header::ORIGIN)? {
            Some(origin) if !self.origins.contains(&origin.to_ascii_lowercase()) => {
                Err(HttpProblem::foreign(&format!("pages of {origin} may not use this server")))
            }
            _ => Ok(()),
        }
    }
}

/// The value of a header that must not occur twice.
fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a str>, HttpProblem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let value = value.to_str().ok().filter(|value| !value.is_empty());
            value.map(Some).ok_or_else(|| HttpProblem::foreign(&format!("the header {name} is not valid")))
        }
        (Some(_), Some(_)) => Err(HttpProblem::foreign(&format!("the header {name} occurs twice"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[(&str, &str)], public: Option<&str>) -> bool {
        let mut request = Request::builder().uri("/v1/sessions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let public: Option<PublicUrl> = public.map(|url| url.parse().unwrap());
        let gate = Gate::new("127.0.0.1:7878".parse().unwrap(), false, public.as_ref());
        gate.check(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn only_own_names_are_answered() {
        for host in ["127.0.0.1:7878", "localhost:7878", "LOCALHOST:7878", "[::1]:7878"] {
            assert!(checked(&[("host", host)], None), "{host}");
        }
        for host in [
            "localhost",
            "localhost:80",
            "evil.example.com:7878",
            "127.0.0.1:7878.evil.example.com",
            "sessions.example.com",
            "",
        ] {
            assert!(!checked(&[("host", host)], None), "{host}");
        }
        assert!(!checked(&[], None));
        assert!(!checked(&[("host", "localhost:7878"), ("host", "evil.example.com")], None));
        let public = Some("https://sessions.example.com");
        assert!(checked(&[("host", "sessions.example.com")], public));
        assert!(checked(&[("host", "sessions.example.com:443")], public));
        assert!(!checked(&[("host", "sessions.example.com:7878")], public));
    }

    #[test]
    fn only_own_pages_are_answered() {
        let public = Some("https://sessions.example.com");
        let from = |origin: &str| checked(&[("host", "localhost:7878"), ("origin", origin)], public);
        assert!(from("http://localhost:7878") && from("https://sessions.example.com"));
        for origin in [
            "null",
            "http://evil.example.com",
            "https://localhost:7878",
            "http://localhost:3000",
            "https://sessions.example.com.evil.example.com",
        ] {
            assert!(!from(origin), "{origin}");
        }
    }

    #[test]
    fn the_address_in_the_request_line_counts_too() {
        let gate = Gate::new("127.0.0.1:7878".parse().unwrap(), false, None);
        let request =
            |uri: &str| Request::builder().uri(uri).header("host", "localhost:7878").body(()).unwrap();
        assert!(gate.check(&request("http://localhost:7878/healthz")).is_ok());
        assert!(gate.check(&request("http://evil.example.com/healthz")).is_err());
    }
}
