//! Output files and folders.

use std::{
    fmt,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::TempPath;

use crate::{
    environment::Environment,
    failure::Failure,
    out,
    render::text::printable,
    unfinished::{TemporaryFolder, Unfinished, remove_left},
};

/// A file that appears when it is complete, and that only its owner can read.
#[derive(Debug)]
pub(crate) struct WholeFile<'a> {
    writer: BufWriter<FileTarget>,
    /// The new file, and the path of the file that it will replace: `path`, or the target of a link there. `None` for a
    /// pipe or a device, which is written directly.
    fresh: Option<Fresh>,
    path: &'a Path,
}

/// A new file, with the path to which it is moved when it is complete.
#[derive(Debug)]
struct Fresh {
    temporary: TempPath,
    path: PathBuf,
    _unfinished: Unfinished,
}

impl Fresh {
    /// Creates a hidden file beside `path`, and removes hidden files that killed processes left there.
    fn create(path: PathBuf) -> io::Result<(File, Self)> {
        let prefix = unfinished(&path);
        remove_left(folder_of(&path), &prefix);
        let (unfinished, (file, temporary)) = Unfinished::create(|| {
            let fresh = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder_of(&path))?;
            Ok((fresh.path().to_owned(), fresh.into_parts()))
        })?;
        Ok((file, Self { temporary, path, _unfinished: unfinished }))
    }
}

/// Where a file is written.
struct FileTarget {
    handle: Handle,
    /// On a terminal, the beginning of a line: control characters are not shown, because files may contain text that
    /// others wrote.
    line: Option<Vec<u8>>,
}

enum Handle {
    File(File),
    Stdout(Box<dyn Write + Send>),
}

impl Handle {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::File(file) => file,
            Self::Stdout(stdout) => stdout,
        }
    }
}

impl fmt::Debug for FileTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTarget").finish_non_exhaustive()
    }
}

impl Write for FileTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(line) = &mut self.line else { return self.handle.writer().write(bytes) };
        line.extend_from_slice(bytes);
        if let Some(end) = line.iter().rposition(|byte| *byte == b'\n') {
            let complete: Vec<u8> = line.drain(..=end).collect();
            self.handle.writer().write_all(printable(&String::from_utf8_lossy(&complete)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = self.line.as_mut().map(std::mem::take).unwrap_or_default();
        self.handle.writer().write_all(printable(&String::from_utf8_lossy(&rest)).as_bytes())?;
        self.handle.writer().flush()
    }
}

/// Opens the file to write, and returns it with the `fresh` of [`WholeFile`].
fn open(path: &Path) -> io::Result<(FileTarget, Option<Fresh>)> {
    if is_stdout(path) {
        let environment = Environment::current();
        let handle = Handle::Stdout(environment.stdout.unbuffered()?);
        return Ok((FileTarget { handle, line: out::is_terminal(&environment).then(Vec::new) }, None));
    }
    if is_stream(path) {
        let file = File::options().write(true).open(path)?;
        return Ok((FileTarget { handle: Handle::File(file), line: None }, None));
    }
    let (file, fresh) = Fresh::create(whole(path))?;
    Ok((FileTarget { handle: Handle::File(file), line: None }, Some(fresh)))
}

/// Whether a path is that of a store, or of one of the files beside it.
pub(crate) fn belongs_to(store: &Path, path: &Path) -> bool {
    const BESIDE: [&str; 8] = ["", "-wal", "-shm", "-journal", ".wal", ".index", ".hnsw", ".tmp"];
    let path = whole(path);
    BESIDE.iter().any(|suffix| {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        whole(Path::new(&name)) == path
    })
}

/// The path of a file with links resolved, even if the file does not exist yet.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let folder = folder_of(path);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap_or_default())
    })
}

/// Whether the path is `-`, which means stdout.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Rejects file names of other picture formats.
pub(crate) fn check_picture(file: &Path) -> Result<(), Failure> {
    let Some(ending) = file.extension().filter(|ending| !ending.eq_ignore_ascii_case("svg")) else {
        return Ok(());
    };
    let kind = ending.to_string_lossy().to_uppercase();
    let svg = file.with_extension("svg");
    let message = format!("pictures can only be written as SVG, not {kind}");
    let hint = format!(
        "use --plot {}, which browsers can open; `rsvg-convert` or Inkscape convert it to PNG",
        svg.display()
    );
    Err(Failure::wrong_use(message, hint))
}

/// Writes a file that only the user can read, or to stdout.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), Failure> {
    let mut whole = WholeFile::begin(file)?;
    whole.writer().write_all(text.as_bytes())?;
    whole.persist()
}

/// Replaces a file that belongs to another program, or creates it and its folder. Keeps its permissions, and follows a
/// link to it. A file is replaced as a whole, so it never has only a part of the text. `hint` is for errors.
pub(crate) fn rewrite(path: &Path, text: &str, hint: &str) -> Result<(), Failure> {
    let failed = |reason: String| Failure::failed(format!("can't write {}: {reason}", path.display()), hint);
    let permissions = match fs::metadata(path) {
        Ok(there) => {
            // A file that is read-only could be replaced, but is meant to stay.
            File::options().append(true).open(path).map_err(|error| failed(error.to_string()))?;
            Some(there.permissions())
        }
        Err(_) if path.is_symlink() => {
            return Err(failed("it is a link to a file that does not exist".to_owned()));
        }
        Err(_) => {
            fs::create_dir_all(folder_of(path)).map_err(|error| failed(error.to_string()))?;
            None
        }
    };
    let with_hint = |failure: Failure| Failure::failed(failure.message(), hint);
    let mut whole = WholeFile::begin(path).map_err(with_hint)?;
    whole.writer().write_all(text.as_bytes())?;
    if let (Some(permissions), Some(fresh)) = (permissions, &whole.fresh) {
        fs::set_permissions(&fresh.temporary, permissions).map_err(|error| failed(error.to_string()))?;
    }
    whole.persist().map_err(with_hint)
}

/// Whether the path exists and is neither a file nor a folder.
pub(crate) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

impl<'a> WholeFile<'a> {
    /// Begins to write the file `path`.
    pub(crate) fn begin(path: &'a Path) -> Result<Self, Failure> {
        let (file, fresh) = open(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { writer: BufWriter::new(file), fresh, path })
    }

    /// Where to write.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }

    /// Moves the complete file to its path, replacing another one.
    pub(crate) fn persist(self) -> Result<(), Failure> {
        let mut target = self.writer.into_inner().map_err(|error| cannot_write(self.path, error.error()))?;
        target.flush().map_err(|error| cannot_write(self.path, &error))?;
        let Some(Fresh { temporary, path, .. }) = self.fresh else { return Ok(()) };
        if let Handle::File(file) = target.handle {
            file.sync_all().map_err(|error| cannot_write(self.path, &error))?;
        }
        temporary.persist(path).map_err(|error| cannot_write(self.path, &error.error))
    }
}

/// A file that is written by path outside this program's control. It appears when it is complete, never replaces
/// another file, and only its owner can read it.
#[derive(Debug)]
pub(crate) struct NewFile<'a> {
    fresh: Fresh,
    path: &'a Path,
}

impl<'a> NewFile<'a> {
    /// Begins to write the file `path`, which must not exist.
    pub(crate) fn begin(path: &'a Path) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let (_, fresh) = Fresh::create(whole(path)).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { fresh, path })
    }

    /// The empty file to write.
    pub(crate) fn temporary(&self) -> &Path {
        &self.fresh.temporary
    }

    /// Moves the complete file to its path.
    pub(crate) fn persist(self) -> Result<(), Failure> {
        let Fresh { temporary, path, .. } = self.fresh;
        temporary.persist_noclobber(path).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(self.path),
            _ => cannot_write(self.path, &error.error),
        })
    }
}

/// A store in a file that appears when it is complete, with the files and folders beside it.
#[derive(Debug)]
pub(crate) struct StagedStore {
    folder: TemporaryFolder,
    path: PathBuf,
}

impl StagedStore {
    /// Begins to write the store `path`, which must not exist. Removes what killed processes left of it.
    pub(crate) fn begin(path: &Path) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let path = whole(path);
        let folder = TemporaryFolder::within(folder_of(&path), &unfinished(&path));
        Ok(Self { folder: folder.map_err(|error| cannot_write(&path, &error))?, path })
    }

    /// The file to write.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join(self.path.file_name().unwrap_or_default())
    }

    /// Moves the complete store to its path. It must be closed.
    pub(crate) fn persist(self) -> Result<(), Failure> {
        let file = self.temporary();
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        for entry in fs::read_dir(self.folder.path()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.path() != file {
                fs::rename(entry.path(), folder_of(&self.path).join(entry.file_name())).map_err(failed)?;
            }
        }
        // The file is last: without it there is no store. Unlike a rename, a link replaces no file.
        match fs::hard_link(&file, &self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(&self.path)),
            Err(_) => fs::rename(&file, &self.path).map_err(failed),
            Ok(()) => Ok(()),
        }
    }
}

fn exists(path: &Path) -> Failure {
    Failure::failed(format!("{} already exists", path.display()), "choose a file that does not exist yet")
}

/// The prefix of the name of an incomplete file or folder. If a process is killed, the prefix shows which file was
/// being written.
fn unfinished(path: &Path) -> String {
    format!(".{}.unfinished-", path.file_name().unwrap_or_default().to_string_lossy())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    if is_stdout(path) && error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::OutputClosed;
    }
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "choose a file in a folder that exists",
        io::ErrorKind::StorageFull => "choose a file on a disk with more space",
        io::ErrorKind::FileTooLarge => "raise the limit on the size of files (`ulimit -f`)",
        _ => "choose a file in a folder where you can write",
    };
    // The name of the temporary file would only confuse the user.
    let reason = error.to_string();
    let reason = reason.split(" at path ").next().unwrap_or_default();
    Failure::failed(format!("can't write {}: {reason}", path.display()), hint)
}
