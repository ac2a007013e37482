//! Files and folders that are asked for.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
#[cfg(feature = "parquet")]
use tempfile::TempDir;

use crate::failure::Failure;

/// A file that is put in its place when it is whole, for its owner alone.
#[derive(Debug)]
pub(crate) struct WholeFile<'a> {
    writer: BufWriter<Destination>,
    path: &'a Path,
}

/// Where what is written goes.
#[derive(Debug)]
enum Destination {
    /// A new file, which takes the place of what is at the path: of what a link there leads to.
    Fresh(NamedTempFile, PathBuf),
    /// What is no file, such as a pipe or a device, as it comes.
    Stream(File),
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Fresh(file, _) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Fresh(file, _) => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

impl Destination {
    fn at(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self::Stream(stdout()?));
        }
        if is_stream(path) {
            return Ok(Self::Stream(File::options().write(true).open(path)?));
        }
        let path = whole(path);
        let mut builder = tempfile::Builder::new();
        let prefix = unfinished(&path);
        Ok(Self::Fresh(builder.prefix(&prefix).tempfile_in(folder_of(&path))?, path))
    }
}

/// Whether a path is that of a store, or of one of the files that are kept beside it.
pub(crate) fn belongs_to(store: &Path, path: &Path) -> bool {
    const BESIDE: [&str; 8] = ["", "-wal", "-shm", "-journal", ".wal", ".index", ".hnsw", ".tmp"];
    let path = whole(path);
    BESIDE.iter().any(|suffix| {
        let mut name = store.as_os_str().to_owned();
        name.push(suffix);
        whole(Path::new(&name)) == path
    })
}

/// The path of a file, without links, also where it is not there yet.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let folder = folder_of(path);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap_or_default())
    })
}

/// Whether the path is `-`, which stands for stdout.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Stdout by another handle: the one of [`crate::out::Out`] is locked.
fn stdout() -> io::Result<File> {
    #[cfg(unix)]
    let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(File::from(handle))
}

/// Whether there is something at the path that is neither a file nor a folder.
pub(crate) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

impl<'a> WholeFile<'a> {
    /// Begins to write what will be the file `path`.
    pub(crate) fn begin(path: &'a Path) -> Result<Self, Failure> {
        let destination = Destination::at(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { writer: BufWriter::new(destination), path })
    }

    /// What is written to.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }

    /// Puts the file in its place, where another one gives way.
    pub(crate) fn place(self) -> Result<(), Failure> {
        let destination = self.writer.into_inner().map_err(|error| cannot_write(self.path, error.error()))?;
        let Destination::Fresh(whole, path) = destination else { return Ok(()) };
        whole.as_file().sync_all().map_err(|error| cannot_write(self.path, &error))?;
        whole.persist(path).map_err(|error| cannot_write(self.path, &error.error))?;
        Ok(())
    }
}

/// A folder that is put in its place when it is whole, for its owner alone.
#[cfg(feature = "parquet")]
#[derive(Debug)]
pub(crate) struct WholeFolder<'a> {
    fresh: TempDir,
    path: &'a Path,
}

#[cfg(feature = "parquet")]
impl<'a> WholeFolder<'a> {
    /// Begins to write what will be the folder `path`. One that is there gives way, if it holds nothing but `files`.
    pub(crate) fn begin(path: &'a Path, files: &[&str]) -> Result<Self, Failure> {
        if let Some(other) = other_than(path, files).map_err(|error| cannot_write(path, &error))? {
            let message = format!("{} is there already, and holds {other}", path.display());
            return Err(Failure::failed(message, "name a folder that is not there yet"));
        }
        let fresh = private_folder(path).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { fresh, path })
    }

    /// Where to write.
    pub(crate) fn folder(&self) -> &Path {
        self.fresh.path()
    }

    /// Puts the folder in its place.
    pub(crate) fn place(self) -> Result<(), Failure> {
        let cannot = |error: io::Error| cannot_write(self.path, &error);
        // The one of before goes when the new one is there, and comes back where that can't be put in its place.
        let before = private_folder(self.path).map_err(cannot)?;
        let gives_way = match std::fs::rename(self.path, before.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            renamed => renamed.is_ok(),
        };
        if let Err(error) = std::fs::rename(self.fresh.path(), self.path) {
            if gives_way && std::fs::rename(before.path(), self.path).is_err() {
                // Better under another name than not at all.
                let _ = before.keep();
            }
            return Err(cannot(error));
        }
        // It has another name now, so that there is nothing to remove.
        let _ = self.fresh.keep();
        Ok(())
    }
}

/// A folder beside `path` that only its owner may enter; it is removed when it is dropped.
#[cfg(feature = "parquet")]
fn private_folder(path: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let prefix = unfinished(path);
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(folder_of(path))
}

/// The name of something in a folder that is none of `files`.
#[cfg(feature = "parquet")]
fn other_than(folder: &Path, files: &[&str]) -> io::Result<Option<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !files.iter().any(|file| name == *file) {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

/// What the name of something begins with that is not whole yet: it tells what it would have been, where a process was killed.
fn unfinished(path: &Path) -> String {
    format!(".{}.unfinished-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Writes a file in one go.
pub(crate) fn whole_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut file = WholeFile::begin(path)?;
    write(file.writer())?;
    file.place()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    if is_stdout(path) && error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::NobodyReads;
    }
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "name a file in a folder that is there",
        io::ErrorKind::StorageFull => "name a file where there is more room",
        _ => "name a file in a folder where you may write",
    };
    // The name of the file that is not whole yet says nothing to anybody.
    let told = error.to_string();
    let told = told.split(" at path ").next().unwrap_or_default();
    Failure::failed(format!("can't write {}: {told}", path.display()), hint)
}
