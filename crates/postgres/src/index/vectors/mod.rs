//! The nearest vectors.
//!
//! With pgvector, the database compares 16-bit copies of all vectors in scope, and the best of them are compared again
//! with the vectors themselves. Without it, all vectors in scope are compared here.

use std::ops::ControlFlow;

use amplifier_session_core::{
    Result,
    backend::{Candidates, VectorCandidate, VectorQuery},
    model::{ContentType, MessageRef, SessionId, SessionKey, UserId},
};
use amplifier_session_sql::{Columns, Conditions, Query, Reader as _, number, read, unless_damaged};

use crate::{
    connection::{POSTGRES, Read},
    vector_support::VectorSupport,
};

const OPERATION: &str = "vector_candidates";

/// The vectors nearest to that of a query. `reader` reads one snapshot.
pub(crate) fn candidates(
    reader: &Read<'_>,
    query: &VectorQuery,
    support: &VectorSupport,
) -> Result<Candidates<VectorCandidate>> {
    let mut conditions = Conditions::of_messages(POSTGRES, &query.scope, &query.filter)?;
    conditions.compare("v.generation = ?", query.generation);
    conditions.one_of("v.content_type", query.content_types.iter().map(ContentType::as_str));
    let order = match support.has_copies() {
        true => nearest(&mut conditions, query),
        false => String::new(),
    };
    let sql = format!(
        "SELECT v.user_id, v.session_id, v.sequence, v.content_type, v.span_start, v.span_end, v.vector
         FROM sessions s
         JOIN transcript_vectors v ON v.user_id = s.user_id AND v.session_id = s.session_id
         JOIN transcripts t ON t.user_id = v.user_id AND t.session_id = v.session_id AND t.sequence = v.sequence
         WHERE {} {order}",
        conditions.sql()
    );
    let mut found = Vec::new();
    let candidate = |row: &dyn Columns| unless_damaged(candidate(row));
    let vectors = Query::with_conditions(OPERATION, sql, conditions, candidate);
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
    Ok(Candidates::new(found).with_notice(support.notice()))
}

/// So many vectors are held before the farther ones are dropped.
const KEPT: usize = 4_096;

/// Limits the rows to the nearest by their copies, with some to spare: copies are rounded.
fn nearest(conditions: &mut Conditions, query: &VectorQuery) -> String {
    let numbers: Vec<String> = query.vector.iter().map(f32::to_string).collect();
    let vector = conditions.bind(format!("[{}]", numbers.join(",")));
    let spare = conditions.bind(read::limit(query.limit.saturating_mul(2).saturating_add(32)));
    // Negative: the order of pgvector is that of distances.
    format!("ORDER BY v.half <#> CAST({vector} AS halfvec) LIMIT {spare}")
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
