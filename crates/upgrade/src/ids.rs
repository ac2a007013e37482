//! Identifiers of any quality, because the Python library did not check them.

use amplifier_session_core::{
    Result,
    model::{Digest, HostId, ProjectSlug, SessionId, UserId},
};

/// The number of bytes of a changed identifier that are kept.
const KEPT: usize = 200;

pub(crate) fn user(text: &str) -> Result<UserId> {
    UserId::new(text).or_else(|_| UserId::new(sanitized(text, |c| !c.is_control())))
}

pub(crate) fn session(text: &str) -> Result<SessionId> {
    SessionId::new(text)
        .or_else(|_| SessionId::new(sanitized(text, |c| !c.is_control() && !matches!(c, '/' | '\\'))))
}

pub(crate) fn host(text: Option<String>) -> Result<HostId> {
    let text = text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    HostId::new(&text).or_else(|_| HostId::new(sanitized(&text, |c| !c.is_control())))
}

pub(crate) fn project(text: Option<String>) -> Result<ProjectSlug> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(ProjectSlug::unnamed()) };
    ProjectSlug::new(&text).or_else(|_| ProjectSlug::new(sanitized(&text, |c| !c.is_control())))
}

/// `text` with `_` in place of characters that are not allowed, and with its digest at the end, so that different texts
/// stay different.
fn sanitized(text: &str, allowed: impl Fn(char) -> bool) -> String {
    let mut sanitized: String = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    while sanitized.len() > KEPT {
        sanitized.pop();
    }
    let digest = format!("{:?}", Digest::of(text.as_bytes()));
    format!(
        "{}-{}",
        if sanitized.is_empty() { "unknown" } else { &sanitized },
        digest.get(..12).unwrap_or(&digest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ids_stay_and_others_are_sanitized() {
        assert_eq!(session("a-1_x").unwrap().as_str(), "a-1_x");
        assert_eq!(session("a b").unwrap().as_str(), "a b");
        let [slash, line] = ["a/b", "a\nb"].map(|id| session(id).unwrap().to_string());
        assert!(slash.starts_with("a_b-") && line.starts_with("a_b-") && slash != line, "{slash} {line}");
        assert!(session("").unwrap().as_str().starts_with("unknown-"));
        assert!(session(&"x".repeat(400)).unwrap().as_str().len() <= 255);
        assert!(user(&"é\n".repeat(400)).unwrap().as_str().len() <= 255);
        assert_eq!(project(None).unwrap(), ProjectSlug::unnamed());
        assert_eq!(host(Some(String::new())).unwrap().as_str(), "unknown");
    }
}
