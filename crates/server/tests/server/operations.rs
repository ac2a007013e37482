//! Operations for the command line of another machine, with the client that it uses.

use amplifier_session_api::{
    AccessRight, ApiError, InvalidRequest, Reach,
    operations::{
        edit::EditRequest, search::SearchRequest, session::SessionRequest, sessions::SessionsRequest,
        statistics::StatisticsRequest,
    },
    remote::{AnyApi, RemoteApi, SkippedSessions},
};
use amplifier_session_client::HttpStore;
use amplifier_session_core::{ErrorKind, Secret};
use amplifier_session_testkit::{lines, prelude::*};
use jiff::Zoned;

use crate::{Running, SECRET, cases_of_operations::operation, client::Request};

/// A user at another machine.
pub(crate) struct Remote {
    server: HttpStore,
    now: Zoned,
    skipped: SkippedSessions,
}

impl Remote {
    pub(crate) fn new(server: &Running, user: &str, reach: Reach, rights: &[AccessRight]) -> Self {
        let token = Secret::new(&server.token(user, reach, rights));
        let address = format!("http://{}", server.address).parse().unwrap();
        let server = HttpStore::new(address, &token, false).unwrap();
        let now = "2026-03-29T03:30:00+02:00[Europe/Berlin]".parse().unwrap();
        Self { server, now, skipped: SkippedSessions::default() }
    }

    pub(crate) fn api(&self) -> AnyApi<'_> {
        let Self { server, now, skipped } = self;
        AnyApi::There(RemoteApi { server, now, home: None, skipped, masked: false })
    }

    async fn session(&self, address: &str) -> Result<String, ApiError> {
        let request = SessionRequest { scope: Reach::Own, session: address.to_owned(), short_ids: false };
        Ok(self.api().session(&request).await?.response.session.session.session_id.to_string())
    }
}

#[tokio::test]
async fn responses_and_remarks_are_those_of_the_api() {
    let server = Running::start().await;
    let ana = Remote::new(&server, "ana", Reach::Own, &AccessRight::ALL);
    let found = ana.api().search(&SearchRequest::new("connection pool")).await.unwrap();
    assert_eq!(found.response.results.len(), 6);
    let none = ana.api().search(&SearchRequest::new("xyzzy")).await.unwrap();
    assert!(none.response.results.is_empty() && !none.notices.is_empty());
    let edit = EditRequest {
        session: "third".to_owned(),
        name: Some("renamed".to_owned()),
        description: None,
        clear: Vec::new(),
        reset: Vec::new(),
    };
    let edited = ana.api().edit(&edit).await.unwrap().response.session.session;
    assert_eq!((edited.session_id.as_str(), edited.name.as_deref()), ("third-1", Some("renamed")));
    let days = ana.api().statistics(&StatisticsRequest::default()).await.unwrap().response;
    assert_eq!(days.tz, "Europe/Berlin");
}

#[tokio::test]
async fn errors_are_those_of_the_api_and_say_nothing_about_others() {
    let server = Running::start().await;
    let ana = Remote::new(&server, "ana", Reach::Own, &AccessRight::ALL);
    for address in ["fourth-1", "nobodys-1"] {
        let ApiError::Storage(error) = ana.session(address).await.unwrap_err() else { panic!("{address}") };
        assert_eq!(
            (error.kind(), error.context("session"), error.message()),
            (ErrorKind::SessionNotFound, Some(address), "no such session")
        );
    }
    assert_eq!(ana.session("first").await.unwrap(), "first-1");
    let all = SessionsRequest { scope: Reach::All, ..SessionsRequest::default() };
    let refused = ana.api().sessions(&all).await.unwrap_err();
    assert!(matches!(refused, ApiError::BeyondReach { reach: Reach::Own, .. }), "{refused}");
    let mut since = SessionsRequest::default();
    since.filter.since = Some("someday".to_owned());
    let refused = ana.api().sessions(&since).await.unwrap_err();
    assert!(matches!(refused, ApiError::Invalid(InvalidRequest::NotADate { .. })), "{refused}");
    let reader = Remote::new(&server, "ana", Reach::Own, &[AccessRight::Read]);
    let edit = json!({"session": "first-1", "name": "x"});
    let edit: EditRequest = serde_json::from_value(edit).unwrap();
    let refused = reader.api().edit(&edit).await.unwrap_err();
    assert!(refused.to_string().contains("no right to write"), "{refused}");
}

#[tokio::test]
async fn a_request_of_another_version_is_refused_if_it_would_not_be_understood() {
    let server = Running::start().await;
    let post = async |name: &str, body: &Value| {
        let path = format!("/v1/operations/{name}");
        let reply = server.ana("POST", &path).json(body).send().await;
        (reply.status, reply.json())
    };
    let call = |name: &str, request: Value| -> Value {
        let case = operation(name, &request);
        serde_json::from_str(&case.body.unwrap().1).unwrap()
    };
    let unknown = post("sessions", &call("sessions", json!({"of_tomorrow": 1}))).await;
    assert_eq!((unknown.0, &unknown.1["kind"]), (400, &json!("validation")));
    assert!(unknown.1["detail"].as_str().unwrap().contains("of_tomorrow"), "{unknown:?}");
    assert_eq!(post("sessions", &json!({"request": {}})).await.1["field"], "now");
    assert_eq!(post("sessions", &json!({"now": "today", "request": {}})).await.1["field"], "now");
    assert_eq!(post("sessions", &json!({"now": "2026-03-29T03:30:00Z[UTC]"})).await.1["field"], "request");
    assert_eq!(post("of_tomorrow", &call("of_tomorrow", json!({}))).await.0, 404);
    let old = Request::new(server.address, "POST", "/v1/operations/sessions");
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    let old = old.header("authorization", &format!("Bearer {token}"));
    let old = old.header("x-amplifier-sessions-version", "99.0.0").json(&call("sessions", json!({})));
    assert_eq!(old.send().await.problem(), (400, "unsupported_version".to_owned()));
}

#[tokio::test]
async fn only_what_is_read_can_be_masked() {
    let server = Running::start().await;
    let text = format!("the key is {}", SECRET);
    let target = target_of("ana", "shop", "secret-1");
    server.storage.ingestion().sync_transcript_lines(&target, whole(vec![lines::user(&text)])).await.unwrap();
    let post = async |name: &str, request: &Value, masked: bool| {
        let mut call: Value = serde_json::from_str(&operation(name, request).body.unwrap().1).unwrap();
        call["masked"] = masked.into();
        server.ana("POST", &format!("/v1/operations/{name}")).json(&call).send().await
    };
    let read = json!({"session": "secret-1"});
    for (masked, is_there) in [(false, true), (true, false)] {
        let found = post("messages", &read, masked).await.ok().to_string();
        assert_eq!(found.contains(SECRET), is_there, "{found}");
    }
    let edit = post("edit", &json!({"session": "secret-1", "name": "x"}), true).await;
    assert_eq!((edit.status, &edit.json()["field"]), (400, &json!("masked")));
}
