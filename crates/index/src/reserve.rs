//! Reserved space for a full disk: a file that is removed when a deletion needs the space for its log.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::files::private_file;

/// Enough for the write-ahead log of a deletion in small steps. A store with a small index has little else to free.
const BYTES: usize = 512 << 10;

/// The file.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { path: dir.join("reserve") }
    }

    /// Creates the file if it is missing. If there is not enough space, the index works without it.
    pub(crate) fn keep(&self) {
        if self.path.exists() {
            return;
        }
        let written = private_file().open(&self.path).and_then(|mut file| file.write_all(&vec![0xA5; BYTES]));
        if let Err(error) = written {
            tracing::debug!(%error, "no disk space could be reserved for when the disk is full");
            let _removed = fs::remove_file(&self.path);
        }
    }

    /// Removes the file.
    pub(crate) fn give_up(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_kept_until_it_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(folder.path());
        let length = || fs::metadata(folder.path().join("reserve")).map(|file| file.len()).ok();
        reserve.keep();
        reserve.keep();
        assert_eq!(length(), Some(BYTES as u64));
        reserve.give_up().unwrap();
        reserve.give_up().unwrap();
        assert_eq!(length(), None);
    }
}
