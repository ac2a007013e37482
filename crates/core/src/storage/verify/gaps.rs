//! Missing sequences.

use serde::Serialize;

use super::Sequences;
use crate::{
    Result,
    backend::{RowSpan, SequenceRange},
    model::{Event, Message, Session, SessionKey},
    storage::{Verification, damage::SequencedRow},
};

/// Number of rows read at a time.
const PAGE: usize = 1_000;

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
