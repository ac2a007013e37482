//! Queries, built from conditions.
//!
//! The SDK (1.0.0) does not support `ORDER BY RANK`. It supports aggregates only within one partition, and an [`order`]
//! by several properties only with a composite index.

use std::{collections::BTreeSet, marker::PhantomData, num::NonZeroU32};

use amplifier_session_core::{Scope, search::SearchFilter};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{containers::order, documents::kind};

/// The maximum number of values in one query, and the maximum number of rows that a call reads at a time.
pub(crate) const VALUES: usize = 500;

/// A query with its parameters, whose answers are of type `T`.
#[derive(Debug)]
pub(crate) struct CosmosQuery<T> {
    pub(crate) text: String,
    pub(crate) parameters: Vec<(String, Value)>,
    /// The partition to query; `None` means all of them.
    pub(crate) partition: Option<String>,
    /// The size of a page, for callers that may stop early, because unread answers are charged for, too.
    pub(crate) page: Option<NonZeroU32>,
    answers: PhantomData<fn() -> T>,
}

impl<T> CosmosQuery<T> {
    /// Reads pages of a suitable size for about `limit` answers, some of which the caller may drop.
    pub(crate) fn for_about(mut self, limit: usize) -> Self {
        self.page = u32::try_from(limit.clamp(20, 1_000)).ok().and_then(NonZeroU32::new);
        self
    }
}

/// A query under construction. Every value becomes a parameter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Select {
    partition: Option<String>,
    conditions: Vec<String>,
    parameters: Vec<(String, Value)>,
    order: String,
}

impl Select {
    /// Documents of a kind.
    pub(crate) fn of(kind: &str) -> Self {
        Self::default().and(format!("c.type = '{kind}'"))
    }

    /// The vectors of texts and turns in a partition.
    pub(crate) fn vectors(partition: &str) -> Self {
        Self::all_vectors().within(partition)
    }

    /// All vectors of texts and turns.
    pub(crate) fn all_vectors() -> Self {
        Self::default().and(format!("c.type IN ('{}', '{}')", kind::VECTOR, kind::TURN))
    }

    /// Rows of a kind in a partition.
    pub(crate) fn rows(kind: &str, partition: &str) -> Self {
        Self::of(kind).within(partition)
    }

    /// Only documents of this partition.
    pub(crate) fn within(mut self, partition: &str) -> Self {
        self.partition = Some(partition.to_owned());
        self
    }

    pub(crate) fn and(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    /// A condition in which `@` stands for `value`.
    pub(crate) fn with(mut self, condition: &str, value: impl Serialize) -> Self {
        let parameter = self.parameter(value);
        self.and(condition.replace('@', &parameter))
    }

    /// [`with`](Self::with), if there is a value.
    pub(crate) fn with_some(self, condition: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(condition, value),
            None => self,
        }
    }

    /// A condition in which `@0`, `@1` and so on stand for `values`.
    pub(crate) fn with_all<const N: usize>(mut self, condition: &str, values: [Value; N]) -> Self {
        let mut condition = condition.to_owned();
        for (position, value) in values.into_iter().enumerate() {
            condition = condition.replace(&format!("@{position}"), &self.parameter(value));
        }
        self.and(condition)
    }

    pub(crate) fn parameter(&mut self, value: impl Serialize) -> String {
        let name = format!("@p{}", self.parameters.len());
        self.parameters.push((name.clone(), json!(value)));
        name
    }

    /// Only rows from this sequence on, in order.
    pub(crate) fn from(self, start: u32) -> Self {
        self.with("c.sequence >= @", start).ordered(order::SEQUENCE)
    }

    /// Only rows with these sequences: a range, which the index supports, and a list only if that has gaps.
    pub(crate) fn at(self, sequences: &[u32]) -> Self {
        let sequences: BTreeSet<u32> = sequences.iter().copied().collect();
        let (Some(first), Some(last)) = (sequences.first(), sequences.last()) else {
            return self.and("false");
        };
        if first == last {
            return self.with("c.sequence = @", first);
        }
        let range = self.with("c.sequence >= @", first).with("c.sequence <= @", last);
        let has_gaps = (last - first) as usize >= sequences.len();
        if has_gaps { range.with("ARRAY_CONTAINS(@, c.sequence)", &sequences) } else { range }
    }

    /// Only rows of the scope's user, if it has one. The caller checks the sessions of other scopes.
    pub(crate) fn of_user(self, scope: &Scope) -> Self {
        match scope {
            Scope::User(user) => self.with("c.user_id = @", user),
            _ => self,
        }
    }

    /// Only rows of messages that `filter` admits.
    pub(crate) fn matching(self, filter: &SearchFilter) -> Self {
        self.with_some("c.role = @", filter.role)
            .with_some("c.ts >= @", filter.since)
            .with_some("c.ts < @", filter.until)
    }

    pub(crate) fn ordered(mut self, order: &str) -> Self {
        self.order = format!(" ORDER BY {order}");
        self
    }

    /// The query for these fields, at most `limit` times.
    pub(crate) fn top<T>(self, limit: usize, fields: &str) -> CosmosQuery<T> {
        self.fields(&format!("TOP {limit} {fields}"))
    }

    /// The query for whole documents.
    pub(crate) fn documents<T>(self) -> CosmosQuery<T> {
        self.fields("*")
    }

    /// The query for these fields.
    pub(crate) fn fields<T>(self, fields: &str) -> CosmosQuery<T> {
        let conditions = self.conditions.join(" AND ");
        let filter = if conditions.is_empty() { conditions } else { format!(" WHERE {conditions}") };
        let text = format!("SELECT {fields} FROM c{filter}{}", self.order);
        CosmosQuery {
            text,
            parameters: self.parameters,
            partition: self.partition,
            page: None,
            answers: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_parameters() {
        let names = [json!("x' OR 1 = 1 --"), json!(2)];
        let query: CosmosQuery<Value> =
            Select::of("event").with_all("(c.a > @0 OR c.a = @0 AND c.b > @1)", names).documents();
        let text = "SELECT * FROM c WHERE c.type = 'event' AND (c.a > @p0 OR c.a = @p0 AND c.b > @p1)";
        assert_eq!(query.text, text);
        assert_eq!(query.parameters[0], ("@p0".to_owned(), json!("x' OR 1 = 1 --")));
    }

    #[test]
    fn sequences_are_listed_only_if_there_are_gaps() {
        let text = |sequences: &[u32]| Select::default().at(sequences).documents::<Value>().text;
        assert_eq!(text(&[]), "SELECT * FROM c WHERE false");
        assert_eq!(text(&[3, 3]), "SELECT * FROM c WHERE c.sequence = @p0");
        let range = "SELECT * FROM c WHERE c.sequence >= @p0 AND c.sequence <= @p1";
        assert_eq!(text(&[2, 3, 4]), range);
        assert_eq!(text(&[2, 4]), format!("{range} AND ARRAY_CONTAINS(@p2, c.sequence)"));
    }
}
