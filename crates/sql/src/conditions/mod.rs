//! Conditions and their values.
//!
//! Every value is bound, so names may contain any character. An unknown scope is a `Validation` error.

mod events;
mod sessions;

use std::collections::BTreeSet;

use amplifier_session_core::{
    Result, Scope,
    backend::{PendingQuery, SessionQuery},
    model::Timestamp,
    search::{EventFilter, SearchFilter},
    text::ascii_parts,
};

use crate::{
    read::changes::ChangeNumbers,
    rows::{has_something_to_embed, is_pending, is_turn_pending},
};

/// How a database finds words. Case and accents are ignored.
#[derive(Debug, Clone, Copy)]
pub enum WordSearch {
    /// The condition that a row has all words of a text (the argument).
    Exact(fn(&str) -> String),
    /// The condition that a row has non-ASCII letters, or contains one of [`ascii_parts`] (the argument). The rows must
    /// be checked.
    Parts(fn(&str) -> String),
}

impl WordSearch {
    /// Whether it finds no other rows.
    #[must_use]
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

/// The differences between databases.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Whether the list in a column (the first argument) contains a value (the second).
    pub list_holds: fn(&str, &str) -> String,
    /// How changes of sessions are numbered.
    pub changes: ChangeNumbers,
    /// How to find words in the title or description of the session `s`.
    pub session_words: WordSearch,
    /// How to find words in the event `e`.
    pub event_words: WordSearch,
    /// The beginning of the quarter of an hour of a time (the argument).
    pub quarter_hour: fn(&str) -> String,
    /// The table `sessions s` for a list, with an index hint.
    pub list_from: fn(&SessionQuery) -> &'static str,
    /// The tables `sessions s` and `transcripts t`, joined to count messages.
    pub messages_of_sessions: &'static str,
    /// The tables `events e` and `sessions s`, joined to read the newest events first.
    pub events_in_order: fn(&Scope, &EventFilter) -> String,
    /// The table `sessions s`, joined with rows of another table `t` (the argument) that have its user and id.
    pub beside_sessions: fn(&str) -> String,
    /// The table or view of the vectors of all generations.
    pub all_vectors: &'static str,
    /// The tables of vectors. The current generation is in the first.
    pub vector_tables: &'static [&'static str],
    /// The beginning of a statement that changes many rows.
    pub update: &'static str,
    /// A time as a literal.
    pub time: fn(Timestamp) -> String,
    /// The limit of one result, if the database holds complete results in memory.
    pub batch: Option<Batch>,
    /// Whether removed vectors are recorded in the table `removed`, for an index that contains them. Removed messages
    /// always are.
    pub records_removed_vectors: bool,
    /// Whether the table `removed` has a column `user_id`.
    pub removed_of_users: bool,
    /// Additional tables of the database that have a column `user_id`.
    pub own_tables: &'static [&'static str],
    /// Different ways to read key, user and id of all sessions, from different pages, if a part of the database can't
    /// be read.
    pub session_keys: &'static [&'static str],
}

/// The limit of one result.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Rows.
    pub rows: usize,
    /// Bytes of lines.
    pub bytes: u64,
}

/// A bound value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Integer(i64),
    /// A time, in the form of the database.
    Time(Timestamp),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<Timestamp> for Value {
    fn from(ts: Timestamp) -> Self {
        Self::Time(ts)
    }
}

/// Which messages with pending vectors a query selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingRows {
    /// Those with pending vectors of texts in the current generation.
    Texts,
    /// Those of which only the vector of the turn is pending in the current generation.
    Turns,
    /// Those with pending vectors in the next generation.
    OfNext,
}

/// Conditions joined by `AND`, with their values.
#[derive(Debug, Clone)]
pub struct Conditions {
    pub(crate) dialect: Dialect,
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// No conditions: all rows.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, conditions: Vec::new(), values: Vec::new() }
    }

    /// Adds a condition in which every `?` stands for `value`.
    pub fn compare(&mut self, condition: &str, value: impl Into<Value>) {
        let place = self.bind(value);
        self.require(condition.replace('?', &place));
    }

    /// [`Conditions::compare`] if there is a value.
    pub fn compare_if(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.compare(condition, value);
        }
    }

    /// Adds a condition that `column` is one of `values`.
    pub fn one_of<'a>(&mut self, column: &str, values: impl Iterator<Item = &'a str>) {
        let values: BTreeSet<&str> = values.collect();
        let bound: Vec<String> = values.into_iter().map(|value| self.bind(value)).collect();
        self.require(match bound.as_slice() {
            [] => "FALSE".to_owned(),
            bound => format!("{column} IN ({})", bound.join(", ")),
        });
    }

    /// The words of `text`.
    fn have_words(&mut self, text: &str, search: WordSearch) {
        let (condition, texts) = match search {
            WordSearch::Exact(condition) => (condition, vec![text.to_owned()]),
            WordSearch::Parts(condition) => (condition, ascii_parts(text)),
        };
        for text in texts {
            let text = self.bind(text);
            self.require(condition(&text));
        }
    }

    /// Adds a condition.
    pub fn require(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// Binds a value; returns its placeholder.
    pub fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// The SQL after `WHERE`.
    #[must_use]
    pub fn sql(&self) -> String {
        if self.conditions.is_empty() { "TRUE".to_owned() } else { self.conditions.join(" AND ") }
    }

    /// The values of a statement with these conditions, in order of their numbers.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}

/// Conditions on messages: `transcripts` under the name `t`, and their sessions `s`.
impl Conditions {
    /// The messages of `scope` that `filter` admits.
    pub fn of_messages(dialect: Dialect, scope: &Scope, filter: &SearchFilter) -> Result<Self> {
        let mut conditions = Self::of_sessions(dialect, scope, &filter.sessions)?;
        conditions.compare_if("t.role = ?", filter.role.map(|role| role.as_str().to_owned()));
        conditions.compare_if("t.ts >= ?", filter.since);
        conditions.compare_if("t.ts < ?", filter.until);
        Ok(conditions)
    }

    /// The messages with pending vectors of the current generation, or of the next one.
    #[must_use]
    pub fn of_pending(dialect: Dialect, query: &PendingQuery, pending: PendingRows) -> Self {
        let mut conditions = Self::new(dialect);
        match pending {
            PendingRows::Texts => conditions.require(is_pending("t.vectors")),
            PendingRows::Turns => conditions.require(is_turn_pending("t.vectors")),
            PendingRows::OfNext => {
                conditions.require(has_something_to_embed("t.vectors"));
                conditions.compare("t.generation <> ?", query.generation);
            }
        }
        conditions.compare("t.user_id = ?", query.user.to_string());
        conditions.compare_if("t.session_id = ?", query.session.as_ref().map(ToString::to_string));
        if let Some(after) = &query.after {
            let session = conditions.bind(after.session.session_id.to_string());
            let sequence = conditions.bind(after.sequence);
            conditions.require(format!("(t.session_id, t.sequence) > ({session}, {sequence})"));
        }
        conditions
    }
}
