//! The field at the cursor, for its completion.

use amplifier_session_storage::{KnownPart, search::FieldName};

/// The fields of a query, the most useful first.
const FIELDS: [(FieldName, &str); 9] = [
    (FieldName::Role, "user, assistant, tool, system or developer"),
    (FieldName::Project, "the sessions of a project"),
    (FieldName::Tool, "calls of a tool, and their output"),
    (FieldName::File, "sessions with a tool call on a file"),
    (FieldName::After, "from a date on"),
    (FieldName::Before, "before a date"),
    (FieldName::Tag, "sessions with a tag"),
    (FieldName::Session, "one session"),
    (FieldName::Repo, "the sessions of a repository"),
];

/// The names of fields with their colons, and descriptions.
pub(super) fn names() -> impl Iterator<Item = (String, &'static str)> {
    FIELDS.into_iter().map(|(name, help)| (format!("{name}:"), help))
}

/// The part of a query that a completion replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldWord {
    /// The position of its first character.
    pub(super) start: usize,
    /// Its text up to the cursor.
    pub(super) typed: String,
    /// The field, if the part is its value; otherwise the part is the beginning of the name of a field.
    pub(super) field: Option<FieldName>,
}

impl FieldWord {
    /// The part that ends at the cursor, which is after `before`.
    pub(super) fn before_cursor(before: &[char]) -> Self {
        let mut start = word_start(before);
        if before.get(start) == Some(&'-') {
            start += 1;
        }
        let word: String = before.part(start..).iter().collect();
        let named = FieldName::ALL.into_iter().find_map(|name| {
            let value = word.strip_prefix(name.as_str())?.strip_prefix(':')?;
            Some((name, value))
        });
        match named {
            Some((name, value)) => Self {
                start: start + name.as_str().len() + 1,
                typed: value.trim_start_matches('"').to_owned(),
                field: Some(name),
            },
            None => Self { start, typed: word, field: None },
        }
    }

    /// The text that completes it with `value`.
    pub(super) fn completed(&self, value: &str) -> String {
        match self.field {
            None => value.to_owned(),
            Some(_) if value.contains(char::is_whitespace) => format!("\"{value}\" "),
            Some(_) => format!("{value} "),
        }
    }
}

/// The beginning of the word at the end of `text`. Words in quotes belong together.
fn word_start(text: &[char]) -> usize {
    let (mut start, mut is_quoted) = (0, false);
    for (at, c) in text.iter().enumerate() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => start = at + 1,
            _ => {}
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> (usize, String, Option<&'static str>) {
        let chars: Vec<char> = text.chars().collect();
        let FieldWord { start, typed, field } = FieldWord::before_cursor(&chars);
        (start, typed, field.map(FieldName::as_str))
    }

    #[test]
    fn the_word_before_the_cursor_is_a_name_or_a_value() {
        assert_eq!(at(""), (0, String::new(), None));
        assert_eq!(at("日本 ro"), (3, "ro".to_owned(), None));
        assert_eq!(at("why "), (4, String::new(), None));
        assert_eq!(at("why role:us"), (9, "us".to_owned(), Some("role")));
        assert_eq!(at("-session:"), (9, String::new(), Some("session")));
        assert_eq!(at("x tag:\"on ca"), (6, "on ca".to_owned(), Some("tag")));
        assert_eq!(at("\"a phrase\" fi"), (11, "fi".to_owned(), None));
        assert_eq!(at("std:io"), (0, "std:io".to_owned(), None));
    }

    #[test]
    fn all_fields_are_offered_and_values_are_quoted() {
        assert_eq!(FIELDS.len(), FieldName::ALL.len());
        let word = |field| FieldWord { start: 0, typed: String::new(), field };
        assert_eq!(word(None).completed("role:"), "role:");
        assert_eq!(word(Some(FieldName::Role)).completed("user"), "user ");
        assert_eq!(word(Some(FieldName::Tag)).completed("on call"), "\"on call\" ");
    }
}
