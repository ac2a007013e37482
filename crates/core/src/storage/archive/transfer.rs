//! The part of a session's record that is only in a transfer of rows from one store to another.
//!
//! A transfer sends only the rows that the receiver lacks. Both stores know which ones these are by chains of digests,
//! which can be continued without reading the rows before.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::invalid;
use crate::{
    Result,
    model::{Digest, LineKind, Timestamp},
};

/// The first rows of one kind of a session: their number, and a digest of their digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowChain {
    /// The number of rows.
    pub count: u32,
    /// The digest of the chain before the last row, together with the digest of the last row's line. Zeros if there is
    /// no row.
    pub digest: Digest,
}

impl RowChain {
    /// The chain of rows with these digests.
    #[must_use]
    pub fn of(rows: &[Digest]) -> Self {
        rows.iter().fold(Self::default(), |chain, row| chain.with(*row))
    }

    /// The chain with another row.
    #[must_use]
    pub fn with(self, row: Digest) -> Self {
        let both = [self.digest.0, row.0].concat();
        Self { count: self.count.saturating_add(1), digest: Digest::of(&both) }
    }
}

/// The first messages and events of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowChains {
    /// The messages.
    pub messages: RowChain,
    /// The events.
    pub events: RowChain,
}

impl RowChains {
    pub(in crate::storage) fn of_kind(&self, kind: LineKind) -> RowChain {
        match kind {
            LineKind::Message => self.messages,
            LineKind::Event => self.events,
        }
    }
}

/// The superseded lines of a session that were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentSuperseded {
    /// The number of stored pieces.
    pub pieces: u32,
    /// The time when the last of them was superseded.
    pub until: Option<Timestamp>,
}

/// The beginning of a transfer of rows of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferHead {
    /// The identity of the sending store.
    pub store: String,
    /// The version of the session there.
    pub version: String,
    /// The digest of everything about the session that is not a row.
    pub about: Digest,
    /// The rows that the receiver has already. Those that follow come after them.
    pub before: RowChains,
    /// The superseded lines of the session in the sending store. Those that the receiver may lack follow the rows.
    pub superseded: SentSuperseded,
    /// The sequence of the first event that was posted, and that no log has replaced yet: it and all later ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<u32>,
    /// The digests of the rows that follow, if the receiver may have other ones in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<FollowingLines>,
}

/// The digests of the lines that follow, so that a receiver knows which of its own lines are lost before it reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FollowingLines {
    /// Those of the messages: 16 bytes each, in Base64.
    pub messages: String,
    /// Those of the events.
    pub events: String,
}

impl FollowingLines {
    /// The digests of messages and events.
    #[must_use]
    pub fn new(messages: &[Digest], events: &[Digest]) -> Self {
        let encoded =
            |digests: &[Digest]| STANDARD.encode(digests.iter().flat_map(|of| of.0).collect::<Vec<u8>>());
        Self { messages: encoded(messages), events: encoded(events) }
    }

    /// The digests of one kind.
    ///
    /// # Errors
    ///
    /// `Validation` (`archive`) if they are not written as described.
    pub fn digests(&self, kind: LineKind) -> Result<Vec<Digest>> {
        let text = match kind {
            LineKind::Message => &self.messages,
            LineKind::Event => &self.events,
        };
        let wrong = || invalid("the digests of the following lines can't be read");
        let bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        let (digests, []) = bytes.as_chunks::<16>() else { return Err(wrong()) };
        Ok(digests.iter().map(|bytes| Digest(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_depends_on_every_row_and_their_order() {
        let rows = [b"a", b"b", b"c"].map(|line| Digest::of(line));
        let chain = RowChain::of(&rows);
        assert_eq!((chain.count, RowChain::of(&[]).count), (3, 0));
        assert_eq!(RowChain::of(&rows[..2]).with(rows[2]), chain);
        for other in [[rows[0], rows[2], rows[1]], [rows[1]; 3]] {
            assert_ne!(RowChain::of(&other), chain);
        }
    }

    #[test]
    fn digests_of_the_following_lines_can_be_read_back() {
        let (messages, events) = ([Digest::of(b"a"), Digest::of(b"b")], []);
        let lines = FollowingLines::new(&messages, &events);
        assert_eq!(lines.digests(LineKind::Message).unwrap(), messages);
        assert_eq!(lines.digests(LineKind::Event).unwrap(), events);
        for broken in ["?", "QUJD"] {
            let lines = FollowingLines { messages: broken.to_owned(), events: String::new() };
            assert!(lines.digests(LineKind::Message).is_err(), "{broken}");
        }
    }
}
