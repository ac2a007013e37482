//! Supersedes stored rows that a log no longer contains.
//!
//! The first line that differs from the stored rows, together with all lines after it, determines the reason. Only
//! then are these lines read once more.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::LineKind,
    storage::{Extent, Remaining, SessionIngest},
};

use super::{
    FileError, SessionReader,
    open::{OpenLog, RemainingLines},
    reading::{Reading, Replaced},
};
use crate::{
    files::TRANSCRIPT_BACKUP,
    lines::{Line, LineText},
    position::LogPosition,
};

impl SessionReader<'_> {
    /// Compares a line with the stored rows before it is processed. `lines` are the line and those that follow it in its
    /// batch.
    pub(super) async fn compare(
        &mut self,
        ingest: &mut SessionIngest,
        reading: &mut Reading,
        open: &mut OpenLog,
        lines: (&Line, &[Line]),
    ) -> Result<(), FileError> {
        let (line, following) = lines;
        if reading.replaced.differs {
            reading.replaced.expected = reading.replaced.expected.saturating_sub(1);
            return Ok(());
        }
        let text = match &line.text {
            LineText::Ended(text) => text,
            // The line must be complete before it may cut off stored rows.
            LineText::Unended(text)
                if self.context.options.accepts_removals() || !ingest.cuts_off(reading.kind, text) =>
            {
                text
            }
            LineText::Unended(_) | LineText::TooLarge => return Ok(()),
        };
        if !ingest.differs(reading.kind, text) {
            return Ok(());
        }
        let digester = ingest.line_digester();
        let lines = std::iter::once(line).chain(following);
        let mut remaining: Vec<_> = lines.filter_map(|line| line.digest(&digester)).collect();
        let RemainingLines { lines, shared } = open.remaining(digester).await?;
        remaining.extend(lines);
        // Without the line itself, which was already read.
        reading.replaced.expected = remaining.len().saturating_sub(1);
        self.replace(ingest, reading, RemainingLines { lines: remaining, shared });
        Ok(())
    }

    /// Decides about stored rows that the file does not contain, if no line differed. Returns whether the rows after
    /// the last line stay.
    ///
    /// The backup of a transcript that is being appended to may be older than the stored rows, so it removes nothing.
    pub(super) fn end_of_rows(
        &mut self,
        ingest: &mut SessionIngest,
        reading: &mut Reading,
        is_damaged: bool,
    ) -> Result<Extent> {
        if reading.replaced.expected > 0 {
            let message = "the file became shorter while it was read";
            return Err(Error::new(ErrorKind::Conflict, message).with("file", reading.file.name).retryable());
        }
        if is_damaged || (!reading.replaced.differs && reading.file.name == TRANSCRIPT_BACKUP) {
            return Ok(Extent::Part);
        }
        if !reading.replaced.differs && ingest.missing(reading.kind) > 0 {
            self.replace(ingest, reading, RemainingLines::default());
        }
        Ok(Extent::Whole)
    }

    fn replace(&mut self, ingest: &mut SessionIngest, reading: &mut Reading, remaining: RemainingLines) {
        reading.replaced.differs = true;
        if self.context.options.mirror {
            return;
        }
        let Replaced { interrupted, decided, .. } = reading.replaced;
        let RemainingLines { lines, shared: elsewhere } = remaining;
        let remaining = Remaining { lines, elsewhere, interrupted, decided };
        reading.replaced.reason = ingest.supersede(reading.kind, &remaining);
        if let Some(reason) = reading.replaced.reason {
            let log = LogPosition { payloads: reading.position.payloads, ..LogPosition::default() };
            let log = (reading.kind == LineKind::Event).then_some(log);
            self.replacing.set_replacing(reading.file, log.clone(), reason);
            ingest.set_replacing_state(self.replacing.to_json());
            self.state.set_replacing(reading.file, log, reason);
            self.save(ingest);
        }
    }
}
