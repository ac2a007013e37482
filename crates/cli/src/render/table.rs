//! Tables that fit the terminal.

use unicode_width::UnicodeWidthStr as _;

use super::text::{fitted, fitted_end, printable};
use crate::paint::Paint;

/// No column is made narrower than this; columns at the end are left out instead.
const NARROWEST: usize = 3;
/// The space between two cells.
const GAP: &str = "  ";
/// Marks columns that are left out.
const LEFT_OUT: &str = " …";

/// The style of a part of a cell.
pub(crate) type Style = fn(Paint, &str) -> String;

/// The content of one column in one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableCell(Vec<(String, Style)>);

impl TableCell {
    /// Plain text.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Paint::plain)
    }

    /// Styled text.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self::default().and(text, style)
    }

    /// The cell with more styled text appended, without control characters.
    pub(crate) fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push((printable(&text.into()), style));
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    fn painted(&self, columns: usize, fit: fn(&str, usize) -> String, paint: Paint) -> String {
        let mut left = columns;
        let mut painted = String::new();
        for (text, style) in &self.0 {
            if left == 0 {
                break;
            }
            let shown = fit(text, left);
            left = left.saturating_sub(shown.width());
            if !shown.is_empty() {
                painted.push_str(&style(paint, &shown));
            }
        }
        painted
    }
}

/// A column: its header, alignment, and what to do if there is too little room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    header: &'a str,
    right: bool,
    /// The order in which it is shortened before the widest columns are, and its minimum width.
    shrinks: Option<(u8, usize)>,
    /// Whether its cells are never cut.
    whole: bool,
    /// Whether it is left out before any other column becomes narrower than its minimum width.
    optional: bool,
    fit: fn(&str, usize) -> String,
}

impl<'a> Column<'a> {
    /// Its minimum width, if its cells need `wide` columns.
    fn least(&self, wide: usize) -> usize {
        self.shrinks.map_or(wide, |(_, least)| wide.min(least))
    }

    /// A column of text.
    pub(crate) const fn text(header: &'a str) -> Self {
        Self { header, right: false, shrinks: None, whole: false, optional: false, fit: fitted }
    }

    /// A column of numbers.
    pub(crate) const fn number(header: &'a str) -> Self {
        Self { right: true, ..Self::text(header) }
    }

    /// A column that is shortened to `least` columns if there is too little room: first the one with `turn` 1, then the
    /// next, and then the widest.
    pub(crate) const fn shrinking(self, turn: u8, least: usize) -> Self {
        Self { shrinks: Some((turn, least)), ..self }
    }

    /// A column whose cells are never cut, such as addresses.
    pub(crate) const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// A column that is left out before any other becomes narrower than its minimum width.
    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// A column whose cells are cut at the beginning.
    pub(crate) const fn cut_at_start(self) -> Self {
        Self { fit: fitted_end, ..self }
    }
}

/// The header and one line per row, none wider than `width`. Empty columns are left out.
pub(crate) fn table(
    columns: &[Column<'_>],
    rows: &[Vec<TableCell>],
    width: usize,
    paint: Paint,
) -> Vec<String> {
    let header: Vec<TableCell> =
        columns.iter().map(|column| TableCell::styled(column.header, Paint::aside)).collect();
    let widest =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(TableCell::width).max().unwrap_or(0);
    let mut layout: Vec<(Column<'_>, usize)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let widest = widest(at);
        layout.push((*column, if widest == 0 { 0 } else { widest.max(column.header.width()) }));
    }
    let left_out = fit(&mut layout, width);
    // Headers are always cut at the end.
    let headers: Vec<_> =
        layout.iter().map(|(column, wide)| (Column { fit: fitted, ..*column }, *wide)).collect();
    let rest = if left_out { LEFT_OUT } else { "" };
    let rows = rows.iter().map(|row| line(row, &layout, paint) + rest);
    std::iter::once(line(&header, &headers, paint) + rest).chain(rows).collect()
}

/// Makes the columns fit into `width`: leaves out optional columns if that is not enough otherwise, and shortens first the
/// columns that may shrink, in their order, then the widest. Returns whether columns were left out because there are too
/// many.
fn fit(layout: &mut [(Column<'_>, usize)], width: usize) -> bool {
    let narrowest: Vec<_> = layout.iter().map(|(column, wide)| (*column, column.least(*wide))).collect();
    if total(&narrowest) > width {
        layout.iter_mut().filter(|(column, _)| column.optional).for_each(|(_, wide)| *wide = 0);
    }
    let turns = layout.iter().enumerate().filter_map(|(at, (column, _))| Some((column.shrinks?, at)));
    let mut turns: Vec<((u8, usize), usize)> = turns.collect();
    turns.sort_unstable_by_key(|((turn, _), at)| (*turn, *at));
    for ((_, least), at) in turns {
        let excess = total(layout).saturating_sub(width);
        if let Some((_, wide)) = layout.get_mut(at) {
            *wide -= excess.min(wide.saturating_sub(least));
        }
    }
    while total(layout) > width {
        let cut = layout.iter_mut().filter(|(column, _)| !column.whole).map(|(_, wide)| wide);
        match cut.max().filter(|wide| **wide > NARROWEST) {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    let mut left_out = false;
    while total(layout) + if left_out { LEFT_OUT.width() } else { 0 } > width {
        let Some((_, last)) = layout.iter_mut().rev().find(|(_, wide)| *wide > 0) else { break };
        *last = 0;
        left_out = true;
    }
    left_out
}

/// The width of all columns, with the gaps between them.
fn total(layout: &[(Column<'_>, usize)]) -> usize {
    let shown = layout.iter().map(|(_, wide)| *wide).filter(|wide| *wide > 0);
    shown.map(|wide| wide + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
}

fn line(row: &[TableCell], layout: &[(Column<'_>, usize)], paint: Paint) -> String {
    let mut line = String::new();
    let mut pending = 0;
    for (cell, (column, width)) in row.iter().zip(layout).filter(|(_, (_, width))| *width > 0) {
        let padding = width.saturating_sub(cell.width());
        let (before, after) = if column.right { (padding, 0) } else { (0, padding) };
        // Padding is written only when something follows, so that no line ends in spaces.
        let painted = cell.painted(*width, column.fit, paint);
        if !painted.is_empty() {
            line.push_str(&" ".repeat(pending + before));
            line.push_str(&painted);
            pending = 0;
        } else {
            pending += before;
        }
        pending += after + GAP.len();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] =
        [Column::text("name"), Column::number("n"), Column::text("nothing"), Column::text("title")];

    fn row(name: &str, number: &str, title: &str) -> Vec<TableCell> {
        vec![TableCell::plain(name), TableCell::plain(number), TableCell::default(), TableCell::plain(title)]
    }

    #[test]
    fn columns_are_as_wide_as_necessary_and_the_last_one_gets_the_rest() {
        let rows = [row("a", "1,234", "short"), row("日本", "7", &"long ".repeat(10)), row("b", "", "")];
        let lines = table(&COLUMNS, &rows, 40, Paint::new(false));
        let expected =
            ["name      n  title", "a     1,234  short", "日本      7  long long long long long l…", "b"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn columns_are_shortened_in_order_and_then_the_widest() {
        let columns = [
            Column::text("id"),
            Column::text("project").shrinking(1, 6).cut_at_start(),
            Column::text("title").shrinking(2, 8),
        ];
        let row = ["7f3c9a52", "-home-mira-bakery", "Why is the dough too wet?"];
        let rows = [row.map(TableCell::plain).to_vec()];
        let at = |width| table(&columns, &rows, width, Paint::new(false)).pop().unwrap();
        assert_eq!(at(54), "7f3c9a52  -home-mira-bakery  Why is the dough too wet?");
        assert_eq!(at(50), "7f3c9a52  …-mira-bakery  Why is the dough too wet?");
        assert_eq!(at(40), "7f3c9a52  …akery  Why is the dough too …");
        assert_eq!(at(26), "7f3c9a52  …akery  Why is …");
        assert_eq!(at(20), "7f3c9…  …kery  Why …");
    }

    #[test]
    fn an_optional_column_is_left_out_first_and_a_whole_one_is_not_cut() {
        let columns = [
            Column::text("path").shrinking(1, 10).cut_at_start(),
            Column::text("first").whole(),
            Column::text("last").whole().optional(),
        ];
        let rows = [["recipes/rye.md", "7f3c9a52#12", "7f3c9a52#340"].map(TableCell::plain).to_vec()];
        let at = |width| table(&columns, &rows, width, Paint::new(false)).pop().unwrap();
        assert_eq!(at(41), "recipes/rye.md  7f3c9a52#12  7f3c9a52#340");
        assert_eq!(at(37), "…es/rye.md  7f3c9a52#12  7f3c9a52#340");
        assert_eq!(at(36), "recipes/rye.md  7f3c9a52#12");
        assert_eq!(at(20), "…rye.md  7f3c9a52#12");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let names: Vec<String> = (0..20).map(|n| format!("column {n}")).collect();
        let columns: Vec<Column<'_>> = names.iter().map(|name| Column::text(name)).collect();
        let rows = [names.iter().map(|_| TableCell::plain("日本語日本語")).collect()];
        for width in [40, 60, 80, 120, 400] {
            let lines = table(&columns, &rows, width, Paint::new(false));
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            assert_eq!(lines[0].ends_with(LEFT_OUT), width < 100, "{width}: {lines:?}");
        }
    }

    #[test]
    fn parts_of_a_cell_are_styled_separately_and_cut_together() {
        let cell = TableCell::styled("abc ", Paint::aside).and("def", Paint::title);
        assert_eq!(cell.painted(6, fitted, Paint::new(true)), "\x1b[2mabc \x1b[0m\x1b[1md…\x1b[0m");
        assert_eq!(cell.painted(4, fitted, Paint::new(false)), "abc ");
    }
}
