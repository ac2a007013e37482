//! The directory of the text index for tantivy.
//!
//! tantivy maps files into memory and trusts their content, and only `meta.json` lists the files of a commit. So
//! `meta.json` is stored in the part's manifest, which is replaced atomically, together with the length, times and
//! checksum of every file that it lists. The opened files always belong to one commit, and each file is checked before
//! tantivy reads it. (Checksums are compared only if the length or the times have changed: the index of a million
//! messages has half a gigabyte.)
//!
//! tantivy's own locks and its list of files to remove are not used: there is only one writer, under the lock of the
//! index, and files that no manifest lists are removed after a fold.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use amplifier_session_core::KnownPart;
use serde::{Deserialize, Serialize};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
    error::{DeleteError, LockError, OpenReadError, OpenWriteError},
};

use super::TextPart;
use crate::{
    error::PartError,
    files::{FileStamp, private_file, sync_folder},
    part::publish,
};

/// tantivy's file with the content of a commit.
const META: &str = "meta.json";
/// tantivy's file with the list of its files.
const MANAGED: &str = ".managed.json";

/// The manifest of the text index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TextManifest {
    /// The `meta.json` of the commit.
    meta: String,
    /// The files of the commit.
    files: BTreeMap<String, WrittenFile>,
}

/// A file when it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenFile {
    checksum: u32,
    stamp: FileStamp,
}

impl TextManifest {
    /// Whether a file with this name belongs to the commit.
    pub(super) fn names(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// The payload of the commit.
    pub(super) fn payload(&self) -> Option<String> {
        CommitMeta::of(&self.meta).payload
    }

    /// Whether files contain documents that the commit has deleted.
    pub(super) fn has_deleted_documents(&self) -> bool {
        CommitMeta::of(&self.meta).segments.iter().any(|segment| segment.deletes.is_some())
    }

    /// Checks every file: its length and times, and its checksum if the times have changed.
    pub(super) fn verify(&mut self, folder: &Path) -> Result<(), PartError> {
        for (name, file) in &mut self.files {
            let path = folder.join(name);
            let stamp = FileStamp::of(&path).map_err(|error| PartError::reading(&error, &path))?;
            if stamp == file.stamp {
                continue;
            }
            if stamp.length != file.stamp.length {
                return Err(PartError::damaged(&path, "its length is wrong"));
            }
            if checksum(&path).map_err(|error| PartError::reading(&error, &path))? != file.checksum {
                return Err(PartError::damaged(&path, "its checksum does not match"));
            }
            file.stamp = stamp;
        }
        Ok(())
    }

    /// Compares every file with its checksum, even if its times have not changed.
    pub(super) fn check_all(&self, folder: &Path) -> Result<(), PartError> {
        for (name, file) in &self.files {
            let path = folder.join(name);
            if checksum(&path).map_err(|error| PartError::reading(&error, &path))? != file.checksum {
                return Err(PartError::damaged(&path, "its checksum does not match"));
            }
        }
        Ok(())
    }
}

fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    let mut checksum = crc32fast::Hasher::new();
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(checksum.finalize()),
            length => checksum.update(buffer.part(..length)),
        }
    }
}

/// The folder of the text index in the state of one manifest, or of later ones if it is written.
#[derive(Debug, Clone)]
pub(super) struct TextDirectory {
    folder: PathBuf,
    /// The path for new manifests; `None` for a reader.
    manifest: Option<PathBuf>,
    mapped: MmapDirectory,
    state: Arc<Mutex<TextManifest>>,
}

impl TextDirectory {
    /// A directory that reads the files of a manifest.
    pub(super) fn reader(folder: &Path, manifest: TextManifest) -> tantivy::Result<Self> {
        let mapped = MmapDirectory::open(folder)?;
        Ok(Self { folder: folder.to_owned(), manifest: None, mapped, state: Arc::new(Mutex::new(manifest)) })
    }

    /// A directory that continues from a manifest and writes new ones to `path`.
    pub(super) fn writer(folder: &Path, manifest: TextManifest, path: &Path) -> tantivy::Result<Self> {
        Ok(Self { manifest: Some(path.to_owned()), ..Self::reader(folder, manifest)? })
    }

    /// The last commit and its files.
    pub(super) fn committed(&self) -> TextManifest {
        let state = self.state();
        let meta = CommitMeta::of(&state.meta);
        let files = state.files.iter().filter(|(name, _)| meta.names(name));
        TextManifest {
            meta: state.meta.clone(),
            files: files.map(|(name, file)| (name.clone(), file.clone())).collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, TextManifest> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a new `meta.json`, and publishes it if it belongs to a commit.
    fn commit(&self, meta: &[u8]) -> io::Result<()> {
        let meta = String::from_utf8(meta.to_vec()).map_err(io::Error::other)?;
        let has_payload = CommitMeta::of(&meta).payload.is_some();
        self.state().meta = meta;
        match &self.manifest {
            // A new index has no payload before its first commit, and its revision is not known without one.
            Some(path) if has_payload => publish::<TextPart>(path, &self.committed()),
            _ => Ok(()),
        }
    }
}

/// The parts of `meta.json` that determine its files.
#[derive(Default, Deserialize)]
struct CommitMeta {
    segments: Vec<CommitSegment>,
    payload: Option<String>,
}

#[derive(Deserialize)]
struct CommitSegment {
    segment_id: String,
    deletes: Option<CommitDeletes>,
}

#[derive(Deserialize)]
struct CommitDeletes {
    opstamp: u64,
}

impl CommitMeta {
    /// Parses a `meta.json`; empty if it is invalid.
    fn of(meta: &str) -> Self {
        serde_json::from_str(meta).unwrap_or_default()
    }

    /// Whether the commit needs a file: `<segment>.<component>`, or `<segment>.<opstamp>.del` for the deletions of this
    /// commit.
    fn names(&self, file: &str) -> bool {
        let Some((id, component)) = file.split_once('.') else { return false };
        let Some(segment) = self.segments.iter().find(|segment| segment.segment_id.replace('-', "") == id)
        else {
            return false;
        };
        match component.strip_suffix(".del") {
            Some(opstamp) => {
                segment.deletes.as_ref().is_some_and(|deletes| deletes.opstamp.to_string() == opstamp)
            }
            None => !component.ends_with("temp"),
        }
    }
}

impl Directory for TextDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        if !path.to_str().is_some_and(|name| self.state().names(name)) {
            return Err(OpenReadError::FileDoesNotExist(path.to_owned()));
        }
        self.mapped.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        if let Some(name) = path.to_str() {
            self.state().files.remove(name);
        }
        fs::remove_file(self.folder.join(path)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(path.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() },
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        let state = self.state();
        Ok(if path == Path::new(META) {
            !state.meta.is_empty()
        } else {
            path.to_str().is_some_and(|name| state.names(name))
        })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let failed = |error| OpenWriteError::wrap_io_error(error, path.to_owned());
        let name = path.to_str().ok_or_else(|| failed(io::Error::other("the name is not UTF-8")))?.to_owned();
        let path = self.folder.join(path);
        let file = private_file().truncate(true).open(&path).map_err(failed)?;
        let state = Arc::clone(&self.state);
        let file = CheckedFile { file, path, name, checksum: crc32fast::Hasher::new(), state };
        Ok(BufWriter::new(Box::new(file)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let state = self.state();
        if path == Path::new(META) && !state.meta.is_empty() {
            return Ok(state.meta.as_bytes().to_vec());
        }
        Err(OpenReadError::FileDoesNotExist(path.to_owned()))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        match path.to_str() {
            Some(META) => self.commit(data),
            Some(MANAGED) => Ok(()),
            _ => Err(io::Error::other(format!("tantivy wrote an unknown file: {}", path.display()))),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file that is being written, with its checksum.
struct CheckedFile {
    file: File,
    path: PathBuf,
    name: String,
    checksum: crc32fast::Hasher,
    state: Arc<Mutex<TextManifest>>,
}

impl Write for CheckedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.checksum.update(bytes.part(..written));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for CheckedFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.file.sync_data()?;
        let file =
            WrittenFile { checksum: self.checksum.clone().finalize(), stamp: FileStamp::of(&self.path)? };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files.insert(std::mem::take(&mut self.name), file);
        Ok(())
    }
}
