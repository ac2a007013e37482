//! The folder where models are installed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorField, ErrorKind, Result};
use serde::de::IgnoredAny;

use super::{
    Hub, KnownModel, ModelDescription, Problem, Prompts, broken, check_name, copy,
    describe::{PROMPTS, TOKENIZER, describe, required},
    known,
    manifest::{MANIFEST, Manifest},
    weights,
};

/// The folder where models are installed. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModels {
    folder: PathBuf,
}

/// An installed model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledModel {
    /// The name, for `--embedding local:NAME`.
    pub name: String,
    /// The model's folder.
    pub folder: PathBuf,
    /// Where it was installed from; `None` for a folder without a manifest.
    pub source: Option<String>,
    /// The size of all its files in bytes.
    pub bytes: u64,
    /// The length of its vectors; `None` if the model's configuration can't be read.
    pub dimensions: Option<usize>,
}

/// The result of verifying a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelVerification {
    /// The model.
    pub name: String,
    /// How many files were compared with their hashes.
    pub files: usize,
    /// The files that differ.
    pub problems: Vec<Problem>,
}

impl InstalledModels {
    /// The models in `folder`.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All models, by name.
    ///
    /// # Errors
    ///
    /// `Embedding` if the folder can't be read.
    pub fn list(&self) -> Result<Vec<InstalledModel>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let entries = entries.map_err(|error| unusable(&self.folder, "read").with_source(error))?;
        let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
        // Staging folders begin with a dot, unlike names of models.
        let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).collect();
        names.sort();
        Ok(names.into_iter().filter_map(|name| self.installed(name)).collect())
    }

    /// The model with this name, ignoring case.
    ///
    /// # Errors
    ///
    /// `Validation` if the name is invalid, or no model with that name is installed.
    pub fn find(&self, name: &str) -> Result<InstalledModel> {
        check_name(name)?;
        let mut installed = self.list()?;
        if let Some(at) = installed.iter().position(|model| model.name.eq_ignore_ascii_case(name)) {
            return Ok(installed.swap_remove(at));
        }
        Err(not_installed(name, &installed))
    }

    fn installed(&self, name: String) -> Option<InstalledModel> {
        let folder = self.folder.join(&name);
        if !folder.is_dir() {
            return None;
        }
        let manifest = Manifest::read(&folder).ok().flatten();
        Some(InstalledModel {
            dimensions: describe(&folder, &name).ok().map(|described| described.dimensions),
            bytes: manifest.as_ref().map_or_else(|| copy::size(&folder), Manifest::bytes),
            source: manifest.map(|manifest| manifest.source),
            name,
            folder,
        })
    }

    /// Compares the model's files with the hashes in its manifest.
    ///
    /// # Errors
    ///
    /// As [`InstalledModels::find`]; `Embedding` if there is no manifest.
    pub fn verify(&self, name: &str) -> Result<ModelVerification> {
        let InstalledModel { name, folder, .. } = self.find(name)?;
        let Some(manifest) = Manifest::read(&folder)? else {
            return Err(broken(
                &folder,
                MANIFEST,
                "is missing: the model was not installed with `embeddings models install`",
            ));
        };
        Ok(ModelVerification { name, files: manifest.files.len(), problems: manifest.problems(&folder) })
    }

    /// Installs a copy of the model in the folder `from` under `name`, or under the name of that folder.
    ///
    /// Only files that belong to a model are copied. The copy is checked in a staging folder, so a failed installation
    /// leaves nothing behind.
    ///
    /// # Errors
    ///
    /// `Validation` if the name is invalid or taken; `Embedding` if `from` is not a supported model, or copying fails.
    pub fn install_from(&self, from: &Path, name: Option<&str>) -> Result<InstalledModel> {
        let of_folder = folder_name(from);
        let name = name.unwrap_or(&of_folder);
        self.check_free(name)?;
        let before = check(from, &of_folder)?;
        let staging = ModelStaging::new(&self.folder, name)?;
        let files = copy::copy_model(from, staging.folder())?;
        let after = check(staging.folder(), name)?;
        if after.prompts == Prompts::default() && before.prompts != after.prompts {
            let what =
                format!("has no prompts, and {name:?} is not the name of a model whose prompts are known");
            return Err(broken(from, PROMPTS, what).with("known name", of_folder));
        }
        self.finish(staging, name, Manifest { source: from.display().to_string(), files })
    }

    /// Downloads the model with this name, one of [`super::KNOWN`], from `hub`. `progress` is called with the number of
    /// bytes in each part.
    ///
    /// The revision is pinned, and weights and tokenizer are compared with known hashes. A failed download leaves nothing
    /// behind; another one starts from the beginning.
    ///
    /// # Errors
    ///
    /// `Validation` if the name is unknown or already installed, or downloads are not built in (feature `http`);
    /// `Embedding` if the hub can't be reached (retryable), rejects the request, or sends files with other hashes.
    pub async fn install(
        &self,
        name: &str,
        hub: &Hub,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<InstalledModel> {
        let Some(known) = KnownModel::find(name) else {
            let rule =
                format!("no model {name:?} can be installed by name; choose one of {}", known::names());
            return Err(Error::validation(ErrorField::Model, rule));
        };
        self.check_free(known.name)?;
        self.fetch(known, hub, progress).await
    }

    #[cfg(feature = "http")]
    pub(super) async fn fetch(
        &self,
        known: &KnownModel,
        hub: &Hub,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<InstalledModel> {
        let staging = ModelStaging::new(&self.folder, known.name)?;
        let files = super::download::fetch(known, hub, staging.folder(), progress).await?;
        check(staging.folder(), known.name)?;
        self.finish(staging, known.name, Manifest { source: hub.source(known), files })
    }

    #[cfg(not(feature = "http"))]
    pub(super) async fn fetch(
        &self,
        _known: &KnownModel,
        _hub: &Hub,
        _progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<InstalledModel> {
        let rule = "downloads are not built in; build with the feature local-transformer";
        Err(Error::validation(ErrorField::Model, rule))
    }

    /// Writes the manifest, and moves the model from its staging folder to its final place.
    fn finish(&self, staging: ModelStaging, name: &str, manifest: Manifest) -> Result<InstalledModel> {
        manifest.write(staging.folder())?;
        staging.rename(&self.folder.join(name))?;
        self.find(name)
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.find(name) {
            Ok(model) => {
                let message = format!("the model {:?} is already installed", model.name);
                Err(Error::validation(ErrorField::Model, message).with("folder", model.folder.display()))
            }
            Err(_) => check_name(name),
        }
    }
}

/// Describes the model in `folder`, and checks that its files are complete.
fn check(folder: &Path, name: &str) -> Result<ModelDescription> {
    let described = describe(folder, name)?;
    // Its contents are checked when the model is loaded.
    required::<IgnoredAny>(folder, TOKENIZER)?;
    weights::check(folder, &described)?;
    Ok(described)
}

/// The name of a folder, even if its path is `.`.
pub(crate) fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn not_installed(name: &str, installed: &[InstalledModel]) -> Error {
    let names: Vec<&str> = installed.iter().map(|model| model.name.as_str()).collect();
    let installed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let what = match KnownModel::find(name) {
        Some(known) => {
            format!(
                "the model {:?} is not installed; run `embeddings models install {}`",
                known.name, known.name
            )
        }
        None => format!(
            "no model {name:?} is installed (installed: {installed}); `embeddings models install` can download {}, and can \
             install others from a folder",
            known::names()
        ),
    };
    Error::validation(ErrorField::Model, what)
}

/// An error about the folder of all models, or that of one.
fn unusable(folder: &Path, action: &str) -> Error {
    Error::new(ErrorKind::Embedding, format!("the folder can't be {action}")).with("folder", folder.display())
}

/// The folder of a model that is being installed, beside its final place. It is deleted when it is dropped.
struct ModelStaging(tempfile::TempDir);

impl ModelStaging {
    fn new(models: &Path, name: &str) -> Result<Self> {
        let folder = fs::create_dir_all(models)
            .and_then(|()| tempfile::Builder::new().prefix(&format!(".{name}.")).tempdir_in(models));
        folder.map(Self).map_err(|error| unusable(models, "written to").with_source(error))
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn rename(self, to: &Path) -> Result<()> {
        fs::rename(self.folder(), to).map_err(|error| unusable(to, "created").with_source(error))
    }
}

#[cfg(test)]
mod tests;
