//! A chart for each thing that is counted.

use amplifier_session_storage::storage::{
    DayStatistics, EventTypeStatistics, ModelStatistics, SessionGroup, Statistics, ToolStatistics,
};
use jiff::civil::Date;

use super::{
    Shown,
    text::{cost, share},
};
use crate::{
    args::By,
    paint::Paint,
    render::{
        chart::{Chart, Row},
        text::{counted, grouped},
    },
};

/// How many days are shown when no period is named.
const DAYS: usize = 30;
/// How many rows of the other charts.
const LARGEST: usize = 10;

/// Sessions, messages, events or uses by something.
pub(super) fn chart(statistics: &Statistics, by: By) -> Chart {
    match by {
        By::Day => new("Day (UTC)", &["sessions", "messages", "events"], &statistics.days, day),
        By::Project => {
            let project = |of: &SessionGroup<_>| sessions(of, ToString::to_string);
            new("Project", &["sessions", "messages", "events"], &statistics.projects, project)
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
            let told = statistics.models.iter().any(|of| tokens(of) > 0);
            let model = |of: &ModelStatistics| model(of, told);
            new("Model", &["calls", "tokens in", "tokens out", "cost"], &statistics.models, model)
        }
    }
}

/// The lines of a chart, with those of its rows that are to be shown.
pub(super) fn section(mut chart: Chart, by: By, shown: Shown<'_>, width: usize, paint: Paint) -> Vec<String> {
    let (most, are_days) = match by {
        By::Day if shown.has_period => (usize::MAX, true),
        By::Day => (DAYS, true),
        _ => (LARGEST, false),
    };
    let hidden = if shown.all { 0 } else { chart.rows.len().saturating_sub(most) };
    if are_days {
        chart.rows.drain(..hidden);
    } else {
        chart.rows.truncate(chart.rows.len() - hidden);
    }
    let mut lines = chart.lines(width, paint);
    if hidden > 0 && are_days {
        let days = counted(hidden as u64, "day");
        lines.insert(1, paint.aside(&format!("… and {days} before, shown with --all")));
    } else if hidden > 0 {
        lines.push(paint.aside(&format!("… and {} more, shown with --all", grouped(hidden as u64))));
    } else if chart.rows.is_empty() {
        lines.push(paint.aside("none"));
    }
    lines
}

fn new<T>(title: &str, columns: &[&'static str], items: &[T], row: impl Fn(&T) -> Row) -> Chart {
    Chart { title: title.to_owned(), columns: columns.to_vec(), rows: items.iter().map(row).collect() }
}

fn day(of: &DayStatistics) -> Row {
    let weekday = of.day.parse::<Date>().map(|date| date.strftime("%a ").to_string());
    Row {
        label: weekday.unwrap_or_default() + &of.day,
        numbers: vec![grouped(of.sessions), grouped(of.messages), grouped(of.events)],
        value: of.messages as f64,
    }
}

fn sessions<T>(of: &SessionGroup<T>, name: impl Fn(&T) -> String) -> Row {
    let counts = of.counts;
    Row {
        label: name(&of.of),
        numbers: vec![grouped(counts.sessions), grouped(counts.messages), grouped(counts.events)],
        value: counts.sessions as f64,
    }
}

fn event_type(of: &EventTypeStatistics) -> Row {
    Row {
        label: of.event_type.clone(),
        numbers: vec![grouped(of.events), share(of.failures, of.events)],
        value: of.events as f64,
    }
}

fn tool(of: &ToolStatistics) -> Row {
    Row {
        label: of.tool.clone(),
        numbers: vec![grouped(of.uses), share(of.failures, of.uses)],
        value: of.uses as f64,
    }
}

/// The bar shows tokens where events tell of any, else calls.
fn model(of: &ModelStatistics, tokens_told: bool) -> Row {
    let usage = of.usage;
    let provider = of.provider.as_ref().map_or_else(String::new, |provider| format!(" ({provider})"));
    Row {
        label: format!("{}{provider}", of.model),
        numbers: vec![
            grouped(usage.calls),
            grouped(usage.input_tokens),
            grouped(usage.output_tokens),
            cost(usage.cost),
        ],
        value: if tokens_told { tokens(of) } else { usage.calls } as f64,
    }
}

fn tokens(of: &ModelStatistics) -> u64 {
    of.usage.input_tokens + of.usage.output_tokens
}
