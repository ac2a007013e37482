//! Statistics for a pipe: section, name and numbers, separated by tabs.

use amplifier_session_api::operations::statistics::{StatisticsResponse, StoreVectors};
use amplifier_session_storage::{
    backend::Usage,
    storage::{DayStatistics, LeftOut, ModelStatistics, PeriodStatistics, SessionStatistics, Statistics},
};

use super::StatsOptions;
use crate::{args::By, render::text::one_line};

/// Marks unknown values.
const UNKNOWN: &str = "-";

/// One line per count, without leaving anything out, or only those of the requested charts.
pub(crate) fn tabbed(response: &StatisticsResponse, shown: StatsOptions<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if shown.everything() {
        let totals = response.statistics.totals;
        for (name, count) in [
            ("sessions", totals.sessions),
            ("messages", totals.messages),
            ("turns", totals.turns),
            ("events", totals.events),
        ] {
            lines.push(line("total", name, &[count]));
        }
        let usage = response.statistics.usage;
        lines.push(line("total", "cost", &[usage.cost]));
        if usage.has_partial_cost() {
            lines.push(line("total", "calls", &[usage.calls]));
            lines.push(line("total", "priced_calls", &[usage.priced_calls]));
            lines.push(line("total", "unreadable_costs", &[usage.unreadable_costs]));
        }
        lines.extend(left_out(&response.statistics));
    }
    for by in shown.sections() {
        lines.extend(section(&response.statistics, by));
    }
    if shown.everything() {
        for place in &response.places {
            let bytes = place.bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| bytes.to_string());
            lines.push(format!("{}\t{}", line("place", &place.what, &[bytes]), one_line(&place.location)));
        }
        lines.push(vectors(&response.vectors));
    }
    lines
}

/// The duplicates that the totals leave out, and the number of superseded events; nothing if both are 0.
fn left_out(statistics: &Statistics) -> Vec<String> {
    let mut lines = Vec::new();
    let left_out = statistics.left_out;
    if left_out != LeftOut::default() {
        for (name, count) in [
            ("sessions", left_out.sessions),
            ("messages", left_out.messages),
            ("turns", left_out.turns),
            ("events", left_out.events),
            ("calls", left_out.usage.calls),
        ] {
            lines.push(line("left_out", name, &[count]));
        }
        lines.push(line("left_out", "cost", &[left_out.usage.cost]));
    }
    if statistics.compacted_events > 0 {
        lines.push(line("total", "compacted_events", &[statistics.compacted_events]));
    }
    lines
}

fn section(statistics: &Statistics, by: By) -> Vec<String> {
    match by {
        By::Day => {
            let days = statistics.days.iter();
            let counts = |of: &DayStatistics| [of.sessions, of.messages, of.user_messages, of.events];
            days.map(|of| over_time("day", &of.day, counts(of), of.usage)).collect()
        }
        By::Week => periods("week", &statistics.weeks),
        By::Month => periods("month", &statistics.months),
        By::Project => {
            let projects = statistics.projects.iter();
            projects.map(|of| line("project", of.of.as_str(), &counts(of.counts))).collect()
        }
        By::Bundle => {
            let bundles = statistics.bundles.iter();
            bundles.map(|of| line("bundle", or_unknown(of.of.as_deref()), &counts(of.counts))).collect()
        }
        By::Event => {
            let types = statistics.event_types.iter();
            types.map(|of| line("event", &of.event_type, &[of.events, of.failures])).collect()
        }
        By::Tool => {
            let tools = statistics.tools.iter();
            tools.map(|of| line("tool", &of.tool, &[of.uses, of.failures])).collect()
        }
        By::Model => statistics.models.iter().map(model).collect(),
    }
}

fn periods(section: &str, periods: &[PeriodStatistics]) -> Vec<String> {
    let counts = |of: &PeriodStatistics| [of.sessions, of.messages, of.user_messages, of.events];
    periods.iter().map(|of| over_time(section, &of.period, counts(of), of.usage)).collect()
}

fn over_time(section: &str, name: &str, counts: [u64; 4], usage: Usage) -> String {
    format!("{}\t{}", line(section, name, &counts), usage.cost)
}

fn model(of: &ModelStatistics) -> String {
    let usage = of.usage;
    let numbers = [
        usage.calls.to_string(),
        usage.input_tokens.to_string(),
        usage.output_tokens.to_string(),
        usage.cache_read_tokens.to_string(),
        usage.cache_write_tokens.to_string(),
        usage.cost.to_string(),
        of.failures.to_string(),
        one_line(or_unknown(of.provider.as_deref())),
    ];
    line("model", &of.model, &numbers)
}

fn vectors(vectors: &StoreVectors) -> String {
    let model = or_unknown(vectors.space.as_ref().map(|space| space.model.as_str()));
    let dimensions = vectors.space.as_ref().map_or(0, |space| space.dimensions);
    let pending = match (vectors.pending_messages, vectors.pending_more) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(pending), more) => format!("{pending}{}", if more { "+" } else { "" }),
    };
    line("vectors", model, &[dimensions.to_string(), pending])
}

fn counts(of: SessionStatistics) -> [u64; 4] {
    [of.sessions, of.messages, of.turns, of.events]
}

fn or_unknown(name: Option<&str>) -> &str {
    name.unwrap_or(UNKNOWN)
}

fn line(section: &str, name: &str, numbers: &[impl ToString]) -> String {
    let mut line = format!("{section}\t{}", one_line(name));
    for number in numbers {
        line.push('\t');
        line.push_str(&number.to_string());
    }
    line
}
