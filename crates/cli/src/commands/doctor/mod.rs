//! `doctor`: checks an installation.

mod limits;
mod machine;
mod store;

use std::io;

use serde::Serialize;

use crate::{
    app::App,
    failure::{Failure, Outcome},
    program,
    render::text::{counted, one_line},
};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckStatus {
    Ok,
    Warning,
    Failed,
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// A check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: CheckStatus,
    /// The finding.
    text: String,
    /// The suggested action.
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, text: text.into(), hint: None }
    }

    fn warning(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Warning, text: text.into(), hint: Some(hint.into()) }
    }

    fn failed(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Failed, text: text.into(), hint: Some(hint.into()) }
    }

    /// A check that failed with an error.
    fn of(name: &'static str, app: &App, failure: &Failure) -> Self {
        let store = app.store_url().ok().map(|url| url.to_string());
        let hint = failure.hint(&app.program(), store.as_deref());
        Self { name, status: CheckStatus::Failed, text: failure.message().to_owned(), hint }
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
    if checks.iter().all(|check| check.status != CheckStatus::Failed) {
        store::check(app, &mut checks).await;
        machine::check_roots(app, &mut checks);
        checks.extend([limits::open_files(), limits::notifications()].into_iter().flatten());
        store::copies(app, &mut checks).await;
    }
    let failed = checks.iter().filter(|check| check.status == CheckStatus::Failed).count();
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

/// One line for each check. On a terminal, its hint follows on a separate line.
fn print(app: &mut App, checks: &[Check]) -> io::Result<()> {
    let (paint, is_terminal) = (app.out.paint, app.out.is_terminal());
    for Check { name, status, text, hint } in checks {
        let text = one_line(text);
        let hint = hint.as_deref().map(one_line);
        if !is_terminal {
            let fields = [status.as_str(), name, &text, hint.as_deref().unwrap_or_default()];
            app.out.line(fields.join("\t").trim_end())?;
            continue;
        }
        let shown = format!("{:<7}", status.as_str());
        let shown = match status {
            CheckStatus::Ok => paint.aside(&shown),
            CheckStatus::Warning => paint.warning(&shown),
            CheckStatus::Failed => paint.failure(&shown),
        };
        app.out.line(&format!("{shown}  {name:<13}  {text}"))?;
        if let Some(hint) = hint {
            app.out.line(&format!("{:24}{}", "", paint.aside(&format!("hint: {hint}"))))?;
        }
    }
    Ok(())
}
