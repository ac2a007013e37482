//! Names and values of settings.

use std::borrow::Cow;

/// A setting: its names, its type, and its purpose.
///
/// ```
/// use amplifier_session_core::config::Setting;
///
/// static SETTINGS: &[Setting] = &[
///     Setting::text("cosmos.endpoint", "AMPLIFIER_COSMOS_ENDPOINT", "The address of the account"),
///     Setting::switch("hnsw", "AMPLIFIER_SESSIONS_HNSW", "Also keep an HNSW index").with_default("false"),
/// ];
/// assert_eq!(SETTINGS[0].name(), "endpoint");
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// Its name in the configuration file; a dot separates table and key.
    pub key: &'static str,
    /// Its name in the environment.
    pub variable: &'static str,
    /// Its name on the command line, if it has one.
    pub option: Option<&'static str>,
    /// Its value if no source sets one. `None` leaves it to the code that uses the setting.
    pub default: Option<&'static str>,
    /// The type of its value.
    pub kind: SettingKind,
    /// Whether the configuration file may set it.
    pub in_file: bool,
    /// Its purpose: one sentence without a full stop.
    pub help: &'static str,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// A text.
    Text,
    /// A text that is never shown.
    Secret,
    /// A whole number of at least 0.
    Count,
    /// A number of at least 0.
    Number,
    /// Yes or no: `true` or `false` in the file, also `on` and `off` elsewhere.
    Switch,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Texts: a list in the file, elsewhere separated by commas, except commas in braces.
    List,
    /// Paths: a string or a list in the file, elsewhere separated as in `PATH`.
    Paths,
}

impl SettingKind {
    /// The rule for values, to follow "must be" in a message.
    #[must_use]
    pub fn rule(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Text | Self::Secret => "a string in quotes",
            Self::Count => "a whole number of at least 0",
            Self::Number => "a number of at least 0",
            Self::Switch => "true or false",
            Self::Choice(choices) => return Cow::Owned(format!("one of {}", choices.join(", "))),
            Self::List => "a list of strings in quotes, such as [\"a\", \"b\"]",
            Self::Paths => "a string in quotes, or a list of them, such as [\"a\", \"b\"]",
        })
    }
}

impl Setting {
    const fn new(key: &'static str, variable: &'static str, kind: SettingKind, help: &'static str) -> Self {
        Self { key, variable, option: None, default: None, kind, in_file: true, help }
    }

    /// A setting that holds a text.
    #[must_use]
    pub const fn text(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Text, help)
    }

    /// A setting that holds a text that is never shown, and that no store URL can set.
    #[must_use]
    pub const fn secret(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Secret, help)
    }

    /// A setting that holds a whole number.
    #[must_use]
    pub const fn count(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Count, help)
    }

    /// A setting that holds a number.
    #[must_use]
    pub const fn number(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Number, help)
    }

    /// A setting that is true or false.
    #[must_use]
    pub const fn switch(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Switch, help)
    }

    /// A setting that holds one of `choices`, in any case.
    #[must_use]
    pub const fn choice(
        key: &'static str,
        variable: &'static str,
        choices: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(key, variable, SettingKind::Choice(choices), help)
    }

    /// A setting that holds several texts.
    #[must_use]
    pub const fn list(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::List, help)
    }

    /// A setting that holds one or several paths.
    #[must_use]
    pub const fn paths(key: &'static str, variable: &'static str, help: &'static str) -> Self {
        Self::new(key, variable, SettingKind::Paths, help)
    }

    /// Sets its name on the command line.
    #[must_use]
    pub const fn with_option(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }

    /// Sets its default.
    #[must_use]
    pub const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Keeps it out of the configuration file, which is shown and shared.
    #[must_use]
    pub const fn not_in_file(mut self) -> Self {
        self.in_file = false;
        self
    }

    /// Its name in a store URL: the last part of its key.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }

    /// Whether its value is never shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.kind == SettingKind::Secret
    }
}
