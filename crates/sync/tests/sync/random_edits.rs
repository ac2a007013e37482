//! Whatever happens to the folders of a session, nothing that was stored is lost, and unchanged folders change nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    backend::SupersededQuery,
    model::{HostId, LineKind},
};
use amplifier_session_sync::{NoProgress, SyncOptions, sync};
use amplifier_session_testkit::rounds;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use crate::fixture::{Fixture, scope, user};

const TRANSCRIPT: &str = "transcript.jsonl";
const BACKUP: &str = "transcript.jsonl.backup";
const ROOT_LOG: &str = "events.jsonl";
const CAPTURE: &str = "context-intelligence/events.jsonl";

/// Something that happens to the folders of a session. Numbers choose a place.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// A turn is appended, with its events.
    Append,
    /// Only events are appended.
    AppendEvents,
    /// The transcript ends before a turn, and the logs with it.
    Rewind(u8),
    /// The transcript ends anywhere.
    Cut(u8),
    /// A line in the middle changes.
    Change(u8),
    /// The files are put aside.
    BackUp,
    /// The files that were put aside return.
    Restore,
    /// The folder is copied to the other machine, over what is there.
    CopyToOther,
    /// The folder of the other machine goes on.
    AppendToOther,
    /// The other machine is synced.
    SyncOther,
    /// The modification time changes.
    Touch,
    /// Events in the middle of a log disappear.
    Compact(u8),
    /// Events are written to the other log from now on, or to both.
    SwitchLogs,
    /// A log is removed.
    RemoveLog(bool),
    /// The session is copied under another id.
    Fork(u8),
    /// A file is filled with NULs.
    Nul(bool),
    /// Half a line is appended.
    Half,
    /// The file is emptied.
    Empty(bool),
    /// The transcript disappears; its backup stays.
    RemoveTranscript,
}

fn edits() -> impl Strategy<Value = Edit> {
    let at = any::<u8>;
    prop_oneof![
        6 => Just(Edit::Append),
        3 => Just(Edit::AppendEvents),
        2 => at().prop_map(Edit::Rewind),
        2 => at().prop_map(Edit::Cut),
        1 => at().prop_map(Edit::Change),
        1 => Just(Edit::BackUp),
        2 => Just(Edit::Restore),
        2 => Just(Edit::CopyToOther),
        2 => Just(Edit::AppendToOther),
        1 => Just(Edit::SyncOther),
        1 => Just(Edit::Touch),
        2 => at().prop_map(Edit::Compact),
        2 => Just(Edit::SwitchLogs),
        1 => any::<bool>().prop_map(Edit::RemoveLog),
        1 => at().prop_map(Edit::Fork),
        1 => any::<bool>().prop_map(Edit::Nul),
        1 => Just(Edit::Half),
        1 => any::<bool>().prop_map(Edit::Empty),
        1 => Just(Edit::RemoveTranscript),
    ]
}

/// The folders on two machines.
struct World {
    fixture: Fixture,
    other: tempfile::TempDir,
    aside: tempfile::TempDir,
    /// The number of turns and events so far.
    turn: u32,
    event: u32,
    /// Which logs are written.
    logs: usize,
    /// The ids of all lines that were ever stored.
    seen: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let [other, aside] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let fixture = Fixture::with_atomic_writes();
        Self { fixture, other, aside, turn: 0, event: 0, logs: 0, seen: BTreeSet::new() }
    }

    fn folder(&self) -> PathBuf {
        self.fixture.folder().path().to_owned()
    }

    fn on_other(&self) -> PathBuf {
        self.other.path().join("projects/p/sessions/s")
    }

    fn apply(&mut self, edit: Edit) -> io::Result<()> {
        let (folder, other) = (self.folder(), self.on_other());
        let both = [ROOT_LOG, CAPTURE];
        match edit {
            Edit::Append => self.append_turn(&folder),
            Edit::AppendEvents => self.append_events(&folder, 3),
            Edit::Rewind(at) => {
                keep(&folder.join(TRANSCRIPT), |lines| 2 * (usize::from(at) % (lines / 2 + 1)))?;
                both.iter().try_for_each(|log| keep(&folder.join(log), |lines| usize::from(at) % (lines + 1)))
            }
            Edit::Cut(at) => keep(&folder.join(TRANSCRIPT), |lines| usize::from(at) % (lines + 1)),
            Edit::Change(at) => {
                self.turn += 1;
                let line = message("user", &format!("m{}", self.turn));
                change(&folder.join(TRANSCRIPT), at, |lines, at| lines[at] = line)
            }
            Edit::BackUp => copy(&folder, self.aside.path()),
            Edit::Restore => copy(self.aside.path(), &folder),
            Edit::CopyToOther => {
                let _ = fs::remove_dir_all(&other);
                copy(&folder, &other)
            }
            Edit::AppendToOther if other.exists() => self.append_turn(&other),
            Edit::AppendToOther | Edit::SyncOther => Ok(()),
            Edit::Touch => match fs::read(folder.join(TRANSCRIPT)) {
                Ok(content) => fs::write(folder.join(TRANSCRIPT), content),
                Err(_) => Ok(()),
            },
            Edit::Compact(at) => both.iter().try_for_each(|log| {
                change(&folder.join(log), at, |lines, at| drop(lines.drain(at..(at + 2).min(lines.len()))))
            }),
            Edit::SwitchLogs => {
                self.logs = (self.logs + 1) % 3;
                Ok(())
            }
            Edit::RemoveLog(first) => remove(&folder.join(both[usize::from(first)])),
            Edit::Fork(at) => {
                let fork = folder.with_file_name(format!("fork{at}"));
                copy(&folder, &fork)?;
                self.append_turn(&fork)
            }
            Edit::Nul(log) => {
                let path = folder.join(if log { ROOT_LOG } else { TRANSCRIPT });
                let size = fs::metadata(&path).map_or(0, |file| file.len());
                if size > 0 { fs::write(path, vec![0; size as usize]) } else { Ok(()) }
            }
            Edit::Half => append(&folder.join(TRANSCRIPT), r#"{"role":"user","con"#),
            Edit::Empty(log) => {
                let path = folder.join(if log { ROOT_LOG } else { TRANSCRIPT });
                if path.exists() { fs::write(path, "") } else { Ok(()) }
            }
            Edit::RemoveTranscript => remove(&folder.join(TRANSCRIPT)),
        }
    }

    fn append_turn(&mut self, folder: &Path) -> io::Result<()> {
        let transcript = folder.join(TRANSCRIPT);
        if transcript.exists() {
            fs::copy(&transcript, folder.join(BACKUP))?;
        }
        self.turn += 1;
        let turn = self.turn;
        let lines = [message("user", &format!("m{turn}")), message("assistant", &format!("m{turn}a"))];
        append(&transcript, &(lines.join("\n") + "\n"))?;
        self.append_events(folder, 2)
    }

    fn append_events(&mut self, folder: &Path, count: u32) -> io::Result<()> {
        for _ in 0..count {
            self.event += 1;
            let (number, time) = (self.event, format!("{:02}:{:02}", self.event / 60 % 60, self.event % 60));
            if self.logs != 1 {
                let event =
                    format!(r#"{{"ts":"2026-09-01T08:{time}Z","event":"e","data":{{"id":"e{number}"}}}}"#);
                append(&folder.join(ROOT_LOG), &(event + "\n"))?;
            }
            if self.logs != 0 {
                let event = format!(
                    r#"{{"event":"e","timestamp":"2026-09-01T08:{time}.002Z","data":{{"id":"e{number}"}}}}"#
                );
                append(&folder.join(CAPTURE), &(event + "\n"))?;
            }
        }
        Ok(())
    }

    /// Syncs, checks that everything is reachable, and that another sync changes nothing.
    async fn check(&mut self, on_other: bool) -> Result<(), String> {
        let (root, host) =
            if on_other { (self.other.path(), "b") } else { (self.fixture.home.path(), "host") };
        let options = SyncOptions::new(root, user(), HostId::new(host).unwrap());
        if !root.join("projects").exists() {
            return Ok(());
        }
        let storage = &self.fixture.storage;
        sync(storage, &options, &NoProgress).await.map_err(|error| error.to_string())?;
        let stored = self.stored().await;
        let lost: Vec<&String> = self.seen.iter().filter(|id| !stored.contains_key(*id)).collect();
        if !lost.is_empty() {
            return Err(format!("lost {lost:?}, stored {stored:?}"));
        }
        if let Some(twice) = stored.iter().find(|(_, count)| **count > 1) {
            return Err(format!("{twice:?} is stored twice"));
        }
        self.seen.extend(stored.into_keys());
        let before = self.versions().await;
        let again = sync(storage, &options, &NoProgress).await.map_err(|error| error.to_string())?;
        let after = self.versions().await;
        if before != after || again.messages.written + again.events.written > 0 {
            return Err(format!("an unchanged folder changed the store: {again:?}"));
        }
        Ok(())
    }

    /// The lines in the store, with the number of rows that have each. Superseded ones count as none.
    async fn stored(&self) -> BTreeMap<String, usize> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for session in self.sessions().await {
            for message in self.fixture.messages(&session).await {
                *found.entry(id(&session, LineKind::Message, &message.raw.to_text())).or_default() += 1;
            }
            for event in self.fixture.events(&session).await {
                let raw = event.raw.unwrap();
                *found.entry(id(&session, LineKind::Event, &raw.to_text())).or_default() += 1;
            }
        }
        let mut superseded =
            self.fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
        while let Some(lines) = superseded.next().await.unwrap() {
            for line in lines {
                found.entry(id(line.session_id.as_str(), line.kind, &line.raw.to_text())).or_default();
            }
        }
        found
    }

    async fn sessions(&self) -> Vec<String> {
        let names = self.fixture.storage.backend().session_names(&scope()).await.unwrap();
        names.into_iter().map(|name| name.session_id.to_string()).collect()
    }

    async fn versions(&self) -> Vec<(String, Option<String>)> {
        let mut versions = Vec::new();
        for session in self.sessions().await {
            let stored = self.fixture.stored(&session).await.map(|stored| stored.version.0);
            versions.push((session, stored));
        }
        versions
    }
}

/// What a line says, in whichever log it is.
fn id(session: &str, kind: LineKind, raw: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
    let id = json["content"].as_str().or(json["data"]["id"].as_str()).unwrap_or(raw);
    format!("{session} {kind} {id}")
}

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":"{role}","content":"{content}"}}"#)
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::create_dir_all(path.parent().unwrap())?;
    fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

/// Changes the lines of a file, if there are any.
fn change(path: &Path, at: u8, change: impl FnOnce(&mut Vec<String>, usize)) -> io::Result<()> {
    let content = fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let at = usize::from(at) % lines.len();
    change(&mut lines, at);
    fs::write(path, lines.into_iter().map(|line| line + "\n").collect::<String>())
}

/// Keeps the first lines of a file.
fn keep(path: &Path, count: impl FnOnce(usize) -> usize) -> io::Result<()> {
    change(path, 0, |lines, _| lines.truncate(count(lines.len())))
}

fn remove(path: &Path) -> io::Result<()> {
    if path.exists() { fs::remove_file(path) } else { Ok(()) }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() { copy(&from, &to)? } else { fs::copy(&from, &to).map(drop)? }
    }
    Ok(())
}

/// A history of edits, each followed by a sync.
fn history(edits: &[Edit]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut world = World::new();
    for (number, edit) in edits.iter().enumerate() {
        world.apply(*edit).unwrap();
        let on_other = matches!(edit, Edit::SyncOther | Edit::AppendToOther);
        runtime
            .block_on(world.check(on_other))
            .map_err(|error| TestCaseError::fail(format!("after edit {number}, {edit:?}: {error}")))?;
    }
    Ok(())
}

#[test]
fn nothing_that_was_stored_is_lost_by_any_edits_of_folders() {
    // Each history has 25 edits.
    let config = Config {
        cases: rounds(40, 2_000),
        failure_persistence: None,
        max_shrink_iters: 3_000,
        ..Config::default()
    };
    TestRunner::new(config).run(&vec(edits(), 25), |edits| history(&edits)).unwrap();
}
