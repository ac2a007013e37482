//! The metadata files of a session.

use std::{
    io::{self, Read},
    path::Path,
};

use amplifier_session_core::{
    Result,
    backend::SkippedLine,
    blocking,
    events::{MAX_LINE_BYTES, too_large},
    metadata::{TRANSFER_FENCE, unreadable_times},
    model::{MetadataFile, RawJson},
    storage::SessionIngest,
};
use serde_json::{Map, Value};

use super::{FileError, SessionReader};
use crate::{
    files::{self, CAPTURE_METADATA, METADATA, SessionFiles, Source, Stamp},
    lines::BYTE_ORDER_MARK,
    report::Skipped,
    state::FileEnd,
};

impl SessionReader<'_> {
    /// Reads the metadata files. If one is invalid or missing, the stored one is kept.
    pub(super) async fn metadata(&mut self, ingest: &mut SessionIngest, files: &SessionFiles) -> Result<()> {
        let before = ingest.stored().map_or_else(Vec::new, |stored| stored.metadata_files.clone());
        let mut kept = before.clone();
        for file in
            files.metadata.iter().filter(|file| !self.state.is_current(**file)).copied().collect::<Vec<_>>()
        {
            let taken = self.metadata_file(&mut kept, file).await;
            self.record_outcome(file.name, taken)?;
        }
        if self.state.forget_lifted_fence(files) {
            self.forget_skipped(TRANSFER_FENCE, 0);
            kept.retain(|file| file.name != TRANSFER_FENCE);
        }
        if kept != before {
            self.changed = true;
            ingest.set_metadata(kept)?;
        }
        Ok(())
    }

    async fn metadata_file(&mut self, kept: &mut Vec<MetadataFile>, file: Source) -> Result<(), FileError> {
        let read = self.context.storage.now();
        let path = self.folder.file(file.name);
        let whole = path.clone();
        let (stamp, content) = blocking(move || read_whole(&whole)).await??;
        self.context.progress.advance(stamp.size);
        self.forget_skipped(file.name, 0);
        self.state.set_read(Source { stamp, ..file }, read, FileEnd::default());
        // Metadata is stored under the name of the file itself, so that it does not occur twice.
        let name = files::without_backup(file.name);
        let found = match object(content) {
            Ok(found) if name != file.name => {
                self.skip_file(name, "is missing: its backup is read");
                Some(found)
            }
            Ok(found) => Some(found),
            Err(reason) => {
                let backup = blocking(move || read_whole(&files::backup_of(&path))).await?;
                match backup.ok().and_then(|(_, content)| object(content).ok()) {
                    Some(found) => {
                        self.skip_file(name, "is damaged: its backup is read");
                        Some(found)
                    }
                    None => {
                        self.skip(SkippedLine::new(file.name, 1, reason));
                        None
                    }
                }
            }
        };
        if let Some((object, raw)) = found {
            if let Some(reason) = unreadable_times(&object) {
                self.warn(name, 1, reason);
            }
            if let Some(reason) = unknown_capture(&object).filter(|_| name == CAPTURE_METADATA) {
                self.warn(name, 1, reason);
            }
            replace(kept, MetadataFile { name: name.to_owned(), raw });
        }
        Ok(())
    }

    fn skip_file(&mut self, name: &str, reason: &str) {
        self.report.skip(Skipped::file(self.folder, Some(name), reason.to_owned()));
    }
}

/// A warning about the metadata of a capture in a format or version that is not known. What has the same form as in the
/// known version is read.
fn unknown_capture(object: &Map<String, Value>) -> Option<String> {
    const KNOWN: [(&str, &str); 2] = [("format", "context-intelligence"), ("version", "1.0.0")];
    let is_other = |(name, known): &(&str, &str)| {
        object.get(*name).is_some_and(|value| !value.is_null() && value != *known)
    };
    let (name, _) = KNOWN.into_iter().find(is_other)?;
    let value = match object.get(name)? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(format!("{name} {value} of the capture is not known: what is as in version 1.0.0 is read"))
}

/// The object in a file, or why it has none.
pub(crate) fn object(content: Option<RawJson>) -> Result<(Map<String, Value>, RawJson), String> {
    let raw = content.ok_or_else(|| too_large("file"))?;
    match raw.parse_object() {
        Ok(object) => Ok((object, raw)),
        Err(error) => Err(error.to_string()),
    }
}

/// The content of a file; `None` if it is too large.
pub(crate) fn read_whole(path: &Path) -> io::Result<(Stamp, Option<RawJson>)> {
    let (file, stamp) = files::open(path)?;
    let mut content = Vec::new();
    file.take(MAX_LINE_BYTES as u64 + 1).read_to_end(&mut content)?;
    if content.len() > MAX_LINE_BYTES {
        return Ok((stamp, None));
    }
    let text = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&content);
    Ok((stamp, Some(RawJson::new(text))))
}

/// Replaces or adds a file, keeping the order of [`METADATA`].
fn replace(files: &mut Vec<MetadataFile>, file: MetadataFile) {
    files.retain(|other| other.name != file.name);
    files.push(file);
    files.sort_by_key(|file| METADATA.iter().position(|name| *name == file.name));
}
