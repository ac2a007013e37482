//! `doctor`: checks an installation.

mod clients;
mod limits;
mod machine;
mod store;

use std::io;

use amplifier_session_api::operations::check_store::FindingLevel;
use serde::Serialize;

use crate::{
    app::App,
    failure::{Failure, Outcome},
    program,
    render::{
        note::wrapped_line,
        text::{counted, one_line},
    },
};

/// The checks, in the order in which they are printed.
const ORDER: [&str; 18] = [
    "configuration",
    "store",
    "schema",
    "index",
    "model",
    "credentials",
    "permissions",
    "disk",
    "log",
    "clock",
    "times",
    "watch",
    "root",
    "captures",
    "mcp",
    "open files",
    "inotify",
    "copies",
];

/// A check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: FindingLevel,
    /// The finding.
    text: String,
    /// The suggested action.
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, status: FindingLevel::Ok, text: text.into(), hint: None }
    }

    fn warning(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: FindingLevel::Warning, text: text.into(), hint: Some(hint.into()) }
    }

    fn failed(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: FindingLevel::Failed, text: text.into(), hint: Some(hint.into()) }
    }

    /// A check that failed with an error.
    fn of(name: &'static str, app: &App, failure: &Failure) -> Self {
        let store = app.store_url().ok().map(|url| url.to_string());
        let hint = failure.hint(&app.program(), store.as_deref());
        Self { name, status: FindingLevel::Failed, text: failure.message().to_owned(), hint }
    }
}

/// The results as JSON.
#[derive(Serialize)]
struct DoctorView<'a> {
    ok: bool,
    checks: &'a [Check],
}

pub(super) async fn run(app: &mut App) -> Result<Outcome, Failure> {
    let mut checks = vec![configuration(app)];
    // Without the configuration, it is unknown what to check.
    if checks.iter().all(|check| check.status != FindingLevel::Failed) {
        store::check(app, &mut checks).await;
        machine::check_roots(app, &mut checks);
        clients::check(app, &mut checks);
        checks.extend([limits::open_files(), limits::notifications()].into_iter().flatten());
        store::copies(app, &mut checks).await;
    }
    checks.sort_by_key(|check| ORDER.iter().position(|name| *name == check.name));
    let failed = checks.iter().filter(|check| check.status == FindingLevel::Failed).count();
    if app.out.is_json() {
        app.out.json(&DoctorView { ok: failed == 0, checks: &checks })?;
    } else {
        print(app, &checks)?;
    }
    app.out.finish()?;
    match failed {
        0 => Ok(Outcome::Done),
        failed => Err(Failure::without_hint(format!("{} failed", counted(failed as u64, "check")))),
    }
}

fn configuration(app: &App) -> Check {
    const NAME: &str = "configuration";
    if let Some(error) = &app.config_error {
        return Check::of(NAME, app, &Failure::from(error.clone()));
    }
    match app.config.file().filter(|_| app.config.file_exists()) {
        Some(file) => Check::ok(NAME, file.display().to_string()),
        None => {
            let show = format!("no file; `{} config show` shows the defaults", program::name());
            Check::ok(NAME, show)
        }
    }
}

/// The columns before the text of a check.
const INDENT: usize = 24;
/// As [`INDENT`], on a terminal that is narrower than [`ROOMY`].
const NARROW_INDENT: usize = 4;
const ROOMY: usize = 60;

/// One line for each check. On a terminal, they are wrapped, and its hint follows on a separate line.
fn print(app: &mut App, checks: &[Check]) -> io::Result<()> {
    let (paint, is_terminal) = (app.out.paint, app.out.is_terminal());
    for Check { name, status, text, hint } in checks {
        let level = match status {
            FindingLevel::Ok => "ok",
            FindingLevel::Warning => "warning",
            FindingLevel::Failed => "failed",
        };
        let text = one_line(text);
        let hint = hint.as_deref().map(one_line);
        if !is_terminal {
            let fields = [level, name, &text, hint.as_deref().unwrap_or_default()];
            app.out.line(fields.join("\t").trim_end())?;
            continue;
        }
        let painted = match status {
            FindingLevel::Ok => paint.aside(level),
            FindingLevel::Warning => paint.warning(level),
            FindingLevel::Failed => paint.failure(level),
        };
        let columns = app.out.width;
        let below = " ".repeat(if columns < ROOMY { NARROW_INDENT } else { INDENT });
        let begin = format!("{level:<7}  {name:<13}  ");
        let lines = wrapped_line(&text, &begin, &below, columns);
        for (at, line) in lines.iter().enumerate() {
            let rest = line.strip_prefix(level).filter(|_| at == 0);
            app.out.line(&rest.map_or_else(|| line.clone(), |rest| format!("{painted}{rest}")))?;
        }
        if let Some(hint) = hint {
            for line in wrapped_line(&format!("hint: {hint}"), &below, &below, columns) {
                app.out.line(&paint.aside(&line))?;
            }
        }
    }
    Ok(())
}
