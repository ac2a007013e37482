//! Distinguishes secrets from words, names, expressions and placeholders.

use super::names::words;
use amplifier_session_core::KnownPart;

/// The maximum size of a value with templates, in bytes.
const LONGEST_WITH_TEMPLATES: usize = 500;

/// Placeholders for secrets, in lower case.
#[rustfmt::skip]
const PLACEHOLDERS: &[&str] = &[
    "none", "null", "nil", "undefined", "true", "false", "yes", "no", "on", "off", "required", "optional",
    "string", "str", "text", "bytes", "char", "varchar", "object", "unknown", "any", "number", "int",
    "integer", "bool", "boolean", "redacted", "hidden", "masked", "removed", "omitted", "filtered",
    "sensitive", "encrypted", "protected", "private", "changeme", "change-me", "change_me", "replaceme",
    "replace-me", "replace_me", "todo", "tbd", "fixme", "n/a", "example", "sample", "dummy", "fake",
    "placeholder", "test", "testing", "demo", "foo", "bar", "baz", "empty", "missing", "invalid", "valid",
    "expired", "wrong", "default", "value", "basic", "bearer", "include", "same-origin", "omit", "self",
    "this", "bcrypt", "argon2", "argon2id", "pbkdf2", "scrypt", "sha1", "sha256", "sha512", "md5", "base64",
    "base64url", "utf8", "utf-8", "utf16", "latin1", "oauth", "oauth2", "saml", "ldap", "ed25519", "x25519",
    "rs256", "hs256", "es256", "p256", "secp256k1", "aes256", "rsa2048", "rsa4096",
];

/// Words that mark sentences.
const SENTENCE_WORDS: &[&str] = &[
    "is", "are", "was", "be", "been", "must", "your", "please", "enter", "required", "invalid", "cannot",
    "can't", "can", "not", "should", "will", "does", "do", "don't", "have", "has", "at", "or", "and", "to",
    "for", "of", "with", "this", "if", "from", "when", "that", "which", "uses", "used", "de", "passe", "der",
    "die", "das",
];

/// Whether `lower` is the name of a secret and not the secret itself.
fn names_a_secret(lower: &str) -> bool {
    const PARTS: [&str; 7] = ["passw", "passphrase", "pwd", "secret", "token", "credential", "apikey"];
    const WORDS: [&str; 4] = ["pass", "key", "auth", "creds"];
    PARTS.iter().any(|part| lower.contains(part))
        || words(lower).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Whether `value` is empty, masked, a template, a variable or a placeholder.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    let lower = value.to_lowercase();
    let is_rule =
        |c: char| matches!(c, '*' | '•' | '.' | '…' | '-' | '_' | 'x' | 'X' | '#' | '=' | ' ' | '●' | '?');
    value.chars().all(is_rule)
        || value.chars().all(|c| c == '*' || c.is_whitespace())
        || PLACEHOLDERS.contains(&lower.as_str())
        || is_template(value)
        || is_instruction(&lower)
        || is_colour(value)
}

fn is_colour(value: &str) -> bool {
    value.strip_prefix('#').is_some_and(|digits| {
        matches!(digits.len(), 3 | 6 | 8) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Whether `value` is a regular expression.
pub(super) fn is_pattern(value: &str) -> bool {
    let parts = ["(?", "[a-z", "[A-Z", "[0-9", "[^", "\\w", "\\d", "\\s", "\\b", ".*", "+)"];
    parts.iter().filter(|part| value.contains(**part)).count() > usize::from(!value.contains(['[', '(', '{']))
}

/// Whether `value` is like `${NAME}`, `$(command)`, `$NAME`, `{{ name }}`, `<name>`, `%NAME%` or `[REDACTED]`, or refers to
/// a vault.
fn is_template(value: &str) -> bool {
    const AROUND: [(&str, &str); 9] = [
        ("${{", "}}"),
        ("${", "}"),
        ("$(", ")"),
        ("{{", "}}"),
        ("{", "}"),
        ("<", ">"),
        ("#{", "}"),
        ("@(", ")"),
        ("%(", ")s"),
    ];
    const SCHEMES: [&str; 7] = ["op://", "vault:", "vault://", "secret://", "file://", "ENC[", "env://"];
    let encloses = |(start, end): &(&str, &str)| {
        let inner = value.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        // Text between two templates is not a template.
        inner.is_some_and(|inner| !inner.contains(end) || inner.contains(start))
    };
    AROUND.iter().any(encloses)
        || SCHEMES.iter().any(|scheme| value.starts_with(scheme))
        || is_variable(value)
        || value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_plain)
        || value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).is_some_and(is_plain)
        || value.strip_prefix('%').and_then(|rest| rest.strip_suffix('%')).is_some_and(is_identifier)
        || (value.len() == 2 && value.starts_with('%'))
}

/// Whether `value` is `$NAME`, as in shells and PHP. `$Tr0ng` is not: names have no digit between letters.
fn is_variable(value: &str) -> bool {
    value
        .strip_prefix("$env:")
        .or_else(|| value.strip_prefix('$'))
        .is_some_and(|name| !name.is_empty() && is_identifier(name) && !is_jumbled(name))
}

/// Whether a value is like `your-key-here`, `my_token`, or `<your key>` without its brackets.
fn is_instruction(lower: &str) -> bool {
    let names = names_a_secret(lower);
    let is_words =
        lower.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '_' | ' ' | '.' | '/' | '\''));
    is_words
        && (names
            || lower.starts_with("your")
            || lower.ends_with("here")
            || lower.starts_with("insert")
            || lower.starts_with("replace"))
}

/// `value` without its templates: `Bearer ${token}` becomes `Bearer`.
pub(super) fn without_templates(value: &str) -> String {
    const STARTS: [(&str, char); 5] = [("${", '}'), ("{{", '}'), ("$(", ')'), ("{", '}'), ("<", '>')];
    if value.len() > LONGEST_WITH_TEMPLATES || !value.contains(['{', '(', '<', '%']) {
        return value.to_owned();
    }
    let mut rest = value;
    let mut kept = String::with_capacity(value.len());
    while let Some(c) = rest.chars().next() {
        let inner = STARTS.iter().find_map(|(start, end)| {
            let (inner, after) = rest.strip_prefix(start)?.split_once(*end)?;
            (is_expression(inner.trim()) || inner.is_empty()).then_some(after.trim_start_matches(*end))
        });
        let inner = inner.or_else(|| ["%s", "%r", "%d"].iter().find_map(|format| rest.strip_prefix(format)));
        match inner {
            Some(after) => rest = after,
            None => {
                kept.push(c);
                rest = rest.part(c.len_utf8()..);
            }
        }
    }
    kept
}

/// Whether `value` is a sentence or a label.
pub(super) fn is_prose(value: &str) -> bool {
    let mut words = 0;
    let mut sentence = false;
    for word in value.split_whitespace() {
        let word =
            word.trim_matches(|c: char| c.is_ascii_punctuation() || matches!(c, '…' | '“' | '”' | '’'));
        let is_inner = |c: char| matches!(c, '\'' | '’' | '-' | '/');
        let is_word = word.chars().all(|c| c.is_alphabetic() || is_inner(c)) || is_digits(word);
        if !is_word {
            return false;
        }
        let lower = word.to_lowercase();
        sentence |= SENTENCE_WORDS.contains(&lower.as_str()) || names_a_secret(&lower);
        words += 1;
    }
    words > 1 && sentence
}

/// Whether `value` consists of words and numbers with separators: a name, a path, a version, a date.
pub(super) fn is_wordy(value: &str) -> bool {
    let is_joint = |c: char| matches!(c, '-' | '_' | '.' | '/' | ':' | '~' | '\\' | '@' | '+');
    value.split(is_joint).all(|part| {
        part.is_empty() || is_digits(part) || (part.chars().all(char::is_alphanumeric) && !is_jumbled(part))
    })
}

/// Whether `value` is an identifier.
pub(super) fn is_identifier(value: &str) -> bool {
    let mut chars = value.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether `value` consists of letters, `_`, `-` and spaces.
pub(super) fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | ' '))
}

pub(super) fn is_digits(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether letters and digits alternate as often as in generated values, and more often than in `utf8Token`.
pub(super) fn is_jumbled(value: &str) -> bool {
    let length = value.chars().filter(|c| c.is_alphanumeric()).count();
    let words = words(value);
    let inner_digit = words.iter().enumerate().any(|(at, word)| {
        let is_inner = at > 0 && at + 1 < words.len();
        is_inner && is_digits(word) && word.len() < 3 && words.get(at + 1).is_some_and(|next| next.len() < 3)
    });
    length >= 4 && (length as f64 / words.len().max(1) as f64) < 2.2 && words.len() > 2 || inner_digit
}

/// Whether `value` looks like a generated secret or a strong password.
pub(super) fn is_strong(value: &str) -> bool {
    if value.contains(' ') {
        return value.split(' ').any(is_strong);
    }
    let count = value.chars().count();
    let bare = value.trim_start_matches(['$', '&', '*', '@']);
    let has = |of: fn(&char) -> bool| value.chars().any(|c| of(&c));
    let (lower, upper) = (has(|c| c.is_lowercase()), has(|c| c.is_uppercase()));
    let letter = has(|c| c.is_alphabetic());
    let digit = has(|c| c.is_numeric());
    let special = value.chars().filter(|c| is_special(*c)).count();
    if count < 6 || is_url(value) || is_colour(value) || (is_wordy(bare) && !(letter && digit && count >= 20))
    {
        return false;
    }
    (letter && digit && (special > 0 || (lower && upper)))
        || (letter && digit && count >= 8)
        || (letter && special >= 2 && count >= 8)
        || (letter && special >= 1 && lower && upper && count >= 8)
        || (digit && special >= 2 && count >= 8 && value.chars().any(|c| "!#$%&^*~".contains(c)))
        || (lower && upper && count >= 16 && is_jumbled(value))
}

/// Whether `value` has upper-case and lower-case letters and digits, and no characters of code or prose.
pub(super) fn is_generated(value: &str) -> bool {
    let has = |of: fn(char) -> bool| value.chars().any(of);
    let is_clean =
        !value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '"', '\'', '`', '/', ':', '=', '*']);
    is_clean
        && value.len() >= 8
        && has(|c| c.is_ascii_digit())
        && has(|c| c.is_ascii_lowercase())
        && (has(|c| c.is_ascii_uppercase()) || has(is_special))
        && is_strong(value.trim_end_matches(['.', ',', ';', '!', '?']))
}

/// Whether `c` is neither a letter, nor a digit, nor a separator of words.
pub(super) fn is_special(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | '/' | ':' | ' ' | ',' | '(' | ')' | '\'' | '"')
}

/// Whether `value` is a URL without a user.
pub(super) fn is_url(value: &str) -> bool {
    value.split_once("://").is_some_and(|(scheme, rest)| is_identifier(scheme) && !rest.contains('@'))
}

/// Whether `value` is a path that consists of words.
pub(super) fn is_path(value: &str) -> bool {
    let starts = ["/", "./", "../", "~/", "C:\\", "@/"].iter().any(|start| value.starts_with(start));
    starts && is_wordy(value)
}

/// Whether `value` begins like an expression of a programming language: names with operators, perhaps called.
pub(super) fn is_expression(value: &str) -> bool {
    let value = value.trim_start_matches(['&', '*', '!', '@', '(', '$', '-', '+', '~']);
    let end = value.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(value.len());
    let (name, rest) = (value.part(..end), value.part(end..));
    if !is_identifier(name) || is_jumbled(name) {
        return false;
    }
    if rest == "!" && name.contains(|c: char| c.is_numeric()) {
        return false;
    }
    let rest = rest.trim_start_matches(['?', '!']);
    let joined = ["::", "->", "."].iter().find_map(|joint| rest.strip_prefix(joint));
    if let Some(joined) = joined {
        return is_expression(joined) || joined.is_empty() || joined.starts_with(['(', '[', '{', '<', '*']);
    }
    let closing =
        |c: char| matches!(c, ')' | ']' | '}' | '>' | ';' | ',' | '"' | '\'' | '`' | '.' | ':' | '|');
    rest.is_empty()
        || rest.starts_with(['(', '[', '<', '{'])
        || rest.chars().all(closing)
        || rest.starts_with("),")
        || rest.starts_with(")?")
}

/// Whether `value` is a word with digits, a common form of passwords: `hunter2`.
pub(super) fn is_password(value: &str) -> bool {
    let letters = value.chars().any(char::is_alphabetic);
    let digits = value.chars().any(char::is_numeric);
    letters
        && digits
        && value.chars().count() >= 5
        && value.chars().all(|c| c.is_alphanumeric() || is_special(c))
}

/// Whether `value` consists of letters and some digits.
pub(super) fn is_key(value: &str) -> bool {
    let digits = value.chars().filter(|c| c.is_numeric()).count();
    let letters = value.chars().any(char::is_alphabetic);
    digits >= 2 && letters && value.chars().count() >= 8 && value.chars().all(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_not_secrets() {
        for value in [
            "",
            "****",
            "xxxx-xxxx",
            "...",
            "None",
            "changeme",
            "${DB_PASSWORD}",
            "$(pass show db)",
            "$DB_PASSWORD",
            "{{ token }}",
            "{password}",
            "<your key>",
            "%PASSWORD%",
            "[REDACTED]",
            "%s",
            "your_api_key_here",
            "op://vault/item/field",
            "$password",
            "my_secret_token",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
        for value in [
            "$Tr0ng!x",
            "%aB3dE6",
            "{aB3dE6!x",
            "hunter2",
            "$aB3dE6gH9",
            "correct-horse",
            "<aB3!x",
            "swordfish",
        ] {
            assert!(!is_placeholder(value), "{value}");
        }
    }

    #[test]
    fn strong_values_differ_from_names_and_sentences() {
        for value in ["aB3!dE6#", "p@ss!word", "3f9a1c77d2e84b", "$Tr0ng!", "pä§wörd7", "Xk9dPq2L", "%4Gh&k"]
        {
            assert!(is_strong(value), "{value}");
        }
        for value in [
            "next_page_token",
            "Token",
            "2026-01-05",
            "1.2.3",
            "src/auth.rs:42",
            "utf8Token",
            "https://example.com/a1",
            "my-secret-2",
            "hunter",
            "identifier",
            "user:page:12",
        ] {
            assert!(!is_strong(value), "{value}");
        }
        assert!(is_prose("Enter your password:") && is_prose("must be at least 8 characters"));
        assert!(!is_prose("correct horse battery staple") && !is_prose("is aB3!x"));
    }

    #[test]
    fn expressions_differ_from_values() {
        for value in [
            "getpass()",
            "self.tokens.next()",
            "os.environ[\"X\"]",
            "Token",
            "&token",
            "args.password,",
            "Some(x)",
            "TokenKind::Ident",
            "process.env.PASSWORD!",
            "await",
            "!token",
            "Option<String>",
            "Vec::new();",
        ] {
            assert!(is_expression(value), "{value}");
        }
        for value in ["aB3.xY9q", "hunter2!x", "hunter2!", "Zx9!kQ#2", "&aB3!x9", "ab$cd", "1234"] {
            assert!(!is_expression(value), "{value}");
        }
    }
}
