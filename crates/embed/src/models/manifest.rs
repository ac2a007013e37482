//! The manifest of an installed model: its files and their hashes.

use std::{fs, path::Path};

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

use super::{broken, sha256};

/// The name of the manifest's file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The source and the files of an installed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Where the model was installed from: a hub's address with the revision, or a folder.
    pub(crate) source: String,
    pub(crate) files: Vec<ManifestFile>,
}

/// A file as it was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    /// The path in the folder, with `/` as separator.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// A file that differs from the one that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The path in the model's folder.
    pub file: String,
    /// The difference.
    pub what: String,
}

impl Manifest {
    /// Reads the manifest in `folder`; `None` if there is none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let Ok(text) = fs::read(folder.join(MANIFEST)) else { return Ok(None) };
        let parsed = serde_json::from_slice(&text);
        parsed.map(Some).map_err(|error| broken(folder, MANIFEST, "is invalid").with_source(error))
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let written = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .and_then(|text| fs::write(folder.join(MANIFEST), text));
        written.map_err(|error| broken(folder, MANIFEST, "can't be written").with_source(error))
    }

    /// The size of all files in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The files in `folder` that differ from the manifest.
    pub(crate) fn problems(&self, folder: &Path) -> Vec<Problem> {
        let problem = |file: &ManifestFile| {
            Some(Problem { file: file.path.clone(), what: file.problem(&folder.join(&file.path))? })
        };
        self.files.iter().filter_map(problem).collect()
    }
}

impl ManifestFile {
    fn problem(&self, path: &Path) -> Option<String> {
        match sha256::of_file(path) {
            Ok(hash) if hash == self.sha256 => None,
            Ok(_) => {
                let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
                if bytes == self.bytes {
                    return Some("has changed since it was installed".to_owned());
                }
                Some(format!("has {bytes} bytes instead of {}", self.bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(error) => Some(format!("can't be read: {error}")),
        }
    }
}
