//! The sources of settings.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use amplifier_session_core::config::Variables;

use super::FILE_VARIABLE;

/// The sources of settings.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConfigSources {
    /// The configuration file, if one is named. It must exist then.
    pub file: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// The values of the command line, by the keys of the settings.
    pub options: BTreeMap<String, String>,
    /// The environment.
    pub environment: Variables,
}

impl ConfigSources {
    /// The environment and the home folder of this process.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(std::env::home_dir(), std::env::vars_os())
    }

    /// This home folder and these environment variables. Those that are not valid Unicode are left out.
    #[must_use]
    pub fn new(home: Option<PathBuf>, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let environment = variables.into_iter().filter_map(text).collect();
        Self { home, environment, ..Self::default() }
    }

    /// Names the configuration file.
    #[must_use]
    pub fn with_file(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// Sets the value that the command line gives for the setting `key`.
    #[must_use]
    pub fn with_option(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.set(name, value);
        self
    }

    /// The configuration file, and whether it must exist because it is named.
    pub(super) fn file(&self) -> Option<(PathBuf, bool)> {
        let named = self.file.clone().filter(|file| !file.as_os_str().is_empty());
        match named.or_else(|| self.environment.get(FILE_VARIABLE).map(PathBuf::from)) {
            Some(file) => Some((file, true)),
            None => Some((self.folder_of_configuration()?.join("config.toml"), false)),
        }
    }

    /// The folder for our configuration: `~/.config/amplifier-sessions`, or that in `XDG_CONFIG_HOME`. `None` if there
    /// is no home folder.
    #[must_use]
    pub fn folder_of_configuration(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    /// Our folder in a folder of the XDG Base Directory Specification, which ignores relative paths.
    pub(super) fn folder(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let base = self.environment.get(variable).map(Path::new).filter(|base| base.is_absolute());
        let base = base.map(Path::to_owned).or_else(|| Some(self.home.as_ref()?.join(default)))?;
        Some(base.join("amplifier-sessions"))
    }
}

impl fmt::Debug for ConfigSources {
    // The options may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSources")
            .field("file", &self.file)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
