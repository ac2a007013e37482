//! Tables for people: columns that stand below each other, the last of which takes what is left.

use unicode_width::UnicodeWidthStr as _;

use super::text::fitted;
use crate::paint::Paint;

/// The least columns that are left for the last cell, on however narrow a terminal.
const NARROWEST: usize = 20;
/// What stands between two cells.
const GAP: &str = "  ";

/// How a part of a cell is painted.
pub(crate) type Style = fn(Paint, &str) -> String;

/// What stands in one column of one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell(Vec<(String, Style)>);

impl Cell {
    /// Text as it is.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Paint::plain)
    }

    /// Painted text.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self(vec![(text.into(), style)])
    }

    /// The cell with more painted text behind it.
    pub(crate) fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push((text.into(), style));
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    fn painted(&self, columns: usize, paint: Paint) -> String {
        let mut left = columns;
        let mut painted = String::new();
        for (text, style) in &self.0 {
            if left == 0 {
                break;
            }
            let shown = fitted(text, left);
            left = left.saturating_sub(shown.width());
            if !shown.is_empty() {
                painted.push_str(&style(paint, &shown));
            }
        }
        painted
    }
}

/// A column: what stands above it, and whether it is aligned to the right, as numbers are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    header: &'a str,
    right: bool,
}

impl<'a> Column<'a> {
    /// A column of text.
    pub(crate) const fn text(header: &'a str) -> Self {
        Self { header, right: false }
    }

    /// A column of numbers.
    pub(crate) const fn number(header: &'a str) -> Self {
        Self { header, right: true }
    }
}

/// The header and a line for each row. Columns in which nothing stands are left out.
pub(crate) fn table(columns: &[Column<'_>], rows: &[Vec<Cell>], width: usize, paint: Paint) -> Vec<String> {
    let header = columns.iter().map(|column| Cell::styled(column.header, Paint::aside)).collect();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(Cell::width).max().unwrap_or(0);
    let mut widths: Vec<(Column<'_>, usize)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let widest = widest(at);
        widths.push((*column, if widest == 0 { 0 } else { widest.max(column.header.width()) }));
    }
    if let Some((_, last)) = widths.pop() {
        let used: usize =
            widths.iter().filter(|(_, width)| *width > 0).map(|(_, width)| width + GAP.len()).sum();
        let column = columns.last().copied().unwrap_or(Column::text(""));
        widths.push((column, last.min(width.saturating_sub(used).max(NARROWEST))));
    }
    std::iter::once(&header).chain(rows).map(|row| line(row, &widths, paint)).collect()
}

fn line(row: &[Cell], widths: &[(Column<'_>, usize)], paint: Paint) -> String {
    let mut line = String::new();
    let mut owed = 0;
    for (cell, (column, width)) in row.iter().zip(widths).filter(|(_, (_, width))| *width > 0) {
        let padding = width.saturating_sub(cell.width());
        let (before, behind) = if column.right { (padding, 0) } else { (0, padding) };
        // Padding is owed until something follows, so that no line ends in spaces.
        let painted = cell.painted(*width, paint);
        if !painted.is_empty() {
            line.push_str(&" ".repeat(owed + before));
            line.push_str(&painted);
            owed = 0;
        } else {
            owed += before;
        }
        owed += behind + GAP.len();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] =
        [Column::text("name"), Column::number("n"), Column::text("nothing"), Column::text("title")];

    fn row(name: &str, number: &str, title: &str) -> Vec<Cell> {
        vec![Cell::plain(name), Cell::plain(number), Cell::default(), Cell::plain(title)]
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_the_last_takes_the_rest() {
        let rows = [row("a", "1,234", "short"), row("日本", "7", &"long ".repeat(10)), row("b", "", "")];
        let lines = table(&COLUMNS, &rows, 40, Paint::new(false));
        let expected =
            ["name      n  title", "a     1,234  short", "日本      7  long long long long long l…", "b"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn parts_of_a_cell_are_painted_each_and_cut_together() {
        let cell = Cell::styled("abc ", Paint::aside).and("def", Paint::title);
        assert_eq!(cell.painted(6, Paint::new(true)), "\x1b[2mabc \x1b[0m\x1b[1md…\x1b[0m");
        assert_eq!(cell.painted(4, Paint::new(false)), "abc ");
    }
}
