//! `config`: the configuration, and where each value comes from.

use amplifier_session_storage::{
    StoreUrl,
    config::{Configuration, Entry, SettingOrigin},
};
use serde::Serialize;

use crate::{
    app::App,
    failure::{Failure, Outcome},
    out::Out,
    paint::Paint,
    render::{
        table::{Column, Style, TableCell, table as laid_out},
        text::one_line,
    },
};

/// The configuration, as JSON.
#[derive(Serialize)]
struct ConfigView {
    file: Option<String>,
    file_exists: bool,
    settings: Vec<SettingView>,
}

/// A setting, as JSON.
#[derive(Serialize)]
struct SettingView {
    key: &'static str,
    /// `null` if it is not set, and for keys.
    value: Option<String>,
    is_set: bool,
    /// One of `store URL`, `command line`, `environment`, `file`, `default`.
    origin: &'static str,
    /// The option, the variable, or the line in the file.
    origin_name: Option<String>,
    variable: &'static str,
}

impl From<&Entry> for SettingView {
    fn from(entry: &Entry) -> Self {
        let (origin, origin_name) = match &entry.origin {
            SettingOrigin::StoreUrl => ("store URL", None),
            SettingOrigin::CommandLine(option) => ("command line", Some((*option).to_owned())),
            SettingOrigin::Environment(variable) => ("environment", Some((*variable).to_owned())),
            SettingOrigin::File { line, .. } => ("file", Some(format!("line {line}"))),
            _ => ("default", None),
        };
        Self {
            key: entry.setting.key,
            value: entry.shown().filter(|_| !entry.setting.is_secret()).map(str::to_owned),
            is_set: entry.shown().is_some(),
            origin,
            origin_name,
            variable: entry.setting.variable,
        }
    }
}

pub(super) fn run(app: &mut App) -> Result<Outcome, Failure> {
    let config = &in_force(app);
    if app.out.is_json() {
        let file = config.file().map(|file| file.display().to_string());
        let settings = config.entries().iter().map(SettingView::from).collect();
        app.out.json(&ConfigView { file, file_exists: config.file_exists(), settings })?;
    } else if app.out.is_terminal() {
        table(&mut app.out, config.entries())?;
    } else {
        for entry in config.entries() {
            let value = entry.shown().unwrap_or_default();
            let fields = [entry.setting.key, &one_line(value), &one_line(&entry.origin.to_string())];
            app.out.line(&fields.join("\t"))?;
        }
    }
    Ok(Outcome::Done)
}

/// The configuration with the settings in the store URL. An invalid URL is shown unchanged.
fn in_force(app: &App) -> Configuration {
    let config = app.config.clone();
    match StoreUrl::parse(&app.global.store, app.home.as_deref()) {
        Ok(url) => config.for_store(&url),
        Err(_) => config,
    }
}

/// One line for each setting, in columns. Defaults are dimmed, because people look for what they have set.
fn table(out: &mut Out, entries: &[Entry]) -> std::io::Result<()> {
    let columns = [
        Column::text(""),
        Column::text(""),
        // The end of the path with its line is the most informative part.
        Column::text("").shrinking(1, 12).cut_at_start(),
    ];
    let row = |entry: &Entry| {
        let style: Style = if entry.origin == SettingOrigin::Default { Paint::aside } else { Paint::plain };
        let cells = [
            entry.setting.key.to_owned(),
            one_line(entry.shown().unwrap_or("not set")),
            one_line(&entry.origin.to_string()),
        ];
        cells.map(|text| TableCell::styled(text, style)).to_vec()
    };
    let rows: Vec<Vec<TableCell>> = entries.iter().map(row).collect();
    let lines = laid_out(&columns, &rows, out.width, out.paint);
    lines.iter().skip(1).try_for_each(|line| out.line(line))
}
