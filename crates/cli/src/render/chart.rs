//! Charts: a label, numbers and a bar on each line.

use unicode_width::UnicodeWidthStr as _;

use super::text::{fitted, fitted_end, one_line};
use crate::paint::Paint;

/// The characters for the end of a bar, by eighths.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// The maximum length of a bar.
const WIDEST_BAR: usize = 50;
/// The minimum room for bars; with less, there are none.
const NARROWEST_BAR: usize = 4;
/// The minimum width of labels, on any terminal.
const NARROWEST_LABEL: usize = 10;
/// Labels of this width can be told apart. They are cut further only if nothing else can be left out.
const READABLE_LABEL: usize = 20;
/// The space between columns.
const GAP: usize = 2;

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chart {
    /// The header of the labels.
    pub(crate) title: String,
    /// The headers of the numbers.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<ChartRow>,
    /// Whether to cut labels at their beginning.
    pub(crate) cut_at_start: bool,
}

/// A line of a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChartRow {
    pub(crate) label: String,
    /// A shorter label for narrow terminals, if any.
    pub(crate) short_label: Option<String>,
    /// The formatted numbers, one for each column.
    pub(crate) numbers: Vec<String>,
    /// The value of the bar.
    pub(crate) value: f64,
}

impl Chart {
    /// The lines of the chart, at most `width` wide if the numbers leave room for labels.
    pub(crate) fn lines(&self, width: usize, paint: Paint) -> Vec<String> {
        let short = self.labels(|row| row.short_label.as_ref().unwrap_or(&row.label));
        let columns = self.columns_that_fit(width, self.widest(&short));
        let room = width.saturating_sub(total(&columns)).max(NARROWEST_LABEL);
        let divide = |labels: Vec<String>| {
            let (label, bars) = divided(room, self.widest(&labels), self.title.width());
            (labels, label, bars)
        };
        let whole = divide(self.labels(|row| &row.label));
        let is_too_wide = self.widest(&whole.0) > whole.1 || whole.2.is_none();
        let (labels, label, bars) = if is_too_wide { divide(short) } else { whole };
        let fit = if self.cut_at_start { fitted_end } else { fitted };
        let most = self.rows.iter().map(|row| row.value).fold(0.0, f64::max);

        let header = columns.iter().map(|column| column.name);
        let header = aligned(&self.title, label, header, &columns);
        let (title, rest) = header.split_at(self.title.len());
        let mut lines = vec![format!("{}{}", paint.title(title), paint.aside(rest))];
        for (row, text) in self.rows.iter().zip(labels) {
            let numbers = columns.iter().map(|column| row.numbers.get(column.at).map_or("", String::as_str));
            let line = aligned(&fit(&text, label), label, numbers, &columns);
            let bar = bars.map(|width| bar(row.value, most, width)).filter(|bar| !bar.is_empty());
            lines.push(match bar {
                Some(bar) => format!("{line}  {}", paint.bar(&bar)),
                None => line.trim_end().to_owned(),
            });
        }
        lines
    }

    fn labels(&self, of: fn(&ChartRow) -> &String) -> Vec<String> {
        self.rows.iter().map(|row| one_line(of(row))).collect()
    }

    /// The width of the widest label or of the title above them.
    fn widest(&self, labels: &[String]) -> usize {
        labels.iter().map(|label| label.width()).max().unwrap_or(0).max(self.title.width())
    }

    /// The columns that are not empty. If labels would get too little room, only the first of these.
    fn columns_that_fit(&self, width: usize, widest_label: usize) -> Vec<NumberColumn> {
        let column = |(at, name): (usize, &&'static str)| {
            let numbers = || self.rows.iter().filter_map(move |row| row.numbers.get(at));
            let widest = numbers().map(|number| number.width()).max().unwrap_or(0);
            let is_empty = numbers().all(String::is_empty) && !self.rows.is_empty();
            (!is_empty).then(|| NumberColumn { at, name, width: widest.max(name.width()) })
        };
        let mut columns: Vec<NumberColumn> = self.columns.iter().enumerate().filter_map(column).collect();
        while columns.len() > 1 && width < total(&columns) + widest_label.min(READABLE_LABEL) {
            columns.pop();
        }
        columns
    }
}

/// A column of numbers that is shown.
#[derive(Debug)]
struct NumberColumn {
    /// The index of its numbers.
    at: usize,
    name: &'static str,
    width: usize,
}

/// The width of the columns, with the gaps before them.
fn total(columns: &[NumberColumn]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum()
}

/// Divides `room` between labels and bars. Long labels are shortened in favour of bars, down to half of the room.
fn divided(room: usize, widest_label: usize, title: usize) -> (usize, Option<usize>) {
    let spared = room.saturating_sub(GAP + WIDEST_BAR / 2).max(room / 2).max(READABLE_LABEL);
    let label = widest_label.min(spared).max(title);
    match room.saturating_sub(label + GAP) {
        0..NARROWEST_BAR => (widest_label.min(room).max(title), None),
        left => (label, Some(left.min(WIDEST_BAR))),
    }
}

/// A line with the label on the left and the numbers on the right.
fn aligned<'a>(
    label: &str,
    width: usize,
    numbers: impl Iterator<Item = &'a str>,
    columns: &[NumberColumn],
) -> String {
    let mut line = label.to_owned() + &" ".repeat(width.saturating_sub(label.width()));
    for (number, column) in numbers.zip(columns) {
        line.push_str(&" ".repeat(GAP + column.width.saturating_sub(number.width())));
        line.push_str(number);
    }
    line
}

/// A bar of up to `width` columns; `most` has the full width. Any value above 0 is visible.
fn bar(value: f64, most: f64, width: usize) -> String {
    if value <= 0.0 || most <= 0.0 {
        return String::new();
    }
    let eighths = (value / most * (width * 8) as f64).round() as usize;
    let eighths = eighths.clamp(1, width * 8);
    let part = (eighths % 8).checked_sub(1).and_then(|at| EIGHTHS.get(at));
    "█".repeat(eighths / 8).chars().chain(part.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(rows: &[(&str, &str, f64)]) -> Chart {
        let row = |(label, number, value): &(&str, &str, f64)| ChartRow {
            label: (*label).to_owned(),
            numbers: vec![(*number).to_owned()],
            value: *value,
            ..ChartRow::default()
        };
        let rows = rows.iter().map(row).collect();
        Chart { title: "Tools".to_owned(), columns: vec!["uses"], rows, ..Chart::default() }
    }

    fn shown(chart: &Chart, width: usize) -> Vec<String> {
        chart.lines(width, Paint::new(false))
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        assert_eq!(bar(8.0, 8.0, 4), "████");
        assert_eq!(bar(4.0, 8.0, 4), "██");
        assert_eq!(bar(1.0, 8.0, 4), "▌");
        assert_eq!(bar(5.0, 8.0, 4), "██▌");
        let all: String = (1..=8).map(|eighth| bar(f64::from(eighth), 8.0, 1)).collect();
        assert_eq!(all, "▏▎▍▌▋▊▉█");
        assert_eq!(bar(0.001, 8.0, 4), "▏", "a small value is visible");
        assert_eq!([bar(0.0, 8.0, 4), bar(0.0, 0.0, 4)], ["", ""]);
    }

    #[test]
    fn a_chart_lines_up() {
        let chart = chart(&[("bash", "1,234", 1_234.0), ("read_file", "617", 617.0), ("nothing", "0", 0.0)]);
        let expected =
            ["Tools       uses", "bash       1,234  ████████", "read_file    617  ████", "nothing        0"];
        assert_eq!(shown(&chart, 26), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let long = "日本語のプロジェクト".repeat(10);
        let chart = chart(&[(&long, "12", 12.0), ("a\tb\x1b[31m", "3", 3.0)]);
        for width in [20, 40, 61, 100, 120] {
            let lines = shown(&chart, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:#?}");
            assert!(lines[1].contains('…') && lines[2].starts_with("a b␛[31m"), "{lines:#?}");
        }
        assert!(shown(&chart, 40)[1].ends_with('█'));
    }

    #[test]
    fn short_labels_are_used_if_long_ones_would_be_cut() {
        let mut chart = chart(&[("claude-sonnet-4-5 (anthropic)", "12", 12.0)]);
        chart.rows[0].short_label = Some("claude-sonnet-4-5".to_owned());
        assert!(shown(&chart, 80)[1].starts_with("claude-sonnet-4-5 (anthropic)    12  █"));
        assert!(shown(&chart, 40)[1].starts_with("claude-sonnet-4-5    12  █"));
        chart.cut_at_start = true;
        assert_eq!(shown(&chart, 18)[1], "…-sonnet-4-5    12");
    }

    #[test]
    fn bars_are_left_out_if_there_is_no_room() {
        let lines = shown(&chart(&[("a_tool_with_a_name", "12", 12.0)]), 18);
        assert_eq!(lines, ["Tools         uses", "a_tool_with…    12"]);
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_no_empty_ones() {
        let row = ChartRow {
            label: "2026-01-31".to_owned(),
            numbers: ["7", "", "12", "345"].map(str::to_owned).to_vec(),
            value: 1.0,
            ..ChartRow::default()
        };
        let columns = vec!["sessions", "nothing", "messages", "events"];
        let chart = Chart { title: "Day".to_owned(), columns, rows: vec![row], ..Chart::default() };
        assert_eq!(shown(&chart, 44)[0], "Day         sessions  messages  events");
        assert_eq!(shown(&chart, 34), ["Day         sessions  messages", "2026-01-31         7        12"]);
        assert_eq!(shown(&chart, 25)[0], "Day         sessions");
    }

    #[test]
    fn bars_line_up_after_empty_numbers() {
        let lines = shown(&chart(&[("a", "", 1.0), ("b", "7", 1.0)]), 19);
        assert_eq!(lines, ["Tools  uses", "a            ██████", "b         7  ██████"]);
    }

    #[test]
    fn bars_have_a_maximum_length() {
        let lines = shown(&chart(&[("a", "1", 1.0)]), 120);
        assert_eq!(lines[1].matches('█').count(), WIDEST_BAR);
    }

    #[test]
    fn only_the_bar_is_coloured() {
        let lines = chart(&[("a", "1", 1.0)]).lines(20, Paint::new(true));
        assert!(lines[1].starts_with("a         1  \x1b["), "{:?}", lines[1]);
    }
}
