//! The trace that a request belongs to, for logs: the header `traceparent` of W3C Trace Context.

use axum::http::HeaderMap;

/// The id of the trace that a client or a proxy names: 32 hexadecimal digits. What is no such header is ignored.
pub(crate) fn trace_of(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all("traceparent").iter();
    let (Some(value), None) = (given.next(), given.next()) else { return None };
    let mut parts = value.to_str().ok()?.split('-');
    let [version, trace, parent] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_named = |text: &str| text.bytes().any(|byte| byte != b'0');
    let is_trace = is_hex(version, 2) && version != "ff" && is_hex(trace, 32) && is_hex(parent, 16);
    (is_trace && is_named(trace) && is_named(parent)).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_taken_over_if_it_is_one() {
        let trace = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", value.parse().unwrap());
            trace_of(&headers).map(str::to_owned)
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(), Some(id));
        // Later versions may have more parts.
        assert_eq!(trace(&format!("01-{id}-00f067aa0ba902b7-01-more")).as_deref(), Some(id));
        for wrong in [
            "",
            "x",
            &format!("ff-{id}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{id}-0000000000000000-01"),
            &format!("00-{id}"),
        ] {
            assert_eq!(trace(wrong), None, "{wrong}");
        }
        assert_eq!(trace_of(&HeaderMap::new()), None);
    }
}
