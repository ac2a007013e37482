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
struct View<'a> {
    file: &'a Path,
    bytes: u64,
}

pub(super) async fn run(app: &mut App, args: BackupArgs) -> Result<Outcome, Failure> {
    let url = app.store_url()?;
    if url.backend().backup.is_none() {
        let message = format!("{} stores can't be copied while they are used", url.backend().name);
        let hint =
            format!("`{} export --out FILE` copies the sessions to a file for `import`", app.program());
        return Err(Failure::wrong_use(message, hint));
    }
    app.check_existence()?;
    app.check_out(&args.file)?;
    let file = NewFile::begin(&args.file)?;
    backup(&url, file.temporary()).await?;
    let bytes = std::fs::metadata(file.temporary())?.len();
    file.place()?;
    if app.out.is_json() {
        app.out.json(&View { file: &args.file, bytes })?;
    } else {
        app.out.line(&printable(&format!("{} ({})", args.file.display(), size(bytes))))?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}
