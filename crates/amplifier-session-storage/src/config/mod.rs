//! What is configured, and where: one place for programs and the library.
//!
//! | | the first that says something |
//! | --- | --- |
//! | 1 | the command line |
//! | 2 | the environment |
//! | 3 | the file, `~/.config/amplifier-sessions/config.toml` |
//! | 4 | the default |
//!
//! [`SETTINGS`] lists the settings with their names in each. [`ConfigSources::from_env`] reads the environment of the
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

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, Result, storage::EventDetail};

use crate::Variables;

pub use settings::{Kind, SETTINGS, Setting};

/// What holds the key of an account of Cosmos DB in the environment.
const COSMOS_KEY: &str = "AMPLIFIER_COSMOS_KEY";

/// What names the file in the environment.
pub const FILE_VARIABLE: &str = "AMPLIFIER_SESSIONS_CONFIG";

/// Where the configuration is looked for.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConfigSources {
    /// The file, if it is named; it has to exist then.
    pub file: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// What the command line says, by the keys of the settings.
    pub options: BTreeMap<String, String>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
}

impl ConfigSources {
    /// The environment and the home folder of this process.
    #[must_use]
    pub fn from_env() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment = std::env::vars_os().filter_map(text).collect();
        Self { home: std::env::home_dir(), environment, ..Self::default() }
    }

    /// Names the file.
    #[must_use]
    pub fn with_file(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// Sets the home folder.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Sets what the command line says of the setting `key`.
    #[must_use]
    pub fn with_option(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The value of a variable, unless it is blank.
    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The file, and whether it was named and so has to exist.
    fn file(&self) -> Option<(PathBuf, bool)> {
        let named = self.file.clone().filter(|file| !file.as_os_str().is_empty());
        let named = named.or_else(|| self.variable(FILE_VARIABLE).map(PathBuf::from));
        match named {
            Some(file) => Some((file, true)),
            None => Some((self.folder("XDG_CONFIG_HOME", ".config")?.join("config.toml"), false)),
        }
    }

    /// Our folder in one of those of the XDG Base Directory Specification, which passes over relative paths.
    fn folder(&self, variable: &str, default: &str) -> Option<PathBuf> {
        let base = self.variable(variable).map(PathBuf::from).filter(|base| base.is_absolute());
        Some(base.or_else(|| Some(self.home.as_ref()?.join(default)))?.join("amplifier-sessions"))
    }
}

impl fmt::Debug for ConfigSources {
    // Options and environment may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigSources")
            .field("file", &self.file)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// Who says what a setting is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The command line, by this option.
    CommandLine(&'static str),
    /// The environment, by this variable.
    Environment(&'static str),
    /// The file, in this line.
    File {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Nobody.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine(name) | Self::Environment(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting and what it is.
#[derive(Clone)]
pub struct Entry {
    /// The setting.
    pub setting: &'static Setting,
    /// Who says so.
    pub origin: Origin,
    value: Option<String>,
    /// The value of a list, text by text.
    items: Vec<String>,
}

impl Entry {
    /// What may be shown of the value; `None` where there is none.
    #[must_use]
    pub fn shown(&self) -> Option<&str> {
        let value = self.value.as_deref()?;
        Some(if self.setting.is_secret() { "set (hidden)" } else { value })
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?} ({})", self.setting.key, self.shown(), self.origin)
    }
}

/// The settings as they are in force.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The file that is looked for; `None` where the home folder is unknown.
    file: Option<PathBuf>,
    file_exists: bool,
    entries: Vec<Entry>,
    sources: ConfigSources,
}

impl Configuration {
    /// Reads all sources.
    ///
    /// # Errors
    ///
    /// `Validation` when the file that was named does not exist, or a file says what makes no sense; the message names
    /// file and line.
    pub fn read(sources: &ConfigSources) -> Result<Self> {
        let (file, said) = match sources.file() {
            None => (None, None),
            Some((path, must_exist)) => {
                let said = file::read(&path)?;
                if said.is_none() && must_exist {
                    let message = format!("there is no configuration file {}", path.display());
                    return Err(Error::validation("config", message));
                }
                (Some(path), said)
            }
        };
        let file_exists = said.is_some();
        let said = said.unwrap_or_default();
        let entry = |setting| entry(setting, sources, file.as_deref(), &said);
        let entries = SETTINGS.iter().map(entry).collect();
        Ok(Self { file, file_exists, entries, sources: sources.clone() })
    }

    /// The file that is read where it exists; `None` where there can be none, since the home folder is unknown.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether that file exists.
    #[must_use]
    pub fn file_exists(&self) -> bool {
        self.file_exists
    }

    /// All settings, in the order of [`SETTINGS`].
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The value of a setting; `None` where it has none, or there is no such setting.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entry(key)?.value.as_deref()
    }

    /// Who says what a setting is.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.entry(key).map_or(&Origin::Default, |entry| &entry.origin)
    }

    /// The value of a setting that is a list; nothing where it has none, or there is no such setting.
    #[must_use]
    pub fn list(&self, key: &str) -> &[String] {
        self.entry(key).map(|entry| entry.items.as_slice()).unwrap_or_default()
    }

    /// The value of a setting that is one of some texts.
    ///
    /// # Errors
    ///
    /// As [`Configuration::count`].
    pub fn choice(&self, key: &str) -> Result<Option<String>> {
        let kind = self.entry(key).map(|entry| entry.setting.kind);
        self.parsed(key, |text| match kind {
            Some(Kind::Choice(choices)) => choices.contains(&text).then(|| text.to_owned()),
            _ => None,
        })
    }

    /// The value of a setting that is a whole number.
    ///
    /// # Errors
    ///
    /// `Validation` when it is none; the message names who says so.
    pub fn count(&self, key: &str) -> Result<Option<u64>> {
        self.parsed(key, |text| text.parse().ok())
    }

    /// The value of a setting that is a number.
    ///
    /// # Errors
    ///
    /// As [`Configuration::count`].
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.parsed(key, |text| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0))
    }

    /// The value of a setting that is yes or no; no where it has no value.
    ///
    /// # Errors
    ///
    /// As [`Configuration::count`].
    pub fn switch(&self, key: &str) -> Result<bool> {
        let value = self.parsed(key, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Some(true),
            "false" | "off" | "no" | "0" => Some(false),
            _ => None,
        });
        Ok(value?.unwrap_or(false))
    }

    /// What is configured by the name that it has in the environment: what providers are built of. Variables that are
    /// no setting are looked up in the environment.
    ///
    /// A default counts as not set, so that whoever asks can tell what is wanted from what is not.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        match self.entries.iter().find(|entry| entry.setting.variable == name) {
            Some(entry) if entry.origin == Origin::Default => None,
            Some(entry) => entry.value.clone(),
            None => self.sources.variable(name).map(str::to_owned),
        }
    }

    /// What stores of a service are configured by: the variables of the environment, and the settings of `[cosmos]` by
    /// their names there. A file that holds the key is read.
    ///
    /// # Errors
    ///
    /// `Validation` when that file can't be read.
    pub fn variables(&self) -> Result<Variables> {
        let mut variables = self.sources.environment.clone();
        for entry in self.entries.iter().filter(|entry| entry.setting.key.starts_with("cosmos.")) {
            if let Some(value) = self.variable(entry.setting.variable) {
                variables.insert(entry.setting.variable.to_owned(), value);
            }
        }
        let has_key = self.sources.variable(COSMOS_KEY).is_some();
        if let Some(file) = self.text("cosmos.key_file").and_then(|file| self.path(file)).filter(|_| !has_key)
        {
            let key = std::fs::read_to_string(&file).map_err(|error| {
                let message =
                    format!("the file of cosmos.key_file can't be read: {}: {error}", file.display());
                Error::validation("config", message).with_source(error)
            })?;
            variables.insert(COSMOS_KEY.to_owned(), key.trim().to_owned());
        }
        Ok(variables.into_iter().collect())
    }

    /// How much of event logs is kept.
    ///
    /// # Errors
    ///
    /// As [`Configuration::count`].
    pub fn event_detail(&self) -> Result<EventDetail> {
        Ok(match self.choice("events")?.as_deref() {
            Some("summary") => EventDetail::Summary,
            Some("none") => EventDetail::None,
            _ => EventDetail::Full,
        })
    }

    /// The folder that holds `projects/`; `None` where the home folder is unknown.
    #[must_use]
    pub fn root(&self) -> Option<PathBuf> {
        self.path(self.text("root")?)
    }

    /// The folder for what can be made again, such as vectors; `None` where the home folder is unknown.
    #[must_use]
    pub fn cache_directory(&self) -> Option<PathBuf> {
        let entry = self.entry("cache.directory")?;
        if entry.origin == Origin::Default {
            return self.sources.folder("XDG_CACHE_HOME", ".cache");
        }
        self.path(entry.value.as_deref()?)
    }

    /// The folder with DuckDB's extensions; `None` leaves it to DuckDB.
    #[must_use]
    pub fn extension_directory(&self) -> Option<PathBuf> {
        self.path(self.text("extension_directory")?)
    }

    /// A path that may begin in the home folder; `None` where that is unknown.
    fn path(&self, text: &str) -> Option<PathBuf> {
        match text.strip_prefix("~/") {
            Some(rest) => Some(self.sources.home.as_ref()?.join(rest)),
            None => Some(PathBuf::from(text)),
        }
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.setting.key == key)
    }

    fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let Some(text) = entry.value.as_deref() else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| {
            let message = format!("{}: {key} must be {}", entry.origin, entry.setting.kind.rule());
            Error::validation("config", message).with("value", format_args!("{text:?}"))
        })
    }
}

/// What `setting` is by the first source that says something.
fn entry(
    setting: &'static Setting,
    sources: &ConfigSources,
    file: Option<&Path>,
    said: &file::Said,
) -> Entry {
    let (origin, value) = if let Some(value) = sources.options.get(setting.key) {
        (Origin::CommandLine(setting.option.unwrap_or("the command line")), Some(value.as_str()))
    } else if let Some(value) = sources.variable(setting.variable) {
        (Origin::Environment(setting.variable), Some(value))
    } else if let (Some((value, line)), Some(path)) = (said.get(setting.key), file) {
        (Origin::File { path: path.to_owned(), line: *line }, Some(value.as_str()))
    } else {
        (Origin::Default, setting.default)
    };
    let items = match setting.kind {
        Kind::List => items(value.unwrap_or_default()),
        _ => Vec::new(),
    };
    let value =
        if setting.kind == Kind::List { value.map(|_| items.join(", ")) } else { value.map(str::to_owned) };
    Entry { setting, origin, value, items }
}

/// The texts of a list: lines, or where there is one line, what stands between commas that are in no braces.
fn items(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut is_end = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let parts: Vec<&str> =
        if text.contains('\n') { text.lines().collect() } else { text.split(&mut is_end).collect() };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
