//! Writes the files of one session.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    ErrorKind, Result, Scope, SessionStorage,
    backend::{SkippedLine, StoredSession, SupersededQuery},
    model::{
        DamagedRow, Digest, LineKind, MetadataFile, RawJson, Session, SessionId, SessionKey, SupersededReason,
    },
    search::SessionFilter,
    storage::{EventLines, SupersededLine},
    text::counted,
};

use super::{
    RestoreProblem,
    place::{Placed, place},
    report::{DifferingFile, DiffersBecause, RestoreReport},
    staging::create_folders,
};
use crate::{
    files::{EVENTS, METADATA, TRANSCRIPT, TRANSCRIPT_BACKUP},
    lines::BYTE_ORDER_MARK,
    state::{FileState, SyncState},
};

/// Number of messages read at a time: few, because lines may be long.
const MESSAGES: usize = 64;
/// Number of events, and bytes of their payloads, read at a time.
const EVENT_LINES: usize = 256;
const EVENT_BYTES: u64 = 4 << 20;

/// The files of a session, in a separate folder. Dropping it removes the folder.
#[derive(Debug)]
pub(super) struct Content {
    folder: PathBuf,
    session: Session,
    files: Vec<&'static str>,
    messages: u64,
    events: u64,
    bytes: u64,
    differing: Vec<DifferingFile>,
    damaged: Vec<DamagedRow>,
}

impl Drop for Content {
    fn drop(&mut self) {
        // The folder was renamed if the session is new.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Content {
    /// Adds to `report` that the files are in place. They already were if they are `unchanged`.
    pub(super) fn add_to(mut self, report: &mut RestoreReport, unchanged: bool) {
        report.sessions += 1;
        report.unchanged += u64::from(unchanged);
        report.messages += self.messages;
        report.events += self.events;
        report.bytes += self.bytes;
        report.differing.append(&mut self.differing);
        report.damaged.append(&mut self.damaged);
    }

    /// Writes the files of `stored` to `folder`.
    pub(super) async fn write(
        storage: &SessionStorage,
        stored: &StoredSession,
        folder: PathBuf,
    ) -> Result<Self, RestoreProblem> {
        let mut content = Self {
            folder,
            session: stored.session.clone(),
            files: Vec::new(),
            messages: 0,
            events: 0,
            bytes: 0,
            differing: Vec::new(),
            damaged: Vec::new(),
        };
        let state = stored.sync_state.as_ref().and_then(SyncState::parse);
        let unreadable = Unreadable::read(storage, stored).await?;
        let reader = ContentReader { storage, stored, state, unreadable };
        content.metadata(&reader)?;
        content.transcript(&reader).await?;
        content.event_logs(&reader).await?;
        Ok(content)
    }

    /// Moves the files to the folder `target`, which is in `root`.
    pub(super) fn place(
        &self,
        root: &Path,
        target: &Path,
        overwrite: bool,
    ) -> Result<Placed, RestoreProblem> {
        if self.files.is_empty() {
            return Err(RestoreProblem::Session("none of its files are stored".to_owned()));
        }
        place(root, &self.folder, &self.files, target, overwrite)
    }

    fn metadata(&mut self, reader: &ContentReader<'_>) -> Result<(), RestoreProblem> {
        for MetadataFile { name, raw } in &reader.stored.metadata_files {
            let Some(name) = METADATA.into_iter().find(|known| *known == name.as_str()) else {
                let reason = format!("{name:?} is not the name of a metadata file of Amplifier");
                return Err(RestoreProblem::Session(reason));
            };
            let content = raw.as_bytes();
            let mut file = LineFile::new(self.folder.join(name));
            // A byte order mark is the only part of a metadata file that is not stored.
            if reader.size(name) == Some((content.len() + BYTE_ORDER_MARK.len()) as u64) {
                file.write(BYTE_ORDER_MARK)?;
            }
            file.write(content)?;
            let size = file.end()?;
            self.add(reader, name, name, size, false);
        }
        let skipped = METADATA.into_iter().filter(|name| reader.skipped(name) > 0);
        for name in skipped.collect::<Vec<_>>() {
            self.differ(
                name,
                DiffersBecause::SkippedLines,
                "it could not be read when it was synced".to_owned(),
            );
        }
        Ok(())
    }

    async fn transcript(&mut self, reader: &ContentReader<'_>) -> Result<(), RestoreProblem> {
        let read_as = match reader.state(TRANSCRIPT) {
            Some(_) => TRANSCRIPT,
            // The transcript was being appended to.
            None => TRANSCRIPT_BACKUP,
        };
        let mut file = LineFile::new(self.folder.join(TRANSCRIPT));
        let mut unreadable = reader.unreadable.of(read_as);
        let (mut after, damaged) = (None, self.damaged.len());
        loop {
            let (scope, id) = reader.session();
            let page =
                reader.storage.reading().readable_transcript_lines(&scope, id, after, MESSAGES).await?;
            self.damaged.extend(page.damaged);
            let Some(last) = page.rows.last() else { break };
            after = Some(last.sequence);
            for message in &page.rows {
                unreadable.write_before(message.sequence, &mut file)?;
                file.line(message.raw.as_bytes())?;
                self.messages += 1;
            }
        }
        unreadable.write_before(u32::MAX, &mut file)?;
        let is_damaged = self.damaged.len() > damaged;
        self.log(reader, file, TRANSCRIPT, read_as, is_damaged)
    }

    async fn event_logs(&mut self, reader: &ContentReader<'_>) -> Result<(), RestoreProblem> {
        let known = reader.state.as_ref().and_then(SyncState::known_events);
        // If no sync has read an event log, the name that Amplifier uses today.
        let first = known.unwrap_or(EVENTS[1]);
        let second = reader.state.as_ref().and_then(SyncState::second_log);
        let all = reader.stored.events_of_logs();
        let of_first = reader.state.as_ref().map_or(all, |state| state.rows_of_first(all));
        match second.filter(|_| of_first < all) {
            None => self.event_log(reader, first, (0, u32::MAX)).await,
            Some(second) => {
                self.event_log(reader, first, (0, of_first)).await?;
                self.event_log(reader, second, (of_first, u32::MAX)).await
            }
        }
    }

    /// Writes an event log with the events whose sequences are in a range.
    async fn event_log(
        &mut self,
        reader: &ContentReader<'_>,
        name: &'static str,
        (start, end): (u32, u32),
    ) -> Result<(), RestoreProblem> {
        let mut file = LineFile::new(self.folder.join(name));
        let mut unreadable = reader.unreadable.of(name);
        let (mut events, damaged) = (0, self.damaged.len());
        let mut lines = EventLines::default()
            .with_payload(true)
            .with_limit(EVENT_LINES)
            .with_max_bytes(Some(EVENT_BYTES))
            .after(start.checked_sub(1));
        let mut is_at_end = false;
        while !is_at_end {
            let (scope, id) = reader.session();
            let page = reader.storage.reading().readable_event_lines(&scope, id, lines).await?;
            self.damaged.extend(page.damaged);
            let Some(last) = page.rows.last() else { break };
            lines = lines.after(Some(last.event.sequence));
            is_at_end = last.event.sequence.saturating_add(1) >= end;
            for line in page.rows.iter().filter(|line| line.event.sequence < end) {
                // Part of a log would look like a rewind to the next sync.
                let Some(raw) = &line.raw else { return self.without_event_log(file, name) };
                unreadable.write_before(line.event.sequence - start, &mut file)?;
                file.line(raw.as_bytes())?;
                events += 1;
            }
        }
        unreadable.write_before(u32::MAX, &mut file)?;
        self.events += events;
        let is_damaged = self.damaged.len() > damaged;
        if file.count == 0 && !is_damaged && reader.size(name).is_some_and(|size| size > 0) {
            return self.without_event_log(file, name);
        }
        self.log(reader, file, name, name, is_damaged)
    }

    fn without_event_log(&mut self, file: LineFile, name: &str) -> Result<(), RestoreProblem> {
        file.discard()?;
        let reason = "not written: the store does not have its lines (see `sync --events`)".to_owned();
        self.differ(name, DiffersBecause::NoLines, reason);
        Ok(())
    }

    /// Completes a log, which was read from a file with the name `read_as`.
    fn log(
        &mut self,
        reader: &ContentReader<'_>,
        mut file: LineFile,
        name: &'static str,
        read_as: &str,
        is_damaged: bool,
    ) -> Result<(), RestoreProblem> {
        let skipped = reader.skipped(read_as);
        if skipped > 0 {
            let (lines, were) = (counted(skipped as u64, "line"), if skipped == 1 { "was" } else { "were" });
            let reason = format!("{lines} {were} skipped when it was synced, and not stored");
            self.differ(name, DiffersBecause::SkippedLines, reason);
        }
        let size = reader.size(read_as);
        if file.count == 0 && size != Some(0) {
            return Ok(());
        }
        // If the log without the final newline has the size of the synced file, that file had no final newline.
        if file.count > 0 && size != Some(file.size) {
            file.write(b"\n")?;
        }
        let written = file.end()?;
        self.add(reader, name, read_as, written, is_damaged || skipped > 0);
        Ok(())
    }

    /// Adds a complete file of `size` bytes. Reports if the synced file had another size, unless that is `explained`.
    fn add(
        &mut self,
        reader: &ContentReader<'_>,
        name: &'static str,
        read_as: &str,
        size: u64,
        explained: bool,
    ) {
        self.files.push(name);
        self.bytes += size;
        let synced = reader.state(read_as);
        if let Some(damage) = synced.and_then(|synced| synced.damage.as_ref()) {
            let rows = counted(damage.missing, "line");
            let reason = format!("has {rows} more than the synced file, which {}", damage.reason);
            self.differ(name, DiffersBecause::KeptRows, reason);
        } else if let Some(before) = synced.map(|synced| synced.stamp.size).filter(|before| *before != size)
            && !explained
        {
            let reason = format!("has {size} bytes; the synced file had {before}");
            self.differ(name, DiffersBecause::OtherSize, reason);
        }
    }

    fn differ(&mut self, file: &str, because: DiffersBecause, reason: String) {
        let Session { user_id, project_slug, session_id, .. } = self.session.clone();
        let file = file.to_owned();
        self.differing.push(DifferingFile {
            user_id,
            project: project_slug,
            session_id,
            file,
            because,
            reason,
        });
    }
}

/// The lines that can't be read as rows, with the file and the number of rows before each.
#[derive(Debug, Default)]
struct Unreadable(Vec<(String, u32, RawJson)>);

impl Unreadable {
    async fn read(storage: &SessionStorage, stored: &StoredSession) -> Result<Self> {
        if stored.skipped.iter().all(|line| line.kept.is_none()) {
            return Ok(Self::default());
        }
        let texts = unreadable_lines(storage, &stored.session.key()).await?;
        let text = |line: &SkippedLine| {
            let kept = line.kept?;
            let kind = if EVENTS.contains(&line.file.as_str()) { LineKind::Event } else { LineKind::Message };
            let of_line =
                texts.iter().filter(|text| text.kind == kind && u64::from(text.sequence) == line.line);
            // Secrets may have been masked since.
            let exact = |text: &&SupersededLine| Digest::of(text.raw.as_bytes()) == kept.digest;
            let found =
                of_line.clone().find(exact).or_else(|| of_line.max_by_key(|text| text.superseded_at))?;
            Some((line.file.clone(), kept.row, found.raw.clone()))
        };
        Ok(Self(stored.skipped.iter().filter_map(text).collect()))
    }

    fn of(&self, file: &str) -> LinesBetween<'_> {
        LinesBetween(self.0.iter().filter(|(of, ..)| of == file).map(|(_, row, raw)| (*row, raw)).collect())
    }
}

async fn unreadable_lines(storage: &SessionStorage, key: &SessionKey) -> Result<Vec<SupersededLine>> {
    let query = SupersededQuery::new(Scope::User(key.user_id.clone()))
        .with_filter(SessionFilter::default().with_session(key.session_id.clone()));
    let (mut lines, mut found) = (storage.superseded().superseded_lines(query), Vec::new());
    loop {
        match lines.next().await {
            Ok(Some(lines)) => {
                found.extend(lines.into_iter().filter(|line| line.reason == SupersededReason::Unreadable));
            }
            Ok(None) => return Ok(found),
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
    }
}

/// The lines of a file that stand between its rows, in order.
struct LinesBetween<'a>(VecDeque<(u32, &'a RawJson)>);

impl LinesBetween<'_> {
    /// Writes those that stand before the row `sequence`.
    fn write_before(&mut self, sequence: u32, file: &mut LineFile) -> io::Result<()> {
        while let Some((_, raw)) = self.0.front().filter(|(row, _)| *row <= sequence) {
            file.line(raw.as_bytes())?;
            self.0.pop_front();
        }
        Ok(())
    }
}

/// The source of a session's files.
struct ContentReader<'a> {
    storage: &'a SessionStorage,
    stored: &'a StoredSession,
    /// The state of its files when they were synced, if known.
    state: Option<SyncState>,
    unreadable: Unreadable,
}

impl ContentReader<'_> {
    fn session(&self) -> (Scope, &SessionId) {
        (Scope::User(self.stored.session.user_id.clone()), &self.stored.session.session_id)
    }

    fn state(&self, name: &str) -> Option<&FileState> {
        self.state.as_ref()?.file(name)
    }

    /// The size of a file when it was synced.
    fn size(&self, name: &str) -> Option<u64> {
        Some(self.state(name)?.stamp.size)
    }

    /// The number of its lines that were skipped and are not stored.
    fn skipped(&self, name: &str) -> usize {
        let of_file = self.stored.skipped.iter().filter(|line| line.file == name);
        of_file.count() - self.unreadable.of(name).0.len()
    }
}

/// A file that is created when something is written to it, and that only its owner can read.
#[derive(Debug)]
struct LineFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// Number of lines.
    count: u64,
    size: u64,
}

impl LineFile {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, count: 0, size: 0 }
    }

    /// Writes a line, after the end of the previous one.
    fn line(&mut self, text: &[u8]) -> io::Result<()> {
        if self.count > 0 {
            self.write(b"\n")?;
        }
        self.count += 1;
        self.write(text)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        self.open()?.write_all(bytes)
    }

    fn open(&mut self) -> io::Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                self.path.parent().map_or(Ok(()), create_folders)?;
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                BufWriter::new(options.open(&self.path)?)
            }
        };
        Ok(self.file.insert(file))
    }

    /// Completes the file, and returns its size.
    fn end(mut self) -> io::Result<u64> {
        self.open()?.flush()?;
        let file = self.file.take().map(BufWriter::into_inner).transpose();
        if let Some(file) = file.map_err(|error| error.into_error())? {
            file.sync_all()?;
        }
        Ok(self.size)
    }

    /// Removes the file.
    fn discard(mut self) -> io::Result<()> {
        match self.file.take() {
            Some(_) => fs::remove_file(&self.path),
            None => Ok(()),
        }
    }
}
