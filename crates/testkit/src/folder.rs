//! Session folders on disk, as Amplifier writes them.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use amplifier_session_core::model::RawJson;

/// A temporary folder that replaces `~/.amplifier`. Dropping it removes the folder.
#[derive(Debug)]
pub struct AmplifierHome {
    folder: tempfile::TempDir,
}

impl AmplifierHome {
    /// Creates an empty folder.
    pub fn new() -> io::Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// A copy of the root `name` in the folder `fixtures`: files as programs write them, with invented content.
    ///
    /// | name | content |
    /// | --- | --- |
    /// | `agent` | a session of Amplifier's agent |
    /// | `web-fork` | two sessions of the web host, of which one is a fork of the other |
    /// | `two-logs` | a session whose `events.jsonl` stops, while its capture has the same events and goes on |
    /// | `compacted` | a session whose `events.jsonl` has lost its beginning; `events-before-compaction.jsonl` has it |
    pub fn of_fixture(name: &str) -> io::Result<Self> {
        let home = Self::new()?;
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name), home.path())?;
        Ok(home)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Creates the empty folder `projects/<project>/sessions/<session>`.
    pub fn session(&self, project: &str, session: &str) -> io::Result<SessionFolder> {
        SessionFolder::create(self.path().join("projects").join(project).join("sessions").join(session))
    }
}

/// The folder of one session. Methods that write can be chained, and fail if the file cannot be written.
///
/// ```
/// use amplifier_session_testkit::{AmplifierHome, lines};
///
/// let home = AmplifierHome::new()?;
/// home.session("shop", "s1")?
///     .metadata(r#"{"name":"Fix the basket"}"#)?
///     .transcript([lines::user("The basket is empty after login."), lines::assistant("I'll look.")])?
///     .events([lines::logger_event("session:start")])?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SessionFolder {
    path: PathBuf,
}

impl SessionFolder {
    /// Creates the folder and its parents.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `metadata.json`.
    pub fn metadata(&self, json: &str) -> io::Result<&Self> {
        self.file("metadata.json", json)
    }

    /// Replaces `transcript.jsonl`.
    pub fn transcript(&self, lines: impl IntoIterator<Item = impl Into<RawJson>>) -> io::Result<&Self> {
        self.file("transcript.jsonl", joined(lines))
    }

    /// Appends to `transcript.jsonl`.
    pub fn append_transcript(
        &self,
        lines: impl IntoIterator<Item = impl Into<RawJson>>,
    ) -> io::Result<&Self> {
        self.append("transcript.jsonl", joined(lines))
    }

    /// Replaces `events.jsonl`.
    pub fn events(&self, lines: impl IntoIterator<Item = impl Into<RawJson>>) -> io::Result<&Self> {
        self.file("events.jsonl", joined(lines))
    }

    /// Appends to `events.jsonl`.
    pub fn append_events(&self, lines: impl IntoIterator<Item = impl Into<RawJson>>) -> io::Result<&Self> {
        self.append("events.jsonl", joined(lines))
    }

    /// Replaces a file; `name` is its path within the folder.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<&Self> {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, content)?;
        Ok(self)
    }

    /// Appends to a file without adding a line ending.
    pub fn append(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<&Self> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.path.join(name))?;
        file.write_all(content.as_ref())?;
        Ok(self)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<&Self> {
        fs::remove_file(self.path.join(name))?;
        Ok(self)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map(drop)?;
        }
    }
    Ok(())
}

/// The lines, each with a line ending.
fn joined(lines: impl IntoIterator<Item = impl Into<RawJson>>) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        text.extend(line.into().into_bytes());
        text.push(b'\n');
    }
    text
}
