//! The statistics of the texts in the index, on which scores depend.
//!
//! tantivy's own statistics include deleted documents until their segment is merged, and a merge estimates the number
//! of tokens. So scores would depend on earlier contents of the store. These statistics count only documents of current
//! rows.

use std::collections::HashSet;

use amplifier_session_core::text::bm25::CollectionStatistics;
use tantivy::{DocId, DocSet, SegmentReader, Term, schema::IndexRecordOption};

use super::{OpenText, SegmentColumns};

/// Looking a key up takes about as long as comparing this many documents.
const LOOKUP: usize = 100;

impl OpenText {
    /// The statistics of all documents, except those of the messages `masked`.
    pub(super) fn statistics(
        &self,
        terms: &[Term],
        masked: &HashSet<u64>,
    ) -> tantivy::Result<CollectionStatistics> {
        let mut all = CollectionStatistics::new(terms.len());
        for (segment, columns) in self.searcher.segment_readers().iter().zip(&self.columns) {
            let left_out = self.left_out(segment, columns, masked)?;
            all.merge(&statistics(segment, columns, terms, &left_out)?);
        }
        Ok(all)
    }

    /// The documents of a segment that do not count, in order: deleted ones and those of the messages `masked`.
    fn left_out(
        &self,
        segment: &SegmentReader,
        columns: &SegmentColumns,
        masked: &HashSet<u64>,
    ) -> tantivy::Result<Vec<DocId>> {
        // Most masked messages are new: their keys are greater than all in the index.
        let keys = columns.key.min_value()..=columns.key.max_value();
        let masked: HashSet<u64> = masked.iter().copied().filter(|key| keys.contains(key)).collect();
        let all = 0..segment.max_doc();
        if masked.len().saturating_mul(LOOKUP) >= segment.max_doc() as usize {
            let is_masked = |doc| columns.key.first(doc).is_some_and(|key| masked.contains(&key));
            return Ok(all.filter(|doc| segment.is_deleted(*doc) || is_masked(*doc)).collect());
        }
        let mut documents = self.documents_of(segment, &masked)?;
        if segment.has_deletes() {
            documents.extend(all.filter(|doc| segment.is_deleted(*doc)));
            documents.sort_unstable();
            documents.dedup();
        }
        Ok(documents)
    }

    /// The documents of messages, in order.
    fn documents_of(&self, segment: &SegmentReader, messages: &HashSet<u64>) -> tantivy::Result<Vec<DocId>> {
        let keys = segment.inverted_index(self.fields.key)?;
        let mut documents = Vec::new();
        for key in messages {
            let term = Term::from_field_u64(self.fields.key, *key);
            let Some(mut postings) = keys.read_postings(&term, IndexRecordOption::Basic)? else { continue };
            while postings.doc() != tantivy::TERMINATED {
                documents.push(postings.doc());
                postings.advance();
            }
        }
        documents.sort_unstable();
        Ok(documents)
    }
}

fn statistics(
    segment: &SegmentReader,
    columns: &SegmentColumns,
    terms: &[Term],
    left_out: &[DocId],
) -> tantivy::Result<CollectionStatistics> {
    let tokens: u64 = left_out.iter().map(|doc| u64::from(columns.lengths.fieldnorm(*doc))).sum();
    Ok(CollectionStatistics {
        documents: u64::from(segment.max_doc()).saturating_sub(left_out.len() as u64),
        tokens: columns.tokens.saturating_sub(tokens),
        document_frequency: terms
            .iter()
            .map(|term| document_frequency(segment, term, left_out))
            .collect::<tantivy::Result<_>>()?,
        weights: Vec::new(),
    })
}

/// The number of documents with a term, except those in `left_out`.
fn document_frequency(segment: &SegmentReader, term: &Term, left_out: &[DocId]) -> tantivy::Result<u64> {
    let index = segment.inverted_index(term.field())?;
    let all = u64::from(index.doc_freq(term)?);
    if all == 0 || left_out.is_empty() {
        return Ok(all);
    }
    let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else { return Ok(0) };
    let mut without = 0;
    for doc in left_out {
        if postings.doc() < *doc && postings.seek(*doc) == tantivy::TERMINATED {
            break;
        }
        without += u64::from(postings.doc() == *doc);
    }
    Ok(all.saturating_sub(without))
}
