//! Lists of files.

use std::io;

use amplifier_session_api::operations::files::ListedFile;
use amplifier_session_storage::content::FileUse;

use super::{
    table::{Column, TableCell, table},
    text::{grouped, one_line},
};
use crate::{out::Out, paint::Paint};

const COLUMNS: [Column<'static>; 6] = [
    Column::text("how"),
    Column::text("path").shrinking(1, 40).cut_at_start(),
    Column::number("times"),
    Column::number("failed"),
    Column::text("first").whole(),
    Column::text("last").whole().optional(),
];

/// Writes one line per file: a table on a terminal, tab-separated fields in a pipe.
pub(crate) fn list(out: &mut Out, files: &[ListedFile]) -> io::Result<()> {
    if !out.is_terminal() {
        return files.iter().try_for_each(|file| out.line(&tabbed(file)));
    }
    if files.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<TableCell>> = files.iter().map(row).collect();
    out.lines(&table(&COLUMNS, &rows, out.width, out.paint))
}

fn row(file: &ListedFile) -> Vec<TableCell> {
    let how = if file.used == FileUse::Changed { Paint::title } else { Paint::plain };
    // Most calls succeed, and most files are used in one message.
    let failed = Some(file.failed).filter(|failed| *failed > 0);
    let last = Some(&file.last).filter(|last| **last != file.first);
    vec![
        TableCell::styled(file.used.as_str(), how),
        TableCell::plain(one_line(&file.path)),
        TableCell::plain(grouped(file.times.into())),
        TableCell::plain(failed.map_or_else(String::new, |failed| grouped(failed.into()))),
        TableCell::styled(&file.first, Paint::aside),
        TableCell::styled(last.cloned().unwrap_or_default(), Paint::aside),
    ]
}

fn tabbed(file: &ListedFile) -> String {
    let ListedFile { path, used, times, failed, first, last } = file;
    let (times, failed) = (times.to_string(), failed.to_string());
    [used.as_str(), &one_line(path), &times, &failed, first, last].join("\t")
}
