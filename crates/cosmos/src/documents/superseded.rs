//! A piece of superseded lines.

use amplifier_session_core::{
    Result,
    model::{LineKind, SessionId, SessionKey, SupersededPiece, SupersededReason, Timestamp, UserId},
};
use serde::{Deserialize, Serialize};

use super::{Bytes, Document, kind};
use crate::ids;

/// The fields that a query selects to read pieces without their lines.
pub(crate) const PIECE_FIELDS: &str = "c.id, c.type, c.user_id_session_id, c.user_id, c.session_id, c.kind, \
    c.first_sequence, c.last_sequence, c.line_count, c.byte_count, c.superseded_at, c.reason";

/// It has no `sequence`, so changes of rows do not remove it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SupersededFields {
    pub(crate) user_id_session_id: String,
    user_id: UserId,
    session_id: SessionId,
    kind: LineKind,
    first_sequence: u32,
    last_sequence: u32,
    line_count: u32,
    byte_count: u64,
    superseded_at: Timestamp,
    reason: SupersededReason,
    /// `None` if the query does not select it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Bytes>,
}

/// A piece of superseded lines. Its id is the id of the piece.
pub(crate) type SupersededDocument = Document<SupersededFields>;

impl SupersededDocument {
    pub(crate) fn new(piece: &SupersededPiece) -> Self {
        let fields = SupersededFields {
            user_id_session_id: ids::partition(&piece.session),
            user_id: piece.session.user_id.clone(),
            session_id: piece.session.session_id.clone(),
            kind: piece.kind,
            first_sequence: piece.first_sequence,
            last_sequence: piece.last_sequence,
            line_count: piece.lines,
            byte_count: piece.bytes,
            superseded_at: piece.superseded_at,
            reason: piece.reason,
            data: Some(Bytes::binary(&piece.data)),
        };
        Self::of(kind::SUPERSEDED, piece.id.clone(), fields)
    }

    pub(crate) fn into_piece(self) -> Result<SupersededPiece> {
        let Self { id, fields, .. } = self;
        Ok(SupersededPiece {
            session: SessionKey::new(fields.user_id, fields.session_id),
            id,
            kind: fields.kind,
            first_sequence: fields.first_sequence,
            last_sequence: fields.last_sequence,
            lines: fields.line_count,
            bytes: fields.byte_count,
            superseded_at: fields.superseded_at,
            reason: fields.reason,
            data: fields.data.map_or_else(|| Ok(Vec::new()), Bytes::into_bytes)?,
        })
    }
}
