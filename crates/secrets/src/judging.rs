//! Decides whether a value is a secret, by the value and its place.

use amplifier_session_core::content::Certainty;

use super::{
    grading,
    match_context::MatchContext,
    names::NameKind,
    values::{
        is_digits, is_expression, is_identifier, is_jumbled, is_key, is_password, is_path, is_pattern,
        is_placeholder, is_plain, is_prose, is_special, is_strong, is_url, is_wordy, without_templates,
    },
};

/// How certain it is that the quoted `value` is a secret; `None` if it is not one.
pub(super) fn of_quoted(kind: NameKind, place: MatchContext, value: &str) -> Option<Certainty> {
    is_quoted_secret(kind, place, value).then(|| grading::of_named(kind, place, true, value)).flatten()
}

/// How certain it is that the unquoted `value` is a secret; `None` if it is not one. With `is_field`, another field
/// follows it.
pub(super) fn of_bare(kind: NameKind, place: MatchContext, value: &str, is_field: bool) -> Option<Certainty> {
    is_bare_secret(kind, place, value, is_field)
        .then(|| grading::of_named(kind, place, false, value))
        .flatten()
}

/// Whether the quoted `value` may be a secret.
fn is_quoted_secret(kind: NameKind, place: MatchContext, value: &str) -> bool {
    if is_harmless(value) {
        return false;
    }
    let length = value.chars().count();
    let is_loose = kind == NameKind::Weak || matches!(place, MatchContext::Beside | MatchContext::Sentence);
    if is_loose && (is_code(value) || is_pattern(value)) {
        return false;
    }
    match (kind, place) {
        (_, MatchContext::Beside | MatchContext::Sentence) => {
            is_strong(value)
                || (kind == NameKind::Password && is_password(value))
                || (kind != NameKind::Weak && is_phrase(value))
        }
        (NameKind::Password, _) => {
            length >= 3 && !is_prose(value) && (length >= 6 || has_alphanumeric(value))
        }
        (NameKind::Secret, _) => {
            length >= 4 && !is_prose(value) && has_alphanumeric(value) && !is_constant(value)
        }
        (NameKind::Weak, _) => {
            let is_odd = value.chars().any(|c| c.is_numeric() || is_special(c));
            is_strong(value)
                || is_key(value)
                || (length >= 8 && is_odd && !value.contains(' ') && !is_wordy(value))
        }
    }
}

/// Whether the unquoted `value` may be a secret.
fn is_bare_secret(kind: NameKind, place: MatchContext, value: &str, is_field: bool) -> bool {
    let is_long_code =
        value.len() > 200 && value.matches([':', '(', ')', '{', '}', '[', ']', '<', '"', ',']).count() > 8;
    if is_long_code {
        return false;
    }
    let trimmed = value.trim_end_matches([',', ';', '.', ')', '}', ']', ':']);
    let is_closed = trimmed.len() < value.len() && !is_field;
    if is_harmless(value) || is_harmless(trimmed) || is_comment(value) {
        return false;
    }
    let is_name = is_identifier(trimmed);
    if (is_closed || !is_name) && is_expression(value) {
        return false;
    }
    if place != MatchContext::Variable && (is_code(value) || is_pattern(value)) {
        return false;
    }
    let is_free = matches!(place, MatchContext::Variable | MatchContext::Flag);
    if kind == NameKind::Weak
        && !is_free
        && value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '"', '|'])
    {
        return false;
    }
    // After a name such as `key`, a hexadecimal number may as well be an address or a hash.
    let strong = is_strong(trimmed) && !(kind == NameKind::Weak && trimmed.starts_with("0x"));
    let length = trimmed.chars().count();
    let odd = trimmed.chars().any(|c| c.is_numeric() || is_special(c));
    let is_word = is_plain(trimmed);
    strong
        || match (kind, place) {
            (NameKind::Weak, MatchContext::Variable) => length >= 6 && odd && !is_wordy(trimmed),
            (NameKind::Weak, MatchContext::Flag) => is_key(trimmed),
            (NameKind::Weak, _) => false,
            (NameKind::Secret, MatchContext::Variable) => length >= 6 || (odd && length >= 4),
            (NameKind::Password, MatchContext::Variable) => length >= 3,
            (NameKind::Password, MatchContext::Direct) => {
                length >= 4 && !is_closed || (odd && length >= 5 && !is_name)
            }
            (NameKind::Password, MatchContext::Loose) => {
                (length >= 4 && odd && !(is_closed && is_name)) || is_run_of_words(value)
            }
            (NameKind::Password, MatchContext::Flag) => length >= 4 && !is_word,
            (NameKind::Password, MatchContext::Sentence) => is_password(trimmed),
            (NameKind::Secret, MatchContext::Direct | MatchContext::Loose | MatchContext::Flag) => {
                is_run_of_words(value)
                    || (is_key(trimmed) && !is_closed)
                    || (odd && length >= 6 && !is_wordy(trimmed))
            }
            (_, MatchContext::Beside | MatchContext::Sentence) => false,
        }
}

/// Whether `value` consists of names and numbers between brackets and operators: `&[u8])`, `(0..rows.len()).map(|i|`.
fn is_code(value: &str) -> bool {
    let names = value.trim_start_matches(['&', '*', '$']);
    let signs = ['"', '\'', '(', ')', '[', ']', '{', '}', '<', '>', '?', '|', ',', ';'];
    let inner: String = names.chars().filter(|c| !signs.contains(c)).collect();
    (inner.len() < names.len() || names.contains(':')) && is_wordy(&inner)
}

/// Whether `value` is a passphrase and not a sentence: four words, or one of them with digits.
fn is_phrase(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let has_odd =
        words.clone().any(|word| word.chars().any(char::is_numeric) && word.chars().any(char::is_alphabetic));
    value.contains(' ') && !is_prose(value) && !is_code(value) && (has_odd || words.nth(3).is_some())
}

/// Whether `value` is several words without separators, longer than any single word: `correcthorsebatterystaple`.
fn is_run_of_words(value: &str) -> bool {
    value.len() >= 18 && value.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn has_alphanumeric(value: &str) -> bool {
    value.chars().any(char::is_alphanumeric)
}

/// Whether `value` is the name of a variable in capitals.
fn is_constant(value: &str) -> bool {
    is_identifier(value)
        && value.contains('_')
        && !value.chars().any(char::is_lowercase)
        && !is_jumbled(value)
}

fn is_harmless(value: &str) -> bool {
    is_placeholder(value)
        || is_url(value)
        || is_path(value)
        || is_placeholder(&without_templates(value))
        || (is_digits(value) && value.len() < 6)
}

fn is_comment(value: &str) -> bool {
    matches!(value, "#" | "//" | "/*" | "--" | "|" | ">" | "=" | "||" | "&&")
        || value.starts_with("//")
        || value.starts_with("/*")
        || value.starts_with("==")
}
