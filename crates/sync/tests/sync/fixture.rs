//! A root with session folders, and a store to sync them into.

use std::{
    fs::File,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use amplifier_session_core::{
    Result, Scope, SessionStorage, StorageSettings,
    backend::StoredSession,
    embedding::EmbeddingProvider,
    model::{HostId, Message, SessionId, SessionKey, Timestamp, UserId},
    storage::{EventDetail, EventLine, EventLines},
};
use amplifier_session_sync::{
    NoProgress, Progress, SessionFolder, SessionOutcome, SyncOptions, SyncReport, sync,
};
use amplifier_session_testkit::{
    AmplifierHome, FlakyBackend, MemoryBackend, SessionFolder as Folder, TestClock,
};

/// The time of the storage's clock: later than all files, so that their stamps are trusted.
pub(crate) const NOW: &str = "2100-01-01T00:00:00Z";

pub(crate) struct Fixture {
    pub(crate) home: AmplifierHome,
    pub(crate) backend: Arc<FlakyBackend>,
    pub(crate) clock: TestClock,
    pub(crate) storage: SessionStorage,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::of(FlakyBackend::new(Arc::new(MemoryBackend::new())))
    }

    /// With a store like SQLite, whose writes are atomic.
    pub(crate) fn with_atomic_writes() -> Self {
        Self::of(FlakyBackend::new(Arc::new(MemoryBackend::new())).claiming_atomic_writes())
    }

    /// With a store like SQLite, which has an index in this folder.
    pub(crate) fn with_index(folder: &Path) -> Self {
        Self::of(FlakyBackend::new(Arc::new(MemoryBackend::new())).claiming_index(folder))
    }

    /// With the sessions of a fixture of the testkit.
    pub(crate) fn with_files(name: &str) -> Self {
        Self { home: AmplifierHome::of_fixture(name).unwrap(), ..Self::new() }
    }

    fn of(backend: FlakyBackend) -> Self {
        let backend = Arc::new(backend);
        let clock = TestClock::fixed(NOW);
        let storage = SessionStorage::new(backend.clone()).with_clock(clock.function());
        Self { home: AmplifierHome::new().unwrap(), backend, clock, storage }
    }

    pub(crate) fn with_embedding(mut self, provider: Arc<dyn EmbeddingProvider>) -> Self {
        self.storage = self.storage.with_embedding(Some(provider));
        self
    }

    /// Sets how much of event logs is stored from now on.
    pub(crate) fn keep_events(&mut self, detail: EventDetail) {
        self.storage = self.storage.clone().with_settings(StorageSettings::default().with_events(detail));
    }

    /// The folder of session `s` in project `p`.
    pub(crate) fn folder(&self) -> Folder {
        self.session("p", "s")
    }

    pub(crate) fn session(&self, project: &str, session: &str) -> Folder {
        self.home.session(project, session).unwrap()
    }

    pub(crate) fn options(&self) -> SyncOptions {
        SyncOptions::new(self.home.path(), user(), HostId::new("host").unwrap())
    }

    pub(crate) async fn sync(&self) -> SyncReport {
        self.try_sync().await.unwrap()
    }

    pub(crate) async fn try_sync(&self) -> Result<SyncReport> {
        sync(&self.storage, &self.options(), &NoProgress).await
    }

    pub(crate) async fn sync_with(&self, options: SyncOptions) -> SyncReport {
        sync(&self.storage, &options, &NoProgress).await.unwrap()
    }

    /// Syncs, and returns the number of bytes read.
    pub(crate) async fn sync_and_count(&self) -> (SyncReport, u64) {
        let seen = Seen::default();
        let report = sync(&self.storage, &self.options(), &seen).await.unwrap();
        let read = *seen.bytes.lock().unwrap();
        (report, read)
    }

    pub(crate) async fn stored(&self, session: &str) -> Option<StoredSession> {
        let key = SessionKey::new(user(), SessionId::new(session).unwrap());
        self.storage.backend().get_session(&key).await.unwrap()
    }

    pub(crate) async fn messages(&self, session: &str) -> Vec<Message> {
        let id = SessionId::new(session).unwrap();
        self.storage.reading().get_transcript_lines(&scope(), &id, None, usize::MAX).await.unwrap()
    }

    /// The lines of the stored transcript of session `s`.
    pub(crate) async fn transcript(&self) -> Vec<String> {
        self.messages("s").await.iter().map(|message| message.raw.to_text().into_owned()).collect()
    }

    /// The texts of the stored transcript of session `s`.
    pub(crate) async fn texts(&self) -> Vec<String> {
        let text = |message: &Message| message.content().as_str().unwrap_or_default().to_owned();
        self.messages("s").await.iter().map(text).collect()
    }

    pub(crate) async fn events(&self, session: &str) -> Vec<EventLine> {
        let id = SessionId::new(session).unwrap();
        let all = EventLines::default().with_limit(usize::MAX).with_payload(true);
        self.storage.reading().get_event_lines(&scope(), &id, all).await.unwrap()
    }

    /// The types of the stored events of session `s`.
    pub(crate) async fn event_types(&self) -> Vec<String> {
        self.events("s").await.into_iter().map(|line| line.event.event_type).collect()
    }

    /// File, line and reason of the invalid lines of session `s` that the store records.
    pub(crate) async fn noted(&self) -> Vec<(String, u64)> {
        let stored = self.stored("s").await.unwrap();
        stored.skipped.into_iter().map(|skipped| (skipped.file, skipped.line)).collect()
    }
}

pub(crate) fn user() -> UserId {
    UserId::new("ana").unwrap()
}

pub(crate) fn scope() -> Scope {
    Scope::from(user())
}

/// Sets the modification time of a file.
pub(crate) fn set_modified(path: &Path, time: &str) {
    let micros = Timestamp::parse(time).unwrap().as_micros();
    let time = UNIX_EPOCH + Duration::from_micros(micros.try_into().unwrap());
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// File and line of the invalid lines in a report.
pub(crate) fn skipped(report: &SyncReport) -> Vec<(Option<&str>, Option<u64>)> {
    report.skipped.iter().map(|skipped| (skipped.file.as_deref(), skipped.line)).collect()
}

/// Records the reported progress.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) begun: Mutex<Option<(u64, u64)>>,
    pub(crate) bytes: Mutex<u64>,
    pub(crate) sessions: Mutex<Vec<(String, SessionOutcome)>>,
}

impl Progress for Seen {
    fn begin(&self, sessions: u64, bytes: u64) {
        *self.begun.lock().unwrap() = Some((sessions, bytes));
    }

    fn advance(&self, bytes: u64) {
        *self.bytes.lock().unwrap() += bytes;
    }

    fn session(&self, folder: &SessionFolder, outcome: SessionOutcome) {
        self.sessions.lock().unwrap().push((folder.session.to_string(), outcome));
    }
}
