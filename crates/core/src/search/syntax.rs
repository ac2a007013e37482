//! The syntax of queries that people type.

use std::fmt;

use crate::KnownPart;

/// A field of a query, such as `role:user`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldName {
    /// The role of the message.
    Role,
    /// The project.
    Project,
    /// The repository.
    Repo,
    /// A tool that the message calls, or whose output it is.
    Tool,
    /// A file that the session touched.
    File,
    /// Messages before a date.
    Before,
    /// Messages from a date on.
    After,
    /// The session.
    Session,
    /// A tag of the session.
    Tag,
}

names! {
    FieldName {
        Role: "role", Project: "project", Repo: "repo", Tool: "tool", File: "file", Before: "before",
        After: "after", Session: "session", Tag: "tag",
    }
}

/// A field with its value, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The field.
    pub name: FieldName,
    /// The value, not empty.
    pub value: String,
    /// Whether a `-` precedes the field.
    pub is_excluded: bool,
}

impl fmt::Display for Field {
    /// The field in a query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, is_excluded } = self;
        let hyphen = if *is_excluded { "-" } else { "" };
        let quote = if value.contains(char::is_whitespace) { "\"" } else { "" };
        write!(f, "{hyphen}{name}:{quote}{value}{quote}")
    }
}

/// A query that was typed, split into its parts.
///
/// | typed | means |
/// | --- | --- |
/// | `"exact phrase"` | these words in this order |
/// | `-word`, `-"a phrase"` | not this word |
/// | `prefix*` | words that begin like this |
/// | `role:user` | a [field](FieldName) |
///
/// Anything else is plain text: a quote that is not closed, `-` before a space, a number or a flag of one or two
/// letters (`rm -rf`), `--flag`, names that are no field (`std:io`, `http://…`), `C:\x`, `session::new`. A query that
/// only excludes is plain text as a whole.
///
/// ```
/// use amplifier_session_core::search::{FieldName, TypedQuery};
///
/// let query = TypedQuery::parse("\"connection pool\" time* -postgres role:assistant rm -rf");
/// assert_eq!(query.text, "connection pool time rm -rf");
/// assert_eq!(query.phrases, ["connection pool"]);
/// assert_eq!(query.prefixes, ["time"]);
/// assert_eq!(query.excluded, ["postgres"]);
/// assert_eq!((query.fields[0].name, &*query.fields[0].value), (FieldName::Role, "assistant"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TypedQuery {
    /// The words that rank and are embedded, without operators: also those of phrases and prefixes.
    pub text: String,
    /// The phrases.
    pub phrases: Vec<String>,
    /// The beginnings of words.
    pub prefixes: Vec<String>,
    /// Words and phrases that must not occur.
    pub excluded: Vec<String>,
    /// The fields, in order.
    pub fields: Vec<Field>,
}

impl TypedQuery {
    /// A query without syntax.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Splits a query into its parts. Never fails: what is not syntax is plain text.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        Self::parse_with(typed, |_| true)
    }

    /// [`Self::parse`], except that fields are plain text if `is_field` is false for them.
    #[must_use]
    pub fn parse_with(typed: &str, mut is_field: impl FnMut(&Field) -> bool) -> Self {
        let (mut query, mut words) = (Self::default(), Vec::new());
        let mut rest = typed.trim_start();
        while !rest.is_empty() {
            let (part, length) = QueryPart::first(rest);
            let (this, after) = rest.split_at(length);
            rest = after.trim_start();
            match part {
                QueryPart::Word => words.push(this),
                QueryPart::Phrase(phrase) => {
                    query.phrases.push(phrase.to_owned());
                    words.push(phrase);
                }
                QueryPart::Prefix(word) => {
                    let begins = last_word(word);
                    query.prefixes.push(word.part(begins..).to_owned());
                    words.push(word);
                }
                QueryPart::Excluded(text) => query.excluded.push(text.to_owned()),
                QueryPart::Field { name, value, is_excluded } => {
                    let field = Field { name, value: value.to_owned(), is_excluded };
                    if is_field(&field) {
                        query.fields.push(field);
                    } else {
                        words.push(this);
                    }
                }
            }
        }
        if words.is_empty() && query.fields.is_empty() {
            return Self::plain(typed.trim());
        }
        query.text = words.join(" ");
        query
    }

    /// Whether it has nothing but text.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Self { text: _, phrases, prefixes, excluded, fields } = self;
        phrases.is_empty() && prefixes.is_empty() && excluded.is_empty() && fields.is_empty()
    }
}

/// A part of a query.
#[derive(Debug, PartialEq)]
enum QueryPart<'a> {
    Word,
    Phrase(&'a str),
    Prefix(&'a str),
    Excluded(&'a str),
    Field { name: FieldName, value: &'a str, is_excluded: bool },
}

impl<'a> QueryPart<'a> {
    /// The first part of `text`, which begins with no space, and its length in bytes.
    fn first(text: &'a str) -> (Self, usize) {
        let word_end = text.find(char::is_whitespace).unwrap_or(text.len());
        let word = text.part(..word_end);
        if let Some(phrase) = quoted(text) {
            return (Self::Phrase(phrase), phrase.len() + 2);
        }
        if let Some((field, length)) = Self::field(text, false) {
            return (field, length);
        }
        if let Some(after) = text.strip_prefix('-') {
            if let Some(phrase) = quoted(after) {
                return (Self::Excluded(phrase), phrase.len() + 3);
            }
            if let Some((field, length)) = Self::field(after, true) {
                return (field, length + 1);
            }
            let excluded = word.strip_prefix('-').filter(|word| can_be_excluded(word));
            return (excluded.map_or(Self::Word, Self::Excluded), word_end);
        }
        let beginning = word.strip_suffix('*').filter(|beginning| can_be_prefix(beginning));
        (beginning.map_or(Self::Word, Self::Prefix), word_end)
    }

    fn field(text: &'a str, is_excluded: bool) -> Option<(Self, usize)> {
        // Only the beginning is looked at: a query of many words would otherwise be read again for each of them.
        let (name, after) = FieldName::ALL.into_iter().find_map(|name| {
            let after = text.strip_prefix(name.as_str())?.strip_prefix(':')?;
            Some((name, after))
        })?;
        let begins = name.as_str().len() + 1;
        if let Some(value) = quoted(after) {
            return Some((Self::Field { name, value, is_excluded }, begins + value.len() + 2));
        }
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let value = after.part(..end);
        // `session::new`, `file:///etc/hosts`
        let is_value = !value.is_empty() && !value.starts_with(':') && !value.starts_with("//");
        is_value.then_some((Self::Field { name, value, is_excluded }, begins + end))
    }
}

/// The text in the quotes at the beginning of `text`, if it has words, and a space or nothing follows the quotes.
fn quoted(text: &str) -> Option<&str> {
    let (phrase, after) = text.strip_prefix('"')?.split_once('"')?;
    let is_whole = after.chars().next().is_none_or(char::is_whitespace);
    (is_whole && has_words(phrase)).then_some(phrase)
}

fn has_words(text: &str) -> bool {
    text.chars().any(|c| c.is_alphanumeric() || !c.is_ascii() && !c.is_whitespace())
}

/// Whether `-word` means that the word is excluded. Numbers and flags such as `-v` and `-rf` are text.
fn can_be_excluded(word: &str) -> bool {
    let is_flag = word.is_ascii() && word.len() <= 2;
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b".,%".contains(&byte));
    word.chars().next().is_some_and(|first| first.is_alphanumeric() || !first.is_ascii())
        && !is_flag
        && !is_number
}

/// Whether `word*` means words that begin so: not `src/*`, `**bold**` or `a*`.
fn can_be_prefix(word: &str) -> bool {
    let last = word.part(last_word(word)..);
    !word.contains('*') && (last.len() >= 2) && last.chars().all(char::is_alphanumeric)
}

/// Where the last run of letters and digits in `word` begins.
fn last_word(word: &str) -> usize {
    let separator = word.char_indices().rfind(|(_, c)| !c.is_alphanumeric());
    separator.map_or(0, |(at, c)| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn phrases_exclusions_and_prefixes_are_taken_out() {
        let query = TypedQuery::parse("  \"connection pool\"  -postgres time* -\"read only\" leak ");
        assert_eq!(query.text, "connection pool time leak");
        assert_eq!(query.phrases, ["connection pool"]);
        assert_eq!(query.excluded, ["postgres", "read only"]);
        assert_eq!(query.prefixes, ["time"]);
        assert!(!query.is_plain());
        let query = TypedQuery::parse("read_fil* 東*");
        assert_eq!((query.text.as_str(), query.prefixes), ("read_fil 東", vec!["fil".into(), "東".into()]));
        assert_eq!(TypedQuery::parse("x -東京").excluded, ["東京"]);
    }

    #[test]
    fn fields_have_known_names_and_raw_values() {
        let query = TypedQuery::parse(
            "retry role:user before:2026-01-31 tag:\"on call\" -session:3a7c file:src/a:b.rs",
        );
        let fields: Vec<_> = query
            .fields
            .iter()
            .map(|field| (field.name.as_str(), &*field.value, field.is_excluded))
            .collect();
        let expected = [
            ("role", "user", false),
            ("before", "2026-01-31", false),
            ("tag", "on call", false),
            ("session", "3a7c", true),
            ("file", "src/a:b.rs", false),
        ];
        assert_eq!((query.text.as_str(), fields), ("retry", expected.to_vec()));
        assert_eq!(TypedQuery::parse("tool:bash").text, "");
    }

    #[test]
    fn a_query_of_many_words_is_read_once() {
        // With a pass for each word, this would take minutes.
        let text = "word".to_owned() + &" a".repeat(400_000);
        let query = TypedQuery::parse(&format!("{text} -other role:user"));
        assert_eq!((query.text, query.excluded.len(), query.fields.len()), (text, 1, 1));
    }

    #[test]
    fn a_field_can_be_plain_text_where_it_stands() {
        let typed = "open role:admin -role:user tag:\"on call\" role:user -slow";
        let query = TypedQuery::parse_with(typed, |field| field.to_string() == "role:user");
        assert_eq!(query.text, "open role:admin -role:user tag:\"on call\"");
        assert_eq!((query.fields.len(), query.excluded), (1, vec!["slow".to_owned()]));
        let fields: Vec<String> = TypedQuery::parse(typed).fields.iter().map(ToString::to_string).collect();
        assert_eq!(fields, ["role:admin", "-role:user", "tag:\"on call\"", "role:user"]);
    }

    #[test]
    fn anything_else_is_plain_text() {
        for text in [
            "",
            "why is the basket empty after login?",
            "C:\\x",
            "a - b",
            "-",
            "--",
            "--no-verify",
            "http://localhost:80/x?y=-1",
            "foo:bar",
            "Role:user",
            "role:",
            "role: user",
            "session::new",
            "file:///etc/hosts",
            "an \"unclosed quote",
            "\"a\"b",
            "\"\"",
            "\"--\"",
            "5\" screen",
            "rm -rf /",
            "ls -l",
            "-1",
            "-0.5 degrees",
            "foo-bar",
            "src/*",
            "**bold**",
            "*",
            "a*",
            "a*b*",
            "f(x*)",
            "(-x)",
            "[tag:x]",
            "-only -these",
        ] {
            assert_eq!(TypedQuery::parse(text), TypedQuery::plain(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_input_is_a_query_and_keeps_its_words(typed in "(\\PC|[a-z]{1,4}|role:|tag:|-|--|\"|\\*|:| |\n){0,24}") {
            let query = TypedQuery::parse(&typed);
            let TypedQuery { text, phrases, prefixes, excluded, fields } = &query;
            // Every letter of the input is in one part.
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
            let fields_letters: usize =
                fields.iter().map(|field| letters(field.name.as_str()) + letters(&field.value)).sum();
            let excluded_letters: usize = excluded.iter().map(|text| letters(text)).sum();
            prop_assert_eq!(letters(text) + excluded_letters + fields_letters, letters(&typed));
            for part in phrases.iter().chain(prefixes) {
                prop_assert!(text.contains(part.as_str()) && has_words(part));
            }
            prop_assert!(fields.iter().all(|field| !field.value.is_empty()));
            // A text without special characters is itself.
            if !typed.contains(['"', '-', '*', ':']) {
                prop_assert!(query.is_plain());
                prop_assert_eq!(
                    text.split_whitespace().collect::<Vec<_>>(),
                    typed.split_whitespace().collect::<Vec<_>>()
                );
            }
        }

        #[test]
        fn a_plain_query_is_its_text(typed in "\\PC{0,40}") {
            prop_assert_eq!(TypedQuery::plain(typed.clone()).text, typed);
        }
    }
}
