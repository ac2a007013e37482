//! The responses of an account.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use azure_core::http::Request as EmulatorRequest;
use http_body_util::BodyExt as _;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    http::request::Parts,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    Call, Fault, Kind, Shared, credentials, nearest,
    queries::{self, Special, VectorQuery},
    request,
};
use crate::loopback::{self, Piece};

/// Serves until it is dropped, which closes all connections.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loopback::serve(listener, move |request| respond(Arc::clone(&shared), request)).await;
}

/// A response before it is sent.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Answer {
    fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![
                ("content-type".to_owned(), "application/json".to_owned()),
                ("x-ms-request-charge".to_owned(), "1".to_owned()),
            ],
            body: body.to_string().into(),
        }
    }

    fn refusal(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"code": status.to_string(), "message": message}))
    }

    fn with_header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn into_response(self, cut: bool) -> io::Result<Response<Piece>> {
        let mut response = Response::builder().status(self.status);
        // The body has its own length.
        for (name, value) in self.headers.into_iter().filter(|(name, _)| name != "content-length") {
            response = response.header(name, value);
        }
        response.body(Piece::new(self.body, cut)).map_err(io::Error::other)
    }
}

/// Responds to a call. An error closes the connection without a response.
async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Response<Piece>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = Call::new(&parts, &body);
    let same = same(&parts, &body);
    let fault = {
        let mut state = shared.state();
        state.calls.push(call.clone());
        if state.not_before.remove(&same).is_some_and(|time| Instant::now() < time) {
            state.too_early += 1;
        }
        let fault = state.script.fault(&call);
        state.faults += usize::from(fault.is_some());
        fault
    };
    match fault {
        Some(Fault::CutBefore) => return Err(io::Error::other("connection closed as scripted")),
        Some(Fault::Refuse { status, substatus, retry_after }) => {
            if let Some(wait) = retry_after {
                shared.state().not_before.insert(same, Instant::now() + wait);
            }
            return refuse(status, substatus, retry_after).into_response(false);
        }
        Some(Fault::RefuseOperation { operation, status }) if call.kind == Kind::Batch => {
            return refuse_operation(call.operations, operation, status).into_response(false);
        }
        Some(Fault::Hold) => shared.hold().await,
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        _ => {}
    }
    let answer = answer(&shared, &call, &parts, &body).await;
    answer.into_response(fault == Some(Fault::CutInside))
}

/// A number that is the same for repetitions of a call.
fn same(parts: &Parts, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parts.method.as_str(), parts.uri.path(), body).hash(&mut hasher);
    hasher.finish()
}

fn refuse(status: u16, substatus: Option<u32>, retry_after: Option<Duration>) -> Answer {
    let mut answer = Answer::refusal(status, "The account refuses as scripted.");
    if let Some(substatus) = substatus {
        answer = answer.with_header("x-ms-substatus", substatus);
    }
    if let Some(wait) = retry_after {
        answer = answer.with_header("x-ms-retry-after-ms", wait.as_millis());
    }
    answer
}

fn refuse_operation(operations: usize, operation: usize, status: u16) -> Answer {
    let refused = operation.min(operations.saturating_sub(1));
    let code = |index| if index == refused { status } else { 424 };
    let results: Vec<Value> =
        (0..operations).map(|index| json!({"statusCode": code(index), "requestCharge": 0.0})).collect();
    Answer::json(207, &Value::Array(results))
}

async fn answer(shared: &Shared, call: &Call, parts: &Parts, body: &Bytes) -> Answer {
    let tokens = shared.state().tokens.clone();
    let of = (&parts.method, call.path.as_str(), call.kind);
    if let Err((status, message)) = credentials::check(&shared.options.key, &tokens, of, &parts.headers) {
        return Answer::refusal(status, message);
    }
    let special = match call.query.as_deref().map_or(Ok(None), queries::special) {
        Ok(special) => special,
        Err(message) => {
            shared.state().refused_queries.push(call.query.clone().unwrap_or_default());
            return Answer::refusal(400, &message);
        }
    };
    let answered = match (call.kind, special) {
        (Kind::QueryPlan, Some(special)) => Ok(Answer::json(200, &special.plan())),
        (_, Some(Special::Vectors(query))) => nearest_vectors(shared, &query, parts, body).await,
        (_, Some(Special::Texts(query))) => texts(shared, &query, parts, body).await,
        (Kind::Container, None) => container(shared, call, parts, body).await,
        (_, None) => forward(shared, parts, body.to_vec()).await,
    };
    answered.unwrap_or_else(|message| Answer::refusal(400, &message))
}

/// Forwards a call to the emulator.
async fn forward(shared: &Shared, parts: &Parts, body: Vec<u8>) -> Result<Answer, String> {
    ask(shared, &request::for_emulator(&shared.endpoint, parts, body)?).await
}

async fn ask(shared: &Shared, request: &EmulatorRequest) -> Result<Answer, String> {
    let answer = shared.emulator.execute_request(request).await.map_err(|error| error.to_string())?;
    let answer = answer.try_into_raw_response().await.map_err(|error| error.to_string())?;
    let headers = answer.headers().iter();
    Ok(Answer {
        status: u16::from(answer.status()),
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), value.as_str().to_owned())).collect(),
        body: Bytes::from(answer.into_body().to_vec()),
    })
}

/// Keeps the vector and full-text policies of containers, because the emulator does not.
async fn container(shared: &Shared, call: &Call, parts: &Parts, body: &Bytes) -> Result<Answer, String> {
    let mut answer = forward(shared, parts, body.to_vec()).await?;
    if answer.is_success()
        && let Ok(mut properties) = serde_json::from_slice::<Value>(&answer.body)
        && let (Some(id), Some(database)) = (properties.get("id"), call.path.split('/').nth(2))
    {
        let name = (database.to_owned(), id.as_str().unwrap_or_default().to_owned());
        let mut state = shared.state();
        if let Ok(given) = serde_json::from_slice::<Value>(body) {
            state.policies.insert(name.clone(), policies(given, shared.options.full_text));
        }
        if let (Some(properties), Some(kept)) = (properties.as_object_mut(), state.policies.get(&name)) {
            properties.extend(kept.clone());
            answer.body = Value::from(properties.clone()).to_string().into();
        }
    }
    Ok(answer)
}

/// The policies of a new container, including a default full-text policy if the account has one.
fn policies(given: Value, full_text: bool) -> serde_json::Map<String, Value> {
    let Value::Object(mut given) = given else { return serde_json::Map::new() };
    let is_for_texts = given.get("id").is_some_and(|id| id == "transcript_messages");
    given.retain(|name, _| matches!(name.as_str(), "vectorEmbeddingPolicy" | "fullTextPolicy"));
    if full_text && is_for_texts && !given.contains_key("fullTextPolicy") {
        let paths = json!([{"path": "/terms", "language": "en-US"}]);
        given
            .insert("fullTextPolicy".to_owned(), json!({"defaultLanguage": "en-US", "fullTextPaths": paths}));
    }
    given
}

/// The body of a query: its text and its parameters.
fn query_of(body: &[u8]) -> Result<(Value, Vec<Value>), String> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let parameters = body.get_mut("parameters").and_then(Value::as_array_mut).map(std::mem::take);
    Ok((body, parameters.unwrap_or_default()))
}

fn with_query(mut body: Value, text: String, parameters: Vec<Value>) -> Vec<u8> {
    if let Some(body) = body.as_object_mut() {
        body.insert("query".to_owned(), text.into());
        body.insert("parameters".to_owned(), parameters.into());
    }
    body.to_string().into_bytes()
}

async fn texts(
    shared: &Shared,
    query: &queries::TextQuery,
    parts: &Parts,
    body: &[u8],
) -> Result<Answer, String> {
    let (body, mut parameters) = query_of(body)?;
    let text = query.with_contains(&mut parameters);
    forward(shared, parts, with_query(body, text, parameters)).await
}

async fn nearest_vectors(
    shared: &Shared,
    query: &VectorQuery,
    parts: &Parts,
    body: &[u8],
) -> Result<Answer, String> {
    let (body, parameters) = query_of(body)?;
    let named = |parameter: &&Value| parameter.get("name").is_some_and(|name| *name == *query.vector);
    let vector = parameters.iter().find(named).and_then(|parameter| parameter.get("value")).cloned();
    let vector = vector.unwrap_or_default();
    let body = with_query(body, query.candidates(), parameters);
    let (mut first, documents) = match all(shared, parts, body).await? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    let rows = nearest::rows(query, &vector, documents)?;
    first.headers.retain(|(name, _)| name != "x-ms-continuation" && name != "x-ms-item-count");
    first.body = json!({"_rid": "", "_count": rows.len(), "Documents": rows}).to_string().into();
    Ok(first)
}

/// All documents from all pages of a query, with the last page; or the rejection.
async fn all(
    shared: &Shared,
    parts: &Parts,
    body: Vec<u8>,
) -> Result<Result<(Answer, Vec<Value>), Answer>, String> {
    let mut documents = Vec::new();
    let mut request = request::for_emulator(&shared.endpoint, parts, body)?;
    loop {
        let answer = ask(shared, &request).await?;
        if !answer.is_success() {
            return Ok(Err(answer));
        }
        let page: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        documents.extend(page.get("Documents").and_then(Value::as_array).into_iter().flatten().cloned());
        let Some(continuation) = answer.header("x-ms-continuation").filter(|text| !text.is_empty()) else {
            return Ok(Ok((answer, documents)));
        };
        request.insert_header("x-ms-continuation", continuation.to_owned());
    }
}
