//! Finding terms by patterns.

use amplifier_session_core::{
    Result,
    backend::{TermFinder, TermPattern},
};
use amplifier_session_sql::{Columns as _, number};
use tokio_postgres::types::Type;

use super::block::{is_shortened, stored_term};
use crate::{columns::PgRow, connection::PgReader};

const OPERATION: &str = "terms";

/// [`Search::terms`](amplifier_session_core::backend::Search::terms).
pub(crate) fn terms(
    reader: &PgReader<'_>,
    patterns: &[TermPattern],
    limit: usize,
) -> Result<Vec<Vec<String>>> {
    let mut finder = TermFinder::new(patterns);
    for (at, pattern) in patterns.iter().enumerate() {
        for (term, texts) in matching(reader, pattern)? {
            finder.add_to(at, &term, texts);
        }
    }
    Ok(finder.finish(limit))
}

/// The terms that may match a pattern, with the number of texts that contain them.
fn matching(reader: &PgReader<'_>, pattern: &TermPattern) -> Result<Vec<(String, u64)>> {
    let select = "SELECT term, sum(text_count)::bigint FROM postings WHERE";
    let one_of = |terms: Vec<String>| {
        let sql = format!("{select} term = ANY($1) GROUP BY term");
        reader.query(OPERATION, &sql, &[(&terms, Type::TEXT_ARRAY)])
    };
    let stored = |term: &String| stored_term(term).into_owned();
    let rows = match pattern {
        TermPattern::Whole(term) => one_of(vec![stored(term)])?,
        TermPattern::AnyOf(terms) => one_of(terms.iter().map(stored).collect())?,
        other => {
            // No character is above the last one of Unicode.
            let (first, last) = (other.beginning().to_owned(), format!("{}{}", other.beginning(), char::MAX));
            let sql = format!("{select} term >= $1 AND term <= $2 GROUP BY term");
            reader.query(OPERATION, &sql, &[(&first, Type::TEXT), (&last, Type::TEXT)])?
        }
    };
    let found = rows.iter().map(|row| Ok((PgRow(row).text(0)?, number(&PgRow(row), 1)?)));
    found.filter(|found| !matches!(found, Ok((term, _)) if is_shortened(term))).collect()
}
