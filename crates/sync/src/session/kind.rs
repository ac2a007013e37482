//! The two kinds of logs, and the methods of an ingest for each.

use amplifier_session_core::{
    Result,
    model::{LineKind, RawJson, SupersededReason, Timestamp},
    storage::{Extent, LineOutcome, Remaining, SessionIngest},
};

use crate::files::{TRANSCRIPT, TRANSCRIPT_BACKUP};

/// The two kinds of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Transcript,
    Events,
}

impl Kind {
    /// The kind of its lines.
    pub(super) fn of_lines(self) -> LineKind {
        match self {
            Self::Transcript => LineKind::Message,
            Self::Events => LineKind::Event,
        }
    }

    /// The file `name`, and the file instead of which it is read.
    pub(super) fn alternatives(self, name: &'static str) -> impl Iterator<Item = &'static str> {
        let all = [TRANSCRIPT, TRANSCRIPT_BACKUP];
        all.into_iter()
            .filter(move |_| self == Self::Transcript)
            .chain((self == Self::Events).then_some(name))
    }

    pub(super) async fn begin(self, ingest: &mut SessionIngest, start: u32) -> Result<()> {
        match self {
            // A long transcript whose beginning is not read again.
            Self::Transcript if start > 0 && ingest.resume_transcript(start) => Ok(()),
            Self::Transcript => ingest.begin_transcript(start).await,
            Self::Events => ingest.begin_events(start).await,
        }
    }

    pub(super) async fn line(
        self,
        ingest: &mut SessionIngest,
        line: RawJson,
        seen: Timestamp,
    ) -> Result<LineOutcome> {
        match self {
            Self::Transcript => ingest.transcript_line(line, seen).await,
            Self::Events => ingest.event_line(line, seen).await,
        }
    }

    pub(super) fn end(self, ingest: &mut SessionIngest, extent: Extent) {
        match self {
            Self::Transcript => ingest.end_transcript(extent),
            Self::Events => ingest.end_events(extent),
        }
    }

    pub(super) fn keep_stored(self, ingest: &mut SessionIngest) {
        match self {
            Self::Transcript => ingest.keep_stored_messages(),
            Self::Events => ingest.keep_stored_events(),
        }
    }

    pub(super) fn missing(self, ingest: &SessionIngest) -> u32 {
        match self {
            Self::Transcript => ingest.missing_messages(),
            Self::Events => ingest.missing_events(),
        }
    }

    pub(super) fn differs(self, ingest: &SessionIngest, line: &[u8]) -> bool {
        match self {
            Self::Transcript => ingest.differs_from_message(line),
            Self::Events => ingest.differs_from_event(line),
        }
    }

    pub(super) fn supersede(
        self,
        ingest: &mut SessionIngest,
        remaining: &Remaining,
    ) -> Option<SupersededReason> {
        match self {
            Self::Transcript => ingest.supersede_messages(remaining),
            Self::Events => ingest.supersede_events(remaining),
        }
    }

    pub(super) fn cuts_off(self, ingest: &SessionIngest, line: &[u8]) -> bool {
        match self {
            Self::Transcript => ingest.cuts_off_messages(line),
            Self::Events => ingest.cuts_off_events(line),
        }
    }
}
