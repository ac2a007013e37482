//! The nearest vectors.
//!
//! With pgvector, the database compares 16-bit copies of vectors, and the best of them are compared again with the
//! vectors themselves. It compares all vectors in scope; if there are many, it uses an index of them, which may miss a
//! few. Without pgvector, all vectors in scope are compared here.

mod graph;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result,
    backend::{Candidates, VectorCandidate, VectorQuery},
    model::{ContentType, MessageRef, SessionId, SessionKey, UserId},
};
use amplifier_session_sql::{Columns, Conditions, Query, Reader as _, number, read, turns, unless_damaged};

pub(crate) use self::graph::update;
use crate::{connection::PgReader, index::in_scope_of, vector_support::VectorSupport};

const OPERATION: &str = "vector_candidates";

/// Vectors are not counted if the planner estimates this many times the number that matters.
const CERTAINLY: i64 = 3;

/// The vectors nearest to that of a query. `reader` reads one snapshot.
pub(crate) fn candidates(
    reader: &PgReader<'_>,
    query: &VectorQuery,
    support: &VectorSupport,
) -> Result<Candidates<VectorCandidate>> {
    let method = SearchMethod::of(reader, query, support)?;
    if method == SearchMethod::Graph {
        reader.batch(OPERATION, &graph::settings(compared_again(query)))?;
    }
    let nearest = nearest(reader, query, method.statement(query)?)?;
    Ok(Candidates::new(nearest).with_notice(support.notice()))
}

/// How the nearest vectors are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchMethod {
    /// The client compares all vectors in scope.
    Client,
    /// The database compares the copies of all vectors in scope.
    Exact,
    /// The database follows an index from vector to vector.
    Graph,
}

impl SearchMethod {
    fn of(reader: &PgReader<'_>, query: &VectorQuery, support: &VectorSupport) -> Result<Self> {
        if !support.has_copies() {
            return Ok(Self::Client);
        }
        if query.turns {
            return Ok(Self::Exact);
        }
        let Some(most) = graph::exact_below(reader, OPERATION, query.generation)? else {
            return Ok(Self::Exact);
        };
        let many =
            estimated(reader, query)? > most.saturating_mul(CERTAINLY) || has_more_than(reader, query, most)?;
        Ok(if many { Self::Graph } else { Self::Exact })
    }

    fn statement(self, query: &VectorQuery) -> Result<Query<Option<VectorCandidate>>> {
        let (tables, mut conditions) = in_scope(query)?;
        let (vector, copies) = match self {
            Self::Client => ("v.vector", None),
            Self::Exact => (SENT, Some("v.half".to_owned())),
            Self::Graph => (SENT, Some(format!("(v.{})", graph::indexed(query.vector.len())))),
        };
        let text =
            if query.turns { "'user_query', 0, 0" } else { "v.content_type, v.span_start, v.span_end" };
        let order = copies.map_or_else(String::new, |copies| by_distance(&copies, &mut conditions, query));
        let sql = format!(
            "SELECT v.user_id, v.session_id, v.sequence, {text}, {vector} {tables} WHERE {} {order}",
            conditions.sql()
        );
        // Planned for these values: a user may have few vectors, or most of them.
        let candidate = |row: &dyn Columns| unless_damaged(candidate(row));
        Ok(Query::with_conditions(OPERATION, sql, conditions, candidate).once())
    }
}

/// How the server sends a vector. It takes ten times as long to send an array. The type `vector` itself would be
/// unknown to the driver, which can't ask for it while it reads the rows of a statement that is not prepared.
const SENT: &str = "vector_send(CAST(v.vector AS vector))";

/// The tables and the conditions of the vectors in scope.
fn in_scope(query: &VectorQuery) -> Result<(String, Conditions)> {
    let table = if query.turns { turns::EMBEDDINGS.name } else { "transcript_vectors" };
    let (mut tables, mut conditions) = in_scope_of(table, "v", &query.scope, &query.filter)?;
    if !query.filter.admits_whole_sessions() {
        tables += " JOIN transcripts t
            ON t.user_id = v.user_id AND t.session_id = v.session_id AND t.sequence = v.sequence";
    }
    // Not bound: the condition of an index is compared with it.
    conditions.require(format!("v.generation = {}", query.generation));
    if !query.turns && !ContentType::EMBEDDED.iter().all(|embedded| query.content_types.contains(*embedded)) {
        conditions.one_of("v.content_type", query.content_types.iter().map(ContentType::as_str));
    }
    Ok((tables, conditions))
}

/// The planner's estimate of the number of vectors in scope. It takes a tenth of the time of counting up to `EXACT`.
fn estimated(reader: &PgReader<'_>, query: &VectorQuery) -> Result<i64> {
    let (tables, conditions) = in_scope(query)?;
    let sql = format!("EXPLAIN SELECT 1 {tables} WHERE {}", conditions.sql());
    let plan = Query::with_conditions(OPERATION, sql, conditions, |row| row.text(0)).once();
    let plan = reader.only(&plan)?;
    // `Index Only Scan … (cost=0.41..6728.32 rows=39927 width=4)`
    let rows = plan.split_once(" rows=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    Ok(rows.unwrap_or(0))
}

fn has_more_than(reader: &PgReader<'_>, query: &VectorQuery, most: i64) -> Result<bool> {
    let (tables, mut conditions) = in_scope(query)?;
    let most = conditions.bind(most);
    let sql = format!("SELECT 1 {tables} WHERE {} OFFSET {most} LIMIT 1", conditions.sql());
    let one = Query::with_conditions(OPERATION, sql, conditions, |row| row.integer(0)).once();
    Ok(reader.first(&one)?.is_some())
}

/// Limits the rows to the nearest by their copies, with some to spare: copies are rounded.
fn by_distance(copies: &str, conditions: &mut Conditions, query: &VectorQuery) -> String {
    let numbers: Vec<String> = query.vector.iter().map(f32::to_string).collect();
    let vector = conditions.bind(format!("[{}]", numbers.join(",")));
    let spare = conditions.bind(read::limit(compared_again(query)));
    // The negative inner product, which of vectors of unit length has the order of the cosine distance.
    format!("ORDER BY {copies} <#> CAST({vector} AS halfvec) LIMIT {spare}")
}

/// How many of the nearest vectors are compared again: copies are rounded, so the order of neighbours may be another.
fn compared_again(query: &VectorQuery) -> usize {
    query.limit.saturating_add(query.limit / 8).saturating_add(32)
}

/// So many vectors are held before the farther ones are dropped.
const KEPT: usize = 4_096;

fn nearest(
    reader: &PgReader<'_>,
    query: &VectorQuery,
    vectors: Query<Option<VectorCandidate>>,
) -> Result<Vec<VectorCandidate>> {
    let mut found = Vec::new();
    let mut failed = Ok(());
    reader.each(&vectors, |candidate| {
        let Some(mut candidate) = candidate else { return ControlFlow::Continue(()) };
        match query.similarity(&candidate.vector) {
            Ok(similarity) => candidate.similarity = similarity,
            Err(error) => {
                failed = Err(error);
                return ControlFlow::Break(());
            }
        }
        found.push(candidate);
        if found.len() >= query.limit.saturating_mul(2).max(KEPT) {
            VectorCandidate::keep_nearest(&mut found, query.limit);
        }
        ControlFlow::Continue(())
    })?;
    failed?;
    VectorCandidate::keep_nearest(&mut found, query.limit);
    Ok(found)
}

fn candidate(row: &dyn Columns) -> Result<VectorCandidate> {
    let session = SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?);
    Ok(VectorCandidate {
        message_ref: MessageRef::new(session, number(row, 2)?),
        content_type: row.text(3)?.parse()?,
        span_start: number(row, 4)?,
        span_end: number(row, 5)?,
        similarity: 0.0,
        vector: row.vector(6)?,
    })
}
