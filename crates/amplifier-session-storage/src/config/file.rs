//! The configuration file.

use std::{
    collections::HashMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, Result};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::settings::{Kind, SETTINGS, Setting};

/// What a file says: each value with its line, by its key.
pub(super) type Said = HashMap<&'static str, (String, usize)>;

/// What the file at `path` says; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<Said>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("{} can't be read", path.display());
            Err(Error::validation("config", message).with_source(error))
        }
    }
}

/// What `text` says; `path` is for errors.
fn parse(path: &Path, text: &str) -> Result<Said> {
    let file = File { path: path.to_owned(), text };
    // The message alone: the error as a whole shows the line, which may hold a key.
    let document = DeTable::parse(text)
        .map_err(|error| file.wrong(error.span().unwrap_or_default(), error.message()))?;
    let mut said = Said::new();
    for (key, value) in document.get_ref() {
        match value.get_ref() {
            DeValue::Table(table) => {
                for (inner, value) in table {
                    let name = format!("{}.{}", key.get_ref(), inner.get_ref());
                    file.take(&mut said, &name, inner.span(), value)?;
                }
            }
            _ => file.take(&mut said, key.get_ref(), key.span(), value)?,
        }
    }
    Ok(said)
}

struct File<'a> {
    path: PathBuf,
    text: &'a str,
}

impl File<'_> {
    fn take(
        &self,
        said: &mut Said,
        name: &str,
        place: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<()> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == name) else {
            return Err(self.wrong(place, &unknown(name)));
        };
        let Some(text) = text_of(setting, value.get_ref()) else {
            return Err(self.wrong(place, &format!("{name} must be {}", setting.kind.rule())));
        };
        if !text.trim().is_empty() {
            said.insert(setting.key, (text, self.line(&place)));
        }
        Ok(())
    }

    fn wrong(&self, place: Range<usize>, what: &str) -> Error {
        let what = what.trim().replace('\n', ", ");
        Error::validation("config", format!("{}, line {}: {what}", self.path.display(), self.line(&place)))
    }

    /// The number of the line, from 1.
    fn line(&self, place: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..place.start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The value as a text; `None` when it is not of the setting's kind.
fn text_of(setting: &Setting, value: &DeValue<'_>) -> Option<String> {
    match (setting.kind, value) {
        (Kind::Text | Kind::Secret, DeValue::String(text)) => Some(text.clone().into_owned()),
        (Kind::Count | Kind::Number, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (Kind::Number, DeValue::Float(number)) => {
            let number: f64 = number.as_str().parse().ok()?;
            (number.is_finite() && number >= 0.0).then(|| number.to_string())
        }
        (Kind::Switch, DeValue::Boolean(value)) => Some(value.to_string()),
        (Kind::Choice(choices), DeValue::String(text)) => {
            choices.contains(&text.as_ref()).then(|| text.clone().into_owned())
        }
        (Kind::List, DeValue::Array(items)) => items
            .iter()
            .map(|item| match item.get_ref() {
                // A line each: nothing in one is taken for what stands between two.
                DeValue::String(text) if !text.contains('\n') => Some(format!("{text}\n")),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn unknown(name: &str) -> String {
    let table = name.split_once('.').map_or("", |(table, _)| table);
    let beside = |setting: &&Setting| setting.key.split_once('.').map_or("", |(table, _)| table) == table;
    let mut known: Vec<&str> = SETTINGS.iter().filter(beside).map(|setting| setting.key).collect();
    if known.is_empty() {
        known = vec!["[cosmos]", "[cache]", "[openai]", "[azure_openai]"];
    }
    format!("there is no setting {name:?}; known are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Said> {
        parse(Path::new("config.toml"), text)
    }

    #[test]
    fn every_kind_of_value_is_read_with_its_line() {
        let said = parsed(
            "store = 'sqlite:a'\nredact = false\n\nprice_per_million_tokens = 0.13\n[openai]\n# a comment\ndimensions = 1_024\napi_key = \"k\"\nmodel = ''\n",
        )
        .unwrap();
        assert_eq!(said["store"], ("sqlite:a".to_owned(), 1));
        assert_eq!(said["redact"], ("false".to_owned(), 2));
        assert_eq!(said["price_per_million_tokens"], ("0.13".to_owned(), 4));
        assert_eq!(said["openai.dimensions"], ("1024".to_owned(), 7));
        assert_eq!(said["openai.api_key"], ("k".to_owned(), 8));
        // Nothing between the quotes is nothing said.
        assert_eq!(said.len(), 5);
        assert_eq!(parsed("price_per_million_tokens = 2").unwrap()["price_per_million_tokens"].0, "2");
        assert_eq!(parsed("events = 'none'").unwrap()["events"].0, "none");
        assert_eq!(parsed("exclude = ['a/{b,c}', 'd,e']").unwrap()["exclude"].0, "a/{b,c}\nd,e\n");
        assert!(parsed("exclude = []").unwrap().is_empty());
        assert_eq!(parsed("openai.model = 'm'").unwrap()["openai.model"].0, "m");
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        for (text, says) in [
            (
                "\nstor = 'x'",
                "config.toml, line 2: there is no setting \"stor\"; known are store, root, user",
            ),
            (
                "[openai]\nmodle = 'x'",
                "line 2: there is no setting \"openai.modle\"; known are openai.base_url",
            ),
            (
                "[opnai]\nmodel = 'x'",
                "line 2: there is no setting \"opnai.model\"; known are [cosmos], [cache], [openai]",
            ),
            ("store = 7", "line 1: store must be a text in quotes"),
            ("redact = 'off'", "line 1: redact must be true or false"),
            ("[cache]\nmax_megabytes = -1", "line 2: cache.max_megabytes must be a whole number"),
            ("price_per_million_tokens = nan", "must be a number"),
            ("events = 'some'", "line 1: events must be one of full, summary, none"),
            ("teams = 'a'", "line 1: teams must be a list of texts in quotes"),
            ("exclude = ['a', 1]", "line 1: exclude must be a list of texts in quotes"),
            ("[cosmos]\nkey = 'c2VjcmV0'", "there is no setting \"cosmos.key\"; known are cosmos.endpoint"),
            ("openai = 3", "there is no setting \"openai\""),
            ("openai.model.name = 'x'", "openai.model must be a text"),
            ("a\nb", "line 1: "),
        ] {
            let error = parsed(text).unwrap_err();
            assert_eq!(error.context("field"), Some("config"));
            assert!(error.message().contains(says), "{error}");
        }
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
    fn no_file_is_no_error_and_an_unreadable_one_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&folder.path().join("none.toml")).unwrap().is_none());
        assert!(read(folder.path()).is_err());
    }
}
