//! Files that are asked for.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use tempfile::NamedTempFile;

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
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fresh = NamedTempFile::new_in(folder).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { writer: BufWriter::new(fresh), path })
    }

    /// What is written to.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.writer
    }

    /// Puts the file in its place, where another one gives way.
    pub(crate) fn place(self) -> Result<(), Failure> {
        let whole = self.writer.into_inner().map_err(|error| cannot_write(self.path, error.error()))?;
        whole.persist(self.path).map_err(|error| cannot_write(self.path, &error.error))?;
        Ok(())
    }
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

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(
        format!("can't write {}: {error}", path.display()),
        "name a file in a folder that is there",
    )
}
