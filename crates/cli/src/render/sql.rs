//! Results of SQL queries.

use std::io::{self, Write};

use amplifier_session_storage::duckdb::sql::{ReadyView, SqlColumn, SqlRow};
use serde::Serialize;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use super::{
    markdown::wrapped,
    table::{self, Column, TableCell},
    text::{fitted, one_line},
};
use crate::paint::Paint;

/// The space between two columns of a table.
const GAP: usize = 2;
/// Columns are not made narrower than this to fit on a line.
const NARROWEST: usize = 8;
/// `NULL` on a terminal.
const NULL: &str = "NULL";
/// `NULL` in a pipe.
const UNKNOWN: &str = "-";

/// A table that fits the terminal; the widest columns are cut first. If they would become too narrow to be useful, a
/// block for each row, with one line per cell.
pub(crate) fn table(columns: &[SqlColumn], rows: &[SqlRow], width: usize, paint: Paint) -> Vec<String> {
    let names: Vec<String> = columns.iter().map(|column| one_line(&column.name)).collect();
    let text = |(cell, column): (&Option<String>, &SqlColumn)| {
        // On a terminal, seconds are precise enough.
        let time = cell.as_deref().filter(|_| is_time(&column.sql_type));
        let second = time.and_then(|time| time.split_once('.')).map(|(second, _)| format!("{second}Z"));
        second.or_else(|| cell.as_deref().map(one_line))
    };
    let texts: Vec<Vec<Option<String>>> =
        rows.iter().map(|row| row.iter().zip(columns).map(text).collect()).collect();
    let mut cells = vec![0; names.len()];
    for row in &texts {
        for (width, cell) in cells.iter_mut().zip(row) {
            *width = (*width).max(cell.as_deref().unwrap_or(NULL).width());
        }
    }
    let mut widths: Vec<usize> =
        names.iter().zip(&cells).map(|(name, cell)| name.width().max(*cell)).collect();
    let least: Vec<usize> = columns
        .iter()
        .zip(&cells)
        .zip(&widths)
        .map(|((column, cells), width)| least(column, *cells, *width))
        .collect();
    if !narrow(&mut widths, &least, width) {
        return blocks(&names, &texts, width, paint);
    }
    let names: Vec<String> = names.iter().zip(&widths).map(|(name, width)| fitted(name, *width)).collect();
    let header: Vec<Column<'_>> = columns
        .iter()
        .zip(&names)
        .map(|(column, name)| if column.is_number { Column::number(name) } else { Column::text(name) })
        .collect();
    let cell = |(cell, width): (&Option<String>, &usize)| match cell {
        // A column of empty cells would be left out.
        Some(text) if text.is_empty() => TableCell::plain(" "),
        Some(text) => TableCell::plain(fitted(text, *width)),
        None => TableCell::styled(NULL, Paint::aside),
    };
    let cells: Vec<Vec<TableCell>> =
        texts.iter().map(|row| row.iter().zip(&widths).map(cell).collect()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    table::table(&header, &cells, width, paint)
}

/// Whether a column contains times (not lists of times).
fn is_time(sql_type: &str) -> bool {
    sql_type.starts_with("TIMESTAMP") && !sql_type.ends_with(']')
}

/// The minimum width of a column. Numbers must not be cut, and the day of a time must be visible.
fn least(column: &SqlColumn, cells: usize, width: usize) -> usize {
    const DAY: usize = 11;
    let least = if column.is_number {
        cells.max(NARROWEST)
    } else if is_time(&column.sql_type) || column.sql_type == "DATE" {
        DAY
    } else {
        NARROWEST
    };
    least.min(width)
}

/// Narrows the widest columns until all fit, but none below its minimum width. Returns whether they fit.
fn narrow(widths: &mut [usize], least: &[usize], room: usize) -> bool {
    let gaps = widths.len().saturating_sub(1) * GAP;
    while widths.iter().sum::<usize>() + gaps > room {
        let may_give = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        match may_give.map(|(width, _)| width).max() {
            Some(widest) => *widest -= 1,
            None => return false,
        }
    }
    true
}

/// A block for each row.
fn blocks(names: &[String], rows: &[Vec<Option<String>>], width: usize, paint: Paint) -> Vec<String> {
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0).min(width / 2);
    let line = |(name, cell): (&String, &Option<String>)| {
        let name = fitted(name, widest);
        let gap = " ".repeat(widest.saturating_sub(name.width()) + GAP);
        let value = match cell {
            Some(text) => fitted(text, width.saturating_sub(widest + GAP)),
            None => paint.aside(NULL),
        };
        format!("{}{gap}{value}", paint.aside(&name))
    };
    let block = |row: &Vec<Option<String>>| names.iter().zip(row).map(line).collect::<Vec<_>>();
    rows.iter().map(block).collect::<Vec<_>>().join(&String::new())
}

/// A line of fields separated by tabs.
pub(crate) fn tabbed(row: &SqlRow) -> String {
    let fields = row.iter().map(|cell| cell.as_deref().map_or_else(|| UNKNOWN.to_owned(), one_line));
    fields.collect::<Vec<_>>().join("\t")
}

/// A line of CSV according to RFC 4180. `NULL` is an empty field, and an empty string is two quotes.
pub(crate) fn csv<'a>(row: impl Iterator<Item = Option<&'a str>>) -> String {
    let field = |cell: Option<&str>| match cell {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(text) => text.to_owned(),
    };
    row.map(field).collect::<Vec<_>>().join(",")
}

/// Writes a result as one JSON object, row by row.
#[derive(Debug, Default)]
pub(crate) struct Json {
    has_rows: bool,
}

#[derive(Serialize)]
struct ColumnView<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    sql_type: &'a str,
}

impl Json {
    /// Begins the object.
    pub(crate) fn begin(out: &mut dyn Write, columns: &[SqlColumn]) -> io::Result<Self> {
        let columns: Vec<ColumnView<'_>> = columns
            .iter()
            .map(|column| ColumnView { name: &column.name, sql_type: &column.sql_type })
            .collect();
        write!(out, "{{\"columns\":{},\"rows\":[", serde_json::to_string(&columns)?)?;
        Ok(Self::default())
    }

    /// Writes rows whose cells are JSON.
    pub(crate) fn rows(&mut self, out: &mut dyn Write, rows: &[SqlRow]) -> io::Result<()> {
        for row in rows {
            let cells = row.iter().map(|cell| cell.as_deref().map(json).transpose());
            let cells = cells.collect::<io::Result<Vec<_>>>()?;
            let separator = if self.has_rows { "," } else { "" };
            write!(out, "{separator}{}", serde_json::to_string(&cells)?)?;
            self.has_rows = true;
        }
        Ok(())
    }

    /// Ends the object.
    pub(crate) fn end(self, out: &mut dyn Write, has_more: bool) -> io::Result<()> {
        writeln!(out, "],\"has_more\":{has_more}}}")
    }
}

/// A cell as JSON. Text that is not JSON (such as a number in a list that is not finite) becomes a string.
fn json(text: &str) -> io::Result<Box<RawValue>> {
    match RawValue::from_string(text.to_owned()) {
        Ok(value) => Ok(value),
        Err(_) => Ok(RawValue::from_string(serde_json::to_string(text)?)?),
    }
}

/// The views, each with its description and columns.
pub(crate) fn views(views: &[ReadyView], width: usize, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for view in views {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(paint.title(view.name));
        for (text, style) in
            [(view.about.to_owned(), Paint::plain as table::Style), (view.columns.join(", "), Paint::aside)]
        {
            lines.extend(
                wrapped(&text, Some(width.saturating_sub(GAP)))
                    .iter()
                    .map(|line| format!("  {}", style(paint, line))),
            );
        }
    }
    lines
}

/// The views for a pipe: name, columns, description.
pub(crate) fn views_tabbed(views: &[ReadyView]) -> Vec<String> {
    views.iter().map(|view| [view.name, &view.columns.join(","), view.about].join("\t")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_quoted_if_necessary() {
        let row = [Some("a"), None, Some(""), Some("b,c"), Some("say \"x\"\n"), Some("日本")];
        assert_eq!(csv(row.into_iter()), "a,,\"\",\"b,c\",\"say \"\"x\"\"\n\",日本");
    }

    #[test]
    fn the_widest_columns_are_narrowed() {
        let mut widths = [3, 40, 60];
        assert!(narrow(&mut widths, &[3, 8, 8], 50));
        assert_eq!(widths.iter().sum::<usize>() + 2 * GAP, 50);
        assert_eq!(widths[0], 3);
        let mut widths = [12, 20];
        assert!(narrow(&mut widths, &[12, 8], 24));
        assert_eq!(widths, [12, 10]);
        assert!(!narrow(&mut [9; 20], &[8; 20], 40));
    }

    #[test]
    fn rows_become_blocks_that_fit() {
        let names = ["tokens", "project"].map(str::to_owned);
        let rows = [
            vec![Some("1234567".to_owned()), Some("-home-mira-bakery".to_owned())],
            vec![Some("7".to_owned()), None],
        ];
        let expected = ["tokens   1234567", "project  -home-mira-b…", "", "tokens   7", "project  NULL"];
        assert_eq!(blocks(&names, &rows, 22, Paint::new(false)), expected);
    }

    #[test]
    fn text_that_is_not_json_becomes_a_string() {
        assert_eq!(json("[1,2]").unwrap().get(), "[1,2]");
        assert_eq!(json("[nan]").unwrap().get(), "\"[nan]\"");
    }
}
