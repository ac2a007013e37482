//! The texts of all queries.
//!
//! Rules that a test holds them to (version 1.0.0 of the SDK): aggregates only within one partition, never `ORDER BY RANK`,
//! and each `ORDER BY` of several properties has its composite index.

use std::collections::BTreeSet;

use amplifier_session_core::{
    Scope,
    backend::{OwingQuery, RESPONSE, SessionCursor, SessionQuery, meta::Generations},
    model::{SessionId, UserId},
    search::{EventCursor, EventFilter, SearchFilter, SessionFilter},
};
use serde_json::{Value, json};

use crate::{
    client::Query,
    documents::{EVENT_FIELDS, kind},
};

/// A condition under construction: every value is a parameter.
struct Conditions {
    text: String,
    parameters: Vec<(String, Value)>,
}

impl Conditions {
    /// Documents of a kind.
    fn of(kind: &str) -> Self {
        Self { text: format!("c.type = '{kind}'"), parameters: Vec::new() }
    }

    fn parameter(&mut self, value: impl Into<Value>) -> String {
        let name = format!("@p{}", self.parameters.len());
        self.parameters.push((name.clone(), value.into()));
        name
    }

    /// Adds a condition, in which `@` stands for the value.
    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        let name = self.parameter(value);
        self.and_text(&condition.replace('@', &name));
    }

    fn and_some(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and(condition, value);
        }
    }

    fn and_text(&mut self, condition: &str) {
        self.text.push_str(" AND ");
        self.text.push_str(condition);
    }

    /// `SELECT {select} FROM c WHERE …{order}`.
    fn select(self, select: &str, order: &str) -> Query {
        let mut query = Query::new(format!("SELECT {select} FROM c WHERE {}{order}", self.text));
        query.parameters = self.parameters;
        query
    }
}

/// Session documents of a scope; what the filter asks beyond that is looked at in the answer.
fn sessions_within(scope: &Scope, filter: &SessionFilter) -> Conditions {
    let mut conditions = Conditions::of(kind::SESSION);
    conditions.and_text("c.committed = true");
    match scope {
        Scope::User(user) => conditions.and("c.user_id = @", user.as_str()),
        Scope::Visible(viewer) => {
            let user = conditions.parameter(viewer.user_id.as_str());
            let mut may_see = format!("c.user_id = {user} OR c.visibility = 'public'");
            if let Some(org) = &viewer.org_id {
                let org = conditions.parameter(org.as_str());
                may_see.push_str(&format!(" OR (c.visibility = 'org' AND c.org_id = {org})"));
            }
            for team in &viewer.team_ids {
                let team = conditions.parameter(team.as_str());
                may_see
                    .push_str(&format!(" OR (c.visibility = 'team' AND ARRAY_CONTAINS(c.team_ids, {team}))"));
            }
            conditions.and_text(&format!("({may_see})"));
        }
        _ => {}
    }
    conditions.and_some("c.project_slug = @", filter.project.as_ref().map(|project| project.as_str()));
    conditions.and_some("c.session_id = @", filter.session.as_ref().map(|session| session.as_str()));
    conditions.and_some("c.bundle = @", filter.bundle.as_deref());
    for tag in &filter.tags {
        conditions.and("ARRAY_CONTAINS(c.tags, @)", tag.as_str());
    }
    conditions
}

/// Sessions that a read looks at.
pub(crate) fn scope(scope: &Scope, filter: &SessionFilter) -> Query {
    sessions_within(scope, filter).select("*", "")
}

/// The ids of the sessions of `scope`.
pub(crate) fn names(scope: &Scope) -> Query {
    sessions_within(scope, &SessionFilter::default()).select("c.session_id, c.parent_id", "")
}

/// A list of sessions.
pub(crate) fn sessions(query: &SessionQuery) -> Query {
    let mut conditions = sessions_within(&query.scope, &query.filter);
    conditions.and_some("STARTSWITH(c.session_id, @)", query.id_prefix.as_deref());
    conditions.and_some("c.updated >= @", query.since.map(String::from));
    conditions.and_some("c.updated < @", query.until.map(String::from));
    conditions.and_some("c.created < @", query.created_until.map(String::from));
    conditions.and_some("c.parent_id = @", query.parent.as_ref().map(|parent| parent.as_str()));
    if let Some(after) = &query.after {
        behind_session(&mut conditions, after);
    }
    conditions.select("*", " ORDER BY c.updated DESC, c.user_id ASC, c.session_id ASC")
}

fn behind_session(conditions: &mut Conditions, after: &SessionCursor) {
    let updated = conditions.parameter(String::from(after.updated));
    let user = conditions.parameter(after.key.user_id.as_str());
    let session = conditions.parameter(after.key.session_id.as_str());
    conditions.and_text(&format!(
        "(c.updated < {updated} OR (c.updated = {updated} AND (c.user_id > {user} OR (c.user_id = {user} AND \
         c.session_id > {session}))))"
    ));
}

/// Sessions that no read shows.
pub(crate) fn hidden_sessions() -> Query {
    let mut conditions = Conditions::of(kind::SESSION);
    conditions.and_text("c.committed = false");
    conditions.select("*", "")
}

/// Numbers of texts and tokens of all sessions.
pub(crate) fn text_totals() -> Query {
    Conditions::of(kind::SESSION).select("c.texts, c.text_tokens", "")
}

/// Sync states of a user's sessions.
pub(crate) fn sync_states(after: Option<&SessionId>) -> Query {
    let mut conditions = Conditions::of(kind::FILES);
    conditions.and_text("IS_DEFINED(c.sync_state)");
    conditions.and_some("c.session_id > @", after.map(SessionId::as_str));
    conditions.select("c.session_id, c.sync_state", " ORDER BY c.session_id ASC")
}

/// What tells which sessions of a user were deleted.
pub(crate) fn deletions() -> Query {
    Conditions::of(kind::DELETED).select("*", " ORDER BY c.session_id ASC")
}

/// What is there of the rows of a partition from a sequence on. Fences have no sequence.
pub(crate) fn rows_from(start: u32) -> Query {
    Query::new("SELECT c.id, c.type, c.sequence, c._etag, c.payload.ids FROM c WHERE c.sequence >= @start")
        .with("@start", start)
}

/// Everything in a partition.
pub(crate) fn everything() -> Query {
    Query::new("SELECT * FROM c")
}

/// Ids of everything in a partition.
pub(crate) fn ids() -> Query {
    Query::new("SELECT c.id FROM c")
}

/// Number and tokens of the texts of a partition. An aggregate, so within one partition only.
pub(crate) fn count_texts() -> Query {
    Query::new(format!(
        "SELECT COUNT(1) AS texts, SUM(c.length) AS tokens FROM c WHERE c.type = '{}' AND c.part = 0",
        kind::TEXT
    ))
}

/// Documents of a kind with a sequence, from one on: `most` of them, in order.
pub(crate) fn rows(of: &str, select: &str, start: u32, most: Option<usize>) -> Query {
    let mut conditions = Conditions::of(of);
    conditions.and("c.sequence >= @", start);
    let top = most.map(|most| format!("TOP {most} ")).unwrap_or_default();
    conditions.select(&format!("{top}{select}"), " ORDER BY c.sequence ASC")
}

/// Documents of a kind of these sequences.
pub(crate) fn rows_at(of: &str, select: &str, sequences: &[u32]) -> Query {
    let mut conditions = Conditions::of(of);
    of_sequences(&mut conditions, sequences);
    conditions.select(select, "")
}

/// Documents of these ids.
pub(crate) fn of_ids(ids: &[String]) -> Query {
    Query::new("SELECT * FROM c WHERE ARRAY_CONTAINS(@ids, c.id)").with("@ids", json!(ids))
}

/// Messages that owe vectors.
pub(crate) fn owing(query: &OwingQuery, held: &Generations) -> Option<Query> {
    let mut conditions = Conditions::of(kind::MESSAGE);
    conditions.and("c.user_id = @", query.user.as_str());
    conditions.and_some("c.session_id = @", query.session.as_ref().map(|session| session.as_str()));
    owe(&mut conditions, query.generation, held)?;
    if let Some(after) = &query.after {
        let user = conditions.parameter(after.session.user_id.as_str());
        let session = conditions.parameter(after.session.session_id.as_str());
        let sequence = conditions.parameter(after.sequence);
        conditions.and_text(&format!(
            "(c.user_id > {user} OR (c.user_id = {user} AND (c.session_id > {session} OR (c.session_id = {session} \
             AND c.sequence > {sequence}))))"
        ));
    }
    Some(conditions.select("*", " ORDER BY c.user_id ASC, c.session_id ASC, c.sequence ASC"))
}

/// Where messages lie that owe vectors of a generation, once for each.
pub(crate) fn owing_partitions(generation: u32, held: &Generations) -> Option<Query> {
    let mut conditions = Conditions::of(kind::MESSAGE);
    owe(&mut conditions, generation, held)?;
    Some(conditions.select("c.user_id_session_id", ""))
}

/// `None` when no message owes any of this generation.
fn owe(conditions: &mut Conditions, generation: u32, held: &Generations) -> Option<()> {
    if generation == held.current_number() {
        conditions.and_text(OWED);
    } else if held.is_next(generation) {
        conditions.and_text("c.vectors != 2");
        conditions.and("NOT ARRAY_CONTAINS(c.made, @)", generation);
    } else {
        return None;
    }
    Some(())
}

/// The codes of `VectorState::Owed` and `VectorState::Outdated`.
const OWED: &str = "c.vectors IN (0, 3)";

/// Messages whose state says that vectors are owed.
pub(crate) fn owed() -> Query {
    let mut conditions = Conditions::of(kind::MESSAGE);
    conditions.and_text(OWED);
    conditions.select("*", "")
}

/// Vectors of generations that are not kept.
pub(crate) fn stale_vectors(kept: &[u32], most: usize) -> Query {
    let mut conditions = Conditions::of(kind::VECTOR);
    conditions.and("NOT ARRAY_CONTAINS(@, c.generation)", json!(kept));
    conditions.select(&format!("TOP {most} c.id, c.user_id_session_id"), "")
}

/// Messages that vectors were made of.
pub(crate) fn messages_with_generations() -> Query {
    let mut conditions = Conditions::of(kind::MESSAGE);
    conditions.and_text("ARRAY_LENGTH(c.made) > 0");
    conditions.select("*", "")
}

/// States of messages, of one user or of all.
pub(crate) fn message_states(scope: &Scope) -> Query {
    let mut conditions = Conditions::of(kind::MESSAGE);
    only_user(&mut conditions, scope);
    conditions.select("c.user_id_session_id, c.vectors, c.generations, c.made", "")
}

/// When and by whom messages were written.
pub(crate) fn message_times(scope: &Scope, filter: &SearchFilter) -> Query {
    let mut conditions = Conditions::of(kind::MESSAGE);
    only_user(&mut conditions, scope);
    message_filter(&mut conditions, filter);
    conditions.select("c.user_id_session_id, c.role, c.ts", "")
}

fn only_user(conditions: &mut Conditions, scope: &Scope) {
    if let Scope::User(user) = scope {
        conditions.and("c.user_id = @", user.as_str());
    }
}

fn message_filter(conditions: &mut Conditions, filter: &SearchFilter) {
    conditions.and_some("c.role = @", filter.role.map(|role| role.as_str()));
    conditions.and_some("c.ts >= @", filter.since.map(String::from));
    conditions.and_some("c.ts < @", filter.until.map(String::from));
}

/// Vectors of a generation of messages of these sequences.
pub(crate) fn vectors_of(generation: u32, sequences: &[u32]) -> Query {
    let mut conditions = Conditions::of(kind::VECTOR);
    conditions.and("c.generation = @", generation);
    of_sequences(&mut conditions, sequences);
    conditions.select("*", "")
}

/// Rows of these sequences: a range, which the index knows, and a list only where that has gaps.
fn of_sequences(conditions: &mut Conditions, sequences: &[u32]) {
    let sequences: BTreeSet<u32> = sequences.iter().copied().collect();
    let (Some(first), Some(last)) = (sequences.first(), sequences.last()) else {
        conditions.and_text("false");
        return;
    };
    if first == last {
        return conditions.and("c.sequence = @", *first);
    }
    conditions.and("c.sequence >= @", *first);
    conditions.and("c.sequence <= @", *last);
    if (last - first) as usize >= sequences.len() {
        conditions.and("ARRAY_CONTAINS(@, c.sequence)", json!(sequences));
    }
}

/// Which texts have vectors of a generation.
pub(crate) fn vector_types(generation: u32, start: u32) -> Query {
    let mut conditions = Conditions::of(kind::VECTOR);
    conditions.and("c.generation = @", generation);
    conditions.and("c.sequence >= @", start);
    conditions.select("c.sequence, c.content_type", " ORDER BY c.sequence ASC")
}

/// All vectors of a generation in these partitions, to be compared here.
pub(crate) fn vectors_to_compare(generation: u32, filter: &SearchFilter, partitions: &[String]) -> Query {
    vector_conditions(generation, filter, partitions).select("*", "")
}

/// The nearest vectors of a generation in these partitions. For cosine, `VectorDistance` is a similarity: higher is
/// nearer, and the order is nearest first without `ASC` or `DESC`.
pub(crate) fn nearest_vectors(
    generation: u32,
    filter: &SearchFilter,
    (partitions, content_types): (&[String], &[&str]),
    vector: &[f32],
    most: usize,
) -> Query {
    let mut conditions = vector_conditions(generation, filter, partitions);
    conditions.and("ARRAY_CONTAINS(@, c.content_type)", json!(content_types));
    let vector = conditions.parameter(json!(vector));
    let similarity = format!("VectorDistance(c.vector, {vector})");
    let select = format!(
        "TOP {most} c.user_id_session_id, c.sequence, c.content_type, c.span_start, c.span_end, c.vector, \
         {similarity} AS similarity"
    );
    conditions.select(&select, &format!(" ORDER BY {similarity}"))
}

fn vector_conditions(generation: u32, filter: &SearchFilter, partitions: &[String]) -> Conditions {
    let mut conditions = Conditions::of(kind::VECTOR);
    conditions.and("c.generation = @", generation);
    conditions.and("ARRAY_CONTAINS(@, c.user_id_session_id)", json!(partitions));
    message_filter(&mut conditions, filter);
    conditions
}

/// Texts that hold any of the terms: also those out of scope, which count in the scores, or those of one user.
pub(crate) fn texts_with(terms: &[String], full_text: bool, most: usize, user: Option<&UserId>) -> Query {
    let mut conditions = Conditions::of(kind::TEXT);
    conditions.and_some("c.user_id = @", user.map(UserId::as_str));
    let names: Vec<String> = terms
        .iter()
        .map(|term| conditions.parameter(if full_text { term.clone() } else { format!(" {term} ") }))
        .collect();
    let any = if full_text {
        format!("FullTextContainsAny(c.terms, {})", names.join(", "))
    } else {
        let each: Vec<String> = names.iter().map(|name| format!("CONTAINS(c.terms, {name})")).collect();
        format!("({})", each.join(" OR "))
    };
    conditions.and_text(&any);
    conditions.select(&format!("TOP {most} *"), "")
}

/// Events by their ids.
pub(crate) fn events_of_ids(user: &str, event_ids: &[String]) -> Query {
    let mut conditions = Conditions::of(kind::EVENT);
    conditions.and("c.user_id = @", user);
    conditions.and("ARRAY_CONTAINS(@, c.event_id)", json!(event_ids));
    conditions.select("c.event_id, c.user_id_session_id, c.sequence", "")
}

/// Ids of all events of a user.
pub(crate) fn event_ids(user: &str) -> Query {
    let mut conditions = Conditions::of(kind::EVENT);
    conditions.and("c.user_id = @", user);
    conditions.select("c.event_id, c.user_id_session_id, c.sequence", "")
}

/// Where responses of models lie that tell usage, once for each.
pub(crate) fn answered_sessions(scope: &Scope) -> Query {
    let mut conditions = Conditions::of(kind::EVENT);
    only_user(&mut conditions, scope);
    conditions.and("c.event_type = @", RESPONSE);
    conditions.and_text("IS_OBJECT(c.summary.usage)");
    conditions.select("c.user_id_session_id", "")
}

/// Events of a scope, newest first where an order is asked for.
pub(crate) fn events(
    scope: &Scope,
    filter: &EventFilter,
    after: Option<&EventCursor>,
    newest_first: bool,
) -> Query {
    let mut conditions = Conditions::of(kind::EVENT);
    only_user(&mut conditions, scope);
    conditions.and_some("c.session_id = @", filter.sessions.session.as_ref().map(|session| session.as_str()));
    conditions.and_some("c.event_type = @", filter.event_type.as_deref());
    conditions.and_some("c.tool_name = @", filter.tool.as_deref());
    conditions.and_some("c.model = @", filter.model.as_deref());
    conditions.and_some("c.provider = @", filter.provider.as_deref());
    conditions.and_some("c.error_type = @", filter.error_type.as_deref());
    conditions.and_some("c.level = @", filter.level.map(|level| level.as_str()));
    conditions.and_some("c.ts >= @", filter.since.map(String::from));
    conditions.and_some("c.ts < @", filter.until.map(String::from));
    // The rest of the place is compared in the answer.
    conditions.and_some("c.ts <= @", after.map(|after| String::from(after.ts)));
    if let Some(category) = &filter.category {
        let (category, prefix) =
            (conditions.parameter(category.as_str()), conditions.parameter(format!("{category}:")));
        conditions.and_text(&format!("(c.event_type = {category} OR STARTSWITH(c.event_type, {prefix}))"));
    }
    let order = if newest_first {
        " ORDER BY c.ts DESC, c.user_id DESC, c.session_id DESC, c.sequence DESC"
    } else {
        ""
    };
    conditions.select(EVENT_FIELDS, order)
}

#[cfg(test)]
mod tests;
