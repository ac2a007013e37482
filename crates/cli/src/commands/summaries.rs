//! `import --summaries`: sets summaries of turns.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use amplifier_session_storage::{
    Scope,
    model::{TurnSummary, UserId},
    storage::{GivenSummary, SummaryReport},
};
use serde::{Deserialize, Serialize};

use crate::{
    app::{App, StoreReader},
    args::ImportArgs,
    failure::{Failure, Outcome},
    file::is_stdout,
    render::text::grouped,
    streams::InputStream,
};

/// A line of the file.
#[derive(Deserialize)]
struct SummaryLine {
    message_id: String,
    text: String,
}

/// The report as JSON.
#[derive(Serialize)]
struct SummariesView<'a> {
    summaries: u64,
    unchanged: u64,
    /// Turns that were embedded again.
    turns: u64,
    /// Why turns could not be embedded.
    pending_reason: Option<&'a str>,
}

pub(super) async fn run(app: &mut App, args: ImportArgs) -> Result<Outcome, Failure> {
    let reader = app.editor(true).await?;
    let Scope::User(user) = reader.scope.clone() else {
        return Err(Failure::wrong_use("summaries are set for one user only", "omit --scope"));
    };
    let summaries = read(&reader, &user, &args.file, &app.environment.stdin).await?;
    let report = reader.storage.turns().set_summaries(summaries).await?;
    let SummaryReport { summaries, unchanged, embedded, .. } = &report;
    let reason = embedded.failure.as_ref().map(ToString::to_string);
    if app.out.is_json() {
        let (summaries, unchanged, turns) = (*summaries, *unchanged, embedded.turns);
        app.out.json(&SummariesView { summaries, unchanged, turns, pending_reason: reason.as_deref() })?;
    } else {
        let unchanged = match unchanged {
            0 => String::new(),
            unchanged => format!(" ({} unchanged)", grouped(*unchanged)),
        };
        app.out.line(&format!("summaries  {}{unchanged}", grouped(*summaries)))?;
        app.out.line(&format!("turns      {} embedded", grouped(embedded.turns)))?;
    }
    app.out.finish()?;
    match reason {
        None => Ok(Outcome::Done),
        Some(reason) => {
            let message = format!("the summaries are stored, but some turns could not be embedded: {reason}");
            let hint = format!("`{} embeddings backfill --turns` continues", app.program_with_embedding());
            Err(Failure::failed(message, hint))
        }
    }
}

/// The summaries in a file. All of them must be valid.
async fn read(
    reader: &StoreReader,
    user: &UserId,
    path: &Path,
    stdin: &InputStream,
) -> Result<Vec<TurnSummary>, Failure> {
    const HINT: &str = "each line is {\"message_id\": \"3a7c1e90#4\", \"text\": \"…\"}; nothing was stored";
    let name = if is_stdout(path) { "stdin".to_owned() } else { path.display().to_string() };
    let lines: Vec<io::Result<Vec<u8>>> = if is_stdout(path) {
        stdin.read(|stdin| stdin.split(b'\n').collect())
    } else {
        let file = File::open(path).map_err(|error| {
            Failure::failed(
                format!("can't read {name}: {error}"),
                "pass a file of JSON lines, or - for stdin",
            )
        })?;
        BufReader::new(file).split(b'\n').collect()
    };
    let mut summaries = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        let wrong = |why: String| Failure::failed(format!("{name}, line {}: {why}", at + 1), HINT);
        let line = line.map_err(|error| wrong(error.to_string()))?;
        // Some programs begin a text file with a byte order mark.
        let line = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| at == 0).unwrap_or(&line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        let SummaryLine { message_id, text } =
            serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        let given = GivenSummary { message: message_id, text };
        let summary = reader.storage.turns().resolve_summary(user, &given).await;
        summaries.push(summary.map_err(|error| wrong(error.to_string()))?);
    }
    Ok(summaries)
}
