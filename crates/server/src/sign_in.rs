//! Who a request comes from.

use std::net::IpAddr;

use amplifier_session_api::{ApiCaller, Reach};
use amplifier_session_core::model::{Timestamp, UserId};
use axum::http::{HeaderMap, header};

use crate::{
    network::AddressRange,
    problem::HttpProblem,
    quota::StorageQuota,
    routes::HttpRoute,
    settings::ProxySignIn,
    tokens::{AccessToken, TokenBook},
};

/// Header values of `WWW-Authenticate`.
const NO_TOKEN: &str = r#"Bearer realm="amplifier-sessions""#;
const INVALID_TOKEN: &str = r#"Bearer realm="amplifier-sessions", error="invalid_token""#;

/// The time for which the word of a proxy counts, in microseconds: it does not say when a user signs out.
const PROXY_TRUST: i64 = 15 * 60 * 1_000_000;

/// Signs callers in.
#[derive(Debug)]
pub(crate) struct SignIn {
    tokens: TokenBook,
    proxies: Vec<AddressRange>,
    of_proxy: Option<ProxySignIn>,
}

/// A caller who has signed in. Only [`SignIn::caller`] makes one.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    caller: ApiCaller,
    by: String,
    quota: StorageQuota,
    shown: ShownProof,
}

/// What a caller has shown.
#[derive(Debug, Clone)]
enum ShownProof {
    Token(AccessToken),
    /// The word of a trusted proxy, at this time.
    Proxy(Timestamp),
}

impl SignedIn {
    pub(crate) fn caller(&self) -> &ApiCaller {
        &self.caller
    }

    /// The same caller, who reads only sessions of this owner where they reach farther than their own.
    pub(crate) fn reading_of(self, owner: UserId) -> Self {
        Self { caller: self.caller.with_owner(Some(owner)), ..self }
    }

    /// Checks that they have a right and the reach for this route. A handler checks them too, by the operation that it
    /// calls.
    pub(crate) fn check_rights(&self, route: &HttpRoute) -> Result<(), HttpProblem> {
        if !route.rights().any(|right| self.caller.has(right)) {
            return Err(HttpProblem::missing_right(route.right));
        }
        if route.reach > Reach::Own {
            self.caller.scope(route.reach).map_err(|error| HttpProblem::of_operation(error, route))?;
        }
        Ok(())
    }

    /// How much they may store, as far as their token says so.
    pub(crate) fn quota(&self) -> StorageQuota {
        self.quota
    }

    /// The id of the token, or `proxy:` with the user: requests with the same are limited together.
    pub(crate) fn by(&self) -> &str {
        &self.by
    }
}

impl SignIn {
    pub(crate) fn new(tokens: TokenBook, proxies: Vec<AddressRange>, of_proxy: Option<ProxySignIn>) -> Self {
        Self { tokens, proxies, of_proxy }
    }

    /// The caller of a request that came from the address `peer` at the time `now`: the owner of its token, or else the
    /// user whom a trusted proxy names. All rights come from here.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        now: Timestamp,
    ) -> Result<SignedIn, HttpProblem> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        match (given.next(), given.next()) {
            (Some(given), None) => {
                let token = given.to_str().ok().and_then(bearer).and_then(AccessToken::parse);
                self.of_token(token, now)
            }
            (Some(_), Some(_)) => {
                Err(HttpProblem::unauthenticated("the header authorization occurs twice", INVALID_TOKEN))
            }
            (None, _) => self.of_proxy(headers, peer, now),
        }
    }

    /// The caller with the rights that they have now, for what lasts longer than a request: their token may have been
    /// revoked or changed.
    pub(crate) fn again(&self, signed_in: &SignedIn, now: Timestamp) -> Result<SignedIn, HttpProblem> {
        match &signed_in.shown {
            ShownProof::Token(token) => self.of_token(Some(token.clone()), now),
            ShownProof::Proxy(since) if now.as_micros() - since.as_micros() < PROXY_TRUST => {
                Ok(signed_in.clone())
            }
            ShownProof::Proxy(_) => {
                Err(HttpProblem::unauthenticated("the proxy named the user too long ago", NO_TOKEN))
            }
        }
    }

    fn of_token(&self, token: Option<AccessToken>, now: Timestamp) -> Result<SignedIn, HttpProblem> {
        let found = token.and_then(|token| Some((self.tokens.find(&token, now)?, token)));
        let (record, token) = found.ok_or_else(|| {
            HttpProblem::unauthenticated(
                "the token is not valid: it is mistyped, expired or revoked",
                INVALID_TOKEN,
            )
        })?;
        let (caller, quota) = (record.caller(), record.quota());
        Ok(SignedIn { caller, by: record.id, quota, shown: ShownProof::Token(token) })
    }

    fn of_proxy(&self, headers: &HeaderMap, peer: IpAddr, now: Timestamp) -> Result<SignedIn, HttpProblem> {
        let missing =
            || HttpProblem::unauthenticated("a token is needed: Authorization: Bearer ams_…", NO_TOKEN);
        let proxy = self.of_proxy.as_ref().ok_or_else(missing)?;
        let mut named = headers.get_all(&proxy.header).iter();
        let (Some(user), None) = (named.next(), named.next()) else { return Err(missing()) };
        if !self.is_proxy(peer) {
            tracing::warn!(%peer, "a user was named by an address that is no trusted proxy");
            return Err(missing());
        }
        let user =
            user.to_str().ok().map(str::trim).and_then(|user| UserId::new(user).ok()).ok_or_else(missing)?;
        let by = format!("proxy:{user}");
        let caller = ApiCaller::new(user).with_reach(proxy.reach).with_rights(proxy.rights.iter().copied());
        Ok(SignedIn { caller, by, quota: StorageQuota::default(), shown: ShownProof::Proxy(now) })
    }

    /// Whether `peer` is a trusted proxy.
    pub(crate) fn is_proxy(&self, peer: IpAddr) -> bool {
        self.proxies.iter().any(|range| range.contains(peer))
    }

    /// The address of the client: `peer`, or the nearest address that trusted proxies name and that is none of them.
    pub(crate) fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        if !self.is_proxy(peer) {
            return peer;
        }
        let forwarded = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let addresses: Vec<&str> = forwarded.flat_map(|value| value.split(',')).map(str::trim).collect();
        // The first addresses are those that clients claim.
        for address in addresses.into_iter().rev() {
            match address.parse() {
                Ok(address) if !self.is_proxy(address) => return address,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        peer
    }
}

/// The token in a value of `Authorization`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use amplifier_session_api::AccessRight;

    use super::*;
    use crate::tokens::{NewToken, TokenFile};

    struct Fixture {
        _folder: tempfile::TempDir,
        token: AccessToken,
        sign_in: SignIn,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let new = NewToken { reach: Reach::Visible, ..NewToken::new(UserId::new("ana").unwrap()) };
        let token = file.create(&new, now()).unwrap();
        let of_proxy = ProxySignIn {
            header: "x-forwarded-user".parse().unwrap(),
            reach: Reach::Own,
            rights: vec![AccessRight::Read],
        };
        let proxies = vec!["10.0.0.0/8".parse().unwrap()];
        let sign_in = SignIn::new(TokenBook::open(file).unwrap(), proxies, Some(of_proxy));
        Fixture { _folder: folder, token, sign_in }
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-28T10:00:00Z").unwrap()
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_token_names_its_user() {
        let Fixture { token, sign_in, .. } = &fixture();
        let peer = "192.0.2.1".parse().unwrap();
        let by = |value: &str| sign_in.caller(&headers(&[("authorization", value)]), peer, now());
        for value in [format!("Bearer {}", token.text()), format!("bearer  {} ", token.text())] {
            let signed_in = by(&value).unwrap();
            assert_eq!((signed_in.caller().user().as_str(), signed_in.by()), ("ana", token.id()));
        }
        for value in [token.text(), "Basic YTpi", "Bearer", "Bearer x", &format!("Token {}", token.text())] {
            assert_eq!(by(value).unwrap_err().status().as_u16(), 401, "{value}");
        }
        let twice = format!("Bearer {}", token.text());
        let twice = headers(&[("authorization", &twice), ("authorization", &twice)]);
        assert!(sign_in.caller(&twice, peer, now()).is_err());
    }

    #[test]
    fn only_a_trusted_proxy_names_users() {
        let Fixture { token, sign_in, .. } = &fixture();
        let named = headers(&[("x-forwarded-user", "ben")]);
        let by = |headers: &HeaderMap, peer: &str| sign_in.caller(headers, peer.parse().unwrap(), now());
        let signed_in = by(&named, "10.1.2.3").unwrap();
        assert_eq!((signed_in.caller().user().as_str(), signed_in.by()), ("ben", "proxy:ben"));
        assert!(by(&named, "192.0.2.1").is_err());
        assert!(by(&headers(&[]), "10.1.2.3").is_err());
        assert!(by(&headers(&[("x-forwarded-user", "")]), "10.1.2.3").is_err());
        assert!(
            by(&headers(&[("x-forwarded-user", "ben"), ("x-forwarded-user", "ana")]), "10.1.2.3").is_err()
        );
        // A token says more than a proxy, and a wrong one is not ignored.
        let token = format!("Bearer {}", token.text());
        let both = headers(&[("x-forwarded-user", "ben"), ("authorization", &token)]);
        assert_eq!(by(&both, "10.1.2.3").unwrap().caller().user().as_str(), "ana");
        assert!(
            by(&headers(&[("x-forwarded-user", "ben"), ("authorization", "Bearer x")]), "10.1.2.3").is_err()
        );
    }

    #[test]
    fn the_word_of_a_proxy_counts_for_a_while_and_a_token_until_it_is_revoked() {
        let Fixture { token, sign_in, .. } = &fixture();
        let named = headers(&[("x-forwarded-user", "ben")]);
        let signed_in = sign_in.caller(&named, "10.1.2.3".parse().unwrap(), now()).unwrap();
        let later = |minutes: i64| Timestamp::from_micros(now().as_micros() + minutes * 60_000_000);
        assert!(sign_in.again(&signed_in, later(14)).is_ok());
        assert!(sign_in.again(&signed_in, later(15)).is_err());
        let shown = headers(&[("authorization", &format!("Bearer {}", token.text()))]);
        let signed_in = sign_in.caller(&shown, "192.0.2.1".parse().unwrap(), now()).unwrap();
        assert_eq!(sign_in.again(&signed_in, later(60)).unwrap().by(), token.id());
        sign_in.tokens.file().revoke(token.id()).unwrap();
        sign_in.tokens.expire();
        assert!(sign_in.again(&signed_in, later(60)).is_err());
    }

    #[test]
    fn the_client_is_the_nearest_address_that_is_no_proxy() {
        let Fixture { sign_in, .. } = &fixture();
        let client = |forwarded: &[(&'static str, &str)], peer: &str| {
            sign_in.client(&headers(forwarded), peer.parse().unwrap()).to_string()
        };
        let claimed = [("x-forwarded-for", "203.0.113.9, 192.0.2.7, 10.0.0.2")];
        assert_eq!(client(&claimed, "10.0.0.1"), "192.0.2.7");
        assert_eq!(client(&claimed, "198.51.100.1"), "198.51.100.1");
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7, unknown")], "10.0.0.1"), "10.0.0.1");
        assert_eq!(client(&[], "10.0.0.1"), "10.0.0.1");
    }
}
