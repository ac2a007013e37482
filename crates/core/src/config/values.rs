//! Settings with their values, and the origin of each value.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{Setting, SettingKind};
use crate::{Error, ErrorField, Result};

/// The origin of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingOrigin {
    /// The URL of the store.
    StoreUrl,
    /// The command line, by this option.
    CommandLine(&'static str),
    /// The environment, by this variable.
    Environment(&'static str),
    /// The configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
    },
    /// The default of the setting.
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreUrl => f.write_str("store URL"),
            Self::CommandLine(name) | Self::Environment(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting with its value.
#[derive(Clone)]
pub struct Entry {
    /// The setting.
    pub setting: &'static Setting,
    /// The origin of the value.
    pub origin: SettingOrigin,
    value: Option<String>,
    /// The texts of a list.
    items: Vec<String>,
}

impl Entry {
    /// `setting` with the value that `origin` gives it. The texts of a list are separated by line breaks, or by commas;
    /// paths by line breaks, or as in `PATH`.
    #[must_use]
    pub fn new(setting: &'static Setting, origin: SettingOrigin, value: Option<&str>) -> Self {
        let items = match setting.kind {
            SettingKind::List => items(value.unwrap_or_default()),
            SettingKind::Paths => paths(value.unwrap_or_default()),
            _ => return Self { setting, origin, value: value.map(str::to_owned), items: Vec::new() },
        };
        Self { setting, origin, value: value.map(|_| items.join(", ")), items }
    }

    /// The value; `None` if there is none.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The part of the value that may be shown; `None` if there is no value.
    #[must_use]
    pub fn shown(&self) -> Option<&str> {
        let value = self.value()?;
        Some(if self.setting.is_secret() || has_password(value) { "set (hidden)" } else { value })
    }
}

/// Whether a URL has a password: `SCHEME://USER:PASSWORD@HOST`.
#[must_use]
pub fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':'))
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {:?} ({})", self.setting.key, self.shown(), self.origin)
    }
}

/// Settings with their values.
///
/// Methods take the key of a setting. They return `None` for a setting without a value, and for a setting that is not
/// in this set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    entries: Vec<Entry>,
    home: Option<PathBuf>,
}

impl Settings {
    /// Settings with their values. `home` is the folder that `~` stands for in paths.
    #[must_use]
    pub fn new(entries: Vec<Entry>, home: Option<PathBuf>) -> Self {
        Self { entries, home }
    }

    /// All settings, in their order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The folder that `~` stands for.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Replaces the value of a setting, if it is among these.
    pub fn replace(&mut self, entry: Entry) {
        if let Some(old) = self.entries.iter_mut().find(|old| old.setting.key == entry.setting.key) {
            *old = entry;
        }
    }

    /// Keeps only the settings in `settings`.
    #[must_use]
    pub fn only(&self, settings: &[Setting]) -> Self {
        let entries = self.entries.iter().filter(|entry| settings.contains(entry.setting)).cloned();
        Self::new(entries.collect(), self.home.clone())
    }

    /// The value as a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entry(key)?.value()
    }

    /// The value as a path, with a leading `~/` replaced by the home folder. `None` also if the home folder is unknown.
    #[must_use]
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.resolved(self.text(key)?)
    }

    /// The values of a list as paths, with a leading `~/` replaced by the home folder. Leaves out such paths if the home
    /// folder is unknown.
    #[must_use]
    pub fn paths(&self, key: &str) -> Vec<PathBuf> {
        self.list(key).iter().filter_map(|path| self.resolved(path)).collect()
    }

    fn resolved(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => Some(self.home()?.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }

    /// The origin of the value.
    #[must_use]
    pub fn origin(&self, key: &str) -> &SettingOrigin {
        self.entry(key).map_or(&SettingOrigin::Default, |entry| &entry.origin)
    }

    /// The texts of a list; empty if it has none.
    #[must_use]
    pub fn list(&self, key: &str) -> &[String] {
        self.entry(key).map(|entry| entry.items.as_slice()).unwrap_or_default()
    }

    /// The value of a setting that accepts certain texts, in the spelling of the setting.
    ///
    /// # Errors
    ///
    /// As [`Settings::count`].
    pub fn choice(&self, key: &str) -> Result<Option<&'static str>> {
        let choices = match self.entry(key).map(|entry| entry.setting.kind) {
            Some(SettingKind::Choice(choices)) => choices,
            _ => &[],
        };
        self.parsed(key, |text| choices.iter().find(|choice| choice.eq_ignore_ascii_case(text)).copied())
    }

    /// The value as a whole number.
    ///
    /// # Errors
    ///
    /// `Validation` if it is not one; the message contains the origin of the value.
    pub fn count(&self, key: &str) -> Result<Option<u64>> {
        self.parsed(key, |text| text.parse().ok())
    }

    /// The value as a number.
    ///
    /// # Errors
    ///
    /// As [`Settings::count`].
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.parsed(key, |text| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0))
    }

    /// Whether the setting is on; false if it has no value.
    ///
    /// # Errors
    ///
    /// As [`Settings::count`].
    pub fn switch(&self, key: &str) -> Result<bool> {
        Ok(self.parsed(key, switched)?.unwrap_or(false))
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.setting.key == key)
    }

    fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let Some(text) = entry.value() else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| {
            let message = format!("{}: {key} must be {}", entry.origin, entry.setting.kind.rule());
            Error::validation(ErrorField::Config, message).with("value", format_args!("{text:?}"))
        })
    }
}

/// Whether a text means yes; `None` if it means neither yes nor no.
fn switched(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The texts of a list: its lines or, if there is only one line, the parts between commas, except commas in braces.
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

/// The paths in a text: its lines, or the parts between the separators of `PATH`.
fn paths(text: &str) -> Vec<String> {
    let parts: Vec<String> = if text.contains('\n') {
        text.lines().map(str::to_owned).collect()
    } else {
        std::env::split_paths(text).map(|path| path.to_string_lossy().into_owned()).collect()
    };
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    static SETTINGS: &[Setting] = &[
        Setting::switch("switch", "SWITCH", ""),
        Setting::count("table.count", "COUNT", "").with_default("7"),
        Setting::number("number", "NUMBER", ""),
        Setting::choice("choice", "CHOICE", &["quantizedFlat", "flat"], ""),
        Setting::list("list", "LIST", ""),
        Setting::secret("key", "KEY", ""),
        Setting::text("file", "FILE", ""),
        Setting::paths("folders", "FOLDERS", ""),
    ];

    fn settings(value: &str) -> Settings {
        let entry = |setting: &'static Setting| {
            Entry::new(setting, SettingOrigin::Environment(setting.variable), Some(value))
        };
        Settings::new(SETTINGS.iter().map(entry).collect(), Some(PathBuf::from("/home/ana")))
    }

    #[test]
    fn values_are_read_as_their_kind() {
        assert!(settings("on").switch("switch").unwrap() && !settings("No").switch("switch").unwrap());
        assert_eq!(settings("12").count("table.count").unwrap(), Some(12));
        assert_eq!(settings("0.5").number("number").unwrap(), Some(0.5));
        assert_eq!(settings("QuantizedFLAT").choice("choice").unwrap(), Some("quantizedFlat"));
        assert_eq!(settings("a/{b,c}, d").list("list"), ["a/{b,c}", "d"]);
        assert_eq!(settings("~/key").path("file"), Some(PathBuf::from("/home/ana/key")));
        assert_eq!(settings("x").text("unknown"), None);
        let paths = |value: &str| settings(value).paths("folders");
        assert_eq!(paths("~/a,b\n/c:d\n"), [Path::new("/home/ana/a,b"), Path::new("/c:d")]);
        #[cfg(unix)]
        assert_eq!(paths("~/a,b: /c ::"), [Path::new("/home/ana/a,b"), Path::new("/c")]);
    }

    #[test]
    fn an_error_names_the_origin_the_setting_and_the_rule() {
        let of = |error: Error| error.message().to_owned();
        let bad = settings("perhaps");
        assert_eq!(of(bad.switch("switch").unwrap_err()), "SWITCH: switch must be true or false");
        assert_eq!(
            of(bad.count("table.count").unwrap_err()),
            "COUNT: table.count must be a whole number of at least 0"
        );
        assert_eq!(of(bad.number("number").unwrap_err()), "NUMBER: number must be a number of at least 0");
        assert_eq!(
            of(bad.choice("choice").unwrap_err()),
            "CHOICE: choice must be one of quantizedFlat, flat"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", settings("hunter2").only(&SETTINGS[5..6]));
        assert!(shown.contains("set (hidden)") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_value_is_replaced_only_where_there_is_the_setting() {
        let mut some = settings("1").only(&SETTINGS[..2]);
        for setting in SETTINGS {
            some.replace(Entry::new(setting, SettingOrigin::StoreUrl, Some("2")));
        }
        assert_eq!(some.entries().len(), 2);
        assert_eq!((some.text("switch"), some.origin("switch")), (Some("2"), &SettingOrigin::StoreUrl));
    }
}
