//! A call of an operation and its answer, as JSON.

use amplifier_session_core::{Error, ErrorKind, model::DamagedRow, storage::ExportReport};
use jiff::Zoned;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Api, ApiAnswer, ApiError, InvalidRequest, Notice, Reach};

use super::{ApiOperation, RemoteApi, places::resolve};

/// A call of an operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OperationCall {
    /// The time at the caller, in their time zone.
    pub now: Zoned,
    /// The request.
    pub request: Value,
    /// Whether secrets are masked in all that is read, also in the caller's own sessions. Only calls that read can do so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// The answer of a server to a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OperationAnswer"))]
pub struct OperationAnswer<T> {
    /// The response.
    pub response: T,
    /// Remarks. Those that this version does not know are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_notices")]
    pub notices: Vec<Notice>,
    /// Sessions in the scope of the request that the server skipped so far because they can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

/// The last line of an export.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExportEnd {
    /// The report and remarks.
    pub exported: OperationAnswer<ExportReport>,
}

fn known_notices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Notice>, D::Error> {
    let all = Vec::<Value>::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|notice| serde_json::from_value(notice).ok()).collect())
}

impl<T> OperationAnswer<T> {
    /// The answer of `api` to `request`.
    pub(super) fn new(api: &Api<'_>, request: &Value, answer: ApiAnswer<T>) -> Self {
        let reach: Option<Reach> = request.get("scope").and_then(|reach| Reach::deserialize(reach).ok());
        // An operation that only writes does not say what the caller may read.
        let scope = api.caller.scope(reach.unwrap_or_default());
        let damaged = scope.map(|scope| api.damaged_within(&scope)).unwrap_or_default();
        Self { response: answer.response, notices: answer.notices, damaged }
    }
}

impl<T> From<ApiAnswer<T>> for OperationAnswer<T> {
    fn from(ApiAnswer { response, notices }: ApiAnswer<T>) -> Self {
        Self { response, notices, damaged: Vec::new() }
    }
}

/// The request of a call. A field that this version does not know is an error: it would change nothing, and a caller of a
/// later version relies on it.
///
/// # Errors
///
/// [`InvalidRequest::Unreadable`].
pub fn read_request<T: DeserializeOwned + Serialize>(request: &Value) -> Result<T, ApiError> {
    let read: T = T::deserialize(request).map_err(unreadable)?;
    let known = serde_json::to_value(&read).map_err(unreadable)?;
    match lost(request, &known) {
        None => Ok(read),
        Some(field) => {
            let reason = format!("the field {field:?} is not known to this version");
            Err(InvalidRequest::Unreadable { reason }.into())
        }
    }
}

fn unreadable(error: serde_json::Error) -> ApiError {
    InvalidRequest::Unreadable { reason: error.to_string() }.into()
}

/// The first field of `given` that says something and is not in `known`.
fn lost<'a>(given: &'a Value, known: &Value) -> Option<&'a str> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.iter().find_map(|(name, value)| match known.get(name) {
                Some(known) => lost(value, known),
                None => (!says_nothing(value)).then_some(name.as_str()),
            })
        }
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| lost(given, known))
        }
        _ => None,
    }
}

/// Whether a field may be left out when it has this value.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// The answer as JSON.
pub(super) fn json<T: Serialize>(answer: &OperationAnswer<T>) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(answer).map_err(|error| {
        Error::new(ErrorKind::StorageIo, "the answer can't be written as JSON").with_source(error).into()
    })
}

impl RemoteApi<'_> {
    /// A call with this request.
    pub(super) async fn written(&self, request: &impl Serialize) -> Result<OperationCall, ApiError> {
        let mut request = serde_json::to_value(request).map_err(unreadable)?;
        resolve(&mut request, self.home).await?;
        Ok(OperationCall { now: self.now.clone(), request, masked: self.masked })
    }

    /// The answer of the server.
    pub(super) async fn ask<Request: Serialize, Response: DeserializeOwned>(
        &self,
        operation: ApiOperation,
        request: &Request,
    ) -> Result<ApiAnswer<Response>, ApiError> {
        let call = self.written(request).await?;
        let answer = self.server.call(operation, &call).await?;
        let answer: OperationAnswer<Response> = serde_json::from_slice(&answer).map_err(|error| {
            let message = format!("the answer of the server to {} can't be read", operation.name());
            let failed = Error::new(ErrorKind::StorageConnection, message).with_source(error);
            ApiError::Storage(failed.with_hint("the server may be newer than this program: update it"))
        })?;
        Ok(self.taken(answer))
    }

    /// The answer without the sessions that were skipped.
    pub(super) fn taken<T>(&self, answer: OperationAnswer<T>) -> ApiAnswer<T> {
        let OperationAnswer { response, notices, damaged } = answer;
        self.skipped.add(damaged);
        ApiAnswer { response, notices }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operations::{search::SearchRequest, tag::TagRequest};

    fn refused<T: DeserializeOwned + Serialize>(request: Value) -> String {
        read_request::<T>(&request).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let mut request = SearchRequest::new("pool");
        request.query.filter.tags = vec!["incident".to_owned()];
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(read_request::<SearchRequest>(&written).unwrap(), request);
        assert_eq!(
            read_request::<SearchRequest>(&json!({"query": "pool", "files": []})).unwrap().query.query,
            "pool"
        );
    }

    #[test]
    fn a_field_of_a_later_version_is_an_error_unless_it_says_nothing() {
        assert!(refused::<SearchRequest>(json!({"query": "a", "of_tomorrow": 1})).contains("of_tomorrow"));
        assert!(refused::<TagRequest>(json!({"session": "a", "of_tomorrow": ["x"]})).contains("of_tomorrow"));
        assert!(read_request::<SearchRequest>(&json!({"query": "a", "of_tomorrow": null})).is_ok());
        assert!(refused::<SearchRequest>(json!({"query": 1})).contains("can't be read"));
        assert!(refused::<SearchRequest>(json!("x")).contains("can't be read"));
    }

    #[test]
    fn a_remark_of_a_later_version_is_left_out() {
        let answer = json!({"response": 1, "notices": [
            {"notice": "of_tomorrow", "x": 1}, {"notice": "leaves_out", "text": "pool"}
        ]});
        let answer: OperationAnswer<u8> = serde_json::from_value(answer).unwrap();
        assert_eq!(answer.notices, [Notice::LeavesOut { text: "pool".to_owned() }]);
    }
}
