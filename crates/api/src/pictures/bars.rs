//! Bars over time in a picture: one for each day, week or month, or for several.

use amplifier_session_core::search::PeriodUnit;
use jiff::civil::Date;

/// The maximum number of bars; if there are more, several units share a bar.
const MOST: i64 = 90;

/// The name of the day, week or month that begins on `first`.
fn title(unit: PeriodUnit, first: Date) -> String {
    match unit {
        PeriodUnit::Day => first.to_string(),
        PeriodUnit::Week => format!("week from {first}"),
        PeriodUnit::Month => first.strftime("%Y-%m").to_string(),
    }
}

/// The label below the bar.
fn label(unit: PeriodUnit, first: Date, of_one_year: bool) -> String {
    let format = match unit {
        PeriodUnit::Month => "%Y-%m",
        _ if of_one_year => "%m-%d",
        _ => "%Y-%m-%d",
    };
    first.strftime(format).to_string()
}

/// The first day of a day, week or month, a number, and a part of it.
pub(super) type Dated = (Date, u64, u64);

/// A bar over time, and a part in another colour.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TimeBar {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) value: u64,
    pub(super) part: u64,
}

/// Bars from the first activity to the last.
#[derive(Debug)]
pub(super) struct Bars {
    pub(super) bars: Vec<TimeBar>,
    /// The number of units in a bar.
    pub(super) together: i64,
}

/// The bars, including units without activity. If there are too many units, several share a bar.
pub(super) fn bars(values: impl IntoIterator<Item = Dated>, unit: PeriodUnit) -> Bars {
    let used: Vec<Dated> = values.into_iter().filter(|(_, value, _)| *value > 0).collect();
    let (Some((first, ..)), Some((last, ..))) = (used.first(), used.last()) else {
        return Bars { bars: Vec::new(), together: 1 };
    };
    let units = unit.distance(*first, *last) + 1;
    let together = (units + MOST - 1) / MOST;
    let of_one_year = first.year() == last.year();
    let mut bars: Vec<TimeBar> = (0..(units + together - 1) / together)
        .filter_map(|at| unit.after(*first, at * together))
        .map(|day| TimeBar {
            name: title(unit, day),
            label: label(unit, day, of_one_year),
            value: 0,
            part: 0,
        })
        .collect();
    for (day, value, part) in &used {
        let at = usize::try_from(unit.distance(*first, *day) / together).ok();
        if let Some(bar) = at.and_then(|at| bars.get_mut(at)) {
            (bar.value, bar.part) = (bar.value.saturating_add(*value), bar.part.saturating_add(*part));
        }
    }
    Bars { bars, together }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(unit: PeriodUnit, days: &[(&str, u64)]) -> (Vec<(String, u64)>, i64) {
        let dated = |(first, value): &(&str, u64)| (first.parse().unwrap(), *value, 0);
        let Bars { bars, together } = bars(days.iter().map(dated), unit);
        (bars.into_iter().map(|bar| (bar.label, bar.value)).collect(), together)
    }

    #[test]
    fn units_without_activity_have_a_bar() {
        let bar = |label: &str, value| (label.to_owned(), value);
        let days = [("2026-01-30", 0), ("2026-01-31", 2), ("2026-02-01", 0), ("2026-02-02", 3)];
        assert_eq!(
            shown(PeriodUnit::Day, &days),
            (vec![bar("01-31", 2), bar("02-01", 0), bar("02-02", 3)], 1)
        );
        let weeks = [("2025-12-22", 1), ("2026-01-05", 4)];
        let expected = vec![bar("2025-12-22", 1), bar("2025-12-29", 0), bar("2026-01-05", 4)];
        assert_eq!(shown(PeriodUnit::Week, &weeks), (expected, 1));
        let months = [("2025-12-01", 1), ("2026-02-01", 4)];
        let expected = vec![bar("2025-12", 1), bar("2026-01", 0), bar("2026-02", 4)];
        assert_eq!(shown(PeriodUnit::Month, &months), (expected, 1));
        assert_eq!(shown(PeriodUnit::Month, &[]), (Vec::new(), 1));
    }

    #[test]
    fn many_units_share_bars() {
        let (bars, together) =
            shown(PeriodUnit::Month, &[("2000-01-01", 1), ("2000-02-01", 2), ("2026-01-01", 4)]);
        assert_eq!((together, bars.len()), (4, 79));
        assert_eq!((bars.first().unwrap().1, bars.last().unwrap().1), (3, 4));
        let (bars, together) = shown(PeriodUnit::Day, &[("2026-01-01", 1), ("2026-12-31", 4)]);
        assert_eq!((together, bars.len()), (5, 73));
    }
}
