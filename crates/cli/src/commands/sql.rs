//! `sql`: queries a DuckDB store.

use std::{io::Write, path::Path};

use amplifier_session_storage::duckdb::sql::{READY_VIEWS, SqlAnswer, SqlForm, SqlQuery, SqlRow};
use serde::Serialize;

use crate::{
    app::App,
    args::{SqlArgs, SqlFormat},
    failure::{Failure, Outcome, say},
    file::{WholeFile, is_stdout, is_stream},
    paint::Paint,
    render::{
        sql::{self, Json},
        text::{counted, escaped, printable},
    },
};

/// The default number of rows in a table on a terminal: nobody reads more.
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

/// The result of writing to a file, as JSON.
#[derive(Serialize)]
struct FileView {
    file: String,
    rows: u64,
}

pub(super) async fn run(app: &mut App, mut args: SqlArgs) -> Result<Outcome, Failure> {
    // Stdout is the default.
    args.out = args.out.filter(|file| !is_stdout(file));
    let Some(query) = &args.query else { return views(app) };
    let written = written(app, &args)?;
    if let Some(file) = &args.out {
        app.check_out(file)?;
        if written == SqlFormat::Parquet && is_stream(file) {
            return Err(parquet_needs_a_file());
        }
    }
    let (reader, scope) = app.sql_reader().await?;
    let is_shown = written == SqlFormat::Table && args.out.is_none();
    let limit = args.limit.or(is_shown.then_some(MOST_IN_A_TABLE));
    let form = if written == SqlFormat::Json { SqlForm::Json } else { SqlForm::Text };
    let query = SqlQuery::new(query).with_form(form);
    if let (SqlFormat::Parquet, Some(file)) = (written, &args.out) {
        let rows = reader.query_to_parquet(&scope, &query.with_limit(limit), file).await?;
        return in_file(app, file, rows);
    }
    // One more than needed, to know whether there are more.
    let query = query.with_limit(limit.map(|limit| limit.saturating_add(1)));
    let mut answer =
        SqlOutput { rows: reader.query(&scope, &query).await?, left: limit, has_more: false, count: 0 };
    let (width, paint) = (app.out.width, app.out.paint);
    match &args.out {
        // JSON is written only when it is complete. On a terminal, control characters in JSON and CSV are removed.
        None if written == SqlFormat::Json || app.out.is_terminal() => {
            let mut text = Vec::new();
            answer.write(written, &mut text, width, paint).await?;
            let text = String::from_utf8_lossy(&text);
            let text = match written {
                SqlFormat::Json if app.out.is_terminal() => escaped(text.trim_end()) + "\n",
                SqlFormat::Csv => printable(&text),
                _ => text.into_owned(),
            };
            app.out.text(&text)?;
        }
        None => answer.write(written, app.out.writer(), width, paint).await?,
        Some(file) => {
            let mut fresh = WholeFile::begin(file)?;
            answer.write(written, fresh.writer(), usize::MAX, Paint::new(false)).await?;
            fresh.persist()?;
            return in_file(app, file, answer.count);
        }
    }
    app.out.finish()?;
    if answer.has_more && written != SqlFormat::Json {
        let shown = counted(answer.count, "row");
        say("note", &format!("showing {shown}; --limit N shows more, and --format csv shows all"));
    } else if answer.count == 0 {
        say("note", "no rows");
    }
    Ok(Outcome::found(answer.count > 0))
}

fn written(app: &App, args: &SqlArgs) -> Result<SqlFormat, Failure> {
    if let Some(file) = &args.out {
        let format = args.format.or_else(|| SqlFormat::of_file(file)).ok_or_else(|| {
            let message = format!("no output format is known for {}", file.display());
            Failure::wrong_use(message, "pass --format csv, json, parquet or table")
        })?;
        return Ok(format);
    }
    match args.format {
        Some(SqlFormat::Parquet) => Err(parquet_needs_a_file()),
        Some(format) if app.out.is_json() && format != SqlFormat::Json => {
            Err(Failure::wrong_use("--json and --format contradict each other", "omit one of them"))
        }
        Some(format) => Ok(format),
        None if app.out.is_json() => Ok(SqlFormat::Json),
        None if app.out.is_terminal() => Ok(SqlFormat::Table),
        None => Ok(SqlFormat::Tabs),
    }
}

fn parquet_needs_a_file() -> Failure {
    Failure::wrong_use("Parquet can only be written to a file", "pass a file with --out FILE")
}

fn views(app: &mut App) -> Result<Outcome, Failure> {
    if app.out.is_json() {
        let view = |view: &amplifier_session_storage::duckdb::sql::ReadyView| ViewView {
            name: view.name,
            about: view.about,
            columns: view.columns,
        };
        app.out.json(&ViewsView { views: READY_VIEWS.iter().map(view).collect() })?;
    } else {
        let lines = if app.out.is_terminal() {
            sql::views(&READY_VIEWS, app.out.width, app.out.paint)
        } else {
            sql::views_tabbed(&READY_VIEWS)
        };
        app.out.lines(&lines)?;
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

/// An answer that is being written.
struct SqlOutput {
    rows: SqlAnswer,
    /// The number of further rows to show.
    left: Option<usize>,
    has_more: bool,
    count: u64,
}

impl SqlOutput {
    /// The next rows to show.
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
        written: SqlFormat,
        out: &mut dyn Write,
        width: usize,
        paint: Paint,
    ) -> Result<(), Failure> {
        match written {
            SqlFormat::Table => {
                // The widths of the columns depend on all rows.
                let mut all = Vec::new();
                while let Some(rows) = self.next().await? {
                    all.extend(rows);
                }
                for line in sql::table(self.rows.columns(), &all, width, paint) {
                    writeln!(out, "{line}")?;
                }
            }
            SqlFormat::Csv => {
                let names = self.rows.columns().iter().map(|column| Some(column.name.as_str()));
                writeln!(out, "{}", sql::csv(names))?;
                while let Some(rows) = self.next().await? {
                    for row in &rows {
                        writeln!(out, "{}", sql::csv(row.iter().map(Option::as_deref)))?;
                    }
                }
            }
            SqlFormat::Json => {
                let mut json = Json::begin(out, self.rows.columns())?;
                while let Some(rows) = self.next().await? {
                    json.rows(out, &rows)?;
                }
                json.end(out, self.has_more)?;
            }
            SqlFormat::Tabs | SqlFormat::Parquet => {
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
