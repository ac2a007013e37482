//! The charts.

use amplifier_session_api::text::cost;
use amplifier_session_storage::{
    backend::Usage,
    storage::{
        DayStatistics, EventTypeStatistics, ModelStatistics, PeriodStatistics, SessionGroup, Statistics,
        ToolStatistics,
    },
};
use jiff::civil::Date;

use super::{StatsOptions, text::share};
use crate::{
    args::By,
    paint::Paint,
    render::{
        chart::{Chart, ChartRow},
        text::{counted, grouped},
    },
};

/// The columns of charts by day, week and month.
const OVER_TIME: [&str; 4] = ["sessions", "messages", "events", "cost"];
/// How many days, weeks or months are shown without a period.
const DAYS: usize = 30;
/// How many rows other charts show.
const LARGEST: usize = 10;

/// Sessions, messages, events or uses by something. `tz` is the name of the time zone of the days.
pub(super) fn chart(statistics: &Statistics, by: By, tz: &str) -> Chart {
    match by {
        By::Day => new(&format!("Day ({tz})"), &OVER_TIME, &statistics.days, day),
        By::Week => new(&format!("Week ({tz})"), &OVER_TIME, &statistics.weeks, week),
        By::Month => new(&format!("Month ({tz})"), &OVER_TIME, &statistics.months, month),
        By::Project => {
            let project = |of: &SessionGroup<_>| sessions(of, ToString::to_string);
            let chart = new("Project", &["sessions", "messages", "events"], &statistics.projects, project);
            Chart { cut_at_start: true, ..chart }
        }
        By::Bundle => {
            let bundle = |of: &SessionGroup<Option<String>>| {
                sessions(of, |name| name.clone().unwrap_or_else(|| "(none)".to_owned()))
            };
            new("Bundle", &["sessions", "messages", "events"], &statistics.bundles, bundle)
        }
        By::Event => new("Event type", &["events", "failed"], &statistics.event_types, event_type),
        By::Tool => new("Tool", &["uses", "failed"], &statistics.tools, tool),
        By::Model => {
            let has_tokens = statistics.models.iter().any(|of| of.usage.tokens() > 0);
            let model = |of: &ModelStatistics| model(of, has_tokens);
            let columns = ["calls", "tokens in", "tokens out", "cost", "cache read", "cache written"];
            Chart { cut_at_start: true, ..new("Model", &columns, &statistics.models, model) }
        }
    }
}

/// The lines of a chart, limited to the rows to show.
pub(super) fn section(
    mut chart: Chart,
    by: By,
    shown: StatsOptions<'_>,
    width: usize,
    paint: Paint,
) -> Vec<String> {
    let unit = match by {
        By::Day => Some("day"),
        By::Week => Some("week"),
        By::Month => Some("month"),
        _ => None,
    };
    let most = match unit {
        Some(_) if shown.has_period => usize::MAX,
        Some(_) => DAYS,
        None => LARGEST,
    };
    let hidden = if shown.all { 0 } else { chart.rows.len().saturating_sub(most) };
    // The last periods are shown, or the largest of other rows, which come first.
    if unit.is_some() {
        chart.rows.drain(..hidden);
    } else {
        chart.rows.truncate(chart.rows.len() - hidden);
    }
    let mut lines = chart.lines(width, paint);
    if let Some(unit) = unit.filter(|_| hidden > 0) {
        let before = counted(hidden as u64, unit);
        lines.insert(1, paint.aside(&format!("… and {before} before; --all shows all")));
    } else if hidden > 0 {
        lines.push(paint.aside(&format!("… and {} more; --all shows all", grouped(hidden as u64))));
    } else if chart.rows.is_empty() {
        lines.push(paint.aside("none"));
    }
    lines
}

fn new<T>(title: &str, columns: &[&'static str], items: &[T], row: impl Fn(&T) -> ChartRow) -> Chart {
    let rows = items.iter().map(row).collect();
    Chart { title: title.to_owned(), columns: columns.to_vec(), rows, ..Chart::default() }
}

fn day(of: &DayStatistics) -> ChartRow {
    let weekday = of.day.parse::<Date>().map(|date| date.strftime("%a ").to_string());
    over_time(weekday.unwrap_or_default() + &of.day, [of.sessions, of.messages, of.events], of.usage)
}

fn week(of: &PeriodStatistics) -> ChartRow {
    let label = format!("{} from {}", of.period, of.first_day);
    let begins = of.first_day.parse::<Date>().map(|date| date.strftime(", %-d %b").to_string());
    let short = of.period.clone() + &begins.unwrap_or_default();
    let row = over_time(label, [of.sessions, of.messages, of.events], of.usage);
    ChartRow { short_label: Some(short), ..row }
}

fn month(of: &PeriodStatistics) -> ChartRow {
    let name = of.first_day.parse::<Date>().map(|date| date.strftime("%b %Y").to_string());
    over_time(name.unwrap_or_else(|_| of.period.clone()), [of.sessions, of.messages, of.events], of.usage)
}

/// The bar shows messages.
fn over_time(label: String, [sessions, messages, events]: [u64; 3], usage: Usage) -> ChartRow {
    ChartRow {
        label,
        numbers: vec![grouped(sessions), grouped(messages), grouped(events), cost(usage.cost)],
        value: messages as f64,
        ..ChartRow::default()
    }
}

fn sessions<T>(of: &SessionGroup<T>, name: impl Fn(&T) -> String) -> ChartRow {
    let counts = of.counts;
    ChartRow {
        label: name(&of.of),
        numbers: vec![grouped(counts.sessions), grouped(counts.messages), grouped(counts.events)],
        value: counts.sessions as f64,
        ..ChartRow::default()
    }
}

fn event_type(of: &EventTypeStatistics) -> ChartRow {
    ChartRow {
        label: of.event_type.clone(),
        numbers: vec![grouped(of.events), share(of.failures, of.events)],
        value: of.events as f64,
        ..ChartRow::default()
    }
}

fn tool(of: &ToolStatistics) -> ChartRow {
    ChartRow {
        label: of.tool.clone(),
        numbers: vec![grouped(of.uses), share(of.failures, of.uses)],
        value: of.uses as f64,
        ..ChartRow::default()
    }
}

/// The bar shows tokens if any events report them, or else calls.
fn model(of: &ModelStatistics, has_tokens: bool) -> ChartRow {
    let usage = of.usage;
    let provider = of.provider.as_ref().map_or_else(String::new, |provider| format!(" ({provider})"));
    ChartRow {
        label: format!("{}{provider}", of.model),
        short_label: Some(of.model.clone()),
        numbers: vec![
            grouped(usage.calls),
            grouped(usage.input_tokens),
            grouped(usage.output_tokens),
            cost(usage.cost),
            some(usage.cache_read_tokens),
            some(usage.cache_write_tokens),
        ],
        value: if has_tokens { usage.tokens() } else { usage.calls } as f64,
    }
}

/// A number, or nothing if it is 0.
fn some(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}
