//! The folder that models are installed in.

use std::{
    fs,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, Result};

use super::{
    Hub, KnownModel, ModelDescription, Problem, Prompts, broken, check_name, copy,
    describe::describe,
    known,
    manifest::{MANIFEST, Manifest},
    weights,
};

/// The folder that models are installed in; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModels {
    folder: PathBuf,
}

/// A model that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledModel {
    /// What it is called: `--embedding local:NAME` uses it.
    pub name: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// Where it came from; nothing for a folder without a manifest.
    pub source: Option<String>,
    /// Size of all its files, in bytes.
    pub bytes: u64,
    /// The length of its vectors, where the folder can be read.
    pub dimensions: Option<usize>,
}

/// What came of verifying a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The model.
    pub name: String,
    /// How many files were compared with what was installed.
    pub files: usize,
    /// Those that differ.
    pub problems: Vec<Problem>,
}

impl InstalledModels {
    /// Those in `folder`.
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
    /// `Embedding` when the folder can't be read.
    pub fn list(&self) -> Result<Vec<InstalledModel>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let entries =
            entries.map_err(|error| broken(&self.folder, "it", "can't be read").with_source(error))?;
        let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
        // What is being installed has a name that begins with a dot.
        let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).collect();
        names.sort();
        Ok(names.into_iter().filter_map(|name| self.installed(name)).collect())
    }

    /// The model of this name, in whichever case.
    ///
    /// # Errors
    ///
    /// `Validation` for a name that is none, or that no installed model has.
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

    /// Compares the files of the model with what was installed.
    ///
    /// # Errors
    ///
    /// Those of [`InstalledModels::find`]; `Embedding` when the folder has no manifest to compare with.
    pub fn verify(&self, name: &str) -> Result<Verification> {
        let InstalledModel { name, folder, .. } = self.find(name)?;
        let Some(manifest) = Manifest::read(&folder)? else {
            return Err(broken(&folder, MANIFEST, "is missing: the model was put there by hand"));
        };
        Ok(Verification { name, files: manifest.files.len(), problems: manifest.problems(&folder) })
    }

    /// Copies the model in the folder `from`, to be called `name`, or else as that folder is.
    ///
    /// Only files that belong to a model are copied. The model is checked before it gets its name, so that there is
    /// either a whole one or none.
    ///
    /// # Errors
    ///
    /// `Validation` for a name that is none or is taken; `Embedding` when `from` is not a model that can be read, or
    /// copying fails.
    pub fn install_from(&self, from: &Path, name: Option<&str>) -> Result<InstalledModel> {
        let of_folder = folder_name(from);
        let name = name.unwrap_or(&of_folder);
        self.check_free(name)?;
        let before = check(from, &of_folder)?;
        let begun = Begun::new(&self.folder, name)?;
        let files = copy::copy_model(from, begun.folder())?;
        let after = check(begun.folder(), name)?;
        if after.prompts == Prompts::default() && before.prompts != after.prompts {
            let what = format!("names no prompts, and they are not known of a model called {name:?}");
            return Err(broken(from, super::describe::PROMPTS, what).with("prompts known of", of_folder));
        }
        self.finish(begun, name, Manifest { source: from.display().to_string(), files })
    }

    /// Fetches the model of this name, one of [`super::KNOWN`], from `hub`. `progress` is told how many bytes came.
    ///
    /// The revision is fixed, weights and tokenizer are compared with known hashes, and there is either a whole model
    /// afterwards or none. What was fetched before it broke off is fetched again.
    ///
    /// # Errors
    ///
    /// `Validation` for an unknown name, one that is installed, or where downloads are not built in (feature `http`);
    /// `Embedding` when the hub can't be reached (retryable), refuses, or sends something else than is known.
    pub async fn install(
        &self,
        name: &str,
        hub: &Hub,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<InstalledModel> {
        let Some(known) = KnownModel::find(name) else {
            let rule = format!("no model {name:?} is known; known are {}", known::names());
            return Err(Error::validation("model", rule));
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
        let begun = Begun::new(&self.folder, known.name)?;
        let files = super::download::fetch(known, hub, &begun, progress).await?;
        check(begun.folder(), known.name)?;
        self.finish(begun, known.name, Manifest { source: hub.source(known), files })
    }

    #[cfg(not(feature = "http"))]
    pub(super) async fn fetch(
        &self,
        _known: &KnownModel,
        _hub: &Hub,
        _progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<InstalledModel> {
        let rule = "this program is built without the feature local-transformer, and downloads nothing";
        Err(Error::validation("model", rule))
    }

    /// Gives what was put into a folder of its own the name under which it is found.
    fn finish(&self, begun: Begun, name: &str, manifest: Manifest) -> Result<InstalledModel> {
        manifest.write(begun.folder())?;
        begun.rename(&self.folder.join(name))?;
        self.find(name)
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.find(name) {
            Ok(model) => {
                let message = format!("the model {:?} is installed already", model.name);
                Err(Error::validation("model", message).with("folder", model.folder.display()))
            }
            Err(_) => check_name(name),
        }
    }
}

/// What the files in `folder` say, if all that are needed are there and whole.
fn check(folder: &Path, name: &str) -> Result<ModelDescription> {
    let described = describe(folder, name)?;
    copy::check_tokenizer(folder)?;
    weights::check(folder, &described)?;
    Ok(described)
}

/// What a folder is called, also when it is named as `.`.
pub(crate) fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn not_installed(name: &str, installed: &[InstalledModel]) -> Error {
    let names: Vec<&str> = installed.iter().map(|model| model.name.as_str()).collect();
    let there =
        if names.is_empty() { "none is".to_owned() } else { format!("there are {}", names.join(", ")) };
    let what = match KnownModel::find(name) {
        Some(known) => {
            format!("the model {:?} is not installed: `models install {}` does it", known.name, known.name)
        }
        None => format!(
            "no model {name:?} is installed ({there}); `models install` knows {}, and takes others from a folder",
            known::names()
        ),
    };
    Error::validation("model", what)
}

/// A model that is being installed: in a folder beside its place, so that it can be renamed to it.
pub(super) struct Begun(tempfile::TempDir);

impl Begun {
    fn new(models: &Path, name: &str) -> Result<Self> {
        let begun = fs::create_dir_all(models)
            .and_then(|()| tempfile::Builder::new().prefix(&format!(".{name}.")).tempdir_in(models));
        begun.map(Self).map_err(|error| broken(models, "it", "can't be written to").with_source(error))
    }

    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    fn rename(self, to: &Path) -> Result<()> {
        fs::rename(self.folder(), to)
            .map_err(|error| broken(to, "it", "can't be put into place").with_source(error))
    }
}

#[cfg(test)]
mod tests;
