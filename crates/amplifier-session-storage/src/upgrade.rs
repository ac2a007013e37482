//! Copies the sessions from files of the Python library `amplifier_session_storage` to stores of this one.
//!
//! Opening such a file as a store is an error; [`PythonDatabase::cause_of`] recognises it.

use std::path::Path;

use amplifier_session_core::Result;
use amplifier_session_upgrade::{NewStore, OpenStore};
pub use amplifier_session_upgrade::{
    OnProgress, PythonDatabase, Upgrade, UpgradeCounts, UpgradeOptions, UpgradeOutcome, UpgradeProgress,
    is_interrupted,
};

use crate::{StoreUrl, config::Configuration};

/// Copies the sessions in the file `old` to the store at `url`, which is created if it is missing and may have the path
/// of `old`. See [`amplifier_session_upgrade::upgrade`].
///
/// # Errors
///
/// As [`amplifier_session_upgrade::upgrade`].
pub async fn upgrade(
    old: &Path,
    url: &StoreUrl,
    configuration: &Configuration,
    options: UpgradeOptions,
    progress: OnProgress,
) -> Result<Upgrade> {
    let (store, request) = (url.clone(), configuration.open_request(url));
    let open: OpenStore = Box::new(move |file, dimensions| {
        let store = file.map_or_else(|| store.clone(), |file| store.clone().with_file(file));
        store.open(request.clone().with_dimensions(dimensions))
    });
    let store = NewStore { name: url.to_string(), file: url.file().map(Path::to_owned), open };
    amplifier_session_upgrade::upgrade(old, store, options, progress).await
}
