//! Reads the two event logs of a session: the events of the first one, and those that only the second one has.

use std::path::PathBuf;

use amplifier_session_core::{
    Result,
    backend::StoredSession,
    blocking,
    model::{LineKind, SessionKey},
    storage::{Extent, SessionIngest},
};

use super::{
    FileError, SessionReader,
    open::{Following, OpenLog},
};
use crate::{
    files::Source,
    position::LogPosition,
    report::Kept,
    second_log::{EventIdentity, FirstLog, SecondLog, end_alike, stored_identities},
    state::Damage,
};

/// The last events of the first log are enough to compare new lines of the second one.
const WINDOW: u32 = 1_000;

impl SessionReader<'_> {
    /// Reads both logs. `first` is `None` if it is gone or empty; its events stay.
    pub(super) async fn two_logs(
        &mut self,
        ingest: &mut SessionIngest,
        first: Option<Source>,
        second: Source,
    ) -> Result<(), FileError> {
        if let Some(first) = first
            && self.is_in_step(first, second).await?
        {
            self.log(ingest, LineKind::Event, first).await?;
            return self.set_examined(second).await;
        }
        let is_unchanged = first.is_none_or(|first| self.state.is_current(first));
        let known = self.state.file(second.name).filter(|_| is_unchanged && !self.rewrites(second)).cloned();
        let open = OpenLog::open(self.path(second), known).await?;
        let is_continued = open.start.lines > 0;
        let first = first.filter(|_| !is_continued);
        let known = match first {
            Some(first) => FirstLog::read(self.path(first)).await??,
            None => FirstLog::of_stored(self.stored_identities(ingest, is_continued).await?),
        };
        let binary = known.binary;
        let log = self.second_log(ingest, second, open.start.clone(), known).await?;
        if (binary.is_some() || log.binary.is_some()) && self.has_events(ingest) {
            return self.beside_damage(ingest, first, second).await;
        }
        self.read_both(ingest, first, (second, open), log).await
    }

    /// Compares a log from a position on with another one.
    async fn second_log(
        &self,
        ingest: &SessionIngest,
        second: Source,
        from: LogPosition,
        known: FirstLog,
    ) -> Result<SecondLog, FileError> {
        let (path, digester) = (self.path(second), ingest.line_digester());
        let now = self.context.storage.now();
        Ok(blocking(move || SecondLog::compare(&path, &from, &known, &digester, now)).await??)
    }

    /// Reads the first log, unless it is gone or unchanged, and then the lines of the second one that it lacks.
    async fn read_both(
        &mut self,
        ingest: &mut SessionIngest,
        first: Option<Source>,
        (second, open): (Source, OpenLog),
        log: SecondLog,
    ) -> Result<(), FileError> {
        let following = Following { lines: log.digests(), shared: log.shared.clone() };
        let read = self.context.storage.now();
        let of_first = match first {
            Some(first) => {
                let (mut reading, mut open) =
                    self.begin_log(ingest, LineKind::Event, first, following).await?;
                self.lines(ingest, &mut reading, &mut open).await?;
                if reading.notes.is_damaged(reading.position.rows) {
                    ingest.keep_stored(LineKind::Event);
                }
                Some(reading)
            }
            None => {
                self.begin_second(ingest, second, &open).await?;
                None
            }
        };
        self.state.set_second(second.name);
        let opened = Source { stamp: open.stamp, ..second };
        let mut of_second = self.reading(LineKind::Event, opened, open.start.clone(), read);
        if let Some(first) = &of_first {
            of_second.replaced = first.replaced.clone();
        }
        of_second.is_unfinished = log.is_ahead;
        let mut open = open.only(log.numbers());
        self.lines(ingest, &mut of_second, &mut open).await?;
        if log.is_ahead {
            // The next sync compares all of it again.
            of_second.position = of_second.position.forgotten();
        }
        let Some(mut of_first) = of_first else { return self.end_log(ingest, of_second).await };
        let damage = of_first.damage(ingest);
        self.report_unfinished(&mut of_first, damage.as_ref());
        let Some(damage) = damage else {
            self.set_read(of_first, None, None);
            return self.end_log(ingest, of_second).await;
        };
        self.report.keep(Kept::of(self.folder, of_first.file.name, &damage));
        ingest.end_events(Extent::Part);
        self.set_read(of_first, None, Some(damage));
        self.set_read(of_second, None, None);
        Ok(())
    }

    /// Reads the events that are not stored, while a log is damaged. All stored events stay.
    async fn beside_damage(
        &mut self,
        ingest: &mut SessionIngest,
        first: Option<Source>,
        second: Source,
    ) -> Result<(), FileError> {
        let of_first = self.rows_of_first(ingest);
        let mut known = self.stored_identities_in(0, of_first + self.rows_of_second(ingest)).await?;
        let mut next = of_first + self.rows_of_second(ingest);
        ingest.begin_events(next).await?;
        self.state.set_second(second.name);
        let read = self.context.storage.now();
        for log in first.into_iter().chain([second]) {
            let open = OpenLog::open(self.path(log), None).await?;
            let stored = FirstLog::of_stored(known.clone());
            let compared = self.second_log(ingest, log, LogPosition::default(), stored).await?;
            let damage = compared.binary.map(|line| {
                let missing = (known.len() as u32).saturating_sub(compared.shared.len() as u32);
                Damage { reason: format!("contains binary data in line {line}"), line, missing }
            });
            // Events that the first log has are not stored again from the second one.
            known = FirstLog::read(self.path(log)).await??.with(known);
            let opened = Source { stamp: open.stamp, ..log };
            let mut reading = self.reading(LineKind::Event, opened, LogPosition::default(), read);
            self.lines(ingest, &mut reading, &mut open.only(compared.numbers())).await?;
            next += reading.position.rows;
            let rows = if log.name == second.name { next - of_first } else { of_first };
            if let Some(damage) = &damage {
                self.report.keep(Kept::of(self.folder, log.name, damage));
            }
            self.set_read(reading, None, damage);
            self.state.set_rows(log.name, rows);
        }
        ingest.end_events(Extent::Part);
        Ok(())
    }

    fn has_events(&self, ingest: &SessionIngest) -> bool {
        ingest.stored().is_some_and(|stored| stored.events_of_logs() > 0)
    }

    /// Begins after the stored events of the first log, and those that were read from the second one.
    async fn begin_second(
        &mut self,
        ingest: &mut SessionIngest,
        second: Source,
        open: &OpenLog,
    ) -> Result<(), FileError> {
        ingest.begin_events(self.rows_of_first(ingest) + open.start.rows).await?;
        if let (Some(before), Some(first)) = (&self.before, self.state.known_events()) {
            self.state.put_back(before, first);
        }
        if self.rewrites(second) {
            ingest.rewrite_events();
        }
        Ok(())
    }

    /// Reads the first log while the second one is gone. The events that only that one had stay.
    pub(super) async fn first_log_alone(
        &mut self,
        ingest: &mut SessionIngest,
        first: Source,
    ) -> Result<(), FileError> {
        let rows = self.rows_of_second(ingest);
        let is_longer = self.state.file(first.name).is_some_and(|known| first.stamp.size > known.stamp.size);
        if rows == 0 || is_longer {
            self.state.add_second_to_first(rows);
            return self.log(ingest, LineKind::Event, first).await;
        }
        let (mut reading, mut open) =
            self.begin_log(ingest, LineKind::Event, first, Following::default()).await?;
        self.lines(ingest, &mut reading, &mut open).await?;
        if reading.replaced.differs || reading.notes.keeps_rows {
            return self.end_log(ingest, reading).await;
        }
        ingest.end_events(Extent::Part);
        self.set_read(reading, None, None);
        // The stored rows may be more than the lines.
        self.state.set_rows(first.name, self.rows_of_first(ingest));
        Ok(())
    }

    /// The number of stored events that came from the first log.
    fn rows_of_first(&self, ingest: &SessionIngest) -> u32 {
        self.state.rows_of_first(ingest.stored().map_or(0, StoredSession::events_of_logs))
    }

    /// The number of stored events that came from the second log.
    fn rows_of_second(&self, ingest: &SessionIngest) -> u32 {
        let all = ingest.stored().map_or(0, StoredSession::events_of_logs);
        all - self.state.rows_of_first(all)
    }

    /// Whether the second log certainly has nothing that the first one lacks: it had nothing before, and is unchanged or
    /// ends with the same event.
    async fn is_in_step(&self, first: Source, second: Source) -> Result<bool, FileError> {
        let Some(known) = self.state.file(second.name) else { return Ok(false) };
        let had_rows = known.log.as_ref().is_some_and(|log| log.rows > 0);
        let is_shorter = self.state.file(first.name).is_none_or(|known| first.stamp.size < known.stamp.size);
        if had_rows || is_shorter || self.before.is_some() {
            return Ok(false);
        }
        if self.state.is_current(second) {
            return Ok(true);
        }
        let (first, second) = (self.path(first), self.path(second));
        Ok(blocking(move || end_alike(&first, &second)).await??)
    }

    /// Records that a second log has nothing that the first one lacks.
    async fn set_examined(&mut self, second: Source) -> Result<(), FileError> {
        let open = OpenLog::open(self.path(second), None).await?;
        let start = LogPosition { bytes: open.stamp.size, ..LogPosition::default() };
        let second = Source { stamp: open.stamp, ..second };
        let reading = self.reading(LineKind::Event, second, start, self.context.storage.now());
        self.state.set_second(second.name);
        self.set_read(reading, None, None);
        Ok(())
    }

    /// The stored events of the first log, or the last of them.
    async fn stored_identities(&self, ingest: &SessionIngest, only_last: bool) -> Result<Vec<EventIdentity>> {
        let rows = self.rows_of_first(ingest);
        self.stored_identities_in(if only_last { rows.saturating_sub(WINDOW) } else { 0 }, rows).await
    }

    async fn stored_identities_in(&self, start: u32, end: u32) -> Result<Vec<EventIdentity>> {
        let key = SessionKey::new(self.context.options.user.clone(), self.folder.session.clone());
        stored_identities(self.context.storage, &key, (start, end)).await
    }

    /// Whether more of each event is to be stored than before.
    fn rewrites(&self, log: Source) -> bool {
        let known = self.state.file(log.name).and_then(|known| known.log.as_ref());
        known.is_some_and(|known| self.keeps_payloads() && !known.payloads)
    }

    fn path(&self, log: Source) -> PathBuf {
        self.folder.file(log.name)
    }
}
