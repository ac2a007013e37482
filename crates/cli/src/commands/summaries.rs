//! `import --summaries`: sets summaries of turns.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use amplifier_session_api::{
    ApiAnswer, ApiError, InvalidRequest,
    operations::summaries::{SummariesRequest, SummariesResponse, SummaryOfTurn},
};

use crate::{
    app::App,
    args::ImportArgs,
    failure::{Failure, Outcome},
    file::is_stdout,
    render::text::grouped,
    streams::InputStream,
};

pub(super) async fn run(app: &mut App, args: ImportArgs) -> Result<Outcome, Failure> {
    let store = app.editor(true).await?;
    let file = SummaryFile::read(&args.file, &app.environment.stdin)?;
    let answer = store.api(app).summaries(&file.request).await;
    let ApiAnswer { response, notices } = answer.map_err(|error| file.failure(error))?;
    app.say_notices(&notices);
    show(app, &response)?;
    match response.pending_reason {
        None => Ok(Outcome::Done),
        Some(reason) => {
            let message = format!("the summaries are stored, but some turns could not be embedded: {reason}");
            let hint = format!("`{} embeddings backfill --turns` continues", app.program_with_embedding());
            Err(Failure::failed(message, hint))
        }
    }
}

fn show(app: &mut App, response: &SummariesResponse) -> Result<(), Failure> {
    let SummariesResponse { summaries, unchanged, turns, .. } = response;
    if app.out.is_json() {
        app.out.json(response)?;
    } else {
        let unchanged = match unchanged {
            0 => String::new(),
            unchanged => format!(" ({} unchanged)", grouped(*unchanged)),
        };
        app.out.line(&format!("summaries  {}{unchanged}", grouped(*summaries)))?;
        app.out.line(&format!("turns      {} embedded", grouped(*turns)))?;
    }
    Ok(app.out.finish()?)
}

/// A file of summaries, one JSON object per line.
struct SummaryFile {
    name: String,
    request: SummariesRequest,
    /// The line of each summary, from 1.
    lines: Vec<usize>,
}

impl SummaryFile {
    fn read(path: &Path, stdin: &InputStream) -> Result<Self, Failure> {
        let name = if is_stdout(path) { "stdin".to_owned() } else { path.display().to_string() };
        let mut file = Self { name, request: SummariesRequest::default(), lines: Vec::new() };
        for (at, line) in file.lines_of(path, stdin)?.into_iter().enumerate() {
            let line = line.map_err(|error| file.wrong(at + 1, &error))?;
            // Some programs begin a text file with a byte order mark.
            let line = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| at == 0).unwrap_or(&line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let summary: SummaryOfTurn =
                serde_json::from_slice(line).map_err(|error| file.wrong(at + 1, &error))?;
            file.request.summaries.push(summary);
            file.lines.push(at + 1);
        }
        Ok(file)
    }

    fn lines_of(&self, path: &Path, stdin: &InputStream) -> Result<Vec<io::Result<Vec<u8>>>, Failure> {
        if is_stdout(path) {
            return Ok(stdin.read(|stdin| stdin.split(b'\n').collect()));
        }
        let file = File::open(path).map_err(|error| {
            let message = format!("can't read {}: {error}", self.name);
            Failure::failed(message, "pass a file of JSON lines, or - for stdin")
        })?;
        Ok(BufReader::new(file).split(b'\n').collect())
    }

    /// The failure of setting the summaries, with the line if one of them is wrong.
    fn failure(&self, error: ApiError) -> Failure {
        match error {
            ApiError::Invalid(InvalidRequest::WrongSummary { position, reason }) => {
                self.wrong(self.lines.get(position).copied().unwrap_or_default(), &reason)
            }
            other => other.into(),
        }
    }

    fn wrong(&self, line: usize, reason: &dyn std::fmt::Display) -> Failure {
        Failure::failed(
            format!("{}, line {line}: {reason}", self.name),
            "each line is {\"message_id\": \"3a7c1e90#4\", \"text\": \"…\"}; nothing was stored",
        )
    }
}
