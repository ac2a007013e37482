//! The files that are read line by line: the transcript and the event log.

use amplifier_session_core::{
    Result,
    model::{RawJson, Timestamp},
    storage::{EventDetail, Extent, LineOutcome, SessionIngest},
};

use super::{
    FileError, SessionReader,
    damage::{DamageNotes, is_binary},
    open::OpenLog,
};
use crate::{
    files::{EVENTS, SessionFiles, Source, TRANSCRIPT, TRANSCRIPT_BACKUP},
    lines::{Batch, Line, LineText},
    state::{FileEnd, FileState, LogPosition, ReadLine},
};

/// The two kinds of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Transcript,
    Events,
}

impl Kind {
    /// The files that may contain it; one of them is read.
    fn files(self) -> [&'static str; 2] {
        match self {
            Self::Transcript => [TRANSCRIPT, TRANSCRIPT_BACKUP],
            Self::Events => EVENTS,
        }
    }

    async fn begin(self, ingest: &mut SessionIngest, start: u32) -> Result<()> {
        match self {
            Self::Transcript => ingest.begin_transcript(start).await,
            Self::Events => ingest.begin_events(start).await,
        }
    }

    async fn line(self, ingest: &mut SessionIngest, line: RawJson, seen: Timestamp) -> Result<LineOutcome> {
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
}

/// Where to begin with a log.
#[derive(Debug)]
enum Start {
    /// At the beginning.
    Beginning,
    /// After the last line that was read, if that is unchanged.
    After(FileState),
    /// At the beginning, and write all rows again: less was stored than is wanted now.
    Rewriting,
}

/// The state of reading a log.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) kind: Kind,
    /// The file as it was when it was opened.
    pub(super) file: Source,
    /// Whether to store the position while reading.
    pub(super) resumable: bool,
    pub(super) position: LogPosition,
    /// Signs of damage.
    pub(super) notes: DamageNotes,
}

impl SessionReader<'_> {
    /// Reads the transcript completely, because writers replace it.
    pub(super) async fn transcript(
        &mut self,
        ingest: &mut SessionIngest,
        files: &SessionFiles,
    ) -> Result<()> {
        match files.transcript() {
            Some(file) if !self.state.is_current(file) => {
                let taken = self.log(ingest, Kind::Transcript, file, Start::Beginning).await;
                self.settle(file.name, taken)
            }
            Some(file) => {
                self.keep_damaged(file);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Reads the events after those that were read before. If the store keeps no events, only their times are read.
    pub(super) async fn events(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        let detail = self.context.storage.settings().events;
        match files.events(self.state.known_events()) {
            Some(file) if detail == EventDetail::None => {
                self.keep_damaged(file);
                if self.state.has_current_events(file, detail) && !ingest.may_have_other_times() {
                    return Ok(());
                }
                let taken = self.times(ingest, file).await;
                self.settle(file.name, taken)
            }
            Some(file) if !self.state.has_current_events(file, detail) => {
                let start = self.start_of_events(ingest, file);
                let taken = self.log(ingest, Kind::Events, file, start).await;
                self.settle(file.name, taken)
            }
            Some(file) => {
                self.keep_damaged(file);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Reads an event log only for its times. No event is stored, so it is read from the beginning each time.
    async fn times(&mut self, ingest: &mut SessionIngest, file: Source) -> Result<(), FileError> {
        let read = self.context.storage.now();
        let mut open = OpenLog::open(self.folder.path.join(file.name), None).await?;
        while let Some(batch) = open.batch().await? {
            for line in batch.lines {
                if let LineText::Ended(text) | LineText::Unended(text) = line.text {
                    ingest.note_event(&RawJson::new(text));
                }
            }
            self.context.progress.advance(batch.bytes);
            self.context.storage.backend().give_way().await;
        }
        self.state.set_timed(Source { stamp: open.stamp, ..file }, read);
        Ok(())
    }

    fn start_of_events(&self, ingest: &SessionIngest, file: Source) -> Start {
        let stored = ingest.stored().map_or(0, |stored| stored.session.event_count);
        let known = self.state.file(file.name);
        match known.and_then(|known| known.log.as_ref()) {
            Some(log) if self.keeps_payloads() && !log.payloads => Start::Rewriting,
            Some(log) if log.rows <= stored => known.cloned().map_or(Start::Beginning, Start::After),
            _ => Start::Beginning,
        }
    }

    pub(super) fn keeps_payloads(&self) -> bool {
        self.context.storage.settings().events == EventDetail::Full
    }

    async fn log(
        &mut self,
        ingest: &mut SessionIngest,
        kind: Kind,
        file: Source,
        start: Start,
    ) -> Result<(), FileError> {
        let read = self.context.storage.now();
        let rewriting = matches!(start, Start::Rewriting);
        let known = if let Start::After(known) = start { Some(known) } else { None };
        let mut open = OpenLog::open(self.folder.path.join(file.name), known).await?;
        let accepted = self.context.options.accept_removals;
        let opened = Source { stamp: open.stamp, ..file };
        let notes = DamageNotes::new(opened, &self.skipped, self.state.file(file.name), accepted);
        for name in kind.files() {
            self.forget_skipped(name, if name == file.name { open.start.lines } else { 0 });
        }
        kind.begin(ingest, open.start.rows).await?;
        if rewriting {
            ingest.rewrite_events();
        }
        let mut reading = Reading {
            kind,
            file: opened,
            // An interrupted rewrite must start over: the stored rows do not show how far it came.
            resumable: kind == Kind::Events && !rewriting,
            position: LogPosition { payloads: self.keeps_payloads(), ..open.start.clone() },
            notes,
        };
        while let Some(batch) = open.batch().await? {
            self.batch(ingest, &mut reading, batch).await?;
        }
        let damage = self.end_log(ingest, &reading);
        let position = match damage {
            // Rows and lines do not correspond: when it changes, it is compared from the beginning.
            Some(_) => {
                LogPosition { payloads: reading.position.payloads && !rewriting, ..LogPosition::default() }
            }
            None => reading.position,
        };
        let log = (kind == Kind::Events).then_some(position);
        self.state.set_read(reading.file, read, FileEnd { log, damage });
        Ok(())
    }

    async fn batch(&mut self, ingest: &mut SessionIngest, reading: &mut Reading, batch: Batch) -> Result<()> {
        let last = match reading.kind {
            Kind::Transcript => None,
            Kind::Events => batch.lines.iter().rev().find_map(recognisable),
        };
        for line in batch.lines {
            self.line(ingest, reading, line).await?;
        }
        self.context.progress.advance(batch.bytes);
        self.context.storage.backend().give_way().await;
        let position = &mut reading.position;
        (position.bytes, position.lines) = (batch.end, batch.number);
        position.last = last.or(position.last.take());
        if reading.resumable {
            // It is stored whenever the ingest writes rows, and then all rows before this position are written.
            self.state.set_reading(reading.file, position.clone());
            self.save(ingest);
        }
        Ok(())
    }

    async fn line(&mut self, ingest: &mut SessionIngest, reading: &mut Reading, line: Line) -> Result<()> {
        let (file, seen) = (reading.file.name, reading.file.stamp.modified());
        let (text, has_ending) = match line.text {
            LineText::Ended(text) => (RawJson::new(text), true),
            LineText::Unended(text) => (RawJson::new(text), false),
            LineText::TooLarge => {
                let reason = "the line is larger than 64 MB".to_owned();
                reading.unreadable(ingest, line.number, &reason, false);
                self.skip(file, line.number, reason);
                return Ok(());
            }
        };
        if !has_ending && reading.leaves_unended(ingest, line.number, &text) {
            return Ok(());
        }
        reading.check_beginning(ingest, line.number, &text);
        let is_binary = is_binary(text.as_bytes());
        match reading.kind.line(ingest, text, seen).await? {
            LineOutcome::Skipped { reason, .. } => {
                reading.unreadable(ingest, line.number, &reason, is_binary);
                self.skip(file, line.number, reason);
                return Ok(());
            }
            LineOutcome::Doubtful { reason } => self.warn(file, line.number, reason),
            LineOutcome::Taken => {}
        }
        reading.position.rows += u32::from(has_ending);
        Ok(())
    }
}

fn recognisable(line: &Line) -> Option<ReadLine> {
    match &line.text {
        LineText::Ended(text) => Some(ReadLine::new(line.offset, text)),
        LineText::Unended(_) | LineText::TooLarge => None,
    }
}
