//! The configuration file.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorField, KnownPart, Result,
    config::{Setting, SettingKind},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::settings::settings;
use crate::backends::LEFT_OUT;

/// The values in a file with their line numbers, by the keys of the settings.
pub(super) type Values = HashMap<&'static str, (String, usize)>;

/// The values in the file at `path`; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Values>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("{} can't be read", path.display());
            Err(Error::validation(ErrorField::Config, message).with_source(error))
        }
    }
}

/// The values in `text`; `path` is for errors.
fn parse(path: &Path, text: &str) -> Result<Values> {
    let file = ConfigFile { path: path.to_owned(), text };
    // Only the message: the whole error shows the line, which may contain a key.
    let document = DeTable::parse(text)
        .map_err(|error| file.wrong(error.span().unwrap_or_default(), error.message()))?;
    let mut values = Values::new();
    for (key, value) in document.get_ref() {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (inner, value) in table {
                    let name = format!("{}.{}", key.get_ref(), inner.get_ref());
                    file.take(&mut values, &name, inner.span(), value)?;
                }
            }
            _ => file.take(&mut values, key.get_ref(), key.span(), value)?,
        }
    }
    Ok(values)
}

struct ConfigFile<'a> {
    path: PathBuf,
    text: &'a str,
}

impl ConfigFile<'_> {
    fn take(
        &self,
        values: &mut Values,
        name: &str,
        span: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<()> {
        let Some(setting) = in_file().find(|setting| setting.key == name) else {
            // Other builds of the program may read the same file.
            let of_other_build = LEFT_OUT.iter().any(|backend| backend.has_setting(name));
            return if of_other_build { Ok(()) } else { Err(self.wrong(span, &unknown(name))) };
        };
        let Some(text) = text_of(setting, value.get_ref()) else {
            return Err(self.wrong(span, &format!("{name} must be {}", setting.kind.rule())));
        };
        if !text.trim().is_empty() {
            values.insert(setting.key, (text, self.line(&span)));
        }
        Ok(())
    }

    fn wrong(&self, span: Range<usize>, what: &str) -> Error {
        let what = what.trim().replace('\n', ", ");
        Error::validation(
            ErrorField::Config,
            format!("{}, line {}: {what}", self.path.display(), self.line(&span)),
        )
    }

    /// The line number, from 1.
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().part(..span.start);
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The settings that a file may have.
fn in_file() -> impl Iterator<Item = &'static Setting> {
    settings().filter(|setting| setting.in_file)
}

/// The value as a text; `None` if it has the wrong type for the setting.
fn text_of(setting: &Setting, value: &DeValue<'_>) -> Option<String> {
    match (setting.kind, value) {
        (SettingKind::Text | SettingKind::Secret, DeValue::String(text)) => Some(text.clone().into_owned()),
        (SettingKind::Count | SettingKind::Number, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (SettingKind::Number, DeValue::Float(number)) => {
            let number: f64 = number.as_str().parse().ok()?;
            (number.is_finite() && number >= 0.0).then(|| number.to_string())
        }
        (SettingKind::Switch, DeValue::Boolean(value)) => Some(value.to_string()),
        (SettingKind::Choice(choices), DeValue::String(text)) => {
            choices.contains(&text.as_ref()).then(|| text.clone().into_owned())
        }
        (SettingKind::Paths, DeValue::String(text)) if !text.contains('\n') => Some(format!("{text}\n")),
        (SettingKind::List | SettingKind::Paths, DeValue::Array(items)) => items
            .iter()
            .map(|item| match item.get_ref() {
                // One per line, so that a comma in a text does not separate values.
                DeValue::String(text) if !text.contains('\n') => Some(format!("{text}\n")),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn unknown(name: &str) -> String {
    let table_of = |key: &'static str| key.split_once('.').map(|(table, _)| table);
    let table = name.split_once('.').map(|(table, _)| table);
    let beside = in_file().map(|setting| setting.key).filter(|key| table_of(key) == table);
    let mut known: Vec<String> = beside.map(str::to_owned).collect();
    if known.is_empty() {
        let tables: BTreeSet<_> = in_file().filter_map(|setting| table_of(setting.key)).collect();
        known = tables.into_iter().map(|table| format!("[{table}]")).collect();
    }
    format!("unknown setting {name:?}; the known settings are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Values> {
        parse(Path::new("config.toml"), text)
    }

    #[test]
    fn every_kind_of_value_is_read_with_its_line() {
        let values = parsed(
            "store = 'sqlite:a'\nredact = 'off'\n\nprice_per_million_tokens = 0.13\n[openai]\n# a comment\ndimensions = 1_024\napi_key = \"k\"\nmodel = ''\n",
        )
        .unwrap();
        assert_eq!(values["store"], ("sqlite:a".to_owned(), 1));
        assert_eq!(values["redact"], ("off".to_owned(), 2));
        assert_eq!(values["price_per_million_tokens"], ("0.13".to_owned(), 4));
        assert_eq!(values["openai.dimensions"], ("1024".to_owned(), 7));
        assert_eq!(values["openai.api_key"], ("k".to_owned(), 8));
        // An empty text is not a value.
        assert_eq!(values.len(), 5);
        assert_eq!(parsed("price_per_million_tokens = 2").unwrap()["price_per_million_tokens"].0, "2");
        assert_eq!(parsed("events = 'none'").unwrap()["events"].0, "none");
        assert_eq!(parsed("exclude = ['a/{b,c}', 'd,e']").unwrap()["exclude"].0, "a/{b,c}\nd,e\n");
        assert!(parsed("exclude = []").unwrap().is_empty());
        assert_eq!(parsed("openai.model = 'm'").unwrap()["openai.model"].0, "m");
    }

    #[test]
    fn an_error_names_file_and_line() {
        for (text, says) in [
            (
                "\nstor = 'x'",
                "config.toml, line 2: unknown setting \"stor\"; the known settings are store, root, captures, user",
            ),
            (
                "[openai]\nmodle = 'x'",
                "line 2: unknown setting \"openai.modle\"; the known settings are openai.base_url",
            ),
            (
                "[opnai]\nmodel = 'x'",
                "line 2: unknown setting \"opnai.model\"; the known settings are [azure_openai], [cache], ",
            ),
            ("store = 7", "line 1: store must be a string in quotes"),
            ("redact = 'perhaps'", "line 1: redact must be one of off, mark, mask"),
            ("[cache]\nmax_megabytes = -1", "line 2: cache.max_megabytes must be a whole number"),
            ("price_per_million_tokens = nan", "must be a number"),
            ("events = 'some'", "line 1: events must be one of full, summary, none"),
            ("teams = 'a'", "line 1: teams must be a list of strings in quotes"),
            ("exclude = ['a', 1]", "line 1: exclude must be a list of strings in quotes"),
            ("openai = 3", "unknown setting \"openai\""),
            ("openai.model.name = 'x'", "openai.model must be a string in quotes"),
            ("a\nb", "line 1: "),
        ] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::Config));
            assert!(error.message().contains(says), "{error}");
        }
    }

    #[test]
    #[cfg(feature = "cosmos")]
    fn the_key_of_an_account_is_not_in_the_file() {
        let error = parsed("[cosmos]\nkey = 'c2VjcmV0'").unwrap_err();
        let known = "unknown setting \"cosmos.key\"; the known settings are cosmos.endpoint, cosmos.database";
        assert!(error.message().contains(known) && !format!("{error:?}").contains("c2VjcmV0"), "{error}");
    }

    #[test]
    fn an_error_does_not_show_the_line_itself() {
        for text in [
            "[openai]\napi_key = \"hunter2",
            "[openai]\napi_key = hunter2",
            "[openai]\napi_key = ['hunter2']",
        ] {
            let error = parsed(text).unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn a_missing_file_is_not_an_error_but_an_unreadable_one_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&folder.path().join("none.toml")).unwrap().is_none());
        assert!(read(folder.path()).is_err());
    }
}
