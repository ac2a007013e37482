//! Pictures of charts as SVG: the page, text, and bars over time.
//!
//! Written by hand, because chart libraries include fonts or a rasteriser, and do not support dark backgrounds. Text
//! uses the reader's sans-serif font, so widths are estimated generously. The same numbers give the same bytes.

use std::fmt::Write as _;

use amplifier_session_core::{
    search::PeriodUnit,
    text::{counted, grouped},
};

use super::bars::Bars;

/// The width of the picture, in pixels.
pub(super) const WIDTH: f64 = 860.0;
/// The maximum height of bars over time.
const OVER_TIME_HEIGHT: f64 = 150.0;

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
pub(super) type BarNames<'a> = [(&'a str, &'a str)];

/// The whole picture. `title` is its accessible name.
pub(super) fn page(title: &str, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n{STYLE}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n",
        escaped(title)
    )
}

/// Draws vertical bars over time of `of`, and returns their lower end. `names` are the names of the parts.
pub(super) fn over_time(
    body: &mut String,
    y: f64,
    of: &str,
    unit: PeriodUnit,
    names: &BarNames<'_>,
    bars: &Bars,
) -> f64 {
    let title = if of == "tokens" { "Tokens" } else { "Messages" };
    text(body, (24.0, y), "head", "start", &format!("{title} by {}", unit.as_str()));
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
        1 => format!("a {}", unit.as_str()),
        more => format!("in {more} {}s", unit.as_str()),
    };
    text(body, (right, y), "aside", "end", &format!("{of} {period}"));
    let step = (right - left) / bars.len() as f64;
    let width = (step * 0.8).clamp(1.0, 40.0);
    // As many labels as there is room for; the last bar always has one.
    let every = bars.len().div_ceil(8);
    for (at, bar) in bars.iter().enumerate() {
        let x = left + step * (at as f64 + 0.5);
        let height = |value: u64| value as f64 / ceiling as f64 * OVER_TIME_HEIGHT;
        let place = (x - width / 2.0, base, width);
        let value = counted(bar.value, of.trim_end_matches('s'));
        let _ = writeln!(body, "<g><title>{}: {value}</title>", bar.name);
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

pub(super) fn nothing(body: &mut String, y: f64) -> f64 {
    text(body, (24.0, y + 24.0), "aside", "start", "none");
    y + 24.0
}

pub(super) fn legend(body: &mut String, (mut x, y): (f64, f64), names: &BarNames<'_>) -> f64 {
    for (class, name) in names {
        let _ =
            writeln!(body, r#"<rect class="{class}" x="{x:.1}" y="{:.1}" width="10" height="10"/>"#, y + 9.0);
        text(body, (x + 16.0, y + 18.0), "aside", "start", name);
        x += 40.0 + 7.0 * name.len() as f64;
    }
    y + 18.0
}

pub(super) fn text(body: &mut String, (x, y): (f64, f64), class: &str, anchor: &str, text: &str) {
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
pub(super) fn short(number: u64) -> String {
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

/// Text for an element or attribute. XML does not allow two characters of Unicode at all.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
