//! `backup`: copies the store to a file.

use std::path::Path;

use amplifier_session_storage::backup;
use serde::Serialize;

use crate::{
    app::App,
    args::BackupArgs,
    failure::{Failure, Outcome},
    file::NewFile,
    render::text::{printable, size},
};

/// The result as JSON.
#[derive(Serialize)]
struct BackupView<'a> {
    file: &'a Path,
    bytes: u64,
}

pub(super) async fn run(app: &mut App, args: BackupArgs) -> Result<Outcome, Failure> {
    let url = app.store_url()?;
    if url.backend().backup.is_none() {
        let message = format!("{} stores can't be copied to a file with `backup`", url.backend().name);
        let program = app.program();
        let hint = format!(
            "`{program} copy --to URL` copies the sessions to another store, and `{program} export --out FILE` to a file"
        );
        return Err(Failure::wrong_use(message, hint));
    }
    app.check_existence()?;
    app.check_out(&args.file)?;
    let file = NewFile::begin(&args.file)?;
    backup(&url, file.temporary()).await?;
    let bytes = std::fs::metadata(file.temporary())?.len();
    file.persist()?;
    if app.out.is_json() {
        app.out.json(&BackupView { file: &args.file, bytes })?;
    } else {
        app.out.line(&printable(&format!("{} ({})", args.file.display(), size(bytes))))?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}
