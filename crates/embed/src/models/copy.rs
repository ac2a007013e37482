//! Copying the files of a model.

use std::{
    fs::{self, File},
    path::Path,
};

use amplifier_session_core::Result;

use super::{
    broken,
    describe::{CONFIG, LENGTH, MODULES, POOLING, PROMPTS, TOKENIZER, WEIGHTS},
    manifest::ManifestFile,
    sha256,
};

/// A file of a model, and whether every model must have it.
pub(super) struct ModelFile {
    pub(super) path: &'static str,
    pub(super) required: bool,
}

/// The files that are used, and what the publisher says about the model. Small files come first, because they reveal
/// problems sooner.
pub(super) const FILES: [ModelFile; 9] = [
    ModelFile { path: CONFIG, required: true },
    ModelFile { path: MODULES, required: false },
    ModelFile { path: POOLING, required: false },
    ModelFile { path: LENGTH, required: false },
    ModelFile { path: PROMPTS, required: false },
    ModelFile { path: "README.md", required: false },
    ModelFile { path: "LICENSE", required: false },
    ModelFile { path: TOKENIZER, required: true },
    ModelFile { path: WEIGHTS, required: true },
];

/// The size of the model's files in `folder`, in bytes.
pub(super) fn size(folder: &Path) -> u64 {
    let size = |file: &ModelFile| fs::metadata(folder.join(file.path)).map_or(0, |metadata| metadata.len());
    FILES.iter().map(size).sum()
}

/// Copies the files of the model in `from`, and returns their entries for the manifest.
pub(super) fn copy_model(from: &Path, to: &Path) -> Result<Vec<ManifestFile>> {
    let there = FILES.iter().filter(|file| file.required || from.join(file.path).exists());
    there.map(|file| copy(from, to, file.path)).collect()
}

fn copy(from: &Path, to: &Path, path: &str) -> Result<ManifestFile> {
    let copied = File::open(from.join(path)).and_then(|mut source| {
        let mut target = create(to, path)?;
        let copied = sha256::copy(&mut source, &mut target)?;
        target.sync_all()?;
        Ok(copied)
    });
    let (sha256, bytes) = copied.map_err(|error| broken(from, path, "can't be copied").with_source(error))?;
    Ok(ManifestFile { path: path.to_owned(), bytes, sha256 })
}

/// Creates a file in `folder`, with the folders in its path.
pub(super) fn create(folder: &Path, path: &str) -> std::io::Result<File> {
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::create(path)
}
