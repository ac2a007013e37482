//! Files and folders that are asked for.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use tempfile::NamedTempFile;
#[cfg(feature = "parquet")]
use tempfile::TempDir;

use crate::failure::Failure;

/// A file that is put in its place when it is whole, for its owner alone.
#[derive(Debug)]
pub(crate) struct WholeFile<'a> {
    writer: BufWriter<NamedTempFile>,
    path: &'a Path,
}

impl<'a> WholeFile<'a> {
    /// Begins to write what will be the file `path`.
    pub(crate) fn begin(path: &'a Path) -> Result<Self, Failure> {
        let fresh = NamedTempFile::new_in(folder_of(path)).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { writer: BufWriter::new(fresh), path })
    }

    /// What is written to.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }

    /// Puts the file in its place, where another one gives way.
    pub(crate) fn place(self) -> Result<(), Failure> {
        let whole = self.writer.into_inner().map_err(|error| cannot_write(self.path, error.error()))?;
        whole.as_file().sync_all().map_err(|error| cannot_write(self.path, &error))?;
        whole.persist(self.path).map_err(|error| cannot_write(self.path, &error.error))?;
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
    Failure::failed(
        format!("can't write {}: {error}", path.display()),
        "name a file in a folder that is there",
    )
}
