//! The folders in which the last refresh found nothing to read.
//!
//! Parsing the states of twenty thousand sessions takes longer than looking at their files. So a refresh keeps the
//! fingerprints of unchanged folders in a file beside the search index, and the next one reads only the states of other
//! folders. The store's meta table has the digest of this file, so that it is ignored if it is damaged, or if the store was
//! restored from a backup.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use amplifier_session_core::{Result, SessionStorage, blocking, model::Digest, storage::EventDetail};

use crate::{last::LastSyncs, options::SyncOptions, state};

/// The key of the digest in the store's meta table.
const KEY: &str = "unchanged_folders";
/// The name of the file.
const FILE: &str = "unchanged";

/// The fingerprints of these folders.
#[derive(Debug, Default)]
pub(crate) struct Unchanged {
    /// In ascending order.
    pub(crate) fingerprints: Vec<u64>,
    /// `None` if the store is not in a file.
    file: Option<PathBuf>,
    /// What else decides whether there is something to read.
    conditions: String,
    /// The digest in the store.
    digest: Option<String>,
}

impl Unchanged {
    /// Reads the fingerprints, if they were kept under the same conditions.
    pub(crate) async fn read(
        storage: &SessionStorage,
        options: &SyncOptions,
        last: &LastSyncs,
        events: EventDetail,
    ) -> Result<Self> {
        let Some(file) = file_of(storage) else { return Ok(Self::default()) };
        let SyncOptions { user, host, captures, exclude, .. } = options;
        let conditions = (state::VERSION, user, host, captures, exclude, events, last.known_roots());
        let mut unchanged = Self {
            digest: storage.backend().meta().await?.remove(KEY),
            conditions: format!("{conditions:?}"),
            file: Some(file.clone()),
            fingerprints: Vec::new(),
        };
        let bytes = blocking(move || fs::read(file)).await?.unwrap_or_default();
        if unchanged.digest == Some(unchanged.digest_of(&bytes)) {
            let numbers = bytes.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok());
            unchanged.fingerprints = numbers.map(u64::from_le_bytes).collect();
        }
        Ok(unchanged)
    }

    /// Keeps fingerprints for the next refresh. If that fails, the next one reads all states.
    pub(crate) async fn keep(self, storage: &SessionStorage, mut fingerprints: Vec<u64>) {
        fingerprints.sort_unstable();
        if fingerprints == self.fingerprints {
            return;
        }
        let bytes: Vec<u8> = fingerprints.iter().flat_map(|number| number.to_le_bytes()).collect();
        let digest = self.digest_of(&bytes);
        let Some(file) = self.file else { return };
        if let Ok(Err(error)) = blocking(move || replace(&file, &bytes)).await {
            tracing::debug!(%error, "the list of unchanged folders could not be written");
        } else if let Err(error) = storage.backend().swap_meta(KEY, self.digest.as_deref(), &digest).await {
            tracing::debug!(%error, "the list of unchanged folders could not be confirmed");
        }
    }

    fn digest_of(&self, bytes: &[u8]) -> String {
        Digest::of(&[self.conditions.as_bytes(), bytes].concat()).into()
    }
}

/// Makes the next refresh read all states.
pub(crate) fn forget(storage: &SessionStorage) {
    if let Some(file) = file_of(storage) {
        let _missing = fs::remove_file(file);
    }
}

fn file_of(storage: &SessionStorage) -> Option<PathBuf> {
    let places = storage.backend().info().places;
    let index = places.into_iter().find(|place| place.what == "index")?;
    Some(index.files.into_iter().next()?.join(FILE))
}

fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&temporary)?.write_all(bytes)?;
    fs::rename(temporary, file)
}
