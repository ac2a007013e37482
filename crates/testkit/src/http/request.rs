//! Requests to a mock service, and their validation.

use amplifier_session_core::content::tokens;
use hyper::{HeaderMap, Method, Uri, http::request::Parts};
use serde_json::{Map, Value, json};

use super::MockOptions;

/// The maximum number of texts in a call.
const MOST_TEXTS: usize = 2_048;
/// The maximum number of tokens in a text.
const MOST_TOKENS: usize = 8_192;
/// The maximum number of tokens in a call.
const MOST_TOKENS_OF_ALL: usize = 300_000;

/// The credential of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// No credential.
    None,
    /// `Authorization: Bearer ...`: a key of OpenAI or a token of Microsoft Entra ID.
    Bearer(String),
    /// `api-key: ...`: a key of Azure.
    ApiKey(String),
}

/// A recorded call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// The path, without the query.
    pub path: String,
    /// The query.
    pub query: Option<String>,
    /// The credential.
    pub credential: Credential,
    /// The texts.
    pub texts: Vec<String>,
    /// The body without the texts.
    pub body: Map<String, Value>,
}

impl Recorded {
    pub(super) fn new(parts: &Parts, body: &[u8]) -> Self {
        let mut body = match serde_json::from_slice(body) {
            Ok(Value::Object(body)) => body,
            _ => Map::new(),
        };
        let input = body.remove("input");
        let texts = input.as_ref().and_then(Value::as_array).into_iter().flatten();
        Self {
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            credential: credential(&parts.headers),
            texts: texts.filter_map(|text| Some(text.as_str()?.to_owned())).collect(),
            body,
        }
    }

    /// A member of the body; `null` if it is missing.
    pub fn member(&self, name: &str) -> &Value {
        self.body.get(name).unwrap_or(&Value::Null)
    }
}

fn credential(headers: &HeaderMap) -> Credential {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match (bearer, text("api-key")) {
        (Some(bearer), _) => Credential::Bearer(bearer.to_owned()),
        (None, Some(key)) => Credential::ApiKey(key.to_owned()),
        (None, None) => Credential::None,
    }
}

/// How to answer an accepted call.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) model: String,
    pub(super) dimensions: usize,
    pub(super) base64: bool,
}

/// A rejection: status and body.
pub(super) type Refusal = (u16, Value);

/// Validates a call as the services do.
pub(super) fn check(options: &MockOptions, parts: &Parts, call: &Recorded) -> Result<Order, Refusal> {
    if parts.method != Method::POST {
        return Err(refusal(405, "Not allowed: the method has to be POST", "", "method_not_allowed"));
    }
    let model = match deployment(&parts.uri) {
        Some(deployment) => azure(options, call, &deployment)?,
        None => openai(options, call)?,
    };
    if parts.headers.get("content-type").is_none_or(|kind| kind != "application/json") {
        return Err(refusal(415, "The content type has to be application/json", "", ""));
    }
    let known = ["model", "dimensions", "encoding_format", "user"];
    if let Some(name) = call.body.keys().find(|name| !known.contains(&name.as_str())) {
        let message = format!("Unrecognized request argument supplied: {name}");
        return Err(refusal(400, &message, "", ""));
    }
    check_texts(&call.texts)?;
    let dimensions = dimensions(options, call, &model)?;
    let base64 = match call.member("encoding_format") {
        Value::Null => false,
        Value::String(format) if format == "float" => false,
        Value::String(format) if format == "base64" => true,
        _ => return Err(refusal(400, "Invalid value for 'encoding_format'", "encoding_format", "")),
    };
    Ok(Order { model, dimensions, base64: base64 && !options.decimals })
}

/// The deployment in an Azure path.
fn deployment(uri: &Uri) -> Option<String> {
    let rest = uri.path().strip_prefix("/openai/deployments/")?;
    rest.strip_suffix("/embeddings").map(str::to_owned)
}

/// The model of a call in the format of OpenAI.
fn openai(options: &MockOptions, call: &Recorded) -> Result<String, Refusal> {
    if call.path != "/v1/embeddings" {
        return Err(refusal(404, &format!("Invalid URL (POST {})", call.path), "", ""));
    }
    let given = match &call.credential {
        Credential::Bearer(key) => key.as_str(),
        _ => "",
    };
    if options.key.as_ref().is_some_and(|key| key != given) {
        // OpenAI repeats parts of the key. The mock repeats all of it, so that tests detect where it ends up.
        let message = format!("Incorrect API key provided: {given}.");
        return Err(refusal(401, &message, "", "invalid_api_key"));
    }
    let model = call.member("model").as_str().unwrap_or_default();
    if options.dimensions_of(model).is_none() {
        let message = format!("The model `{model}` does not exist or you do not have access to it.");
        return Err(refusal(404, &message, "", "model_not_found"));
    }
    Ok(model.to_owned())
}

/// The model of a call in the format of Azure.
fn azure(options: &MockOptions, call: &Recorded, deployment: &str) -> Result<String, Refusal> {
    let expected = match &call.credential {
        Credential::ApiKey(key) => options.key.as_ref().is_none_or(|expected| expected == key),
        Credential::Bearer(token) => options.token.as_ref() == Some(token),
        Credential::None => options.key.is_none() && options.token.is_none(),
    };
    if !expected {
        let message = format!("Access denied due to invalid subscription key {:?}.", call.credential);
        return Err((401, json!({"error": {"code": "401", "message": message}})));
    }
    let has_version = call
        .query
        .as_deref()
        .unwrap_or_default()
        .split('&')
        .any(|pair| pair.strip_prefix("api-version=").is_some_and(|version| version.starts_with("20")));
    if !has_version {
        return Err((404, json!({"error": {"code": "404", "message": "Resource not found"}})));
    }
    let named = options.deployments.iter().find(|(name, _)| name == deployment);
    let model = named.map_or(deployment, |(_, model)| model);
    if options.dimensions_of(model).is_none() {
        let message = "The API deployment for this resource does not exist.";
        return Err((404, json!({"error": {"code": "DeploymentNotFound", "message": message}})));
    }
    Ok(model.to_owned())
}

fn check_texts(texts: &[String]) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(refusal(400, message, "input", ""));
    if texts.is_empty() || texts.len() > MOST_TEXTS || texts.iter().any(String::is_empty) {
        return invalid("'$.input' is invalid. Please check the API reference.");
    }
    // Every token has at least one byte.
    let too_long = |text: &&String| text.len() > MOST_TOKENS && tokens::count(text) > MOST_TOKENS;
    if texts.iter().find(too_long).is_some() {
        return invalid("This model's maximum context length is 8192 tokens. Please reduce your prompt.");
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes > MOST_TOKENS_OF_ALL {
        let tokens: usize = texts.iter().map(|text| tokens::count(text)).sum();
        if tokens > MOST_TOKENS_OF_ALL {
            return invalid("Invalid 'input': maximum request size is 300000 tokens per request.");
        }
    }
    Ok(())
}

fn dimensions(options: &MockOptions, call: &Recorded, model: &str) -> Result<usize, Refusal> {
    let own = options.dimensions_of(model).unwrap_or_default();
    match call.member("dimensions") {
        Value::Null => Ok(own),
        _ if model == "text-embedding-ada-002" => {
            Err(refusal(400, "This model does not support specifying dimensions.", "", ""))
        }
        wanted => match wanted.as_u64().and_then(|wanted| usize::try_from(wanted).ok()) {
            Some(wanted) if (1..=own).contains(&wanted) => Ok(wanted),
            _ => {
                let message = format!("Invalid value for 'dimensions' = {wanted}. Must be at most {own}.");
                Err(refusal(400, &message, "dimensions", ""))
            }
        },
    }
}

fn refusal(status: u16, message: &str, param: &str, code: &str) -> Refusal {
    let some = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    let error = json!({
        "message": message,
        "type": "invalid_request_error",
        "param": some(param),
        "code": some(code),
    });
    (status, json!({ "error": error }))
}
