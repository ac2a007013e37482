//! Where in time the results of a search lie: counts by day, week or month.

use std::collections::BTreeMap;

use jiff::{ToSpan as _, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{DatedMessage, SearchResult};
use crate::model::Timestamp;

/// The longest gap, in periods, that is filled with empty periods. One wrong date would otherwise add thousands.
pub(crate) const LONGEST_GAP: i64 = 366;
/// The longest time in days that is divided into days if no unit is given: five weeks.
const MOST_DAYS: i64 = 5 * 7;
/// The same for weeks: the longest year that ISO 8601 has.
const MOST_DAYS_IN_WEEKS: i64 = 53 * 7;
/// How many empty periods in a row are rows of their own; more become one row.
const MOST_EMPTY_ROWS: i64 = 3;

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeriodUnit {
    /// A day.
    Day,
    /// A week of ISO 8601: it begins on Monday.
    Week,
    /// A month.
    Month,
}

names! {
    PeriodUnit { Day: "day", Week: "week", Month: "month" }
}

impl PeriodUnit {
    /// The smallest unit with which the time from `first` to `last` has few periods.
    fn fitting(first: Date, last: Date) -> Self {
        let days = Self::Day.distance(first, last) + 1;
        if days <= MOST_DAYS {
            Self::Day
        } else if days <= MOST_DAYS_IN_WEEKS {
            Self::Week
        } else {
            Self::Month
        }
    }

    /// The first day of the period that contains `date`, unless it is before the first date that exists.
    pub(crate) fn start_of(self, date: Date) -> Option<Date> {
        match self {
            Self::Day => Some(date),
            Self::Week => date.checked_sub(i32::from(date.weekday().to_monday_zero_offset()).days()).ok(),
            Self::Month => Some(date.first_of_month()),
        }
    }

    /// The first day of the period that is `periods` after the one that begins on `start`, unless it is after the last date
    /// that exists.
    #[must_use]
    pub fn after(self, start: Date, periods: i64) -> Option<Date> {
        let span = match self {
            Self::Day => periods.days(),
            Self::Week => periods.weeks(),
            Self::Month => periods.months(),
        };
        start.checked_add(span).ok()
    }

    /// The last day of the period that begins on `start`.
    fn end_of(self, start: Date) -> Date {
        self.after(start, 1).and_then(|next| next.yesterday().ok()).unwrap_or(Date::MAX)
    }

    /// How many periods the one that begins on `second` is after the one that begins on `first`.
    #[must_use]
    pub fn distance(self, first: Date, second: Date) -> i64 {
        let days = || first.until(second).map_or(0, |span| i64::from(span.get_days()));
        let months = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month());
        match self {
            Self::Day => days(),
            Self::Week => days() / 7,
            Self::Month => months(second) - months(first),
        }
    }
}

/// A day, week or month of a [`Timeline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Period {
    /// The first day: `2026-01-26`.
    pub start: String,
    /// The last day. For a day, it is the same as `start`.
    pub end: String,
    /// How many messages were written in the period.
    pub count: u64,
}

impl Period {
    fn new(by: PeriodUnit, first_day: Date, count: u64) -> Self {
        Self { start: first_day.to_string(), end: by.end_of(first_day).to_string(), count }
    }

    fn first_day(&self) -> Date {
        self.start.parse().unwrap_or_default()
    }
}

/// A row of the chart of a [`Timeline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineRow<'a> {
    /// A period, which may be empty.
    Period(&'a Period),
    /// This many empty periods in a row.
    Gap(u64),
}

/// How many messages were written in each day, week or month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Timeline {
    /// The unit of the periods.
    pub by: PeriodUnit,
    /// The number of messages: the sum of the counts.
    pub matches: u64,
    /// How many of these have an estimated time.
    pub estimated: u64,
    /// The days of the first message and of the last: `2026-01-26`. Absent without messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// See `first`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The periods in order, from the first message to the last. Empty periods between are included, except those of
    /// gaps of more than 366 periods.
    pub periods: Vec<Period>,
}

impl Timeline {
    /// Counts results by `by`, or else by the smallest unit with which there are few periods: days up to five weeks,
    /// weeks up to a year, otherwise months. The days are those of a time zone. Without results, there are no periods.
    #[must_use]
    pub fn of_results<'a>(
        results: impl IntoIterator<Item = &'a SearchResult>,
        by: Option<PeriodUnit>,
        zone: &TimeZone,
    ) -> Self {
        Self::of_times(results.into_iter().map(|result| (result.ts, result.ts_estimated)), by, zone)
    }

    /// The same for messages.
    #[must_use]
    pub fn of_messages(messages: &[DatedMessage], by: Option<PeriodUnit>, zone: &TimeZone) -> Self {
        let times = messages.iter().map(|message| (message.ts, message.ts_source.is_estimated()));
        Self::of_times(times, by, zone)
    }

    /// The same from times, and whether each is an estimate. Times that are not in a year of four digits are left out.
    fn of_times(
        times: impl IntoIterator<Item = (Timestamp, bool)>,
        by: Option<PeriodUnit>,
        zone: &TimeZone,
    ) -> Self {
        let dated = |(time, estimated)| Some((day(time, zone)?, estimated));
        let days: Vec<(Date, bool)> = times.into_iter().filter_map(dated).collect();
        let first_and_last =
            days.iter().map(|(day, _)| *day).min().zip(days.iter().map(|(day, _)| *day).max());
        let by = by
            .or_else(|| first_and_last.map(|(first, last)| PeriodUnit::fitting(first, last)))
            .unwrap_or(PeriodUnit::Day);
        let mut counts: BTreeMap<Date, u64> = BTreeMap::new();
        let mut estimated = 0;
        for (start, is_estimated) in days.iter().filter_map(|(day, of)| Some((by.start_of(*day)?, *of))) {
            *counts.entry(start).or_default() += 1;
            estimated += u64::from(is_estimated);
        }
        let (first, last) = first_and_last.map(|(first, last)| (first.to_string(), last.to_string())).unzip();
        let matches = counts.values().sum();
        Self { by, matches, estimated, first, last, periods: filled(by, counts) }
    }

    /// The periods for a chart: up to three empty periods in a row are shown, more are one row.
    #[must_use]
    pub fn rows(&self) -> Vec<TimelineRow<'_>> {
        let mut rows: Vec<TimelineRow<'_>> = Vec::new();
        let mut last: Option<&Period> = None;
        let mut empty: Vec<&Period> = Vec::new();
        for period in &self.periods {
            if period.count == 0 {
                empty.push(period);
                continue;
            }
            let between = last.map_or(0, |last| self.by.distance(last.first_day(), period.first_day()) - 1);
            if between > MOST_EMPTY_ROWS {
                rows.push(TimelineRow::Gap(between.unsigned_abs()));
            } else {
                rows.extend(empty.iter().map(|period| TimelineRow::Period(period)));
            }
            empty.clear();
            rows.push(TimelineRow::Period(period));
            last = Some(period);
        }
        rows
    }
}

/// The day of a time, in a year of four digits. Other years have a sign and more digits.
fn day(time: Timestamp, zone: &TimeZone) -> Option<Date> {
    time.day(zone).filter(|date| (0..=9999).contains(&date.year()))
}

/// The periods of the counts, with the empty ones between.
fn filled(by: PeriodUnit, counts: BTreeMap<Date, u64>) -> Vec<Period> {
    let mut periods: Vec<Period> = Vec::new();
    for (start, count) in counts {
        if let Some(last) = periods.last().map(|last| last.first_day()) {
            let between = by.distance(last, start) - 1;
            let gap = 1..=if between > LONGEST_GAP { 0 } else { between };
            periods.extend(gap.filter_map(|at| Some(Period::new(by, by.after(last, at)?, 0))));
        }
        periods.push(Period::new(by, start, count));
    }
    periods
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(days: &[&str], by: Option<PeriodUnit>) -> Timeline {
        let time = |day: &&str| (Timestamp::parse(&format!("{day}T23:59:59Z")).unwrap(), false);
        Timeline::of_times(days.iter().map(time), by, &TimeZone::UTC)
    }

    fn shown(timeline: &Timeline) -> Vec<(&str, &str, u64)> {
        timeline.periods.iter().map(|of| (of.start.as_str(), of.end.as_str(), of.count)).collect()
    }

    fn unit(days: &[&str]) -> PeriodUnit {
        timeline(days, None).by
    }

    #[test]
    fn nothing_has_no_periods() {
        let nothing = timeline(&[], None);
        assert_eq!((nothing.by, nothing.matches, nothing.periods.len()), (PeriodUnit::Day, 0, 0));
        assert_eq!(timeline(&[], Some(PeriodUnit::Month)).by, PeriodUnit::Month);
        assert!(nothing.rows().is_empty());
    }

    #[test]
    fn one_message_is_one_period() {
        for (by, expected) in [
            (None, ("2026-01-31", "2026-01-31", 1)),
            (Some(PeriodUnit::Week), ("2026-01-26", "2026-02-01", 1)),
            (Some(PeriodUnit::Month), ("2026-01-01", "2026-01-31", 1)),
        ] {
            assert_eq!(shown(&timeline(&["2026-01-31"], by)), [expected]);
        }
    }

    #[test]
    fn all_in_one_day_in_any_order() {
        let all = timeline(&["2026-01-31"; 100], None);
        assert_eq!((all.by, all.matches), (PeriodUnit::Day, 100));
        assert_eq!(shown(&all), [("2026-01-31", "2026-01-31", 100)]);
        let two = timeline(&["2026-02-01", "2026-01-31", "2026-02-01"], None);
        assert_eq!(shown(&two), [("2026-01-31", "2026-01-31", 1), ("2026-02-01", "2026-02-01", 2)]);
    }

    /// The periods of times, in a time zone.
    fn in_zone(times: &[&str], by: PeriodUnit, zone: &str) -> Vec<(String, u64)> {
        let times = times.iter().map(|time| (Timestamp::parse(time).unwrap(), false));
        let timeline = Timeline::of_times(times, Some(by), &TimeZone::get(zone).unwrap());
        timeline.periods.into_iter().map(|of| (of.start, of.count)).collect()
    }

    #[test]
    fn days_are_those_of_the_time_zone() {
        let evening = ["2026-01-31T22:30:00Z"];
        for (zone, day) in [
            ("UTC", "2026-01-31"),
            ("Europe/Berlin", "2026-01-31"),
            ("Asia/Kathmandu", "2026-02-01"),
            ("America/New_York", "2026-01-31"),
            ("Pacific/Kiritimati", "2026-02-01"),
        ] {
            assert_eq!(in_zone(&evening, PeriodUnit::Day, zone), [(day.to_owned(), 1)], "{zone}");
        }
        let [before, at] = ["2026-01-31T18:14:59.999999Z", "2026-01-31T18:15:00Z"];
        let days = in_zone(&[before, at], PeriodUnit::Day, "Asia/Kathmandu");
        assert_eq!(days, [("2026-01-31".to_owned(), 1), ("2026-02-01".to_owned(), 1)]);
    }

    #[test]
    fn days_of_23_and_25_hours_are_days() {
        let hours = |from: &str| {
            let from: jiff::Timestamp = from.parse().unwrap();
            (0..72)
                .map(|hour| (from + jiff::SignedDuration::from_hours(hour)).to_string())
                .collect::<Vec<_>>()
        };
        for (zone, from, expected) in [
            ("Europe/Berlin", "2026-03-27T23:00:00Z", [24, 23, 24, 1]),
            ("Europe/Berlin", "2026-10-23T22:00:00Z", [24, 25, 23, 0]),
            ("America/New_York", "2026-03-07T05:00:00Z", [24, 23, 24, 1]),
            ("America/New_York", "2026-10-31T04:00:00Z", [24, 25, 23, 0]),
        ] {
            let times = hours(from);
            let times: Vec<&str> = times.iter().map(String::as_str).collect();
            let mut counts: Vec<u64> =
                in_zone(&times, PeriodUnit::Day, zone).into_iter().map(|(_, count)| count).collect();
            counts.resize(4, 0);
            assert_eq!(counts, expected, "{zone} {from}");
        }
    }

    #[test]
    fn weeks_begin_on_the_monday_of_the_time_zone() {
        // Late on Sunday in New York, and on Monday in Berlin.
        let time = ["2026-03-09T03:59:59Z"];
        let new_york = in_zone(&time, PeriodUnit::Week, "America/New_York");
        assert_eq!(new_york, [("2026-03-02".to_owned(), 1)]);
        assert_eq!(in_zone(&time, PeriodUnit::Week, "Europe/Berlin"), [("2026-03-09".to_owned(), 1)]);
        let months = in_zone(&["2026-03-31T22:00:00Z"], PeriodUnit::Month, "Europe/Berlin");
        assert_eq!(months, [("2026-04-01".to_owned(), 1)]);
    }

    #[test]
    fn weeks_begin_on_monday_also_over_a_year_boundary() {
        let weeks = timeline(
            &["2025-12-28", "2025-12-29", "2025-12-31", "2026-01-04", "2026-01-12"],
            Some(PeriodUnit::Week),
        );
        let expected = [
            ("2025-12-22", "2025-12-28", 1),
            ("2025-12-29", "2026-01-04", 3),
            ("2026-01-05", "2026-01-11", 0),
            ("2026-01-12", "2026-01-18", 1),
        ];
        assert_eq!(shown(&weeks), expected);
    }

    #[test]
    fn months_have_their_own_lengths() {
        let months = timeline(&["2023-12-31", "2024-02-29", "2024-02-01"], Some(PeriodUnit::Month));
        let expected = [
            ("2023-12-01", "2023-12-31", 1),
            ("2024-01-01", "2024-01-31", 0),
            ("2024-02-01", "2024-02-29", 2),
        ];
        assert_eq!(shown(&months), expected);
    }

    #[test]
    fn the_unit_fits_the_time() {
        assert_eq!(unit(&["2026-01-01", "2026-02-04"]), PeriodUnit::Day);
        assert_eq!(unit(&["2026-01-01", "2026-02-05"]), PeriodUnit::Week);
        assert_eq!(unit(&["2026-01-01", "2026-12-31"]), PeriodUnit::Week);
        assert_eq!(unit(&["2026-01-01", "2027-01-07"]), PeriodUnit::Month);
        assert_eq!(unit(&["1970-01-01", "2026-01-01"]), PeriodUnit::Month);
    }

    #[test]
    fn many_empty_periods_are_one_row() {
        let few = timeline(&["2026-01-01", "2026-01-05"], None);
        assert_eq!(few.rows().len(), 5);
        let many = timeline(&["2026-01-01", "2026-01-06", "2026-01-07"], None);
        assert_eq!(many.periods.len(), 7);
        let [first, gap, rest @ ..] = many.rows().try_into().unwrap_or([TimelineRow::Gap(0); 4]);
        assert_eq!((first, gap), (TimelineRow::Period(&many.periods[0]), TimelineRow::Gap(4)));
        assert_eq!(rest, [TimelineRow::Period(&many.periods[5]), TimelineRow::Period(&many.periods[6])]);
    }

    #[test]
    fn very_long_gaps_are_not_filled() {
        let year = timeline(&["2024-01-01", "2025-01-02"], Some(PeriodUnit::Day));
        assert_eq!(year.periods.len(), 368);
        let longer = timeline(&["2024-01-01", "2025-01-03"], Some(PeriodUnit::Day));
        assert_eq!(longer.periods.len(), 2);
        assert_eq!(longer.rows()[1], TimelineRow::Gap(367));
        let extremes = timeline(&["0001-01-01", "9999-12-28"], Some(PeriodUnit::Week));
        assert_eq!(extremes.periods[1].end, "9999-12-31");
    }

    #[test]
    fn estimated_times_are_counted() {
        let time = Timestamp::parse("2026-01-31T00:00:00Z").unwrap();
        let timeline = Timeline::of_times([(time, true), (time, false), (time, true)], None, &TimeZone::UTC);
        assert_eq!((timeline.matches, timeline.estimated), (3, 2));
    }

    #[test]
    fn times_that_are_not_dates_are_left_out() {
        let timeline = Timeline::of_times([(Timestamp::from_micros(i64::MAX), false)], None, &TimeZone::UTC);
        assert_eq!((timeline.matches, timeline.periods.len()), (0, 0));
    }
}
