//! `salvage`: copies what can still be read of a damaged store to a new one.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use amplifier_session_storage::{
    Error, ErrorKind, Scope, SessionStorage, StorageSettings, StoreUrl,
    backend::SessionQuery,
    model::DamagedRow,
    salvage,
    search::SessionFilter,
    storage::{ExportReport, ImportOptions, JsonLinesReader, JsonLinesWriter, SalvageReport},
};
use serde::Serialize;

use crate::{
    app::App,
    args::{SalvageArgs, quoted},
    failure::{Failure, Outcome, list_damage, say},
    file::StagedStore,
    program,
    render::text::{counted, grouped},
    unfinished::TemporaryFolder,
};

/// At most this many unreadable parts are listed.
const LISTED: usize = 10;

/// The result as JSON.
#[derive(Serialize)]
struct SalvageView<'a> {
    store: String,
    #[serde(flatten)]
    report: &'a SalvageReport,
}

pub(super) async fn run(app: &mut App, args: SalvageArgs) -> Result<Outcome, Failure> {
    let from = app.store_url()?;
    app.check_existence()?;
    let to = target(app, &from, &args.to)?;
    // The file appears when the store in it is complete.
    let new = to.file().map(StagedStore::begin).transpose()?;
    let written = new.as_ref().map_or_else(|| to.clone(), |new| to.clone().with_file(new.temporary()));
    let report = write(app, &from, &written).await?;
    if let Some(new) = new {
        new.persist()?;
    }
    if app.out.is_json() {
        app.out.json(&SalvageView { store: to.to_string(), report: &report })?;
    } else {
        let derived = match report.derived {
            0 => String::new(),
            derived => format!(" ({} with fields derived again)", grouped(derived)),
        };
        app.out.line(&format!("sessions  {}{derived}", grouped(report.sessions)))?;
        app.out.line(&format!("messages  {}", grouped(report.messages)))?;
        app.out.line(&format!("events    {}", grouped(report.events)))?;
        app.out.line(&format!("vectors   {}", grouped(report.vectors)))?;
        if report.superseded > 0 {
            app.out.line(&format!("superseded lines  {}", grouped(report.superseded)))?;
        }
        if report.turns > 0 {
            app.out.line(&format!("vectors of turns  {}", grouped(report.turns)))?;
        }
        if report.summaries > 0 {
            app.out.line(&format!("summaries of turns  {}", grouped(report.summaries)))?;
        }
    }
    app.out.finish()?;
    outcome(&from, &to, &report)
}

/// Fills the store `to`, and closes it.
async fn write(app: &App, from: &StoreUrl, to: &StoreUrl) -> Result<SalvageReport, Failure> {
    let storage = app.storage(to, StorageSettings::default()).await?;
    check_empty(&storage, to).await?;
    let report = match from.backend().salvage {
        Some(_) => salvage(from, &storage).await?,
        None => through_archive(app, &storage).await?,
    };
    storage.update_index().await?;
    Ok(report)
}

/// The new store. A path means a store of the same kind as the damaged one.
fn target(app: &App, from: &StoreUrl, typed: &str) -> Result<StoreUrl, Failure> {
    let is_url = typed.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let scheme = match from.file() {
        Some(_) => from.backend().scheme(),
        None => "sqlite",
    };
    let url = if is_url { typed.to_owned() } else { format!("{scheme}:{typed}") };
    Ok(StoreUrl::parse(&url, app.home.as_deref())?)
}

/// A store in a service may exist, but must be empty.
async fn check_empty(storage: &SessionStorage, to: &StoreUrl) -> Result<(), Failure> {
    let any = SessionQuery::new(Scope::Everyone).with_limit(1);
    if storage.sessions().search_sessions(&any).await?.is_empty() {
        return Ok(());
    }
    Err(Failure::wrong_use(format!("{to} already has sessions"), "choose another store"))
}

/// Copies what can be read by opening the damaged store. If its vectors can't be read, all of them are left out.
async fn through_archive(app: &App, to: &SessionStorage) -> Result<SalvageReport, Failure> {
    let from = app.existing_storage(false).await?;
    let folder = TemporaryFolder::create()?;
    let mut report = SalvageReport::default();
    let (file, exported) = match export(&from, folder.path().join("all.jsonl"), true).await {
        Err(error) if error.kind() == ErrorKind::Damaged => {
            report.lost.push(format!("all vectors: {}", error.message()));
            export(&from, folder.path().join("without-vectors.jsonl"), false).await?
        }
        exported => exported?,
    };
    let mut archive = JsonLinesReader::seekable(BufReader::new(File::open(&file)?));
    let imported = to.archive().import_sessions(&mut archive, &ImportOptions::default()).await?;
    if let Some(user) = from.users().pinned_user().await? {
        to.users().pin_user(&user).await?;
    }
    (report.sessions, report.messages) = (imported.sessions, imported.messages);
    (report.events, report.superseded) = (imported.events, imported.superseded);
    (report.vectors, report.turns, report.summaries) = (imported.vectors, imported.turns, imported.summaries);
    report.missing = exported.damaged;
    Ok(report)
}

/// Writes everything that can be read to an archive.
async fn export(
    from: &SessionStorage,
    file: PathBuf,
    with_vectors: bool,
) -> Result<(PathBuf, ExportReport), Error> {
    let failed = |error: io::Error| Error::new(ErrorKind::StorageIo, error.to_string()).with_source(error);
    let mut out = BufWriter::new(private(&file).map_err(failed)?);
    let mut archive = JsonLinesWriter::new(&mut out).with_vectors(with_vectors);
    let exported =
        from.archive().export_sessions(&Scope::Everyone, SessionFilter::default(), &mut archive).await?;
    out.flush().map_err(failed)?;
    Ok((file, exported))
}

/// A new file that only its owner can read, even if it is in the folder for temporary files.
fn private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

fn outcome(from: &StoreUrl, to: &StoreUrl, report: &SalvageReport) -> Result<Outcome, Failure> {
    for part in report.unreadable.iter().take(LISTED) {
        say("note", &format!("{part} of {from} can't be read"));
    }
    if report.unreadable.len() > LISTED {
        say("note", &format!("… and {}", counted((report.unreadable.len() - LISTED) as u64, "more page")));
    }
    for lost in &report.lost {
        say("lost", lost);
    }
    list_damage(&report.missing);
    if report.is_complete() {
        return Ok(Outcome::Done);
    }
    let sync = format!("{} --store {} sync", program::name(), quoted(&to.to_string()));
    let hint = format!("if the session folders are still there, `{sync}` reads the missing lines again");
    Err(Failure::failed(missing(&report.missing, to), hint))
}

fn missing(rows: &[DamagedRow], to: &StoreUrl) -> String {
    match rows.len() {
        0 => format!("not everything in the store could be copied to {to}"),
        1 => format!("1 row of the store can't be read and is missing from {to}"),
        more => {
            format!("{} of the store can't be read and are missing from {to}", counted(more as u64, "row"))
        }
    }
}
