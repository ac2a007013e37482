//! Charts: a label, numbers and a bar on each line.

use unicode_width::UnicodeWidthStr as _;

use super::text::{fitted, fitted_end, one_line};
use crate::paint::Paint;

/// What the bars of a chart are made of, by eighths.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// The widest bar: a longer one tells nothing more.
const WIDEST_BAR: usize = 50;
/// On a terminal too narrow for this there are no bars.
const NARROWEST_BAR: usize = 4;
/// The least columns for labels, on however narrow a terminal.
const NARROWEST_LABEL: usize = 10;
/// Labels of this width are told apart: they are cut to less only where there is nothing else to leave out.
const READABLE_LABEL: usize = 20;
/// Between columns.
const GAP: usize = 2;

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chart {
    /// What stands above the labels.
    pub(crate) title: String,
    /// What stands above the numbers.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    /// Whether the end of a label tells most.
    pub(crate) ends_tell_most: bool,
}

/// A line of a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) label: String,
    /// A shorter one for where there is too little room, if there is one.
    pub(crate) short_label: Option<String>,
    /// As they are shown, one for each column.
    pub(crate) numbers: Vec<String>,
    /// What the bar shows.
    pub(crate) value: f64,
}

impl Chart {
    /// The lines of the chart, none wider than `width` as long as the numbers leave room for labels.
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
        let fit = if self.ends_tell_most { fitted_end } else { fitted };
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

    fn labels(&self, of: fn(&Row) -> &String) -> Vec<String> {
        self.rows.iter().map(|row| one_line(of(row))).collect()
    }

    /// The width of the widest label, or of the title above them.
    fn widest(&self, labels: &[String]) -> usize {
        labels.iter().map(|label| label.width()).max().unwrap_or(0).max(self.title.width())
    }

    /// The columns that hold anything; where labels would get too little room, only the first of them.
    fn columns_that_fit(&self, width: usize, widest_label: usize) -> Vec<Column> {
        let column = |(at, name): (usize, &&'static str)| {
            let numbers = || self.rows.iter().filter_map(move |row| row.numbers.get(at));
            let widest = numbers().map(|number| number.width()).max().unwrap_or(0);
            let is_empty = numbers().all(String::is_empty) && !self.rows.is_empty();
            (!is_empty).then(|| Column { at, name, width: widest.max(name.width()) })
        };
        let mut columns: Vec<Column> = self.columns.iter().enumerate().filter_map(column).collect();
        while columns.len() > 1 && width < total(&columns) + widest_label.min(READABLE_LABEL) {
            columns.pop();
        }
        columns
    }
}

/// A column of numbers that is shown.
#[derive(Debug)]
struct Column {
    /// Which of the numbers.
    at: usize,
    name: &'static str,
    width: usize,
}

/// What the columns take, with the gaps before them.
fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum()
}

/// How `room` is divided between labels and bars. Long labels give way to bars, down to half of it.
fn divided(room: usize, widest_label: usize, title: usize) -> (usize, Option<usize>) {
    let spared = room.saturating_sub(GAP + WIDEST_BAR / 2).max(room / 2).max(READABLE_LABEL);
    let label = widest_label.min(spared).max(title);
    match room.saturating_sub(label + GAP) {
        0..NARROWEST_BAR => (widest_label.min(room).max(title), None),
        left => (label, Some(left.min(WIDEST_BAR))),
    }
}

/// The label to the left, the numbers to the right.
fn aligned<'a>(
    label: &str,
    width: usize,
    numbers: impl Iterator<Item = &'a str>,
    columns: &[Column],
) -> String {
    let mut line = label.to_owned() + &" ".repeat(width.saturating_sub(label.width()));
    for (number, column) in numbers.zip(columns) {
        line.push_str(&" ".repeat(GAP + column.width.saturating_sub(number.width())));
        line.push_str(number);
    }
    line
}

/// A bar of up to `width` columns, which `most` fills. What is more than nothing is seen.
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
        let row = |(label, number, value): &(&str, &str, f64)| Row {
            label: (*label).to_owned(),
            numbers: vec![(*number).to_owned()],
            value: *value,
            ..Row::default()
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
        assert_eq!(bar(0.001, 8.0, 4), "▏", "something is not nothing");
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
    fn where_labels_would_be_cut_shorter_ones_take_their_place() {
        let mut chart = chart(&[("claude-sonnet-4-5 (anthropic)", "12", 12.0)]);
        chart.rows[0].short_label = Some("claude-sonnet-4-5".to_owned());
        assert!(shown(&chart, 80)[1].starts_with("claude-sonnet-4-5 (anthropic)    12  █"));
        assert!(shown(&chart, 40)[1].starts_with("claude-sonnet-4-5    12  █"));
        chart.ends_tell_most = true;
        assert_eq!(shown(&chart, 18)[1], "…-sonnet-4-5    12");
    }

    #[test]
    fn without_room_there_are_no_bars() {
        let lines = shown(&chart(&[("a_tool_with_a_name", "12", 12.0)]), 18);
        assert_eq!(lines, ["Tools         uses", "a_tool_with…    12"]);
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_none_that_is_empty() {
        let row = Row {
            label: "2026-01-31".to_owned(),
            numbers: ["7", "", "12", "345"].map(str::to_owned).to_vec(),
            value: 1.0,
            ..Row::default()
        };
        let columns = vec!["sessions", "nothing", "messages", "events"];
        let chart = Chart { title: "Day".to_owned(), columns, rows: vec![row], ..Chart::default() };
        assert_eq!(shown(&chart, 44)[0], "Day         sessions  messages  events");
        assert_eq!(shown(&chart, 34), ["Day         sessions  messages", "2026-01-31         7        12"]);
        assert_eq!(shown(&chart, 25)[0], "Day         sessions");
    }

    #[test]
    fn bars_line_up_behind_empty_numbers() {
        let lines = shown(&chart(&[("a", "", 1.0), ("b", "7", 1.0)]), 19);
        assert_eq!(lines, ["Tools  uses", "a            ██████", "b         7  ██████"]);
    }

    #[test]
    fn long_bars_are_cut_to_a_length_that_the_eye_takes_in() {
        let lines = shown(&chart(&[("a", "1", 1.0)]), 120);
        assert_eq!(lines[1].matches('█').count(), WIDEST_BAR);
    }

    #[test]
    fn colours_surround_the_bar_and_nothing_else() {
        let lines = chart(&[("a", "1", 1.0)]).lines(20, Paint::new(true));
        assert!(lines[1].starts_with("a         1  \x1b["), "{:?}", lines[1]);
    }
}
