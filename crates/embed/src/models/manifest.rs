//! What was installed: the files of a model and their hashes.

use std::{fs, path::Path};

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

use super::{broken, sha256};

/// The file in a model's folder.
pub(crate) const MANIFEST: &str = "manifest.json";

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Where it came from: a hub's address with the revision, or a folder.
    pub(crate) source: String,
    pub(crate) files: Vec<ManifestFile>,
}

/// A file that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestFile {
    /// Its path in the folder, with `/` between parts.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// A file that is not what was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Its path in the model's folder.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

impl Manifest {
    /// Reads that of a folder; none when it was not installed by us.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let Ok(text) = fs::read(folder.join(MANIFEST)) else { return Ok(None) };
        let parsed = serde_json::from_slice(&text);
        parsed
            .map(Some)
            .map_err(|error| broken(folder, MANIFEST, "is not what it should be").with_source(error))
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let written = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .and_then(|text| fs::write(folder.join(MANIFEST), text));
        written.map_err(|error| broken(folder, MANIFEST, "can't be written").with_source(error))
    }

    /// All files together, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The files in `folder` that are not what was installed.
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
                    return Some("has another content than when it was installed".to_owned());
                }
                Some(format!("has {bytes} bytes instead of {}", self.bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("is missing".to_owned()),
            Err(error) => Some(format!("can't be read: {error}")),
        }
    }
}
