//! The folders and stores that targets work in.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use amplifier_session_core::{
    Result, Scope, SessionStorage,
    model::{HostId, RawJson, SessionId, UserId},
    search::{SearchMode, SearchOptions, SearchResult, SessionFilter},
    storage::JsonLinesWriter,
};
use amplifier_session_storage::backend::prelude::StorageBackend;
use amplifier_session_sync::{NoProgress, SyncOptions, SyncReport, sync};
use amplifier_session_testkit::{AmplifierHome, FakeEmbedding, MemoryBackend, TestClock};
use tokio::runtime::{Builder, Runtime};

/// Later than the times of all files, so that a sync trusts them.
const NOW: &str = "2100-01-01T00:00:00Z";
/// Seeds are cut to about this: most changes to a long one change nothing that is new.
const SEED_BYTES: usize = 4 << 10;

/// Waits for a future.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());
    RUNTIME.block_on(future)
}

pub(crate) fn ana() -> UserId {
    UserId::new("ana").unwrap()
}

/// A storage on `backend` that makes vectors, of short chunks so that there are some.
pub(crate) fn storage_on(backend: Arc<dyn StorageBackend>) -> SessionStorage {
    let embedding = FakeEmbedding::new().with_dimensions(16).with_chunks(48, 32);
    SessionStorage::new(backend)
        .with_clock(TestClock::fixed(NOW).function())
        .with_embedding(Some(Arc::new(embedding)))
}

/// An empty store in memory.
pub(crate) fn storage() -> SessionStorage {
    storage_on(Arc::new(MemoryBackend::new()))
}

/// Syncs the session `s` with these files, twice, and returns the report of the first time. The second time must find
/// nothing to do.
pub(crate) fn synced(storage: &SessionStorage, files: &[(&str, &[u8])]) -> SyncReport {
    let home = AmplifierHome::new().unwrap();
    let folder = home.session("p", "s").unwrap();
    for (name, content) in files {
        folder.file(name, content).unwrap();
    }
    let options = SyncOptions::new(home.path(), ana(), HostId::new("host").unwrap());
    let once = || wait(sync(storage, &options, &NoProgress)).unwrap();
    let report = once();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert_eq!(report.vectors_pending_reason, None);
    let again = once();
    let changes =
        (again.messages.written, again.messages.removed, again.events.written, again.events.removed);
    assert_eq!(changes, (0, 0, 0, 0), "a second sync finds something to do");
    report
}

pub(crate) fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// The lines of a log, as a sync reads them: without endings, byte order mark and blank lines.
pub(crate) fn lines_of(log: &[u8]) -> Vec<&[u8]> {
    let log = log.strip_prefix(b"\xef\xbb\xbf").unwrap_or(log);
    let lines = log.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace)).collect()
}

/// Every stored line is a line of the log, byte for byte and in order; the others were reported, but for a last one
/// that is still being written. An end without a newline is reported even if it is blank.
pub(crate) fn assert_kept(log: &[u8], stored: &[RawJson], skipped: u64) {
    let lines = lines_of(log);
    let mut rest = lines.iter();
    for line in stored {
        assert!(rest.any(|other| *other == line.as_bytes()), "{line:?} is not in the file at its place");
    }
    let counted = stored.len() as u64 + skipped;
    let may_lack = u64::from(!log.ends_with(b"\n"));
    let end = log.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let most = lines.len() as u64 + u64::from(!log.ends_with(b"\n") && lines_of(end).is_empty());
    let expected = (lines.len() as u64).saturating_sub(may_lack)..=most;
    assert!(expected.contains(&counted), "{} stored, {skipped} skipped, {} lines", stored.len(), lines.len());
}

/// The sessions of a store as an archive.
pub(crate) fn exported(storage: &SessionStorage) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive);
    wait(storage.archive().export_sessions(&Scope::Everyone, SessionFilter::default(), &mut writer))?;
    Ok(archive)
}

/// The results of a search in everything.
pub(crate) fn found(storage: &SessionStorage, query: &str, mode: SearchMode) -> Result<Vec<SearchResult>> {
    let options = SearchOptions::new(query).with_mode(mode).with_limit(50);
    Ok(wait(storage.search().search_transcripts(&Scope::Everyone, &options))?.results)
}

/// The files of this name among the sample sessions of the command line, cut into pieces of whole lines.
pub(crate) fn samples(name: &str) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for path in sample_files(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/samples")) {
        if path.file_name().is_some_and(|found| found == name) {
            let content = fs::read(path).unwrap();
            let mut piece = Vec::new();
            for line in content.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() < SEED_BYTES)
            {
                piece.extend_from_slice(line);
                if piece.len() > SEED_BYTES / 2 {
                    pieces.push(std::mem::take(&mut piece));
                }
            }
            pieces.push(piece);
        }
    }
    // Enough of each kind, and quick to replay.
    let step = pieces.len().div_ceil(24).max(1);
    pieces.into_iter().filter(|piece| !piece.is_empty()).step_by(step).collect()
}

fn sample_files(folder: PathBuf) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let files = |path: PathBuf| if path.is_dir() { sample_files(path) } else { vec![path] };
    entries.into_iter().flat_map(files).collect()
}

/// Lines with awkward members, in one log.
pub(crate) fn joined(lines: Vec<(&'static str, RawJson)>) -> Vec<u8> {
    lines.into_iter().flat_map(|(_, line)| [line.into_bytes(), b"\n".to_vec()].concat()).collect()
}
