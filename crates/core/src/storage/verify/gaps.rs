//! Missing sequences.

use serde::Serialize;

use super::Sequences;
use crate::{
    Result,
    backend::{RowSpan, SequenceRange, StorageBackend, StorageBackendExt},
    model::{Digest, Event, Message, MessageState, Session, SessionKey},
    storage::{damage::SequencedRow, store::Verification},
};

/// Number of rows read at a time.
const PAGE: usize = 1_000;
/// Number of digests read at a time.
const DIGESTS: usize = 100_000;

/// The sequences of a session that have no row, as ranges of the first and the last one. A row that can't be read is not
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gaps {
    /// Missing messages.
    pub messages: Vec<(u32, u32)>,
    /// Missing events.
    pub events: Vec<(u32, u32)>,
}

impl Gaps {
    /// Whether no row is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.events.is_empty()
    }

    /// The number of missing messages and events.
    #[must_use]
    pub fn count(&self) -> (u64, u64) {
        let count =
            |gaps: &[(u32, u32)]| gaps.iter().map(|(first, last)| u64::from(last - first) + 1).sum::<u64>();
        (count(&self.messages), count(&self.events))
    }

    /// The states of the stored messages of a session, by sequence; `None` for missing rows.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn message_states(
        &self,
        backend: &dyn StorageBackend,
        key: &SessionKey,
    ) -> Result<Vec<Option<MessageState>>> {
        let (states, mut rows) = (backend.message_states(key).await?, Vec::new());
        let states = states.into_iter().map(Some).chain([None]);
        states.for_each(|state| place(&mut rows, 0, &self.messages, state));
        Ok(rows)
    }

    /// The digests of the stored events of a session from `start` on, by sequence; `None` for missing rows.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn event_digests(
        &self,
        backend: &dyn StorageBackend,
        key: &SessionKey,
        start: u32,
    ) -> Result<Vec<Option<Digest>>> {
        let mut rows = Vec::new();
        loop {
            let range = SequenceRange { start: start + rows.len() as u32, limit: DIGESTS };
            let page = backend.event_digests(key, range).await?;
            let is_end = page.is_empty();
            let page = page.into_iter().map(Some).chain([None]);
            page.for_each(|digest| place(&mut rows, start, &self.events, digest));
            if is_end {
                return Ok(rows);
            }
        }
    }
}

/// Adds a row after the missing ones before it, so that positions are sequences from `start` on.
fn place<T: Clone>(rows: &mut Vec<Option<T>>, start: u32, gaps: &[(u32, u32)], row: Option<T>) {
    let gap = |at: u32| gaps.get(gaps.binary_search_by_key(&at, |(first, _)| *first).ok()?);
    while let Some((_, last)) = gap(start + rows.len() as u32) {
        rows.resize((last - start) as usize + 1, None);
    }
    rows.extend(row.map(Some));
}

impl Verification<'_> {
    /// The sequences up to the counts of `session` that have no row. Reads rows only if some are missing.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn missing_rows(self, session: &Session) -> Result<Gaps> {
        let key = session.key();
        let rows = self.store.backend.session_rows(&key).await?;
        Ok(Gaps {
            messages: self.gaps_of::<Message>(&key, rows.messages, session.message_count).await?,
            events: self.gaps_of::<Event>(&key, rows.events, session.event_count).await?,
        })
    }

    /// The sequences without a row before the last row, and up to `stated`.
    pub(in crate::storage) async fn gaps_of<T: SequencedRow>(
        self,
        key: &SessionKey,
        rows: RowSpan,
        stated: u32,
    ) -> Result<Vec<(u32, u32)>> {
        let end = rows.last_sequence.map_or(0, |last| last.saturating_add(1));
        let mut sequences = Sequences::default();
        if u64::from(end) != rows.count {
            let mut start = 0;
            loop {
                let (range, mut damaged) = (SequenceRange { start, limit: PAGE }, Vec::new());
                let page: Vec<T> = self.store.readable_page(key, range, &mut damaged).await?;
                damaged
                    .iter()
                    .filter_map(|row| row.sequence)
                    .for_each(|sequence| _ = sequences.add(sequence));
                let Some(last) = page.last() else { break };
                start = last.sequence().saturating_add(1);
                page.iter().for_each(|row| _ = sequences.add(row.sequence()));
            }
        } else {
            sequences.next = end;
        }
        if sequences.next < stated {
            sequences.gaps.push((sequences.next, stated - 1));
        }
        Ok(sequences.gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_with_gaps_are_sequences() {
        let placed = |found: &[u32], start, gaps: &[(u32, u32)]| {
            let mut rows = Vec::new();
            let found = found.iter().copied().map(Some).chain([None]);
            found.for_each(|row| place(&mut rows, start, gaps, row));
            rows.iter().map(|row| row.map_or("_".to_owned(), |row| row.to_string())).collect::<String>()
        };
        assert_eq!(placed(&[0, 1, 4, 5, 7], 0, &[(2, 3), (6, 6)]), "01__45_7");
        assert_eq!(placed(&[0, 3], 0, &[(1, 2), (4, 4)]), "0__3_");
        assert_eq!(placed(&[3], 2, &[(0, 0), (2, 2)]), "_3");
    }
}
