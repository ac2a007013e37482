//! Opening a log at the right place.

use std::{fs::File, io, path::PathBuf};

use amplifier_session_core::{Result, blocking, events::MAX_LINE_BYTES};

use super::Trouble;
use crate::{
    files::{self, Stamp},
    lines::{Batch, LineReader, still_stands},
    state::{FileState, LogPosition},
};

/// A log that is being read.
#[derive(Debug)]
pub(super) struct OpenLog {
    /// What the file looked like when it was opened.
    pub(super) stamp: Stamp,
    /// Where reading begins.
    pub(super) start: LogPosition,
    /// The first lines: they are read with the opening, since most files have no more.
    first: Option<Batch>,
    /// None at the end, and after an error.
    reader: Option<LineReader>,
}

impl OpenLog {
    /// Opens a log behind what is known of it, where that still stands; else at its beginning.
    pub(super) async fn open(path: PathBuf, known: Option<FileState>) -> Result<Self, Trouble> {
        let open = move || -> io::Result<Self> {
            let (mut file, stamp) = files::open(&path)?;
            let start = match known {
                Some(known) => position_behind(&mut file, stamp, known)?.unwrap_or_default(),
                None => LogPosition::default(),
            };
            let mut reader = LineReader::new(file, start.bytes, start.lines, MAX_LINE_BYTES)?;
            let first = reader.batch()?;
            let reader = (!first.is_last).then_some(reader);
            Ok(Self { stamp, start, first: Some(first), reader })
        };
        Ok(blocking(open).await??)
    }

    /// The next lines; none behind the last.
    pub(super) async fn batch(&mut self) -> Result<Option<Batch>, Trouble> {
        if self.first.is_some() {
            return Ok(self.first.take());
        }
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let read = move || {
            let batch = reader.batch();
            (reader, batch)
        };
        let (reader, batch) = blocking(read).await?;
        let batch = batch?;
        self.reader = (!batch.is_last).then_some(reader);
        Ok(Some(batch))
    }
}

/// The place behind what was read of a log, if the log was only appended to since.
///
/// A log that looks different and has the same size was changed in the middle, and a shorter one was rewritten. One
/// that looks the same and is read nevertheless was left in the middle, or had not settled.
fn position_behind(file: &mut File, stamp: Stamp, known: FileState) -> io::Result<Option<LogPosition>> {
    let appended = stamp.size > known.stamp.size || stamp == known.stamp;
    let Some(log) = known.log.filter(|_| appended) else { return Ok(None) };
    match &log.last {
        Some(last) if still_stands(file, last, MAX_LINE_BYTES)? => Ok(Some(log)),
        _ => Ok(None),
    }
}
