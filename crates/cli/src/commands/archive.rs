//! `export` and `import`: sessions in files, to copy them between stores.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use amplifier_session_api::{
    ApiAnswer, ApiError,
    operations::{export::ExportRequest, import::ImportRequest},
};
use amplifier_session_storage::{
    Error, ErrorField,
    model::SessionKey,
    storage::{BrokenPart, ExportReport, ImportReport, JsonLinesReader},
};

use super::masking;
use crate::{
    app::App,
    args::{ExportArgs, ImportArgs, ScopeArg},
    failure::{Failure, Outcome, report_damage, say, say_some},
    file::{WholeFile, is_stdout},
    opened::OpenedStore,
    render::text::{counted, grouped, printable},
};

/// At most this many rejected sessions are listed.
const LISTED: usize = 10;

pub(super) async fn export(app: &mut App, args: ExportArgs) -> Result<Outcome, Failure> {
    app.check_out(&args.out)?;
    if args.out.extension().is_some_and(|extension| extension == "parquet") {
        let hint =
            "`sql 'FROM transcripts_with_content' --out FILE.parquet` writes Parquet from a DuckDB store";
        return Err(Failure::wrong_use("`export` writes JSON lines, not Parquet", hint));
    }
    let reader = app.patient_reader().await?;
    let ApiAnswer { response: report, notices } = to_file(app, &reader, &args).await?;
    app.say_notices(&notices);
    let (messages, events) = (counted(report.messages, "message"), counted(report.events, "event"));
    let mut counts = format!("{}, {messages}, {events}", counted(report.sessions, "session"));
    if args.vectors {
        counts = format!("{counts}, {}", counted(report.vectors, "vector"));
    }
    if report.turns > 0 {
        counts = format!("{counts}, {}", counted(report.turns, "embedded turn"));
    }
    if report.summaries > 0 {
        counts = format!("{counts}, {}", counted(report.summaries, "summarised turn"));
    }
    if is_stdout(&args.out) {
        // Stdout contains only the archive.
        say("note", &counts);
    } else if app.out.is_json() {
        app.out.json(&report)?;
    } else if report.sessions > 0 {
        app.out.line(&printable(&format!("{counts} in {}", args.out.display())))?;
    }
    app.out.finish()?;
    report_damage(&report.damaged)?;
    Ok(Outcome::found(report.sessions > 0))
}

/// Writes the archive. There is no file if no session matches.
async fn to_file(
    app: &App,
    reader: &OpenedStore,
    ExportArgs { out, vectors, place, session }: &ExportArgs,
) -> Result<ApiAnswer<ExportReport>, Failure> {
    let request = ExportRequest {
        scope: app.global.scope.into(),
        session: session.clone(),
        project: None,
        projects: place.projects.clone(),
        repo: place.repo.repo.clone(),
        vectors: *vectors,
    };
    let mut file = WholeFile::begin(out)?;
    let answer = match reader.api(app).export(&request, file.writer()).await {
        // The reader of stdout closed the pipe.
        Err(ApiError::Storage(error)) if is_stdout(out) && is_closed(&error) => {
            return Err(Failure::OutputClosed);
        }
        answer => answer?,
    };
    if answer.response.sessions > 0 {
        file.persist()?;
    }
    Ok(answer)
}

fn is_closed(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn open(file: &Path) -> Result<JsonLinesReader<BufReader<File>>, Failure> {
    let unreadable = |reason: &str| {
        let message = format!("can't read {}: {reason}", file.display());
        Failure::failed(message, "`import` reads files that `export --out FILE` wrote")
    };
    if file.is_dir() {
        return Err(unreadable("it is a folder"));
    }
    let opened = File::open(file).map_err(|error| unreadable(&error.to_string()))?;
    Ok(JsonLinesReader::seekable(BufReader::new(opened)))
}

/// An error about the archive, with its file.
fn in_file(error: ApiError, file: &Path) -> Failure {
    match error {
        ApiError::Storage(error) if error.field() == Some(ErrorField::Archive) => {
            error.with("file", file.display()).into()
        }
        error => error.into(),
    }
}

pub(super) async fn import(app: &mut App, args: ImportArgs) -> Result<Outcome, Failure> {
    let mut archive = open(&args.file)?;
    let writer = app.writer(app.settings_of_secrets()?).await?;
    if !masking::is_confirmed(app, &writer.storage, false).await? {
        say("note", "nothing was imported");
        return Ok(Outcome::Done);
    }
    let request = ImportRequest { all_users: app.global.scope == ScopeArg::All, replace: args.replace };
    let caller = app.caller()?;
    let imported = app.api(&writer.storage, &caller).import(&request, &mut archive).await;
    let report = imported.map_err(|error| in_file(error, &args.file))?.response;
    if app.out.is_json() {
        app.out.json(&report)?;
    } else {
        let replaced = match report.replaced {
            0 => String::new(),
            replaced => format!(" ({} replaced)", grouped(replaced)),
        };
        app.out.line(&format!("sessions  {}{replaced}", grouped(report.sessions)))?;
        app.out.line(&format!("messages  {}", grouped(report.messages)))?;
        app.out.line(&format!("events    {}", grouped(report.events)))?;
        if report.vectors > 0 {
            app.out.line(&format!("vectors   {}", grouped(report.vectors)))?;
        }
        if report.turns > 0 {
            app.out.line(&format!("turns     {}", grouped(report.turns)))?;
        }
        if report.summaries > 0 {
            app.out.line(&format!("summaries {}", grouped(report.summaries)))?;
        }
    }
    app.out.finish()?;
    outcome(app, &report)
}

fn outcome(app: &App, report: &ImportReport) -> Result<Outcome, Failure> {
    say_what_is_broken(&report.broken);
    say_what_is_back(&report.were_deleted);
    if report.vectors_left_out > 0 {
        let vectors = counted(report.vectors_left_out, "vector");
        say("note", &format!("not imported: {vectors} of a model other than the store's"));
    }
    let refused = report.refused.iter();
    let refused = refused.map(|of| format!("{} of {}: {}", of.session_id, of.user_id, of.reason));
    say_some("refused", refused, LISTED, report.refused.len() as u64);
    let refused = match report.refused.len() {
        0 => None,
        1 => Some("1 session was not imported".to_owned()),
        more => Some(format!("{} were not imported", counted(more as u64, "session"))),
    };
    let broken = match report.broken.len() {
        0 => None,
        more => Some(format!("the archive is broken in {}", counted(more as u64, "place"))),
    };
    // The other sessions are imported by now: a failure only says what is left to do.
    match (broken, refused) {
        (Some(broken), None) => {
            Err(Failure::failed(broken, "the intact sessions were imported; export the others again"))
        }
        (Some(broken), Some(refused)) => {
            Err(Failure::failed(format!("{broken}, and {refused}"), REFUSED_HINT))
        }
        (None, Some(refused)) => Err(Failure::failed(refused, REFUSED_HINT)),
        (None, None) => {
            if report.messages > 0 && report.vectors == 0 {
                let program = app.program_with_embedding();
                say("hint", &format!("`{program} embeddings backfill` creates vectors for your sessions"));
            }
            Ok(Outcome::Done)
        }
    }
}

/// Says which sessions had been deleted from the store.
fn say_what_is_back(were_deleted: &[SessionKey]) {
    if were_deleted.is_empty() {
        return;
    }
    let mut ids: Vec<&str> = were_deleted.iter().take(LISTED).map(|key| key.session_id.as_str()).collect();
    let more = format!("and {} more", were_deleted.len().saturating_sub(LISTED));
    ids.extend((were_deleted.len() > LISTED).then_some(more.as_str()));
    let are = if were_deleted.len() == 1 { "is" } else { "are" };
    let sessions = counted(were_deleted.len() as u64, "imported session");
    say("note", &format!("{sessions} had been deleted from this store and {are} back: {}", ids.join(", ")));
}

const REFUSED_HINT: &str =
    "--replace replaces existing sessions; --scope all imports sessions of other users";

fn say_what_is_broken(broken: &[BrokenPart]) {
    let line = |BrokenPart { place, user_id, session_id, reason, .. }: &BrokenPart| {
        let session = match (session_id, user_id) {
            (Some(session), Some(user)) => format!(": session {session} of {user} was not imported"),
            _ => String::new(),
        };
        format!("{place}{session}: {reason}")
    };
    say_some("broken", broken.iter().map(line), LISTED, broken.len() as u64);
}
