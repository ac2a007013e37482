//! Passwords in URLs: `scheme://user:password@host`.
//!
//! People write passwords there without escaping `#`, `/` and `@`, so a password ends at the last `@` before a space or
//! a quote.

use std::ops::Range;

use amplifier_session_core::content::Certainty;

use super::{
    cursor::TextCursor,
    grading,
    values::{is_digits, is_placeholder, is_strong, without_templates},
};

const SEPARATOR: &str = "://";
/// How much of a URL is checked, in characters.
const LONGEST: usize = 600;
/// The minimum length of a token in place of the user, as in `https://TOKEN@host`, in characters.
const SHORTEST_TOKEN: usize = 16;

/// Finds the passwords in the URLs of `text`.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, Certainty)> {
    let mut found = Vec::new();
    let mut done = 0;
    for (at, _) in text.match_indices(SEPARATOR) {
        if at >= done
            && let Some((span, certainty)) = password(text, at)
        {
            done = span.end;
            found.push((span, certainty));
        }
    }
    found
}

fn password(text: &str, at: usize) -> Option<(Range<usize>, Certainty)> {
    let scheme = text.get(..at)?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let name = scheme.char_indices().rev().take_while(|(_, c)| is_scheme(*c)).take(30).last()?.0;
    let quote = scheme.get(..name)?.chars().next_back().filter(|c| matches!(c, '\'' | '(' | '['));
    let closes = |c: char| match quote {
        Some('\'') => c == '\'',
        Some('(') => c == ')',
        Some('[') => c == ']',
        _ => false,
    };
    let mut cursor = TextCursor::new(text, at + SEPARATOR.len());
    let start = cursor.at;
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`');
    let authority = cursor.skip(LONGEST, |c| !ends(c));
    // A closing bracket before the host belongs to the password, not to the text around the URL.
    let last = authority.rfind('@')?;
    let authority = match authority.find(closes) {
        Some(end) if end < last && authority.get(..end)?.contains('@') => authority.get(..end)?,
        _ => authority,
    };
    let last = authority.rfind('@')?;
    let host = authority.get(last + 1..)?;
    if !host.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '[' | '{' | '$' | '%' | '*' | '_')) {
        return None;
    }
    let user_info = authority.get(..last)?;
    let first_of_path = user_info.find(['/', '?', '#']).unwrap_or(user_info.len());
    let Some(colon) = user_info.find(':').filter(|colon| *colon <= first_of_path) else {
        let is_token = user_info.chars().count() >= SHORTEST_TOKEN && is_strong(user_info);
        return (is_token && first_of_path == user_info.len())
            .then(|| (start..start + last, Certainty::Likely));
    };
    let hidden = user_info.get(colon + 1..)?;
    let port = hidden.split(['/', '?']).next()?;
    let is_address = user_info.starts_with('[');
    let is_port = is_address || (is_digits(port) || port.is_empty()) && port.len() < hidden.len();
    if is_port || hidden.is_empty() || is_placeholder(hidden) || is_placeholder(&without_templates(hidden)) {
        return None;
    }
    let certainty = grading::of_url(user_info.get(..colon)?, hidden, host)?;
    Some((start + colon + 1..start + last, certainty))
}

#[cfg(test)]
mod tests {
    use super::find;

    fn passwords(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|(span, _)| &text[span]).collect()
    }

    #[test]
    fn passwords_may_contain_any_characters() {
        for password in
            ["hunter2", "p@ss", "a/b?c#d!", "$ecr3t!", "%x&y=z", "p'w)x]", "12#4", "[x]{y!", "a:b:c!"]
        {
            let url = format!("postgres://me:{password}@db.example.com:5432/x");
            assert_eq!(passwords(&url), [password], "{url}");
            assert_eq!(passwords(&format!("see ({url}) and '{url}'")), [password, password], "{url}");
        }
        assert_eq!(passwords("redis://:aB3!@cache smtp://me@x.com:pw!1@mail"), ["aB3!", "pw!1"]);
        assert_eq!(passwords("https://aB3dE6gH9jK2mN5p@example.com/r.git"), ["aB3dE6gH9jK2mN5p"]);
    }

    #[test]
    fn other_urls_have_no_password() {
        for text in [
            "https://example.com:8443/@scope/package",
            "http://[::1]:8080/a:b@c",
            "https://user@example.com/",
            "https://example.com/a:b@c",
            "postgres://user:password@localhost/db",
            "postgres://user:${PASSWORD}@localhost/db",
            "postgres://{user}:{password}@{host}/db",
            "https://example.com/path?email=a@b.c",
            "x://",
            "://:@",
        ] {
            assert!(find(text).is_empty(), "{text}");
        }
    }
}
