//! A picture of the statistics: bars over time, by tool, and by model, as SVG.

use std::fmt::Write as _;

use amplifier_session_core::{
    backend::Usage,
    search::PeriodUnit,
    storage::{DayStatistics, ModelStatistics, PeriodStatistics, Statistics, ToolStatistics},
    text::{counted, grouped},
};
use jiff::civil::Date;

use super::{
    bars::bars,
    page::{BarNames, WIDTH, escaped, legend, nothing, over_time, page, short, text},
};
use crate::text::{cost, fitted, one_line};

/// The space on the left for labels, and on the right for numbers.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 150.0;
/// The height of horizontal bars.
const BAR_HEIGHT: f64 = 16.0;
/// The distance between horizontal bars.
const STEP: f64 = 24.0;
/// The number of bars of a chart; the rest is combined into one more.
const LARGEST: usize = 12;
/// The maximum length of a label in characters.
const LABEL: usize = 24;
/// The distance from the end of a chart to the title of the next.
const GAP: f64 = 42.0;

/// A bar with a label, and a part in another colour.
struct SvgBar {
    label: String,
    value: u64,
    part: u64,
    value_text: String,
}

/// The picture of statistics, with a bar for each day, week or month. `tz` is the name of the time zone of the days. A
/// chart without rows says so.
#[must_use]
pub fn statistics(statistics: &Statistics, unit: PeriodUnit, tz: &str) -> String {
    let mut body = String::new();
    let totals = statistics.totals;
    text(&mut body, (24.0, 36.0), "title", "start", "Sessions of AI agents");
    let period = match (statistics.days.first(), statistics.days.last()) {
        (Some(first), Some(last)) if first.day != last.day => {
            format!(", {} to {} ({tz})", first.day, last.day)
        }
        (Some(only), _) => format!(", {} ({tz})", only.day),
        _ => String::new(),
    };
    let sessions = counted(totals.sessions, "session");
    let (messages, events) = (counted(totals.messages, "message"), counted(totals.events, "event"));
    let line = format!("{sessions}, {messages}, {events}{period}");
    text(&mut body, (24.0, 57.0), "aside", "start", &line);

    let time_spans = time_spans(statistics, unit);
    let names = [("second", "of users"), ("main", "of agents and tools")];
    let of_messages = bars(time_spans.iter().map(|of| (of.first, of.messages, of.user_messages)), unit);
    let mut y = over_time(&mut body, 92.0, "messages", unit, &names, &of_messages);
    let of_tokens =
        bars(time_spans.iter().map(|of| (of.first, of.usage.tokens(), of.usage.output_tokens)), unit);
    let out_and_in = [("second", "out"), ("main", "in")];
    if !of_tokens.bars.is_empty() {
        y = over_time(&mut body, y + GAP, "tokens", unit, &out_and_in, &of_tokens);
    }
    let names = [("main", "uses"), ("failed", "failures")];
    y = by_name(&mut body, y + GAP, "Uses of tools", &names, tools(statistics));
    y = by_name(&mut body, y + GAP, "Tokens by model", &out_and_in, models(statistics));

    page(&format!("Sessions of AI agents: {line}"), y + 30.0, &body)
}

/// Activity in a day, week or month.
#[derive(Debug, Clone, Copy)]
struct TimeSpan {
    first: Date,
    messages: u64,
    user_messages: u64,
    usage: Usage,
}

/// Activity by `unit`.
fn time_spans(statistics: &Statistics, unit: PeriodUnit) -> Vec<TimeSpan> {
    let span = |first: &str, messages, user_messages, usage| {
        Some(TimeSpan { first: first.parse().ok()?, messages, user_messages, usage })
    };
    let of_day = |of: &DayStatistics| span(&of.day, of.messages, of.user_messages, of.usage);
    let of_period = |of: &PeriodStatistics| span(&of.first_day, of.messages, of.user_messages, of.usage);
    match unit {
        PeriodUnit::Day => statistics.days.iter().filter_map(of_day).collect(),
        PeriodUnit::Week => statistics.weeks.iter().filter_map(of_period).collect(),
        PeriodUnit::Month => statistics.months.iter().filter_map(of_period).collect(),
    }
}

fn tools(statistics: &Statistics) -> Vec<SvgBar> {
    let bar = |of: &ToolStatistics| {
        let failed = match of.failures {
            0 => String::new(),
            failures => format!(", {} failed", grouped(failures)),
        };
        SvgBar {
            label: of.tool.clone(),
            value: of.uses,
            part: of.failures.min(of.uses),
            value_text: grouped(of.uses) + &failed,
        }
    };
    shortened(statistics.tools.iter().map(bar).collect(), "tools", grouped)
}

fn models(statistics: &Statistics) -> Vec<SvgBar> {
    let bar = |of: &ModelStatistics| {
        let tokens = of.usage.tokens();
        let cost = match cost(of.usage.cost) {
            none if none.is_empty() => none,
            cost => format!(", {cost}"),
        };
        SvgBar {
            label: of.model.clone(),
            value: tokens,
            part: of.usage.output_tokens,
            value_text: short(tokens) + &cost,
        }
    };
    shortened(statistics.models.iter().map(bar).collect(), "models", short)
}

/// The largest bars, and the rest combined into one.
fn shortened(mut bars: Vec<SvgBar>, what: &str, format: fn(u64) -> String) -> Vec<SvgBar> {
    if bars.len() > LARGEST + 1 {
        let rest = bars.split_off(LARGEST);
        let sum = |of: fn(&SvgBar) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
        let (value, part) = (sum(|bar| bar.value), sum(|bar| bar.part));
        let label = format!("{} other {what}", grouped(rest.len() as u64));
        bars.push(SvgBar { label, value, part, value_text: format(value) });
    }
    bars
}

/// Draws horizontal bars, and returns their lower end. `names` are the names of the parts.
fn by_name(body: &mut String, y: f64, title: &str, names: &BarNames<'_>, bars: Vec<SvgBar>) -> f64 {
    text(body, (24.0, y), "head", "start", title);
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0);
    if most == 0 {
        return nothing(body, y);
    }
    let part_class = names.iter().map(|(class, _)| *class).find(|class| *class != "main").unwrap_or("main");
    let room = WIDTH - LEFT - RIGHT;
    let mut top = y + 14.0;
    for bar in bars {
        let width = |value: u64| if value == 0 { 0.0 } else { (value as f64 / most as f64 * room).max(2.0) };
        let label = one_line(&bar.label);
        let _ = writeln!(body, "<g><title>{}: {}</title>", escaped(&label), escaped(&bar.value_text));
        for (class, width) in [("main", width(bar.value)), (part_class, width(bar.part))] {
            if width > 0.0 {
                let place = format!(r#"x="{LEFT}" y="{top:.1}" width="{width:.1}" height="{BAR_HEIGHT}""#);
                let _ = writeln!(body, r#"<rect class="{class}" {place}/>"#);
            }
        }
        body.push_str("</g>\n");
        let middle = top + BAR_HEIGHT - 4.0;
        text(body, (LEFT - 8.0, middle), "label", "end", &fitted(&label, LABEL));
        text(body, (LEFT + width(bar.value) + 8.0, middle), "aside", "start", &bar.value_text);
        top += STEP;
    }
    legend(body, (LEFT, top), names)
}
