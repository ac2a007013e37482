//! When matching messages were written.

use amplifier_session_api::pictures::summary;
use amplifier_session_storage::search::{Period, PeriodUnit, Timeline, TimelineRow};
use jiff::civil::Date;

use super::{
    chart::{Chart, ChartRow},
    text::{counted, fitted, grouped},
};
use crate::paint::Paint;

/// A summary and a chart. `tz` is the name of the time zone of the days.
pub(crate) fn blocks(timeline: &Timeline, tz: &str, width: usize, paint: Paint) -> Vec<String> {
    let Some(summary) = summary(timeline) else { return Vec::new() };
    let rows = timeline.rows();
    let shown = rows.iter().filter_map(|row| match row {
        TimelineRow::Period(period) => Some(chart_row(timeline.by, period)),
        TimelineRow::Gap(_) => None,
    });
    let unit = match timeline.by {
        PeriodUnit::Day => "Day",
        PeriodUnit::Week => "Week",
        PeriodUnit::Month => "Month",
    };
    let chart = Chart {
        title: format!("{unit} ({tz})"),
        columns: vec!["messages"],
        rows: shown.collect(),
        ..Chart::default()
    };
    // The chart has a header and a line for each period. Gaps are put between these lines.
    let mut drawn = chart.lines(width, paint).into_iter();
    let mut lines = vec![fitted(&summary, width), String::new()];
    lines.extend(drawn.next());
    for row in rows {
        match row {
            TimelineRow::Period(_) => lines.extend(drawn.next()),
            TimelineRow::Gap(periods) => {
                let periods = counted(periods, timeline.by.as_str());
                lines.push(paint.aside(&format!("… {periods} without a match")));
            }
        }
    }
    lines
}

fn chart_row(by: PeriodUnit, period: &Period) -> ChartRow {
    let (label, short_label) = labels(by, period);
    ChartRow { label, short_label, numbers: vec![grouped(period.count)], value: period.count as f64 }
}

/// The label of a period, and a short one if it is long.
fn labels(by: PeriodUnit, period: &Period) -> (String, Option<String>) {
    let Ok(first) = period.start.parse::<Date>() else { return (period.start.clone(), None) };
    match by {
        PeriodUnit::Day => (first.strftime("%a %F").to_string(), None),
        PeriodUnit::Week => {
            let week = first.strftime("%G-W%V").to_string();
            (format!("{week} from {}", period.start), Some(week + &first.strftime(", %-d %b").to_string()))
        }
        PeriodUnit::Month => (first.strftime("%b %Y").to_string(), None),
    }
}

/// One line per period, for a pipe.
pub(crate) fn lines(timeline: &Timeline) -> Vec<String> {
    timeline.periods.iter().map(|of| format!("{}\t{}\t{}", of.start, of.end, of.count)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn without_messages_nothing_is_drawn() {
        let nothing = Timeline::of_results([], Some(PeriodUnit::Week), &TimeZone::UTC);
        assert!(blocks(&nothing, "UTC", 80, Paint::new(false)).is_empty() && lines(&nothing).is_empty());
    }
}
