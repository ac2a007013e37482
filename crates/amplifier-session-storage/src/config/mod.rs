//! The configuration: one place for programs and the library.
//!
//! The first of these that has a value for a setting wins:
//!
//! 1. the URL of the store, for the settings of its backend;
//! 2. the command line;
//! 3. the environment;
//! 4. the file, `~/.config/amplifier-sessions/config.toml`;
//! 5. the default.
//!
//! [`settings`] lists the settings with their names in each. [`ConfigSources::from_env`] reads the environment of the
//! process; everything after that is a function of the [`ConfigSources`].
//!
//! ```
//! use amplifier_session_storage::config::{ConfigSources, Configuration};
//!
//! let sources = ConfigSources::default()
//!     .with_variable("OPENAI_EMBEDDING_MODEL", "text-embedding-3-small")
//!     .with_option("store", "sqlite:other.sqlite");
//! let configuration = Configuration::read(&sources)?;
//! assert_eq!(configuration.text("store"), Some("sqlite:other.sqlite"));
//! assert_eq!(configuration.origin("openai.model").to_string(), "OPENAI_EMBEDDING_MODEL");
//! # Ok::<(), amplifier_session_storage::Error>(())
//! ```

mod embedding;
mod file;
mod settings;
mod sources;

use std::{
    ops::Deref,
    path::{Path, PathBuf},
};

pub use amplifier_session_core::config::{Entry, Setting, SettingKind, SettingOrigin, Settings, Variables};
use amplifier_session_core::{
    Error, ErrorField, Result,
    backend::OpenRequest,
    storage::{EventDetail, SecretsAtRest},
};

use crate::store_url::StoreUrl;

pub use settings::settings;
pub use sources::ConfigSources;

/// The environment variable that names the configuration file.
pub const FILE_VARIABLE: &str = "AMPLIFIER_SESSIONS_CONFIG";

/// All settings with their values, which the methods of [`Settings`] read.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The path of the file, which may not exist; `None` if the home folder is unknown.
    file: Option<PathBuf>,
    file_exists: bool,
    settings: Settings,
    sources: ConfigSources,
}

/// Every setting at its default.
impl Default for Configuration {
    fn default() -> Self {
        Self::without_file(&ConfigSources::default())
    }
}

impl Deref for Configuration {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Configuration {
    /// Reads all sources.
    ///
    /// # Errors
    ///
    /// `Validation` when the named file does not exist, or a file has an unknown setting or a wrong value; the message
    /// gives the file and the line.
    pub fn read(sources: &ConfigSources) -> Result<Self> {
        let Some((path, must_exist)) = sources.file() else { return Ok(Self::without_file(sources)) };
        let values = file::read(&path)?;
        if values.is_none() && must_exist {
            let message = format!("there is no configuration file {}", path.display());
            return Err(Error::validation(ErrorField::Config, message));
        }
        let file_exists = values.is_some();
        let values = values.unwrap_or_default();
        Ok(Self { file_exists, file: Some(path.clone()), ..Self::of(sources, &path, &values) })
    }

    /// Reads all sources except the file.
    #[must_use]
    pub fn without_file(sources: &ConfigSources) -> Self {
        Self::of(sources, Path::new(""), &file::Values::new())
    }

    fn of(sources: &ConfigSources, file: &Path, values: &file::Values) -> Self {
        let entries = settings().map(|setting| entry(setting, sources, file, values)).collect();
        let settings = Settings::new(entries, sources.home.clone());
        Self { file: None, file_exists: false, settings, sources: sources.clone() }
    }

    /// The configuration for one store; its URL may set values for settings of its backend.
    #[must_use]
    pub fn for_store(mut self, url: &StoreUrl) -> Self {
        for entry in url.settings() {
            self.settings.replace(entry.clone());
        }
        self
    }

    /// A request to open the store at `url`, with the settings of its backend.
    pub(crate) fn open_request(&self, url: &StoreUrl) -> OpenRequest {
        let configured = self.clone().for_store(url);
        OpenRequest::default()
            .with_settings(configured.only(url.backend().settings))
            .with_environment(self.sources.environment.clone())
    }

    /// The path of the configuration file, whether or not it exists; `None` if the home folder is unknown.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether that file exists.
    #[must_use]
    pub fn file_exists(&self) -> bool {
        self.file_exists
    }

    /// The value of a setting by its name in the environment, or of any other environment variable. Embedding providers
    /// are configured this way. A default does not count as set.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = match self.entries().iter().find(|entry| entry.setting.variable == name) {
            Some(entry) => entry.value().filter(|_| entry.origin != SettingOrigin::Default),
            None => self.sources.environment.get(name),
        };
        value.map(str::to_owned)
    }

    /// How much of the event logs is stored.
    ///
    /// # Errors
    ///
    /// As [`Settings::count`].
    pub fn event_detail(&self) -> Result<EventDetail> {
        Ok(match self.choice("events")? {
            Some("summary") => EventDetail::Summary,
            Some("none") => EventDetail::None,
            _ => EventDetail::Full,
        })
    }

    /// How secrets in stored lines are treated. If the setting is missing, returns `None`, and the store decides.
    ///
    /// # Errors
    ///
    /// As [`Settings::count`].
    pub fn secrets_at_rest(&self) -> Result<Option<SecretsAtRest>> {
        match self.choice("redact")? {
            Some(level) if *self.origin("redact") != SettingOrigin::Default => level.parse().map(Some),
            _ => Ok(None),
        }
    }

    /// The folders that hold `projects/` or `state/workspaces/`, which may not exist; empty if the home folder is unknown.
    /// By default, that of Amplifier and that of its agent.
    #[must_use]
    pub fn roots(&self) -> Vec<PathBuf> {
        self.paths("root")
    }

    /// The folder with captures that are not in the folders of their sessions. As in Amplifier, a path that is not
    /// absolute counts as not set.
    #[must_use]
    pub fn captures(&self) -> Option<PathBuf> {
        self.path("captures").filter(|path| path.is_absolute())
    }

    /// The folder for data that can be recreated, such as vectors; `None` if the home folder is unknown.
    #[must_use]
    pub fn cache_directory(&self) -> Option<PathBuf> {
        match self.origin("cache.directory") {
            SettingOrigin::Default => self.sources.folder("XDG_CACHE_HOME", ".cache"),
            _ => self.path("cache.directory"),
        }
    }
}

/// The value of `setting` from the first source that has one.
fn entry(setting: &'static Setting, sources: &ConfigSources, file: &Path, values: &file::Values) -> Entry {
    let (origin, value) = if let Some(value) = sources.options.get(setting.key) {
        (SettingOrigin::CommandLine(setting.option.unwrap_or("the command line")), Some(value.as_str()))
    } else if let Some(value) = sources.environment.get(setting.variable) {
        (SettingOrigin::Environment(setting.variable), Some(value))
    } else if let Some((value, line)) = values.get(setting.key) {
        (SettingOrigin::File { path: file.to_owned(), line: *line }, Some(value.as_str()))
    } else if setting.key == "root" {
        return Entry::new(setting, SettingOrigin::Default, Some(&default_roots(&sources.environment)));
    } else {
        (SettingOrigin::Default, setting.default)
    };
    Entry::new(setting, origin, value)
}

/// The folders of Amplifier and of its agent, one per line.
fn default_roots(environment: &Variables) -> String {
    let folder = |variable, usual| environment.get(variable).unwrap_or(usual).to_owned();
    let roots =
        [folder("AMPLIFIER_HOME", "~/.amplifier"), folder("AMPLIFIER_AGENT_HOME", "~/.amplifier-agent")];
    roots.map(|root| root + "\n").concat()
}

#[cfg(test)]
mod tests;
