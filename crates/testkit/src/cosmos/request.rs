//! The contents of a call.

use azure_core::http::{Method, Url};
use hyper::{HeaderMap, http::request::Parts};
use serde_json::Value;

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Properties of the account.
    Account,
    /// A call about a database.
    Database,
    /// A call about a container.
    Container,
    /// The partition key ranges of a container.
    Ranges,
    /// Reads one document.
    Read,
    /// Writes or deletes one document.
    Write,
    /// Writes several documents of a partition.
    Batch,
    /// Requests the plan of a query.
    QueryPlan,
    /// A query.
    Query,
    /// Anything else.
    Other,
}

/// A received call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// The kind of the call.
    pub kind: Kind,
    /// The path, decoded.
    pub path: String,
    /// The container that the call is about.
    pub container: Option<String>,
    /// The text of a query.
    pub query: Option<String>,
    /// The number of operations of a batch.
    pub operations: usize,
}

impl Call {
    pub(super) fn new(parts: &Parts, body: &[u8]) -> Self {
        let path = decoded(parts.uri.path());
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let kind = kind(parts, &segments);
        let container = match segments.as_slice() {
            ["dbs", _, "colls", container, ..] => Some((*container).to_owned()),
            _ => None,
        };
        let json = |is_wanted: bool| is_wanted.then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
        let query = json(matches!(kind, Kind::Query | Kind::QueryPlan))
            .and_then(|body| body.get("query").and_then(Value::as_str).map(str::to_owned));
        let operations = json(kind == Kind::Batch).and_then(|body| body.as_array().map(Vec::len));
        Self { kind, container, query, operations: operations.unwrap_or_default(), path }
    }
}

fn kind(parts: &Parts, segments: &[&str]) -> Kind {
    let says = |name: &str| is_true(&parts.headers, name);
    let is_get = parts.method == hyper::Method::GET;
    match segments {
        [] => Kind::Account,
        ["dbs"] | ["dbs", _] => Kind::Database,
        ["dbs", _, "colls"] | ["dbs", _, "colls", _] => Kind::Container,
        ["dbs", _, "colls", _, "pkranges"] => Kind::Ranges,
        ["dbs", _, "colls", _, "docs"] if says("x-ms-cosmos-is-query-plan-request") => Kind::QueryPlan,
        ["dbs", _, "colls", _, "docs"]
            if says("x-ms-documentdb-isquery") || says("x-ms-documentdb-query") =>
        {
            Kind::Query
        }
        ["dbs", _, "colls", _, "docs"] if says("x-ms-cosmos-is-batch-request") => Kind::Batch,
        ["dbs", _, "colls", _, "docs", _] if is_get => Kind::Read,
        ["dbs", _, "colls", _, "docs", ..] if !is_get => Kind::Write,
        _ => Kind::Other,
    }
}

fn is_true(headers: &HeaderMap, name: &str) -> bool {
    header(headers, name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Decodes `%` escapes.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = if *first == b'%' { after.get(..2).and_then(hexadecimal) } else { None };
        bytes.push(escaped.unwrap_or(*first));
        rest = after.get(if escaped.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The call as a request to the emulator, which has the address `endpoint`.
pub(super) fn for_emulator(
    endpoint: &Url,
    parts: &Parts,
    body: Vec<u8>,
) -> Result<azure_core::http::Request, String> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let url = endpoint.join(target).map_err(|error| error.to_string())?;
    let mut request = azure_core::http::Request::new(url, method(&parts.method)?);
    for (name, value) in &parts.headers {
        if let Ok(value) = value.to_str() {
            request.insert_header(name.as_str().to_owned(), value.to_owned());
        }
    }
    request.set_body(body);
    Ok(request)
}

fn method(method: &hyper::Method) -> Result<Method, String> {
    match method.as_str() {
        "GET" => Ok(Method::Get),
        "POST" => Ok(Method::Post),
        "PUT" => Ok(Method::Put),
        "DELETE" => Ok(Method::Delete),
        "HEAD" => Ok(Method::Head),
        "PATCH" => Ok(Method::Patch),
        other => Err(format!("no method of Cosmos DB: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, path: &str, header: Option<&str>) -> Call {
        let mut request = hyper::Request::builder().method(method).uri(path);
        if let Some(header) = header {
            request = request.header(header, "True");
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Call::new(&parts, br#"{"query": "SELECT * FROM c"}"#)
    }

    #[test]
    fn calls_are_distinguished() {
        let docs = "/dbs/d/colls/events/docs";
        assert_eq!(call("GET", "/", None).kind, Kind::Account);
        assert_eq!(call("POST", "/dbs", None).kind, Kind::Database);
        assert_eq!(call("GET", "/dbs/d/colls/events", None).kind, Kind::Container);
        assert_eq!(call("GET", "/dbs/d/colls/events/pkranges", None).kind, Kind::Ranges);
        assert_eq!(call("GET", "/dbs/d/colls/events/docs/x", None).kind, Kind::Read);
        assert_eq!(call("DELETE", "/dbs/d/colls/events/docs/x", None).kind, Kind::Write);
        assert_eq!(call("POST", docs, Some("x-ms-cosmos-is-batch-request")).kind, Kind::Batch);
        assert_eq!(call("POST", docs, Some("x-ms-cosmos-is-query-plan-request")).kind, Kind::QueryPlan);
        let query = call("POST", docs, Some("x-ms-documentdb-isquery"));
        assert_eq!((query.kind, query.query.as_deref()), (Kind::Query, Some("SELECT * FROM c")));
        assert_eq!(query.container.as_deref(), Some("events"));
    }

    #[test]
    fn percent_escapes_are_decoded() {
        assert_eq!(decoded("/docs/a%20files%7Cb"), "/docs/a files|b");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%2"), "%zz%2");
    }
}
