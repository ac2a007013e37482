//! Decides by its name whether a value may be a secret.

use std::ops::Range;

use amplifier_session_core::KnownPart;

/// What a name implies about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A password: any value may be one, even a plain word.
    Password,
    /// A key, a secret or a token of an account: a value that is not a plain word.
    Secret,
    /// A token of any kind, even of a parser, or a name that contains such a word: a value that looks like a secret.
    Weak,
}

/// Parts of names to check, in lower case.
#[rustfmt::skip]
pub(super) const KEYWORDS: &[&str] = &[
    "pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "pat", "jwt", "cookie", "kennwort",
    "contrase", "senha", "парол", "密码", "密碼", "パスワード", "비밀번호",
];

/// Ends of names, without separators.
#[rustfmt::skip]
const PASSWORDS: &[&str] = &[
    "password", "passwd", "passwort", "passphrase", "passcode", "passwrd", "pwd", "kennwort", "contraseña",
    "contrasena", "senha", "dbpass", "userpass", "adminpass", "rootpass", "mysqlpass", "smtppass",
    "mailpass", "пароль", "密码", "密碼", "パスワード", "비밀번호",
];
#[rustfmt::skip]
const SECRETS: &[&str] = &[
    "secret", "apikey", "appkey", "accesskey", "accountkey", "authkey", "clientkey", "consumerkey",
    "deploykey", "encryptionkey", "hmackey", "aeskey", "masterkey", "privatekey", "secretkey", "servicekey",
    "sessionkey", "sharedkey", "sharedaccesskey", "signingkey", "sshkey", "storagekey", "subscriptionkey",
    "licensekey", "integrationkey", "webhookkey", "jwtkey", "accesstoken", "apitoken", "apptoken",
    "authtoken", "bearertoken", "bottoken", "deploytoken", "githubtoken", "gitlabtoken", "hftoken",
    "npmtoken", "oauthtoken", "personaltoken", "privatetoken", "refreshtoken", "registrytoken", "sastoken",
    "secrettoken", "securitytoken", "servicetoken", "sessiontoken", "slacktoken", "usertoken", "vaulttoken",
    "webhooktoken", "sharedaccesssignature", "authorization", "credential", "credentials", "creds",
    "gitlabpat", "githubpat", "azurepat",
];
/// Last words of names.
const PASSWORD_WORDS: &[&str] = &["pass", "pw", "psw", "pswd"];
const WEAK_WORDS: &[&str] = &["auth", "cookie", "pat"];

/// Words before `key` in the names of keys that are not secret.
#[rustfmt::skip]
const OPEN_KEYS: &[&str] = &[
    "arrow", "cache", "column", "composite", "config", "data", "default", "dict", "down", "event", "field",
    "foreign", "group", "hash", "hot", "idempotency", "index", "item", "json", "keyboard", "lookup", "map",
    "message", "meta", "node", "object", "parent", "partition", "primary", "public", "range", "routing",
    "row", "setting", "shortcut", "sort", "tab", "translation", "unique", "up",
];

/// Last words that distinguish several values of the same kind.
#[rustfmt::skip]
const WHICH: &[&str] = &[
    "prod", "production", "dev", "development", "test", "testing", "staging", "stage", "live", "local",
    "old", "new", "current", "previous", "primary", "secondary", "backup", "default", "value", "val",
    "confirm", "confirmation", "again", "base", "plain", "plaintext", "clear", "raw", "str", "string",
    "env", "main", "a", "b",
];

/// Last words of names whose value is about a secret and not a secret itself.
#[rustfmt::skip]
const ABOUT: &[&str] = &[
    "age", "alg", "algorithm", "arn", "at", "attempts", "attribute", "budget", "bytes", "change", "changed",
    "char", "chars", "check", "class", "column", "cost", "count", "counter", "dialog", "dir", "directory",
    "duration", "enabled", "encoding", "encryption", "endpoint", "error", "errors", "exists", "expired",
    "expires", "expiration", "expiry", "field", "file", "filename", "form", "format", "function", "handler",
    "header", "help", "helper", "hint", "host", "id", "ids", "index", "input", "kind", "label", "len",
    "length", "level", "limit", "limits", "list", "manager", "map", "max", "message", "min", "mode",
    "model", "module", "name", "names", "offset", "param", "parameter", "path", "pattern", "placeholder",
    "policy", "position", "prefix", "price", "prompt", "provider", "ref", "regex", "region", "request",
    "required", "reset", "response", "role", "rotation", "rule", "rules", "scheme", "schema", "scope",
    "scopes", "service", "set", "size", "sort", "source", "span", "start", "end", "state", "status",
    "stdin", "store", "strategy", "stream", "strength", "style", "suffix", "text", "time", "timeout",
    "title", "tokenizer", "tokens", "ttl", "type", "types", "uri", "url", "usage", "user", "username",
    "util", "utils", "validation", "validator", "version", "visible", "window",
];

/// What a name implies about its value; `None` if the value is not a secret. `before` is the word before the name, for
/// names of two words such as `API key`.
pub(super) fn kind_of(name: &str, before: Option<&str>) -> Option<NameKind> {
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| distinguishes(last)) {
        words.pop();
    }
    let kind = kind_of_words(&words);
    match (kind, before) {
        (None | Some(NameKind::Weak), Some(before)) if words.len() == 1 => {
            let both = [before.to_lowercase(), words.concat()];
            // `the key` and `from key` name nothing, unlike `API key`.
            kind_of_words(&both).filter(|kind| *kind != NameKind::Weak).or(kind)
        }
        _ => kind,
    }
}

/// Whether `pass` after `word` is a verb: `all tests pass`, `would pass`.
fn precedes_verb(word: &str) -> bool {
    const WORDS: [&str; 22] = [
        "to", "and", "or", "then", "not", "would", "should", "must", "will", "can", "could", "may", "might",
        "now", "also", "we", "you", "they", "i", "don't", "t", "all",
    ];
    word.len() > 2 && word.ends_with('s') && !matches!(word, "this" | "his") || WORDS.contains(&word)
}

fn distinguishes(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) || WHICH.contains(&word)
}

fn kind_of_words(words: &[String]) -> Option<NameKind> {
    let last = words.last()?.as_str();
    let joined = words.concat();
    let ends = |list: &[&str]| list.iter().any(|end| joined.ends_with(end));
    if ends(PASSWORDS) || PASSWORD_WORDS.contains(&last) {
        return Some(NameKind::Password);
    }
    if ends(SECRETS) || last == "jwt" {
        return Some(NameKind::Secret);
    }
    let before = words.len().checked_sub(2).and_then(|at| words.get(at)).map_or("", String::as_str);
    if last == "key" {
        return (!before.is_empty() && !OPEN_KEYS.contains(&before)).then_some(NameKind::Weak);
    }
    if joined.ends_with("token") || WEAK_WORDS.contains(&last) {
        return Some(NameKind::Weak);
    }
    if ABOUT.contains(&last) {
        let is_list =
            last == "tokens" && words.iter().any(|word| matches!(word.as_str(), "api" | "access" | "auth"));
        return is_list.then_some(NameKind::Weak);
    }
    let within = |list: &[&str]| list.iter().any(|part| joined.contains(part));
    (within(PASSWORDS) || within(SECRETS) || words.iter().any(|word| word == "token"))
        .then_some(NameKind::Weak)
}

/// The words of an identifier, in lower case: `APIKey_v2` is `api`, `key`, `v`, `2`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = CharKind::Separator;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let kind = CharKind::of(c);
        let begins = match (before, kind) {
            (_, CharKind::Separator) => false,
            (CharKind::Upper, CharKind::Upper) => {
                chars.peek().is_some_and(|next| CharKind::of(*next) == CharKind::Lower)
            }
            (CharKind::Upper, CharKind::Lower) => false,
            (before, kind) => before != kind,
        };
        if begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (kind != CharKind::Separator, words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before = kind;
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Separator,
    Upper,
    Lower,
    Digit,
}

impl CharKind {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_uppercase() => Self::Upper,
            _ if c.is_numeric() => Self::Digit,
            _ if c.is_alphabetic() => Self::Lower,
            _ => Self::Separator,
        }
    }
}

/// A name in a text.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) span: Range<usize>,
    pub(super) kind: NameKind,
    /// Whether it begins like a command-line option.
    pub(super) is_flag: bool,
    /// The separator between it and the field before it, in a query, a connection string or an object.
    pub(super) separator: Option<char>,
    /// The quote directly before it.
    pub(super) quote: Option<char>,
    /// Whether it looks like an environment variable, or is set as one.
    pub(super) is_variable: bool,
}

impl Name {
    /// The name at `span`, if its value may be a secret.
    pub(super) fn of(text: &str, span: Range<usize>) -> Option<Self> {
        let name = text.get(span.clone())?;
        let before = text.part(..span.start);
        let previous = before.strip_suffix(' ').and_then(|rest| {
            let start = rest.char_indices().rev().take_while(|(_, c)| c.is_alphanumeric()).take(20).last();
            rest.get(start?.0..)
        });
        // A verb, not a name: `all tests pass: …`.
        if name == "pass"
            && previous.is_some_and(precedes_verb)
            && text.get(span.end..)?.starts_with([' ', ':'])
        {
            return None;
        }
        let kind = match kind_of(name, previous) {
            None if name.eq_ignore_ascii_case("bearer") => NameKind::Weak,
            kind => kind?,
        };
        let is_flag =
            before.ends_with("--") || before == "-" || before.ends_with(" -") || before.ends_with("\n-");
        let is_set = ["export ", "ENV ", "ARG ", "set ", "setx ", "-e ", "--env ", "env:", "declare -x "]
            .iter()
            .any(|word| before.ends_with(word));
        let is_capital = name.len() >= 3 && !name.contains(char::is_lowercase) && !name.contains(['-', '.']);
        let before_blanks = before.trim_end_matches([' ', '"', '\'']);
        Some(Self {
            span,
            kind,
            is_flag,
            is_variable: is_set || is_capital,
            separator: before_blanks.chars().next_back().filter(|c| "?&;,{".contains(*c)),
            quote: before.chars().next_back().filter(|c| matches!(c, '"' | '\'' | '`')),
        })
    }

    /// How far its line is indented; 0 if the line begins so far before that this does not matter. A line may be as long as
    /// the text.
    pub(super) fn indent(&self, text: &str) -> usize {
        const FARTHEST: usize = 4_000;
        let earliest = self.span.start.saturating_sub(FARTHEST);
        let earliest =
            (earliest..self.span.start).find(|at| text.is_char_boundary(*at)).unwrap_or(self.span.start);
        let before = text.part(earliest..self.span.start);
        let start = match before.rfind('\n') {
            Some(end) => end + 1,
            None if earliest == 0 => 0,
            None => return 0,
        };
        let line = before.part(start..);
        line.chars().take_while(|c| matches!(c, ' ' | '-')).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_line_is_looked_for_nearby() {
        let indent = |before: &str| {
            let text = format!("{before}password: |");
            let start = before.len();
            Name::of(&text, start..start + 8).unwrap().indent(&text)
        };
        assert_eq!((indent("  "), indent("é\n  - "), indent("x")), (2, 4, 0));
        let long = "é".repeat(1_990);
        assert_eq!((indent(&format!("x\n  {long} ")), indent(&format!("x\n  {long}{long} "))), (2, 0));
        assert_eq!(indent(&format!("  {long}{long} ")), 0);
    }

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("APIKey", "api key"),
            ("X-Api-Key", "x api key"),
            ("DB_PASSWORD_2", "db password 2"),
            ("spring.datasource.password", "spring datasource password"),
            ("clientSecret", "client secret"),
            ("--", ""),
        ] {
            assert_eq!(words(name).join(" "), expected);
        }
    }

    #[test]
    fn names_indicate_kinds_of_values() {
        use NameKind::{Password, Secret, Weak};
        for (name, before, expected) in [
            ("password", None, Some(Password)),
            ("DB_PASS", None, Some(Password)),
            ("pgpassword", None, Some(Password)),
            ("PASSWORD_PROD_2", None, Some(Password)),
            ("passwordConfirmation", None, Some(Password)),
            ("API-KEY", None, Some(Secret)),
            ("openaiApikey", None, Some(Secret)),
            ("SECRET_KEY_BASE", None, Some(Secret)),
            ("aws_secret_access_key", None, Some(Secret)),
            ("key", Some("API"), Some(Secret)),
            ("key", Some("primary"), None),
            ("Token", Some("access"), Some(Secret)),
            ("token", None, Some(Weak)),
            ("API_KEY_OPENAI", None, Some(Weak)),
            ("compass", None, None),
            ("path", None, None),
            ("max_tokens", None, None),
            ("api_tokens", None, Some(Weak)),
            ("pat", None, Some(Weak)),
            ("OPENAI_KEY", None, Some(Weak)),
            ("cacheKey", None, None),
            ("tokenizer.json", None, None),
            ("token_count", None, None),
            ("passwordField", None, None),
            ("PASSWORD_FILE", None, None),
            ("secretName", None, None),
            ("password.length", None, None),
        ] {
            assert_eq!(kind_of(name, before), expected, "{name}");
        }
    }
}
