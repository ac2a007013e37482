//! Opens a log at the right position.

use std::{collections::HashSet, fs::File, io, path::PathBuf};

use amplifier_session_core::{
    Result, blocking, events::MAX_LINE_BYTES, model::Digest, storage::LineDigester,
};

use super::FileError;
use crate::{
    files::{self, Stamp},
    lines::{LineBatch, LineReader, is_unchanged},
    position::LogPosition,
    state::FileState,
};

/// A log that is being read.
#[derive(Debug)]
pub(crate) struct OpenLog {
    /// The stamp of the file when it was opened.
    pub(crate) stamp: Stamp,
    /// The position where reading begins.
    pub(super) start: LogPosition,
    /// The first lines. They are read when the log is opened, because most files have no more.
    first: Option<LineBatch>,
    /// `None` at the end, and after an error.
    reader: Option<LineReader>,
    /// The numbers of the lines to read; `None` for all.
    pub(crate) only: Option<HashSet<u64>>,
    /// The lines of another log that follow this one.
    following: Following,
}

/// The lines of a second log that are read after the first one.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// The digests of these lines.
    pub(super) lines: Vec<Digest>,
    /// The digests of lines that are not read, because the first log has their events. Some may have been stored before
    /// it had them.
    pub(super) shared: Vec<Digest>,
}

/// The lines that are still to be read.
#[derive(Debug, Default)]
pub(super) struct RemainingLines {
    /// Their digests.
    pub(super) lines: Vec<Digest>,
    /// Of [`Following::shared`].
    pub(super) shared: Vec<Digest>,
}

impl OpenLog {
    /// Opens a log after the last line that was read if that line is unchanged, or else at the beginning.
    pub(crate) async fn open(path: PathBuf, known: Option<FileState>) -> Result<Self, FileError> {
        let open = move || -> io::Result<Self> {
            let (mut file, stamp) = files::open(&path)?;
            let start = match known {
                Some(known) => position_after(&mut file, stamp, known)?.unwrap_or_default(),
                None => LogPosition::default(),
            };
            let mut reader = LineReader::new(file, start.bytes, start.lines, MAX_LINE_BYTES)?;
            let first = reader.batch()?;
            let reader = (!first.is_last).then_some(reader);
            Ok(Self { stamp, start, first: Some(first), reader, only: None, following: Following::default() })
        };
        Ok(blocking(open).await??)
    }

    /// Reads only the lines with these numbers.
    pub(super) fn only(mut self, numbers: HashSet<u64>) -> Self {
        self.only = Some(numbers);
        self
    }

    /// Records what is read after this log.
    pub(super) fn followed_by(mut self, following: Following) -> Self {
        self.following = following;
        self
    }

    /// The lines after the batches that were returned.
    pub(super) async fn remaining(&mut self, digester: LineDigester) -> Result<RemainingLines, FileError> {
        let (mut lines, shared) = (Vec::new(), self.following.shared.clone());
        if let Some(mut reader) = self.reader.take() {
            let only = self.only.take();
            let read = move || {
                let is_read = |number: u64| only.as_ref().is_none_or(|only| only.contains(&number));
                let remaining = reader.remaining(&digester, is_read);
                (reader, only, remaining)
            };
            let (reader, only, remaining) = blocking(read).await?;
            (self.reader, self.only) = (Some(reader), only);
            lines = remaining?;
        }
        lines.extend(&self.following.lines);
        Ok(RemainingLines { lines, shared })
    }

    /// The next lines; `None` at the end.
    pub(crate) async fn batch(&mut self) -> Result<Option<LineBatch>, FileError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(self.chosen(first)));
        }
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let read = move || {
            let batch = reader.batch();
            (reader, batch)
        };
        let (reader, batch) = blocking(read).await?;
        let batch = batch?;
        self.reader = (!batch.is_last).then_some(reader);
        Ok(Some(self.chosen(batch)))
    }

    fn chosen(&self, mut batch: LineBatch) -> LineBatch {
        if let Some(only) = &self.only {
            batch.lines.retain(|line| only.contains(&line.number));
        }
        batch
    }
}

/// The position after the last line that was read, if the log has only been appended to since.
///
/// A log with a different stamp and the same size was changed in the middle; a shorter one was rewritten. If the stamp
/// is the same, the last sync was interrupted, or the stamp had not settled.
fn position_after(file: &mut File, stamp: Stamp, known: FileState) -> io::Result<Option<LogPosition>> {
    if let Some(head) = known.head {
        return if stamp.may_continue(&known.stamp) { head.position_in(file) } else { Ok(None) };
    }
    let appended = stamp.size > known.stamp.size || stamp == known.stamp;
    let Some(log) = known.log.filter(|_| appended) else { return Ok(None) };
    match &log.last {
        Some(last) if is_unchanged(file, last, MAX_LINE_BYTES)? => Ok(Some(log)),
        _ => Ok(None),
    }
}
