//! The files that are read line by line: the transcript and the event log.

use std::{io, path::Path};

use amplifier_session_core::{
    Result,
    backend::{SkippedLine, StoredSession},
    blocking,
    events::{MAX_LINE_BYTES, too_large},
    model::{LineKind, RawJson, Timestamp},
    storage::{EventDetail, LineOutcome, SessionIngest},
};

use super::{
    FileError, SessionReader,
    damage::{DamageNotes, Unended, is_binary},
    open::{Following, OpenLog},
    reading::{Reading, Replaced},
};
use crate::{
    files::{self, SessionFiles, Source, TRANSCRIPT, TRANSCRIPT_BACKUP},
    head::Head,
    lines::{Line, LineBatch, LineReader, LineText},
    position::{LogPosition, ReadLine},
    report::{Kept, Skipped},
    state::{Damage, FileEnd, FileState},
};

impl SessionReader<'_> {
    /// Reads the transcript completely, because writers replace it, unless it is long and was only appended to.
    pub(super) async fn transcript(
        &mut self,
        ingest: &mut SessionIngest,
        files: &SessionFiles,
    ) -> Result<()> {
        let Some(file) = files.transcript else { return Ok(()) };
        if self.state.is_current(file) {
            self.keep_damaged(file);
            return Ok(());
        }
        let taken = self.log(ingest, LineKind::Message, file).await;
        self.record_outcome(file.name, taken)
    }

    /// Reads the events after those that were read before. If the store keeps no events, only their times are read.
    pub(super) async fn events(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        if self.context.storage.settings().events == EventDetail::None {
            return self.only_times(ingest, files).await;
        }
        let logs = files.event_logs(self.state.known_events());
        if logs.all().all(|log| self.has_current(log)) {
            logs.all().for_each(|log| self.keep_damaged(log));
            return Ok(());
        }
        let Some((first, second)) = logs.pair() else {
            let Some(first) = logs.first else { return Ok(()) };
            let taken = self.first_log_alone(ingest, first).await;
            return self.record_outcome(first.name, taken);
        };
        let taken = self.two_logs(ingest, first, second).await;
        self.record_outcome(second.name, taken)
    }

    fn has_current(&self, log: Source) -> bool {
        self.state.has_current_events(log, self.context.storage.settings().events)
    }

    /// Reads the event log that was written last, if the store keeps no events.
    async fn only_times(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        let Some(file) = files.newest_events() else { return Ok(()) };
        self.keep_damaged(file);
        if self.has_current(file) && !ingest.may_have_other_times() {
            return Ok(());
        }
        let taken = self.times(ingest, file).await;
        self.record_outcome(file.name, taken)
    }

    /// Reads an event log only for its times. No event is stored, so it is read from the beginning each time.
    async fn times(&mut self, ingest: &mut SessionIngest, file: Source) -> Result<(), FileError> {
        let read = self.context.storage.now();
        let mut open = OpenLog::open(self.folder.file(file.name), None).await?;
        while let Some(batch) = open.batch().await? {
            for line in batch.lines {
                if let LineText::Ended(text) | LineText::Unended(text) = line.text {
                    ingest.note_event(&RawJson::new(text));
                }
            }
            self.context.progress.advance(batch.bytes);
            self.context.storage.backend().yield_to_searches().await;
        }
        self.state.set_timed(Source { stamp: open.stamp, ..file }, read);
        Ok(())
    }

    pub(super) fn keeps_payloads(&self) -> bool {
        self.context.storage.settings().events == EventDetail::Full
    }

    /// Reads a log. An event log is read after the last line of the previous sync if that line is unchanged; otherwise,
    /// logs are read from the beginning.
    pub(super) async fn log(
        &mut self,
        ingest: &mut SessionIngest,
        kind: LineKind,
        file: Source,
    ) -> Result<(), FileError> {
        let (mut reading, mut open) = self.begin_log(ingest, kind, file, Following::default()).await?;
        self.lines(ingest, &mut reading, &mut open).await?;
        self.end_log(ingest, reading).await
    }

    pub(super) async fn begin_log(
        &mut self,
        ingest: &mut SessionIngest,
        kind: LineKind,
        file: Source,
        following: Following,
    ) -> Result<(Reading, OpenLog), FileError> {
        let read = self.context.storage.now();
        let stored = ingest.stored().map_or(0, StoredSession::events_of_logs);
        let has_posted = ingest.stored().is_some_and(|found| stored < found.session.event_count);
        let known = self.state.file(file.name).filter(|known| known.log.is_some()).cloned();
        let position = known.as_ref().and_then(|known| known.log.as_ref());
        // If less was stored than is required now, all rows are written again.
        let rewriting = position.is_some_and(|log| self.keeps_payloads() && !log.payloads);
        let most = self.before.as_ref().and_then(|before| before.rewound_rows(file));
        let is_stored = position.is_some_and(|log| log.rows <= stored);
        let known = match kind {
            LineKind::Message => self.known_head(ingest, file),
            LineKind::Event => known.filter(|_| is_stored && !rewriting),
        };
        let is_alone = following.lines.is_empty();
        let open = OpenLog::open(self.folder.file(file.name), known).await?.followed_by(following);
        ingest.begin(kind, open.start.rows).await?;
        if rewriting {
            ingest.rewrite_events();
        }
        let mut reading = self.reading(kind, Source { stamp: open.stamp, ..file }, open.start.clone(), read);
        // An interrupted rewrite must start over: the stored rows do not show how far it got. So must one that replaces
        // posted events.
        reading.resumable =
            kind == LineKind::Event && !rewriting && most.is_none() && is_alone && !has_posted;
        (reading.rewriting, reading.most) = (rewriting, most);
        Ok((reading, open))
    }

    /// The state of reading `file` from a position on.
    pub(super) fn reading(
        &mut self,
        kind: LineKind,
        file: Source,
        start: LogPosition,
        read: Timestamp,
    ) -> Reading {
        let accepted = self.context.options.accepts_removals();
        let notes = DamageNotes::new(kind, file, &self.skipped, self.state.file(file.name), accepted);
        let replaced = Replaced::new(file, self.state.file(file.name));
        // A transcript and its backup are read instead of each other.
        let alternatives =
            if kind == LineKind::Message { [TRANSCRIPT, TRANSCRIPT_BACKUP] } else { [file.name; 2] };
        for name in alternatives {
            self.forget_skipped(name, if name == file.name { start.lines } else { 0 });
        }
        Reading {
            kind,
            file,
            read,
            resumable: false,
            rewriting: false,
            position: LogPosition { payloads: self.keeps_payloads(), ..start },
            notes,
            replaced,
            most: None,
            is_abandoned: file.stamp.is_abandoned(read),
            is_unfinished: false,
        }
    }

    pub(super) async fn lines(
        &mut self,
        ingest: &mut SessionIngest,
        reading: &mut Reading,
        open: &mut OpenLog,
    ) -> Result<(), FileError> {
        while let Some(batch) = open.batch().await? {
            self.batch(ingest, reading, open, batch).await?;
        }
        Ok(())
    }

    pub(super) async fn end_log(
        &mut self,
        ingest: &mut SessionIngest,
        mut reading: Reading,
    ) -> Result<(), FileError> {
        if self.has_better_backup(&reading).await? {
            self.damaged_transcript = Some(reading.file.stamp);
            return Ok(());
        }
        let (kind, file) = (reading.kind, reading.file);
        let damage = reading.damage(ingest);
        self.report_unfinished(&mut reading, damage.as_ref());
        let extent = self.end_of_rows(ingest, &mut reading, damage.is_some())?;
        ingest.end(kind, extent);
        if let Some(damage) = &damage {
            self.report.keep(Kept::of(self.folder, file.name, damage));
        }
        let head = match (kind, &damage) {
            (LineKind::Message, None) => self.head(&reading).await?,
            _ => None,
        };
        self.set_read(reading, head, damage);
        Ok(())
    }

    /// Records that a log was read to its end.
    pub(super) fn set_read(&mut self, reading: Reading, head: Option<Head>, damage: Option<Damage>) {
        let Reading { kind, file, read, rewriting, most, is_unfinished, position, .. } = reading;
        let position = match &damage {
            // Rows and lines do not correspond, so when the log changes, it is compared from the beginning.
            Some(damage) => LogPosition {
                rows: position.rows + damage.missing,
                payloads: position.payloads && !rewriting,
                ..LogPosition::default()
            },
            None => position,
        };
        let log = (kind == LineKind::Event).then_some(position);
        self.state.set_read(file, read, FileEnd { log, head, damage, is_unfinished });
        if let Some(before) = self.before.as_ref().filter(|_| most.is_some()) {
            self.state.put_back(before, file.name);
        }
    }

    /// Whether the transcript is damaged and its backup is not, and has at least as many messages.
    async fn has_better_backup(&self, reading: &Reading) -> Result<bool, FileError> {
        let rows = reading.position.rows;
        let is_candidate =
            reading.file.name == TRANSCRIPT && self.has_backup && reading.notes.is_damaged(rows);
        if !is_candidate || self.context.options.accepts_removals() {
            return Ok(false);
        }
        let path = self.folder.file(TRANSCRIPT_BACKUP);
        let messages = blocking(move || messages_of_whole_file(&path)).await?;
        // A backup that can't be read is no better.
        Ok(messages.is_ok_and(|messages| messages.is_some_and(|messages| messages > 0 && messages >= rows)))
    }

    /// Reports a file that is not complete but may become so, or an empty one that does not.
    pub(super) fn report_unfinished(&mut self, reading: &mut Reading, damage: Option<&Damage>) {
        let is_empty = reading.file.stamp.size == 0 && damage.is_none();
        if is_empty && reading.is_abandoned {
            self.report.skip(Skipped::file(self.folder, Some(reading.file.name), "is empty".to_owned()));
        }
        reading.is_unfinished |= is_empty && !reading.is_abandoned;
        reading.is_unfinished &= damage.is_none();
        if reading.is_unfinished {
            let reason = if is_empty { "is empty" } else { "ends in the middle of a line" };
            let reason = format!("{reason}; it changed within the last hour");
            self.report.unfinished(Skipped::file(self.folder, Some(reading.file.name), reason));
        }
    }

    /// The state of a long transcript whose head need not be read again if it is unchanged.
    fn known_head(&self, ingest: &SessionIngest, file: Source) -> Option<FileState> {
        let known = self.state.file(file.name)?;
        let rows = known.head.as_ref()?.rows;
        (rows > 0 && ingest.can_resume_transcript(rows)).then(|| known.clone())
    }

    /// The part of a transcript that was read, if it is long.
    async fn head(&self, reading: &Reading) -> Result<Option<Head>, FileError> {
        let (path, stamp) = (self.folder.file(reading.file.name), reading.file.stamp);
        let position = reading.position.clone();
        Ok(blocking(move || Head::read(&path, stamp, &position)).await??)
    }

    async fn batch(
        &mut self,
        ingest: &mut SessionIngest,
        reading: &mut Reading,
        open: &mut OpenLog,
        batch: LineBatch,
    ) -> Result<(), FileError> {
        let last = match reading.kind {
            LineKind::Message => None,
            LineKind::Event => batch.lines.iter().rev().find_map(recognisable),
        };
        let mut lines = batch.lines.into_iter();
        while let Some(line) = lines.next() {
            self.compare(ingest, reading, open, (&line, lines.as_slice())).await?;
            self.line(ingest, reading, line).await?;
        }
        self.context.progress.advance(batch.bytes);
        self.context.storage.backend().yield_to_searches().await;
        let position = &mut reading.position;
        (position.bytes, position.lines) = (batch.end, batch.number);
        position.last = last.or(position.last.take());
        if reading.resumable && !reading.notes.keeps_rows && reading.replaced.reason.is_none() {
            // It is stored whenever the ingest writes rows, and then all rows before this position are written.
            self.state.set_reading(reading.file, position.clone());
            self.save(ingest);
        }
        Ok(())
    }

    async fn line(&mut self, ingest: &mut SessionIngest, reading: &mut Reading, line: Line) -> Result<()> {
        if reading.most.is_some_and(|most| reading.position.rows >= most) {
            return Ok(());
        }
        let (file, seen) = (reading.file.name, reading.file.stamp.modified());
        let (text, has_ending) = match line.text {
            LineText::Ended(text) => (RawJson::new(text), true),
            LineText::Unended(text) => (RawJson::new(text), false),
            LineText::TooLarge => {
                let reason = too_large("line");
                reading.unreadable(ingest, line.number, &reason, false);
                self.skip(SkippedLine::new(file, line.number, reason));
                return Ok(());
            }
        };
        // A program may still be writing the last line.
        if !has_ending {
            let reason = reading.replaced.reason;
            match reading.notes.unended(ingest, line.number, &text, reason) {
                Unended::Complete => {}
                Unended::CutsOff => return Ok(()),
                Unended::Torn { is_binary } => {
                    if is_binary || reading.is_abandoned {
                        let reason = if is_binary { "contains binary data" } else { "is incomplete" };
                        let skipped = SkippedLine::new(file, line.number, reason);
                        return self.keep_unreadable(ingest, reading, skipped, text).await;
                    }
                    reading.is_unfinished = true;
                    return Ok(());
                }
            }
        }
        let is_binary = is_binary(text.as_bytes());
        match ingest.line(reading.kind, text, seen).await? {
            LineOutcome::Skipped { reason, line: text, .. } => {
                reading.unreadable(ingest, line.number, &reason, is_binary);
                let skipped = SkippedLine::new(file, line.number, reason);
                return self.keep_unreadable(ingest, reading, skipped, text).await;
            }
            LineOutcome::Doubtful { reason } => self.warn(file, line.number, reason),
            LineOutcome::Taken => {}
        }
        reading.position.rows += u32::from(has_ending);
        Ok(())
    }

    /// Records a line that can't be read as a row, and stores its text, unless the store keeps only summaries of events.
    async fn keep_unreadable(
        &mut self,
        ingest: &mut SessionIngest,
        reading: &Reading,
        mut skipped: SkippedLine,
        text: RawJson,
    ) -> Result<()> {
        let keeps_text = reading.kind == LineKind::Message || self.keeps_payloads();
        if keeps_text && self.has_room_for_skipped() {
            let (number, seen) =
                (u32::try_from(skipped.line).unwrap_or(u32::MAX), reading.file.stamp.modified());
            let (kind, row) = (reading.kind, reading.position.rows);
            skipped.kept = Some(ingest.keep_unreadable(kind, number, row, text, seen).await?);
        }
        self.skip(skipped);
        Ok(())
    }
}

/// The number of messages of a transcript; `None` if it is damaged.
fn messages_of_whole_file(path: &Path) -> io::Result<Option<u32>> {
    let (file, _) = files::open(path)?;
    let mut reader = LineReader::new(file, 0, 0, MAX_LINE_BYTES)?;
    let mut messages = 0;
    loop {
        let batch = reader.batch()?;
        for line in &batch.lines {
            if !line.text().is_some_and(|text| SessionIngest::is_valid(LineKind::Message, text)) {
                return Ok(None);
            }
            messages += 1;
        }
        if batch.is_last {
            return Ok(Some(messages));
        }
    }
}

fn recognisable(line: &Line) -> Option<ReadLine> {
    match &line.text {
        LineText::Ended(text) => Some(ReadLine::new(line.offset, text)),
        LineText::Unended(_) | LineText::TooLarge => None,
    }
}
