//! A picture of the statistics: bars over time, by tool, and by model, as SVG.
//!
//! Written by hand, because chart libraries include fonts or a rasteriser, and do not support dark backgrounds. Text
//! uses the reader's sans-serif font, so widths are estimated generously. The same statistics give the same bytes.

use std::fmt::Write as _;

use amplifier_session_storage::storage::{ModelStatistics, Statistics, ToolStatistics};

use super::{
    charts::tokens,
    text::cost,
    time::{Bars, Unit, bars, time_spans},
};
use crate::render::text::{fitted, grouped, one_line};

/// The width of the picture, in pixels.
const WIDTH: f64 = 860.0;
/// The space on the left for labels, and on the right for numbers.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 150.0;
/// The maximum height of bars over time, and the height of horizontal bars.
const OVER_TIME_HEIGHT: f64 = 150.0;
const BAR_HEIGHT: f64 = 16.0;
/// The distance between horizontal bars.
const STEP: f64 = 24.0;
/// How many bars a chart shows; the rest is combined into one more.
const LARGEST: usize = 12;
/// The maximum length of a label in characters.
const LABEL: usize = 24;
/// The distance from the end of a chart to the title of the next.
const GAP: f64 = 42.0;

const STYLE: &str = "\
<style>
  text { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #24292f; }
  .page { fill: #ffffff; } .title { font-size: 18px; font-weight: 600; } .head { font-size: 14px; font-weight: 600; }
  .aside { fill: #57606a; } .axis { stroke: #d0d7de; } .main { fill: #2f6fb5; } .second { fill: #8db8e3; }
  .failed { fill: #c4472d; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .page { fill: #0d1117; } .aside { fill: #9aa4af; } .axis { stroke: #3d444d; }
    .main { fill: #5b9bd9; } .second { fill: #2f5d8a; } .failed { fill: #e5694e; }
  }
</style>
";

/// The parts of bars: their class and name.
type Names<'a> = [(&'a str, &'a str)];

/// A bar with a label, and a part in another colour.
struct Bar {
    label: String,
    value: u64,
    part: u64,
    value_text: String,
}

/// The picture, with a bar for each day, week or month. A chart without rows says so.
pub(crate) fn svg(statistics: &Statistics, unit: Unit) -> String {
    let mut body = String::new();
    let totals = statistics.totals;
    text(&mut body, (24.0, 36.0), "title", "start", "Sessions of AI agents");
    let period = match (statistics.days.first(), statistics.days.last()) {
        (Some(first), Some(last)) if first.day != last.day => {
            format!(", {} to {} (UTC)", first.day, last.day)
        }
        (Some(only), _) => format!(", {} (UTC)", only.day),
        _ => String::new(),
    };
    let (sessions, messages, events) =
        (grouped(totals.sessions), grouped(totals.messages), grouped(totals.events));
    let line = format!("{sessions} sessions, {messages} messages, {events} events{period}");
    text(&mut body, (24.0, 57.0), "aside", "start", &line);

    let time_spans = time_spans(statistics, unit);
    let names = [("second", "of users"), ("main", "of agents and tools")];
    let of_messages = bars(&time_spans, unit, |of| (of.messages, of.user_messages));
    let mut y = over_time(&mut body, 92.0, "messages", unit, &names, &of_messages);
    let of_tokens = bars(&time_spans, unit, |of| (tokens(of.usage), of.usage.output_tokens));
    let out_and_in = [("second", "out"), ("main", "in")];
    if !of_tokens.bars.is_empty() {
        y = over_time(&mut body, y + GAP, "tokens", unit, &out_and_in, &of_tokens);
    }
    let names = [("main", "uses"), ("failed", "failures")];
    y = by_name(&mut body, y + GAP, "Uses of tools", &names, tools(statistics));
    y = by_name(&mut body, y + GAP, "Tokens by model", &out_and_in, models(statistics));

    let height = y + 30.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>Sessions of AI agents: {}</title>\n{STYLE}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n",
        escaped(&line)
    )
}

fn tools(statistics: &Statistics) -> Vec<Bar> {
    let bar = |of: &ToolStatistics| {
        let failed = match of.failures {
            0 => String::new(),
            failures => format!(", {} failed", grouped(failures)),
        };
        Bar {
            label: of.tool.clone(),
            value: of.uses,
            part: of.failures.min(of.uses),
            value_text: grouped(of.uses) + &failed,
        }
    };
    shortened(statistics.tools.iter().map(bar).collect(), "tools", grouped)
}

fn models(statistics: &Statistics) -> Vec<Bar> {
    let bar = |of: &ModelStatistics| {
        let tokens = tokens(of.usage);
        let cost = match cost(of.usage.cost) {
            none if none.is_empty() => none,
            cost => format!(", {cost}"),
        };
        Bar {
            label: of.model.clone(),
            value: tokens,
            part: of.usage.output_tokens,
            value_text: short(tokens) + &cost,
        }
    };
    shortened(statistics.models.iter().map(bar).collect(), "models", short)
}

/// The largest bars, and the rest combined into one.
fn shortened(mut bars: Vec<Bar>, what: &str, format: fn(u64) -> String) -> Vec<Bar> {
    if bars.len() > LARGEST + 1 {
        let rest = bars.split_off(LARGEST);
        let sum = |of: fn(&Bar) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
        let (value, part) = (sum(|bar| bar.value), sum(|bar| bar.part));
        let label = format!("{} other {what}", grouped(rest.len() as u64));
        bars.push(Bar { label, value, part, value_text: format(value) });
    }
    bars
}

/// Draws vertical bars over time of `of`, and returns their lower end. `names` are those of the parts.
fn over_time(body: &mut String, y: f64, of: &str, unit: Unit, names: &Names<'_>, bars: &Bars) -> f64 {
    let title = if of == "tokens" { "Tokens" } else { "Messages" };
    text(body, (24.0, y), "head", "start", &format!("{title} by {}", unit.name()));
    let Bars { bars, together } = bars;
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0);
    if most == 0 {
        return nothing(body, y);
    }
    let (left, right, top) = (70.0, WIDTH - 24.0, y + 20.0);
    let base = top + OVER_TIME_HEIGHT;
    let ceiling = nice(most);
    for half in [0.0, 0.5, 1.0] {
        let at = base - OVER_TIME_HEIGHT * half;
        let _ = writeln!(body, r#"<line class="axis" x1="{left}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/>"#);
        text(body, (left - 8.0, at + 4.0), "aside", "end", &short((ceiling as f64 * half) as u64));
    }
    let period = match together {
        1 => format!("a {}", unit.name()),
        more => format!("in {more} {}s", unit.name()),
    };
    text(body, (right, y), "aside", "end", &format!("{of} {period} (UTC)"));
    let step = (right - left) / bars.len() as f64;
    let width = (step * 0.8).clamp(1.0, 40.0);
    // As many labels as there is room for; the last bar always has one.
    let every = bars.len().div_ceil(8);
    for (at, bar) in bars.iter().enumerate() {
        let x = left + step * (at as f64 + 0.5);
        let height = |value: u64| value as f64 / ceiling as f64 * OVER_TIME_HEIGHT;
        let place = (x - width / 2.0, base, width);
        let _ = writeln!(body, "<g><title>{}: {} {of}</title>", bar.name, grouped(bar.value));
        upright(body, "main", place, height(bar.value));
        upright(body, "second", place, height(bar.part.min(bar.value)));
        body.push_str("</g>\n");
        if (bars.len() - 1 - at).is_multiple_of(every) {
            // Labels must not extend beyond the picture.
            let x = x.min(WIDTH - 12.0 - 3.5 * bar.label.len() as f64);
            text(body, (x, base + 16.0), "aside", "middle", &bar.label);
        }
    }
    legend(body, (left, base + 16.0), names)
}

fn upright(body: &mut String, class: &str, (x, base, width): (f64, f64, f64), height: f64) {
    if height > 0.0 {
        // Any value above 0 is visible.
        let height = height.max(1.0);
        let y = base - height;
        let _ = writeln!(
            body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        );
    }
}

/// Draws horizontal bars, and returns their lower end. `names` are those of the parts.
fn by_name(body: &mut String, y: f64, title: &str, names: &Names<'_>, bars: Vec<Bar>) -> f64 {
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

fn nothing(body: &mut String, y: f64) -> f64 {
    text(body, (24.0, y + 24.0), "aside", "start", "none");
    y + 24.0
}

fn legend(body: &mut String, (mut x, y): (f64, f64), names: &Names<'_>) -> f64 {
    for (class, name) in names {
        let _ =
            writeln!(body, r#"<rect class="{class}" x="{x:.1}" y="{:.1}" width="10" height="10"/>"#, y + 9.0);
        text(body, (x + 16.0, y + 18.0), "aside", "start", name);
        x += 40.0 + 7.0 * name.len() as f64;
    }
    y + 18.0
}

fn text(body: &mut String, (x, y): (f64, f64), class: &str, anchor: &str, text: &str) {
    let _ = writeln!(
        body,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escaped(text)
    );
}

/// The end of an axis: a round number that is not below `most`.
fn nice(most: u64) -> u64 {
    let mut power = 1_u64;
    while power.saturating_mul(10) < most {
        power = power.saturating_mul(10);
    }
    let fits = [1, 2, 4, 6, 8, 10].map(|digit| power.saturating_mul(digit));
    fits.into_iter().find(|end| *end >= most).unwrap_or(most).max(4)
}

/// A number in short form: `1.2M`.
fn short(number: u64) -> String {
    let of = |unit: f64, name: &str| {
        let number = number as f64 / unit;
        if number < 10.0 && (number * 10.0).round() % 10.0 != 0.0 {
            format!("{number:.1}{name}")
        } else {
            format!("{number:.0}{name}")
        }
    };
    match number {
        0..=9_999 => grouped(number),
        10_000..=999_499 => of(1e3, "k"),
        999_500..=999_499_999 => of(1e6, "M"),
        _ => of(1e9, "G"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
