//! Authentication of calls.

use azure_core::credentials::Secret;
use hyper::{HeaderMap, Method};

use super::{
    Kind,
    request::{decoded, header},
};

/// The reason for rejecting a call: a status and a message.
type Refusal = (u16, &'static str);

/// Checks the token of a call, or its signature as defined in
/// <https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources>.
pub(super) fn check(
    key: &str,
    tokens: &[String],
    (method, path, kind): (&Method, &str, Kind),
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let given = header(headers, "authorization").unwrap_or_default();
    let given = decoded(given);
    if let Some(token) = given.strip_prefix("type=aad&ver=1.0&sig=") {
        if !tokens.iter().any(|accepted| accepted == token) {
            return Err((401, "The token is not one that is accepted, or it has expired."));
        }
        let is_control_plane = matches!(kind, Kind::Database | Kind::Container);
        if is_control_plane && method != Method::GET {
            return Err((403, "The request can't be authorized by a token of Microsoft Entra ID."));
        }
        return Ok(());
    }
    let date = header(headers, "x-ms-date").unwrap_or_default();
    let expected = signature(key, method, path, date);
    let is_right = given.strip_prefix("type=master&ver=1.0&sig=") == expected.as_deref();
    let refusal = (401, "The input authorization token can't serve the request: the signature differs.");
    if is_right { Ok(()) } else { Err(refusal) }
}

/// Returns `None` if the key is invalid.
fn signature(key: &str, method: &Method, path: &str, date: &str) -> Option<String> {
    let (kind, link) = resource(path);
    let method = method.as_str().to_ascii_lowercase();
    let text = format!("{method}\n{kind}\n{link}\n{}\n\n", date.to_ascii_lowercase());
    azure_core::hmac::hmac_sha256(&text, &Secret::new(key.to_owned())).ok()
}

/// The resource type and the resource link of a path. The link of a list is that of its parent resource.
fn resource(path: &str) -> (&str, &str) {
    let path = path.trim_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    match segments.as_slice() {
        [list] => (list, ""),
        [.., kind, _] if segments.len().is_multiple_of(2) => (kind, path),
        [.., list] => (list, path.strip_suffix(list).unwrap_or_default().trim_end_matches('/')),
        [] => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_about_a_resource_or_a_list() {
        assert_eq!(resource("/"), ("", ""));
        assert_eq!(resource("/dbs"), ("dbs", ""));
        assert_eq!(resource("/dbs/d"), ("dbs", "dbs/d"));
        assert_eq!(resource("/dbs/d/colls/c/docs"), ("docs", "dbs/d/colls/c"));
        assert_eq!(resource("/dbs/d/colls/c/docs/a files"), ("docs", "dbs/d/colls/c/docs/a files"));
    }
}
