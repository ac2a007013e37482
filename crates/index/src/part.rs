//! A part of the index: a folder of immutable files, and a manifest that lists the valid ones.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    error::{PartError, io_error},
    files::{create_folder, replace_file, sweep},
    rows::{Rows, StoreRevision},
};

/// An opened part: the text index or the vector index.
pub(crate) trait IndexPart: Sized {
    /// The name in messages.
    const NAME: &'static str;
    /// The name of its rows in messages.
    const ROWS: &'static str;
    /// The name of its folder; its manifest is beside it.
    const FOLDER: &'static str;
    /// Changes if older files can't be read, or would be read wrongly.
    const FORMAT: u32;
    /// The content of the manifest.
    type Manifest: Serialize + DeserializeOwned;

    /// Opens the files that a manifest lists. Every byte is checked before it is used.
    fn open(folder: &Path, manifest: Self::Manifest, before: Option<&Self>) -> Result<Self, PartError>;

    /// The revision of the part.
    fn store_revision(&self) -> StoreRevision;

    /// Reads data that a search needs and a fold does not.
    fn prepare_search(&self) -> Result<(), PartError>;
}

impl PartError {
    fn found<P: IndexPart>(self) -> PartState<P> {
        PartState::Unusable(self.reason(P::NAME))
    }

    /// Why the part `name` can't be used.
    pub(crate) fn reason(self, name: &str) -> String {
        match self {
            Self::Gone(path) => {
                let file = path.file_name().unwrap_or_default().display();
                format!("the {name} is incomplete ({file} is missing)")
            }
            Self::Damaged(what) => format!("the {name} is damaged ({what})"),
        }
    }
}

/// The state of a part on disk.
#[derive(Debug)]
pub(crate) enum PartState<P> {
    /// No part exists.
    Missing,
    /// The part can't be used, for this reason.
    Unusable(String),
    /// The part can be used.
    Ready(Arc<P>),
}

impl<P: IndexPart> PartState<P> {
    /// The revision of the part, if it can be used.
    pub(crate) fn store_revision(&self) -> Option<StoreRevision> {
        match self {
            Self::Ready(part) => Some(part.store_revision()),
            Self::Missing | Self::Unusable(_) => None,
        }
    }
}

impl<P> Clone for PartState<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::Unusable(reason) => Self::Unusable(reason.clone()),
            Self::Ready(part) => Self::Ready(Arc::clone(part)),
        }
    }
}

/// A part together with the state of the rows.
#[derive(Debug)]
pub(crate) struct PartView<P> {
    /// The part, if it belongs to these rows.
    pub(crate) part: Option<Arc<P>>,
    /// Why the part can't be used.
    pub(crate) reason: Option<String>,
    /// The state of the rows.
    pub(crate) now: StoreRevision,
}

impl<P: IndexPart> PartView<P> {
    fn new(found: PartState<P>, rows: &mut dyn Rows) -> Result<Self> {
        let now = rows.store_revision()?;
        let (part, reason) = match found {
            PartState::Missing => (None, Some(format!("the {} is missing", P::NAME))),
            PartState::Unusable(reason) => (None, Some(reason)),
            PartState::Ready(part) => match disagreement(part.store_revision(), now, rows)? {
                None => (Some(part), None),
                Some(why) => (None, Some(format!("the {} {why}", P::NAME))),
            },
        };
        Ok(Self { part, reason, now })
    }

    /// The revision above which rows are not in the part.
    pub(crate) fn after(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.store_revision().revision)
    }
}

/// The files of a part, and their last opened state.
pub(crate) struct PartFolder<P> {
    pub(crate) folder: PathBuf,
    manifest: PathBuf,
    opened: Mutex<Option<(Vec<u8>, PartState<P>)>>,
    /// The error of the last removal of unused files, if one could not be removed.
    unswept: Mutex<Option<Error>>,
}

impl<P: IndexPart> PartFolder<P> {
    /// The folder of a part in the folder of the index.
    pub(crate) fn new(index: &Path) -> Self {
        let manifest = index.join(format!("{}.json", P::FOLDER));
        Self { folder: index.join(P::FOLDER), manifest, opened: Mutex::new(None), unswept: Mutex::new(None) }
    }

    /// Returns the current state on disk. Opens files only if the manifest has changed.
    pub(crate) fn load(&self) -> PartState<P> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may replace the manifest and remove the old files after the manifest was read.
        const TRIES: usize = 10;
        let mut found = PartState::Missing;
        for _ in 0..TRIES {
            let bytes = match fs::read(&self.manifest) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return PartState::Missing,
                Err(error) => return PartState::Unusable(format!("the {} can't be read ({error})", P::NAME)),
            };
            if let Some((known, found)) = &*opened
                && *known == bytes
            {
                return found.clone();
            }
            let before = match &*opened {
                Some((_, PartState::Ready(part))) => Some(Arc::clone(part)),
                _ => None,
            };
            let (state, gone) = self.open(&bytes, before.as_deref());
            found = state;
            *opened = Some((bytes, found.clone()));
            if !gone {
                break;
            }
        }
        found
    }

    /// Like [`Self::load`], but also reads everything that a search needs.
    fn load_for_search(&self) -> PartState<P> {
        loop {
            let found = self.load();
            let PartState::Ready(part) = &found else { return found };
            match part.prepare_search() {
                Ok(()) => return found,
                Err(error) => self.mark_unusable(Some(part), error),
            }
        }
    }

    /// Records that a part is unusable, until another one is on disk.
    pub(crate) fn mark_unusable(&self, part: Option<&Arc<P>>, error: PartError) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = &mut *opened
            && matches!((&*found, part), (PartState::Ready(known), Some(part)) if Arc::ptr_eq(known, part))
        {
            *found = error.found();
        }
    }

    /// Returns the current part, if it belongs to `rows`, ready to be searched. Reads the disk before the state of the
    /// rows.
    pub(crate) fn view_for_search(&self, rows: &mut dyn Rows) -> Result<PartView<P>> {
        PartView::new(self.load_for_search(), rows)
    }

    /// Like [`Self::view_for_search`], for rows that were used before. If a part is newer than the rows, another
    /// process wrote it in the meantime; this is not reported.
    pub(crate) fn view_again(&self, rows: &mut dyn Rows) -> Result<PartView<P>> {
        let found = self.load_for_search();
        let held = found.store_revision();
        let mut view = PartView::new(found, rows)?;
        if held.is_some_and(|held| held.store == view.now.store && held.revision > view.now.revision) {
            view.reason = None;
        }
        Ok(view)
    }

    /// Returns the current part, if it belongs to `rows`.
    pub(crate) fn view(&self, rows: &mut dyn Rows) -> Result<PartView<P>> {
        PartView::new(self.load(), rows)
    }

    /// Returns the current part for a fold, if it belongs to `rows`. Otherwise, removes it and creates its folder.
    pub(crate) fn view_for_fold(&self, rows: &mut dyn Rows) -> Result<PartView<P>> {
        create_folder(&self.folder).map_err(|error| io_error(error, &self.folder))?;
        let view = PartView::new(self.load(), rows)?;
        if view.part.is_none() {
            self.clear()?;
        }
        Ok(view)
    }

    /// Opens the files of a manifest. Also returns whether a file was missing.
    fn open(&self, bytes: &[u8], before: Option<&P>) -> (PartState<P>, bool) {
        let name = P::NAME;
        let manifest = match read_manifest::<P>(bytes) {
            Ok(manifest) => manifest,
            Err(reason) => return (PartState::Unusable(format!("the {name} {reason}")), false),
        };
        match P::open(&self.folder, manifest, before) {
            Ok(part) => (PartState::Ready(Arc::new(part)), false),
            Err(error) => {
                let gone = matches!(error, PartError::Gone(_));
                (error.found(), gone)
            }
        }
    }

    pub(crate) fn manifest_path(&self) -> &Path {
        &self.manifest
    }

    /// Removes the manifest and all files.
    pub(crate) fn clear(&self) -> Result<()> {
        match fs::remove_file(&self.manifest) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error(error, &self.manifest));
            }
            _ => {}
        }
        self.sweep(|_| false);
        Ok(())
    }

    /// Removes all files for whose names `keep` returns false. Files that can't be removed are kept until the next
    /// time: see [`Self::check_swept`].
    pub(crate) fn sweep(&self, keep: impl Fn(&str) -> bool) {
        *self.unswept.lock().unwrap_or_else(PoisonError::into_inner) = sweep(&self.folder, keep).err();
    }

    /// Fails if the last [`Self::sweep`] could not remove a file.
    pub(crate) fn check_swept(&self) -> Result<()> {
        self.unswept.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }
}

/// Returns why an index with the state `held` does not belong to these rows; `None` if it does.
fn disagreement(
    held: StoreRevision,
    now: StoreRevision,
    rows: &mut dyn Rows,
) -> Result<Option<&'static str>> {
    Ok(if held.store != now.store {
        Some("belongs to another store")
    } else if held.revision > now.revision {
        Some("is newer than the store, which was probably restored from a backup")
    } else if held.revision == 0 || held == now || rows.nonce(held.revision)? == Some(held.nonce) {
        None
    } else {
        Some("does not match the history of the store, which was probably restored from a backup")
    })
}

/// A manifest with its format and checksum.
#[derive(Serialize, Deserialize)]
struct ManifestEnvelope<T> {
    format: u32,
    body: T,
}

/// Writes a manifest to `path`.
pub(crate) fn publish<P: IndexPart>(path: &Path, manifest: &P::Manifest) -> io::Result<()> {
    let json = serde_json::to_vec(&ManifestEnvelope { format: P::FORMAT, body: manifest })?;
    let checksum = format!("{:08x}\n", crc32fast::hash(&json));
    replace_file(path, |file| {
        file.write_all(checksum.as_bytes())?;
        file.write_all(&json)
    })
}

fn read_manifest<P: IndexPart>(bytes: &[u8]) -> Result<P::Manifest, String> {
    const DAMAGED: &str = "is damaged (the checksum of its manifest does not match)";
    const CHECKSUM_LINE: usize = 9;
    let (line, json) = bytes.split_at_checked(CHECKSUM_LINE).ok_or(DAMAGED)?;
    if line != format!("{:08x}\n", crc32fast::hash(json)).as_bytes() {
        return Err(DAMAGED.to_owned());
    }
    let envelope: ManifestEnvelope<serde_json::Value> = serde_json::from_slice(json).map_err(|_| DAMAGED)?;
    if envelope.format != P::FORMAT {
        return Err(format!(
            "has a different format ({}; this program writes {})",
            envelope.format,
            P::FORMAT
        ));
    }
    serde_json::from_value(envelope.body).map_err(|_| DAMAGED.to_owned())
}

/// The result of a fold for one part.
#[derive(Debug)]
pub(crate) struct PartFolded {
    /// Number of rows added.
    pub(crate) rows: u64,
    /// Why the part was rebuilt, if it was.
    pub(crate) rebuilt: Option<String>,
}

/// The state of a part after a step that ended at a revision, or after all rows are in the index.
pub(crate) fn step_revision(
    end: Option<u64>,
    rows: &mut dyn Rows,
    now: StoreRevision,
) -> Result<StoreRevision> {
    let Some(revision) = end else { return Ok(now) };
    let nonce = rows.nonce(revision)?.ok_or_else(|| {
        Error::new(ErrorKind::StorageIo, "a row has a revision that the store does not know")
            .with_operation("index")
            .with("revision", revision)
    })?;
    Ok(StoreRevision { revision, nonce, ..now })
}
