//! `sql`: questions to a DuckDB store.

use std::{io::Write, path::Path};

use amplifier_session_storage::duckdb::{READY_VIEWS, SqlAnswer, SqlForm, SqlQuery, SqlRow};
use serde::Serialize;

use crate::{
    app::App,
    args::{SqlArgs, SqlFormat},
    failure::{Failure, Outcome, say},
    file::{WholeFile, is_stdout, is_stream},
    paint::Paint,
    render::{
        sql::{self, Json},
        text::{counted, escaped, grouped, printable},
    },
};

/// How many rows a table has that is shown, by default: more are not read, but searched or counted.
const MOST_IN_A_TABLE: usize = 1_000;

/// The views, as JSON.
#[derive(Serialize)]
struct ViewsView {
    views: Vec<ViewView>,
}

/// A view, as JSON.
#[derive(Serialize)]
struct ViewView {
    name: &'static str,
    about: &'static str,
    columns: &'static [&'static str],
}

/// What was written to a file, as JSON.
#[derive(Serialize)]
struct FileView {
    file: String,
    rows: u64,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Table,
    Tabs,
    Csv,
    Json,
    Parquet,
}

pub(super) async fn run(app: &mut App, mut args: SqlArgs) -> Result<Outcome, Failure> {
    // An answer goes to stdout anyway.
    args.out = args.out.filter(|file| !is_stdout(file));
    let Some(query) = &args.query else { return views(app) };
    let written = written(app, &args)?;
    if let Some(file) = &args.out {
        app.check_out(file)?;
        if written == Written::Parquet && is_stream(file) {
            return Err(no_parquet_there());
        }
    }
    let (backend, scope) = app.duckdb().await?;
    let is_shown = written == Written::Table && args.out.is_none();
    let limit = args.limit.or(is_shown.then_some(MOST_IN_A_TABLE));
    let form = if written == Written::Json { SqlForm::Json } else { SqlForm::Text };
    let query = SqlQuery::new(query).with_form(form);
    if let (Written::Parquet, Some(file)) = (written, &args.out) {
        let rows = backend.sql_to_parquet(&scope, &query.with_limit(limit), file).await?;
        return in_file(app, file, rows);
    }
    // One more than is shown tells whether there are more.
    let query = query.with_limit(limit.map(|limit| limit.saturating_add(1)));
    let mut answer =
        Answer { rows: backend.sql(&scope, &query).await?, left: limit, has_more: false, count: 0 };
    let (width, paint) = (app.out.width, app.out.paint);
    match &args.out {
        // An object that breaks off is none: it is shown when it is whole. On a terminal, neither it nor CSV may act on it.
        None if written == Written::Json || app.out.is_terminal() => {
            let mut text = Vec::new();
            answer.write(written, &mut text, width, paint).await?;
            let text = String::from_utf8_lossy(&text);
            let text = match written {
                Written::Json if app.out.is_terminal() => escaped(text.trim_end()) + "\n",
                Written::Csv => printable(&text),
                _ => text.into_owned(),
            };
            app.out.text(&text)?;
        }
        None => answer.write(written, app.out.writer(), width, paint).await?,
        Some(file) => {
            let mut fresh = WholeFile::begin(file)?;
            answer.write(written, fresh.writer(), usize::MAX, Paint::new(false)).await?;
            fresh.place()?;
            return in_file(app, file, answer.count);
        }
    }
    app.out.finish()?;
    if answer.has_more && written != Written::Json {
        let shown = grouped(answer.count);
        say(
            "note",
            &format!("there are more than these {shown} rows: --limit N takes more, --format csv all"),
        );
    } else if answer.count == 0 {
        say("note", "no rows");
    }
    Ok(Outcome::found(answer.count > 0))
}

fn written(app: &App, args: &SqlArgs) -> Result<Written, Failure> {
    if let Some(file) = &args.out {
        let format = args.format.or_else(|| SqlFormat::of_file(file)).ok_or_else(|| {
            let message = format!("{} does not tell how the answer is to be written", file.display());
            Failure::wrong_use(message, "say it with --format csv, json, parquet or table")
        })?;
        return Ok(format.into());
    }
    match args.format {
        Some(SqlFormat::Parquet) => Err(no_parquet_there()),
        Some(format) if app.out.is_json() && format != SqlFormat::Json => {
            Err(Failure::wrong_use("--json and --format say different things", "leave one of them out"))
        }
        Some(format) => Ok(format.into()),
        None if app.out.is_json() => Ok(Written::Json),
        None if app.out.is_terminal() => Ok(Written::Table),
        None => Ok(Written::Tabs),
    }
}

fn no_parquet_there() -> Failure {
    Failure::wrong_use("Parquet is written to a file", "name it with --out FILE")
}

impl From<SqlFormat> for Written {
    fn from(format: SqlFormat) -> Self {
        match format {
            SqlFormat::Table => Self::Table,
            SqlFormat::Csv => Self::Csv,
            SqlFormat::Json => Self::Json,
            SqlFormat::Parquet => Self::Parquet,
        }
    }
}

fn views(app: &mut App) -> Result<Outcome, Failure> {
    if app.out.is_json() {
        let view = |view: &amplifier_session_storage::duckdb::ReadyView| ViewView {
            name: view.name,
            about: view.about,
            columns: view.columns,
        };
        app.out.json(&ViewsView { views: READY_VIEWS.iter().map(view).collect() })?;
    } else {
        let lines = match app.out.is_terminal() {
            true => sql::views(&READY_VIEWS, app.out.width, app.out.paint),
            false => sql::views_tabbed(&READY_VIEWS),
        };
        lines.iter().try_for_each(|line| app.out.line(line))?;
    }
    Ok(Outcome::Done)
}

fn in_file(app: &mut App, file: &Path, rows: u64) -> Result<Outcome, Failure> {
    let name = file.display().to_string();
    if app.out.is_json() {
        app.out.json(&FileView { file: name, rows })?;
    } else {
        app.out.line(&printable(&format!("{} in {name}", counted(rows, "row"))))?;
    }
    Ok(Outcome::found(rows > 0))
}

/// An answer while it is written.
struct Answer {
    rows: SqlAnswer,
    /// How many rows may still be shown.
    left: Option<usize>,
    has_more: bool,
    count: u64,
}

impl Answer {
    /// The next rows that are to be shown.
    async fn next(&mut self) -> Result<Option<Vec<SqlRow>>, Failure> {
        let Some(mut rows) = self.rows.next_rows().await? else { return Ok(None) };
        if let Some(left) = &mut self.left {
            self.has_more |= rows.len() > *left;
            rows.truncate(*left);
            *left -= rows.len();
        }
        self.count += rows.len() as u64;
        Ok(Some(rows))
    }

    async fn write(
        &mut self,
        written: Written,
        out: &mut dyn Write,
        width: usize,
        paint: Paint,
    ) -> Result<(), Failure> {
        match written {
            Written::Table => {
                let mut all = Vec::new();
                while let Some(rows) = self.next().await? {
                    all.extend(rows);
                }
                for line in sql::table(self.rows.columns(), &all, width, paint) {
                    writeln!(out, "{line}")?;
                }
            }
            Written::Csv => {
                let names = self.rows.columns().iter().map(|column| Some(column.name.as_str()));
                writeln!(out, "{}", sql::csv(names))?;
                while let Some(rows) = self.next().await? {
                    for row in &rows {
                        writeln!(out, "{}", sql::csv(row.iter().map(Option::as_deref)))?;
                    }
                }
            }
            Written::Json => {
                let mut json = Json::begin(out, self.rows.columns())?;
                while let Some(rows) = self.next().await? {
                    json.rows(out, &rows)?;
                }
                json.end(out, self.has_more)?;
            }
            Written::Tabs | Written::Parquet => {
                while let Some(rows) = self.next().await? {
                    for row in &rows {
                        writeln!(out, "{}", sql::tabbed(row))?;
                    }
                }
            }
        }
        Ok(())
    }
}
