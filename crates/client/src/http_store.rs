//! A store behind a server.

use std::time::Duration;

use amplifier_session_api::releases::{VERSION, VERSION_HEADER, work_together};
use amplifier_session_core::{
    Backoff, Error, ErrorKind, Result, Secret,
    model::{SessionId, UserId},
    storage::{ExtentPage, ExtentQuery, RowOrigin, RowSink, RowTarget, RowUpload, SendRows},
};
use amplifier_session_http::{ClientOptions, check_key_is_safe, client, read_body, transport_error};
use async_trait::async_trait;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

use crate::{ServerAddress, refusal::refused, upload::HttpUpload};

/// The most attempts for a request that changes nothing.
const ATTEMPTS: u32 = 4;
/// The longest wait before the second attempt, and before any.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// The longest wait that a server may ask for. If it asks for more, the request fails.
const LONGEST_DEMAND: Duration = Duration::from_secs(60);
/// The time in which an answer must begin, and go on.
const ANSWER: Duration = Duration::from_secs(75);
/// The time in which the answer to sent sessions must begin, from the first byte that is sent. The server gives up before.
const STORED: Duration = Duration::from_secs(330);
/// The most sessions that a request names. The address of a request can't be of any length.
const NAMED: usize = 100;
/// The most bytes of an answer that is no stream.
const LARGEST: usize = 64 << 20;
/// The most bytes of an answer that says why there is no other.
const LARGEST_PROBLEM: usize = 1 << 20;

/// The kind of error of a connection.
pub(crate) const CONNECTION: ErrorKind = ErrorKind::StorageConnection;

/// A store behind a server, to which sessions are pushed and from which they are pulled, and which answers operations.
#[derive(Debug)]
pub struct HttpStore {
    pub(crate) requests: HttpRequests,
    /// The owner of the token, who was asked for once.
    owner: OnceCell<TokenOwner>,
}

/// Makes requests.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequests {
    address: ServerAddress,
    asking: Client,
    sending: Client,
    /// It is sensitive, so that no log shows it.
    authorization: HeaderValue,
}

/// The owner of a token, as `/v1/me` describes them.
#[derive(Debug, Clone, Deserialize)]
pub struct TokenOwner {
    /// The user.
    pub user_id: UserId,
    /// Their teams.
    #[serde(default)]
    pub teams: Vec<String>,
    /// Their organisation.
    #[serde(default)]
    pub org: Option<String>,
}

/// The answer of `/v1/sessions/{id}`, as far as it matters here.
#[derive(Debug, Deserialize)]
struct SessionAnswer {
    session: IdOfSession,
}

#[derive(Debug, Deserialize)]
struct IdOfSession {
    session_id: SessionId,
}

impl HttpStore {
    /// The store of the server at `address`, for the owner of `token`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `Validation` (`base_url`) if the token would be sent to another machine over plain `http://`, unless `allow_http`
    /// is set; `Authentication` if it can't be one; `StorageConnection` if TLS can't be set up.
    pub fn new(address: ServerAddress, token: &Secret, allow_http: bool) -> Result<Self> {
        check_key_is_safe(address.url(), true, allow_http)?;
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(|_| {
                let message = format!("the token for {} has characters that no token has", address.host());
                Error::new(ErrorKind::Authentication, message)
            })?;
        authorization.set_sensitive(true);
        let with = |read_timeout| {
            let options = ClientOptions { read_timeout, ..ClientOptions::default() };
            client(address.url(), &options, CONNECTION)
        };
        let (asking, sending) = (with(ANSWER)?, with(STORED)?);
        let requests = HttpRequests { address, asking, sending, authorization };
        Ok(Self { requests, owner: OnceCell::new() })
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.requests.address
    }

    /// The id of the session that an address names: an id, a unique prefix, or `latest`.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; errors of the connection.
    pub async fn find_session(&self, address: &str) -> Result<SessionId> {
        let found: Result<SessionAnswer> = self.requests.json(&["v1", "sessions", address], &[]).await;
        found.map(|found| found.session.session_id).map_err(|error| error.with("session", address))
    }

    /// The owner of the token.
    ///
    /// # Errors
    ///
    /// `Authentication` if the server does not know the token; errors of the connection.
    pub async fn owner(&self) -> Result<&TokenOwner> {
        self.owner.get_or_try_init(|| self.requests.json(&["v1", "me"], &[])).await
    }

    /// Checks that the token belongs to this user: the server takes only sessions of its owner.
    async fn check_user(&self, user: &UserId) -> Result<()> {
        let owner = &self.owner().await?.user_id;
        if owner == user {
            return Ok(());
        }
        let message = format!("the token is that of {owner}, and the sessions are those of {user}");
        let hint = format!(
            "`token create --user {user}` on the server makes a token for them; or store sessions as {owner} with --user"
        );
        Err(self.requests.named(Error::new(ErrorKind::Authentication, message).with_hint(hint)))
    }

    async fn extents_of(&self, query: &ExtentQuery) -> Result<ExtentPage> {
        self.check_user(&query.user_id).await?;
        let mut parameters = vec![("store", query.store.clone())];
        let Some(named) = &query.sessions else {
            parameters.push(("limit", query.limit.to_string()));
            parameters.extend(query.after.as_ref().map(|after| ("after", after.to_string())));
            return self.requests.json(&["v1", "rows", "extents"], &parameters).await;
        };
        let (named, next) = page_of(named, query);
        // Without a name, the answer would be about all sessions.
        let limit = named.len().max(1);
        parameters.push(("limit", limit.to_string()));
        parameters.extend(named.iter().map(|id| ("session", id.to_string())));
        let mut page: ExtentPage = self.requests.json(&["v1", "rows", "extents"], &parameters).await?;
        page.sessions.retain(|extent| named.contains(&extent.session_id));
        page.deleted.retain(|id| named.contains(id));
        page.next = next;
        Ok(page)
    }
}

/// The sessions that one request names, and the one after which the next request goes on.
fn page_of(named: &[SessionId], query: &ExtentQuery) -> (Vec<SessionId>, Option<SessionId>) {
    let is_left = |id: &&SessionId| query.after.as_ref().is_none_or(|after| *id > after);
    let mut page: Vec<SessionId> = named.iter().filter(is_left).cloned().collect();
    page.sort_unstable();
    page.dedup();
    let most = query.limit.clamp(1, NAMED);
    let has_more = page.len() > most;
    page.truncate(most);
    let next = page.last().filter(|_| has_more).cloned();
    (page, next)
}

#[async_trait]
impl RowTarget for HttpStore {
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage> {
        self.extents_of(query).await
    }

    async fn upload(&self, include_deleted: bool) -> Result<Box<dyn RowUpload>> {
        Ok(Box::new(HttpUpload::begin(self.requests.clone(), include_deleted)?))
    }
}

#[async_trait]
impl RowOrigin for HttpStore {
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage> {
        self.extents_of(query).await
    }

    async fn read(&self, rows: &SendRows, sink: &mut dyn RowSink) -> Result<()> {
        self.check_user(&rows.session.user_id).await?;
        let path = ["v1", "rows", rows.session.session_id.as_str()];
        let mut response = self.requests.get(&path, &parameters_of(rows)).await?;
        let broken = |error| self.requests.broken(error);
        while let Some(bytes) = response.chunk().await.map_err(broken)? {
            sink.put(bytes.to_vec()).await?;
        }
        Ok(())
    }
}

fn parameters_of(rows: &SendRows) -> Vec<(&'static str, String)> {
    let (messages, events) = (rows.before.messages, rows.before.events);
    let mut parameters = vec![
        ("after_message", messages.count.to_string()),
        ("after_event", events.count.to_string()),
        ("digest", String::from(messages.digest) + &String::from(events.digest)),
        ("superseded", rows.superseded.pieces.to_string()),
    ];
    parameters.extend(rows.superseded.until.map(|until| ("superseded_until", until.to_string())));
    if rows.may_replace {
        parameters.push(("may_replace", "true".to_owned()));
    }
    parameters.extend(rows.max_bytes.map(|most| ("max_bytes", most.to_string())));
    parameters
}

impl HttpRequests {
    /// An error with the address of the server.
    pub(crate) fn named(&self, error: Error) -> Error {
        error.at(&self.address)
    }

    /// The error of a connection.
    pub(crate) fn broken(&self, error: reqwest::Error) -> Error {
        let hint = "check the address, the network, and whether `serve` runs there";
        self.named(transport_error(error, CONNECTION).with_hint(hint))
    }

    /// The object that answers a request that may be repeated.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[(&str, String)],
    ) -> Result<T> {
        let response = self.get(path, parameters).await?;
        self.decoded(response).await
    }

    /// The answer to a request that may be repeated.
    async fn get(&self, path: &[&str], parameters: &[(&str, String)]) -> Result<Response> {
        let mut url = self.address.route(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        self.repeated(|| self.asking.get(url.clone())).await
    }

    /// The answer to a call of an operation. It is repeated only if it changes nothing.
    pub(crate) async fn post_call(&self, path: &str, call: &[u8], may_repeat: bool) -> Result<Response> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let url = self.address.route(&parts);
        let request = || {
            let request = self.sending.post(url.clone()).header(CONTENT_TYPE, "application/json");
            request.body(call.to_vec())
        };
        if may_repeat { self.repeated(request).await } else { self.answer(request()).await }
    }

    async fn repeated(&self, request: impl Fn() -> RequestBuilder) -> Result<Response> {
        let mut backoff = Backoff::new(WAITS.0, WAITS.1, fastrand::u64(..));
        for attempt in 1.. {
            let error = match self.answer(request()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let asks_too_much = error.retry_after().is_some_and(|wait| wait > LONGEST_DEMAND);
            if !error.is_retryable() || attempt >= ATTEMPTS || asks_too_much {
                return Err(if attempt > 1 { error.with("attempts", attempt) } else { error });
            }
            tracing::debug!(attempt, %error, "a request to a server failed");
            tokio::time::sleep(backoff.next(error.retry_after())).await;
        }
        Err(self.named(Error::new(CONNECTION, "there is no answer")))
    }

    /// The answer to a stream of sessions. It is not repeated, because the stream is gone.
    pub(crate) async fn post_rows(&self, body: reqwest::Body, include_deleted: bool) -> Result<Response> {
        let mut url = self.url_of_rows();
        if include_deleted {
            url.query_pairs_mut().append_pair("include_deleted", "true");
        }
        let request = self
            .sending
            .post(url)
            .header("content-type", "application/jsonl")
            .header("content-encoding", "zstd")
            .body(body);
        self.answer(request).await
    }

    fn url_of_rows(&self) -> Url {
        self.address.route(&["v1", "rows"])
    }

    /// The answer to a request, if it is a success.
    async fn answer(&self, request: RequestBuilder) -> Result<Response> {
        let request =
            request.header(AUTHORIZATION, self.authorization.clone()).header(VERSION_HEADER, VERSION);
        let sent = request.send().await;
        let response = sent.map_err(|error| self.broken(error))?;
        if let Some(server) = response.headers().get(VERSION_HEADER).and_then(|version| version.to_str().ok())
            && !work_together(VERSION, server)
        {
            let message = format!(
                "the server has version {server:?} and this program {VERSION}, and they must be at most one release apart"
            );
            return Err(self.named(Error::new(CONNECTION, message).with_hint("update the older one")));
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response, LARGEST_PROBLEM, CONNECTION).await.unwrap_or_default();
        Err(self.named(refused(status, &headers, &body)))
    }

    /// The object in an answer.
    pub(crate) async fn decoded<T: DeserializeOwned>(&self, response: Response) -> Result<T> {
        let body = read_body(response, LARGEST, CONNECTION).await.map_err(|error| self.named(error))?;
        serde_json::from_slice(&body).map_err(|source| {
            self.named(Error::new(CONNECTION, "the answer can't be read")).with_source(source)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[test]
    fn many_sessions_are_named_in_several_requests() {
        let named: Vec<SessionId> = (0..250).rev().map(|n| id(&format!("s{n:03}"))).collect();
        let query = ExtentQuery::new(UserId::new("ana").unwrap(), "x");
        let (first, next) = page_of(&named, &query);
        assert_eq!((first.len(), next.as_ref()), (NAMED, Some(&id("s099"))));
        let (second, next) = page_of(&named, &query.clone().with_after(next));
        assert_eq!((second.len(), next.as_ref()), (NAMED, Some(&id("s199"))));
        let (last, next) = page_of(&named, &query.with_after(next));
        assert_eq!((last.len(), next), (50, None));
    }

    #[test]
    fn a_token_goes_to_other_machines_only_over_tls() {
        let store = |url: &str, allow| HttpStore::new(url.parse().unwrap(), &Secret::new("ams_x"), allow);
        let error = store("http://192.0.2.1:7878", false).unwrap_err();
        assert!(error.to_string().contains("--allow-http"), "{error}");
        assert!(store("http://192.0.2.1:7878", true).is_ok() && store("http://[::1]:7878", false).is_ok());
        let broken = HttpStore::new("http://[::1]".parse().unwrap(), &Secret::new("hunter\n2"), false);
        let broken = broken.unwrap_err();
        assert!(broken.kind() == ErrorKind::Authentication && !format!("{broken:?}").contains("hunter"));
        let shown = format!("{:?}", store("http://localhost", false).unwrap());
        assert!(!shown.contains("ams_x"), "{shown}");
    }
}
