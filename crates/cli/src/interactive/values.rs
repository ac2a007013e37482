//! The values that fields and filters can have.

use amplifier_session_storage::{model::Role, search::FieldName};

/// Values that are read from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    Projects,
    Repositories,
    Sessions,
    Tags,
    Tools,
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownValue {
    pub(super) value: String,
    /// A description, or empty.
    pub(super) help: String,
}

impl KnownValue {
    pub(super) fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        Self { value: value.into(), help: help.into() }
    }
}

/// The origin of the values of a field or filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueSource {
    Known(Vec<KnownValue>),
    Stored(ValueKind),
    /// Any text. There are too many files to list.
    Text,
}

impl ValueSource {
    pub(super) fn of_field(name: FieldName) -> Self {
        match name {
            FieldName::Role => Self::roles(),
            FieldName::Project => Self::Stored(ValueKind::Projects),
            FieldName::Repo => Self::Stored(ValueKind::Repositories),
            FieldName::Session => Self::Stored(ValueKind::Sessions),
            FieldName::Tag => Self::Stored(ValueKind::Tags),
            FieldName::Tool => Self::Stored(ValueKind::Tools),
            FieldName::After | FieldName::Before => Self::dates(),
            _ => Self::Text,
        }
    }

    pub(super) fn roles() -> Self {
        Self::Known(Role::ALL.into_iter().map(|role| KnownValue::new(role.as_str(), "")).collect())
    }

    pub(super) fn dates() -> Self {
        let known = [
            ("today", ""),
            ("yesterday", ""),
            ("7d", "7 days ago"),
            ("2w", "2 weeks ago"),
            ("3 months ago", ""),
            ("monday", "the last Monday"),
            ("last week", "the beginning of last week"),
            ("last month", "the beginning of last month"),
        ];
        Self::Known(known.into_iter().map(|(value, help)| KnownValue::new(value, help)).collect())
    }
}
