//! Rows of a session other than messages, events and vectors.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result,
    backend::{Deletion, OtherRow, OtherRowQuery, OtherRows, SummaryQuery, SupersededQuery},
    model::{SessionKey, SupersededPiece, SupersededRef, TurnSummary},
};
use async_trait::async_trait;

use super::{MemoryBackend, PAGE_SIZE, rows::Rows};

#[async_trait]
impl OtherRows for MemoryBackend {
    async fn list_other_rows(&self, query: &OtherRowQuery) -> Result<Vec<OtherRow>> {
        let rows = self.rows();
        Ok(match query {
            OtherRowQuery::Superseded(query) => superseded(&rows, query),
            OtherRowQuery::Summaries(query) => summaries(&rows, query),
            OtherRowQuery::Failures { session, generation } => failures(&rows, session, *generation),
        })
    }

    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize> {
        let mut rows = self.rows();
        let Some(session) = rows.sessions.get_mut(key) else { return Ok(0) };
        let last: BTreeMap<u32, TurnSummary> =
            summaries.into_iter().map(|summary| (summary.user_sequence, summary)).collect();
        let mut count = 0;
        for summary in last.into_values() {
            let message = session.messages.get(&summary.user_sequence);
            if message.is_some_and(|row| row.message.digest == summary.digest) {
                session.summaries.insert(summary.user_sequence, summary);
                count += 1;
            }
        }
        Ok(count)
    }

    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
        let mut rows = self.rows();
        let removed = pieces.iter().map(|piece| {
            let session = rows.sessions.get_mut(&piece.session);
            Ok(session.and_then(|session| session.superseded.remove(&piece.id)).is_some())
        });
        Deletion::complete(removed.collect())
    }
}

fn superseded(rows: &Rows, query: &SupersededQuery) -> Vec<OtherRow> {
    let sessions = rows.sessions.values().filter_map(|of| Some((&of.stored.as_ref()?.session, of)));
    let pieces = sessions.flat_map(|(session, of)| of.superseded.values().map(move |piece| (session, piece)));
    let admitted = pieces.filter(|(session, piece)| query.admits(session, piece));
    let data = |piece: &SupersededPiece| if query.with_data { piece.data.clone() } else { Vec::new() };
    let page = admitted.map(|(_, piece)| SupersededPiece { data: data(piece), ..piece.clone() });
    page.take(query.limit.min(PAGE_SIZE)).map(OtherRow::Superseded).collect()
}

fn summaries(rows: &Rows, query: &SummaryQuery) -> Vec<OtherRow> {
    let sessions = rows.sessions.values().filter(|of| of.is_within(&query.scope, &query.filter));
    let summaries = sessions.flat_map(|session| session.summaries.values());
    let page = summaries.filter(|of| query.after.as_ref().is_none_or(|after| of.message_ref() > *after));
    page.take(query.limit.min(PAGE_SIZE)).cloned().map(OtherRow::Summary).collect()
}

fn failures(rows: &Rows, key: &SessionKey, generation: u32) -> Vec<OtherRow> {
    let messages = rows.sessions.get(key).into_iter().flat_map(|session| &session.messages);
    let failures = messages.filter_map(|(sequence, row)| {
        let reason = row.vectors.get(&generation)?.failure.clone()?;
        Some(OtherRow::Failure { sequence: *sequence, reason })
    });
    failures.collect()
}
