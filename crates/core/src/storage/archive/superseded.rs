//! Superseded lines in an archive.

use serde::{Deserialize, Serialize};

use super::{ArchiveWriter, Raw, Record};
use crate::{
    ErrorKind, Result, Scope,
    backend::SupersededQuery,
    model::{LineKind, RawJson, SessionKey, SupersededPiece, SupersededReason, TimeSource, Timestamp},
    search::SessionFilter,
    storage::{
        line_masker::LineMasker,
        store::{ArchiveTransfer, SupersededHistory},
        superseded::{LineHead, OldLine, PiecePacker, unpack},
    },
};

/// A superseded line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SupersededRecord {
    /// Whether it is a message or an event.
    pub kind: LineKind,
    /// Its sequence when it was superseded.
    pub sequence: u32,
    /// Its turn, from 1.
    pub turn: Option<u32>,
    /// Its time.
    pub ts: Timestamp,
    /// Where the time of a message comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts_source: Option<TimeSource>,
    /// The type of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Whether the line consists of the fields of an event, whose own line was not stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_summary: bool,
    /// When it was superseded.
    pub superseded_at: Timestamp,
    /// Why it was.
    pub reason: SupersededReason,
    /// The piece in which it was stored. Lines of one piece are stored together again.
    pub piece: String,
    /// The line.
    #[serde(flatten)]
    pub raw: Raw,
}

impl SupersededRecord {
    pub(in crate::storage) fn new(piece: &SupersededPiece, head: LineHead, raw: RawJson) -> Self {
        Self {
            kind: piece.kind,
            sequence: head.sequence,
            turn: head.turn,
            ts: head.ts,
            ts_source: head.ts_source,
            event_type: head.event_type,
            is_summary: head.is_summary,
            superseded_at: piece.superseded_at,
            reason: piece.reason,
            piece: piece.group().to_owned(),
            raw: Raw::from(raw),
        }
    }

    fn into_line(self, masker: &LineMasker) -> Result<OldLine> {
        let Self { sequence, turn, ts, ts_source, event_type, is_summary, reason, raw, .. } = self;
        let (raw, _) = masker.mask_superseded(raw.whole()?, reason)?;
        let bytes = raw.as_bytes().len();
        Ok(OldLine { head: LineHead { sequence, bytes, turn, ts, ts_source, event_type, is_summary }, raw })
    }
}

impl ArchiveTransfer<'_> {
    /// Writes the superseded lines of a session. Returns their number.
    pub(super) async fn export_superseded(
        self,
        key: &SessionKey,
        out: &mut dyn ArchiveWriter,
    ) -> Result<u64> {
        let query = SupersededQuery::new(Scope::User(key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(key.session_id.clone()));
        let (mut lines, mut count) = (SupersededHistory::new(self.store).superseded_lines(query), 0);
        while let Some(group) = lines.next_group().await? {
            let unpacked = match unpack(&group) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    tracing::warn!(session = %key.session_id, %error, "superseded lines are left out");
                    continue;
                }
                unpacked => unpacked?,
            };
            let Some(piece) = group.first() else { continue };
            for (head, raw) in unpacked {
                out.put(Record::Superseded(Box::new(SupersededRecord::new(piece, head, raw))))?;
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Superseded lines that are imported.
#[derive(Debug, Default)]
pub(super) struct Packing(Option<(String, PiecePacker)>);

impl Packing {
    /// Adds a line of a session. Returns the pieces that are complete.
    pub(super) fn add(
        &mut self,
        key: &SessionKey,
        record: SupersededRecord,
        masker: &LineMasker,
    ) -> Result<Vec<SupersededPiece>> {
        let mut pieces = Vec::new();
        if self.0.as_ref().is_none_or(|(piece, _)| *piece != record.piece) {
            pieces = self.finish()?;
            let packer = PiecePacker::new(key.clone(), record.kind, record.superseded_at, record.reason);
            self.0 = Some((record.piece.clone(), packer));
        }
        if let Some((_, packer)) = &mut self.0 {
            pieces.extend(packer.add(&record.into_line(masker)?)?);
        }
        Ok(pieces)
    }

    /// The last pieces.
    pub(super) fn finish(&mut self) -> Result<Vec<SupersededPiece>> {
        self.0.take().map_or_else(|| Ok(Vec::new()), |(_, mut packer)| packer.finish())
    }
}
