//! Statistics for the ranking. They cover all texts of the store, whatever the scope.

use std::collections::HashMap;

use amplifier_session_core::{Result, backend::TextQuery, text::bm25::CollectionStatistics};
use amplifier_session_sql::{Columns as _, number};
use tokio_postgres::types::Type;

use super::{
    block::{PostingsReader, stored_term},
    removed::{RemovedKeys, TouchedBlock},
};
use crate::{
    columns::PgRow,
    connection::{Parameter, PgReader},
};

const OPERATION: &str = "text_statistics";

/// The terms of a query, as they are stored.
#[derive(Debug)]
pub(super) struct StoredTerms {
    /// In the order of the query.
    pub(super) terms: Vec<String>,
    positions: HashMap<String, usize>,
}

impl StoredTerms {
    pub(super) fn of(query: &TextQuery) -> Self {
        let terms: Vec<String> = query.terms.iter().map(|term| stored_term(term).into_owned()).collect();
        let positions = terms.iter().enumerate().map(|(at, term)| (term.clone(), at)).collect();
        Self { terms, positions }
    }

    /// The position in the query of a term that is stored.
    pub(super) fn position(&self, term: &str) -> Option<usize> {
        self.positions.get(term).copied()
    }
}

/// Counts the texts of the store, their tokens, and the texts with each term of a query.
pub(super) fn statistics(
    reader: &PgReader<'_>,
    query: &TextQuery,
    removed: &RemovedKeys,
) -> Result<CollectionStatistics> {
    let (stored, touched) = (StoredTerms::of(query), removed.blocks(reader, OPERATION)?);
    let mut statistics = query.no_statistics();
    count_stored(reader, &stored, &mut statistics)?;
    for block in &touched {
        for (_, length) in block.texts.iter().filter(|(text, _)| removed.have(*text)) {
            statistics.documents = statistics.documents.saturating_sub(1);
            statistics.tokens = statistics.tokens.saturating_sub((*length).into());
        }
    }
    for term in removed_occurrences(reader, &stored, removed, &touched)? {
        if let Some(texts) = statistics.document_frequency.get_mut(term) {
            *texts = texts.saturating_sub(1);
        }
    }
    Ok(statistics)
}

/// Counts all texts in the blocks, including removed ones.
fn count_stored(
    reader: &PgReader<'_>,
    stored: &StoredTerms,
    statistics: &mut CollectionStatistics,
) -> Result<()> {
    let sql =
        "SELECT coalesce(sum(text_count), 0)::bigint, coalesce(sum(token_count), 0)::bigint FROM text_blocks";
    for row in reader.query(OPERATION, sql, &[])? {
        statistics.documents = number(&PgRow(&row), 0)?;
        statistics.tokens = number(&PgRow(&row), 1)?;
    }
    // This reads an index of all terms, not the postings.
    let sql = "SELECT term, sum(text_count)::bigint FROM postings WHERE term = ANY($1) GROUP BY term";
    for row in reader.query(OPERATION, sql, &[(&stored.terms, Type::TEXT_ARRAY)])? {
        let row = PgRow(&row);
        let term = stored.position(row.text_ref(0)?);
        if let Some(texts) = term.and_then(|term| statistics.document_frequency.get_mut(term)) {
            *texts = number(&row, 1)?;
        }
    }
    Ok(())
}

/// The positions of the terms in removed texts that are still in the blocks, once for each text.
fn removed_occurrences(
    reader: &PgReader<'_>,
    stored: &StoredTerms,
    removed: &RemovedKeys,
    touched: &[TouchedBlock],
) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    if touched.is_empty() {
        return Ok(found);
    }
    let sql = "SELECT p.term, p.data
        FROM unnest($1, $2) AS b (user_id, block)
            JOIN postings p ON p.user_id = b.user_id AND p.block = b.block
        WHERE p.term = ANY($3)";
    let (users, blocks): (Vec<&str>, Vec<i64>) =
        touched.iter().map(|block| (block.user.as_str(), block.number)).unzip();
    let values: [Parameter<'_>; 3] =
        [(&users, Type::TEXT_ARRAY), (&blocks, Type::INT8_ARRAY), (&stored.terms, Type::TEXT_ARRAY)];
    for row in reader.query(OPERATION, sql, &values)? {
        let row = PgRow(&row);
        let Some(term) = stored.position(row.text_ref(0)?) else { continue };
        for posting in PostingsReader::of(row.bytes_ref(1)?, &[]) {
            if removed.have(posting?.text) {
                found.push(term);
            }
        }
    }
    Ok(found)
}
