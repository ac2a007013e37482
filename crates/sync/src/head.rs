//! Recognises a long transcript that was only appended to, so that its head is not read again.
//!
//! A file counts as appended to if it is the same file (inode), is now longer, and samples of the part that was read
//! before are unchanged. So a file that was replaced, cut off, or rewritten with other lengths is read completely. A
//! change in place between the samples that keeps all lengths is noticed only when the file is read completely: when it
//! changes without growing, or with [`SyncOptions::verify`](crate::SyncOptions::verify).

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use amplifier_session_core::model::Digest;
use serde::{Deserialize, Serialize};

use crate::{
    files::{self, Stamp},
    position::LogPosition,
};

/// Transcripts are read completely up to this size.
const LONG: u64 = 1024 * 1024;
/// The number of samples, including the beginning and the end.
const SAMPLES: u64 = 64;
/// The size of a sample.
const SAMPLE_BYTES: u64 = 16 * 1024;

/// The part of a transcript that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The size of that part. It ends with a newline.
    pub(crate) bytes: u64,
    lines: u64,
    /// The number of its valid lines.
    pub(crate) rows: u32,
    /// The digest of the samples.
    digest: Digest,
}

impl Head {
    /// The head of the file at `path` up to `position`; `None` if it is short, or if the file is no longer the one with
    /// this stamp.
    pub(crate) fn read(path: &Path, stamp: Stamp, position: &LogPosition) -> io::Result<Option<Self>> {
        if position.bytes < LONG {
            return Ok(None);
        }
        let (mut file, _) = files::open(path)?;
        let digest = digest(&mut file, position.bytes)?;
        let is_same = Stamp::of(&file)? == stamp;
        let LogPosition { bytes, lines, rows, .. } = *position;
        Ok(is_same.then_some(Self { bytes, lines, rows, digest }))
    }

    /// The position after it, if it is still the head of `file`.
    pub(crate) fn position_in(&self, file: &mut File) -> io::Result<Option<LogPosition>> {
        let is_same = digest(file, self.bytes)? == self.digest;
        let position = || LogPosition {
            bytes: self.bytes,
            lines: self.lines,
            rows: self.rows,
            ..LogPosition::default()
        };
        Ok(is_same.then(position))
    }
}

/// The digest of samples of the first `bytes` bytes: the beginning, the end, and others at equal distances.
fn digest(file: &mut File, bytes: u64) -> io::Result<Digest> {
    let mut samples = Vec::with_capacity((SAMPLES * SAMPLE_BYTES) as usize);
    let last = bytes.saturating_sub(SAMPLE_BYTES);
    for sample in 0..SAMPLES {
        let offset = u128::from(last) * u128::from(sample) / u128::from(SAMPLES - 1);
        file.seek(SeekFrom::Start(u64::try_from(offset).unwrap_or(last)))?;
        file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut samples)?;
    }
    Ok(Digest::of(&samples))
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn position(bytes: u64) -> LogPosition {
        LogPosition { bytes, lines: 3, rows: 2, ..LogPosition::default() }
    }

    #[test]
    fn a_head_is_recognised_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.jsonl");
        let mut text = vec![b'a'; 3 * LONG as usize];
        fs::write(&path, &text).unwrap();
        let (mut file, stamp) = files::open(&path).unwrap();
        let size = text.len() as u64;
        let head = Head::read(&path, stamp, &position(size)).unwrap().unwrap();
        assert_eq!(head.position_in(&mut file).unwrap(), Some(position(size)));
        File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        assert_eq!(head.position_in(&mut file).unwrap(), Some(position(size)));
        for changed in [0, 20_000_usize, text.len() - 1] {
            let is_sampled = changed != 20_000;
            let before = std::mem::replace(&mut text[changed], b'b');
            fs::write(&path, &text).unwrap();
            let found = head.position_in(&mut file).unwrap();
            assert_eq!(found.is_none(), is_sampled, "byte {changed}");
            text[changed] = before;
        }
        fs::write(&path, "short").unwrap();
        assert_eq!(head.position_in(&mut file).unwrap(), None);
    }

    #[test]
    fn short_and_changed_files_have_no_head() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.jsonl");
        fs::write(&path, vec![b'a'; 2 * LONG as usize]).unwrap();
        let (_, stamp) = files::open(&path).unwrap();
        assert_eq!(Head::read(&path, stamp, &position(LONG - 1)).unwrap(), None);
        File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        assert_eq!(Head::read(&path, stamp, &position(LONG)).unwrap(), None);
    }
}
