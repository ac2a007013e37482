//! The stored form of superseded lines: lines and their metadata, in pieces, compressed.

use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorKind, Result,
    compression::{compress, decompress},
    known_json,
    model::{
        Digest, Event, LineKind, Message, RawJson, SessionKey, SupersededPiece, SupersededReason, TimeSource,
        Timestamp,
    },
};

/// The size of a piece before compression. A longer line takes several.
const PIECE_BYTES: usize = 1 << 20;

/// The metadata of a line. It precedes the line, on a separate line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::storage) struct LineHead {
    pub(in crate::storage) sequence: u32,
    /// The length of the line.
    pub(in crate::storage) bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) turn: Option<u32>,
    pub(in crate::storage) ts: Timestamp,
    /// The source of a message's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) ts_source: Option<TimeSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) event_type: Option<String>,
    /// Whether the store had only the fields of an event. They replace its line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::storage) is_summary: bool,
}

/// A line to supersede.
#[derive(Debug)]
pub(in crate::storage) struct OldLine {
    pub(in crate::storage) head: LineHead,
    pub(in crate::storage) raw: RawJson,
}

impl OldLine {
    pub(in crate::storage) fn of_message(message: Message) -> Self {
        let Message { sequence, turn, ts, ts_source, raw, .. } = message;
        let (bytes, ts_source) = (raw.as_bytes().len(), Some(ts_source));
        Self {
            head: LineHead { sequence, bytes, turn, ts, ts_source, event_type: None, is_summary: false },
            raw,
        }
    }

    /// An event with its line, if the line is stored.
    pub(in crate::storage) fn of_event(event: Event, line: Option<RawJson>) -> Self {
        let is_summary = line.is_none();
        let raw = line.unwrap_or_else(|| RawJson::new(known_json(&event).into_bytes()));
        let Event { sequence, turn, ts, event_type, .. } = event;
        let (bytes, event_type) = (raw.as_bytes().len(), Some(event_type));
        Self { head: LineHead { sequence, bytes, turn, ts, ts_source: None, event_type, is_summary }, raw }
    }

    /// A line that is not a row: its number in the file takes the place of a sequence.
    pub(in crate::storage) fn unreadable(number: u32, raw: RawJson, seen: Timestamp) -> Self {
        let (bytes, ts_source) = (raw.as_bytes().len(), Some(TimeSource::File));
        let head = LineHead {
            sequence: number,
            bytes,
            turn: None,
            ts: seen,
            ts_source,
            event_type: None,
            is_summary: false,
        };
        Self { head, raw }
    }

    /// Its position, and a digest of its content.
    pub(in crate::storage) fn identity(&self) -> (u32, Digest) {
        (self.head.sequence, Digest::of(self.raw.as_bytes()))
    }
}

/// Packs lines of one kind, in ascending order, into pieces.
#[derive(Debug)]
pub(in crate::storage) struct PiecePacker {
    session: SessionKey,
    kind: LineKind,
    superseded_at: Timestamp,
    reason: SupersededReason,
    content: Vec<u8>,
    /// The first and the last sequence of the content.
    sequences: Option<(u32, u32)>,
    lines: u32,
    bytes: u64,
}

impl PiecePacker {
    pub(in crate::storage) fn new(
        session: SessionKey,
        kind: LineKind,
        superseded_at: Timestamp,
        reason: SupersededReason,
    ) -> Self {
        Self {
            session,
            kind,
            superseded_at,
            reason,
            content: Vec::new(),
            sequences: None,
            lines: 0,
            bytes: 0,
        }
    }

    /// Adds a line. Returns the pieces that are complete.
    pub(in crate::storage) fn add(&mut self, line: &OldLine) -> Result<Vec<SupersededPiece>> {
        let OldLine { head, raw } = line;
        let pieces = if self.content.len() + head.bytes > PIECE_BYTES { self.finish()? } else { Vec::new() };
        serde_json::to_writer(&mut self.content, head)
            .map_err(|source| Error::new(ErrorKind::StorageIo, "can't pack a line").with_source(source))?;
        self.content.push(b'\n');
        self.content.extend_from_slice(raw.as_bytes());
        self.content.push(b'\n');
        let first = self.sequences.map_or(head.sequence, |(first, _)| first);
        self.sequences = Some((first, head.sequence));
        self.lines += 1;
        self.bytes += head.bytes as u64;
        Ok(pieces)
    }

    /// The pieces of the last lines.
    pub(in crate::storage) fn finish(&mut self) -> Result<Vec<SupersededPiece>> {
        let Some((first_sequence, last_sequence)) = self.sequences.take() else { return Ok(Vec::new()) };
        let content = std::mem::take(&mut self.content);
        let (mut lines, mut bytes) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.bytes));
        let digest = Digest::of(&content);
        let parts = content.chunks(PIECE_BYTES).enumerate();
        let piece = |(part, content): (usize, &[u8])| {
            Ok(SupersededPiece {
                session: self.session.clone(),
                id: SupersededPiece::new_id(self.kind, first_sequence, digest, part),
                kind: self.kind,
                first_sequence,
                last_sequence,
                // The first piece counts the lines of all pieces.
                lines: std::mem::take(&mut lines),
                bytes: std::mem::take(&mut bytes),
                superseded_at: self.superseded_at,
                reason: self.reason,
                data: compress(content)?,
            })
        };
        parts.map(piece).collect()
    }
}

/// The lines in pieces of the same group, in order.
pub(in crate::storage) fn unpack(pieces: &[SupersededPiece]) -> Result<Vec<(LineHead, RawJson)>> {
    let parts = pieces.iter().map(|piece| decompress(&piece.data)).collect::<Result<Vec<_>>>()?;
    let content = parts.concat();
    let Some(first) = pieces.first() else { return Ok(Vec::new()) };
    let damaged = || Error::new(ErrorKind::Damaged, "superseded lines are damaged").with("piece", &first.id);
    if first.id != SupersededPiece::new_id(first.kind, first.first_sequence, Digest::of(&content), 0) {
        return Err(damaged());
    }
    let (mut rest, mut lines) = (content.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (head, raw, after) = first_line(rest).ok_or_else(damaged)?;
        lines.push((head, RawJson::new(raw)));
        rest = after;
    }
    Ok(lines)
}

/// The first line, and the content after it.
fn first_line(content: &[u8]) -> Option<(LineHead, &[u8], &[u8])> {
    let end = content.iter().position(|byte| *byte == b'\n')?;
    let (head, rest) = content.split_at(end);
    let head: LineHead = serde_json::from_slice(head).ok()?;
    let rest = rest.get(1..)?;
    let (raw, rest) = rest.split_at_checked(head.bytes)?;
    Some((head, raw, rest.strip_prefix(b"\n")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SessionId, UserId};

    fn line(sequence: u32, raw: Vec<u8>) -> OldLine {
        let head = LineHead {
            sequence,
            bytes: raw.len(),
            turn: Some(2),
            ts: Timestamp::from_micros(7),
            ts_source: Some(TimeSource::Stated),
            event_type: None,
            is_summary: false,
        };
        OldLine { head, raw: RawJson::new(raw) }
    }

    fn packed(lines: &[OldLine]) -> Vec<SupersededPiece> {
        let key = SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap());
        let at = Timestamp::from_micros(0);
        let mut packer = PiecePacker::new(key, LineKind::Message, at, SupersededReason::Edited);
        let mut pieces: Vec<_> = lines.iter().flat_map(|line| packer.add(line).unwrap()).collect();
        pieces.extend(packer.finish().unwrap());
        pieces
    }

    #[test]
    fn lines_come_back_byte_for_byte() {
        let noise = |length: u32| (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let lines = [
            line(1, b"{}".to_vec()),
            line(2, b"with\na line break\n".to_vec()),
            line(3, Vec::new()),
            line(900, noise(3 * PIECE_BYTES as u32 + 17)),
            line(901, noise(700_000)),
            line(902, noise(700_000)),
        ];
        let pieces = packed(&lines);
        assert_eq!(pieces, packed(&lines), "they are the same each time");
        assert_eq!(pieces.iter().map(|piece| piece.lines).collect::<Vec<_>>(), [3, 1, 0, 0, 0, 1, 1]);
        assert!(
            pieces.is_sorted_by_key(|piece| &piece.id)
                && pieces.iter().all(|piece| piece.data.len() < 1_100_000)
        );
        let groups = pieces.chunk_by(|a, b| a.group() == b.group());
        let unpacked: Vec<_> = groups.flat_map(|group| unpack(group).unwrap()).collect();
        let expected: Vec<_> = lines.into_iter().map(|line| (line.head, line.raw)).collect();
        assert_eq!(unpacked, expected);
        assert_eq!(unpack(&pieces[2..3]).unwrap_err().kind(), ErrorKind::Damaged);
    }
}
