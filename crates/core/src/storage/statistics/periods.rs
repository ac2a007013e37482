//! Activity by day, week and month, including days without activity.

use jiff::{ToSpan as _, civil::Date};
use serde::{Deserialize, Serialize};

use super::DayStatistics;
use crate::{
    backend::Usage,
    search::{LONGEST_GAP, PeriodUnit},
};

/// Activity in a week or a month.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeriodStatistics {
    /// The week in ISO 8601, `2026-W05`, or the month, `2026-01`.
    pub period: String,
    /// Its first day: a Monday, or the first of the month.
    pub first_day: String,
    /// Sessions that were created.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// User messages.
    pub user_messages: u64,
    /// Events.
    pub events: u64,
    /// The usage of models.
    pub usage: Usage,
}

impl PeriodStatistics {
    fn add(&mut self, day: &DayStatistics) {
        self.sessions += day.sessions;
        self.messages += day.messages;
        self.user_messages += day.user_messages;
        self.events += day.events;
        self.usage.add(day.usage);
    }
}

/// The days in order, including those without activity.
pub(super) fn with_gaps(days: impl IntoIterator<Item = DayStatistics>) -> Vec<DayStatistics> {
    let mut filled: Vec<DayStatistics> = Vec::new();
    for day in days {
        let last = filled.last().and_then(|last| last.day.parse::<Date>().ok());
        if let (Some(last), Ok(next)) = (last, day.day.parse::<Date>())
            && days_between(last, next) <= LONGEST_GAP + 1
        {
            let gap = last.series(1.day()).skip(1).take_while(|between| *between < next);
            filled.extend(gap.map(|day| DayStatistics { day: day.to_string(), ..DayStatistics::default() }));
        }
        filled.push(day);
    }
    filled
}

fn days_between(first: Date, second: Date) -> i64 {
    first.until(second).map_or(i64::MAX, |span| i64::from(span.get_days()))
}

/// The ISO 8601 weeks of the days.
pub(super) fn weeks(days: &[DayStatistics]) -> Vec<PeriodStatistics> {
    periods(days, |date| {
        let week = date.iso_week_date();
        let monday = PeriodUnit::Week.start_of(date)?;
        Some((format!("{:04}-W{:02}", week.year(), week.week()), monday))
    })
}

/// The months of the days.
pub(super) fn months(days: &[DayStatistics]) -> Vec<PeriodStatistics> {
    periods(days, |date| Some((date.strftime("%Y-%m").to_string(), date.first_of_month())))
}

/// Sums up consecutive days of the same period. Days that are not dates are left out.
fn periods(days: &[DayStatistics], of: impl Fn(Date) -> Option<(String, Date)>) -> Vec<PeriodStatistics> {
    let mut periods: Vec<PeriodStatistics> = Vec::new();
    for day in days {
        let Some((period, first)) = day.day.parse().ok().and_then(&of) else { continue };
        if periods.last().is_none_or(|last| last.period != period) {
            let first_day = first.to_string();
            periods.push(PeriodStatistics { period, first_day, ..PeriodStatistics::default() });
        }
        if let Some(last) = periods.last_mut() {
            last.add(day);
        }
    }
    periods
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: &str, messages: u64) -> DayStatistics {
        DayStatistics { day: day.to_owned(), messages, ..DayStatistics::default() }
    }

    fn counted(days: &[DayStatistics]) -> Vec<(&str, u64)> {
        days.iter().map(|day| (day.day.as_str(), day.messages)).collect()
    }

    #[test]
    fn days_without_activity_are_included() {
        let days = with_gaps([day("2026-02-27", 3), day("2026-03-02", 1), day("2026-03-03", 2)]);
        let expected =
            [("2026-02-27", 3), ("2026-02-28", 0), ("2026-03-01", 0), ("2026-03-02", 1), ("2026-03-03", 2)];
        assert_eq!(counted(&days), expected);
        assert_eq!(with_gaps([day("1970-01-01", 1), day("2026-01-01", 1)]).len(), 2);
        assert!(with_gaps([]).is_empty());
    }

    #[test]
    fn weeks_begin_on_monday_and_belong_to_the_year_of_their_thursday() {
        let days = with_gaps([
            day("2025-12-28", 1),
            day("2025-12-29", 2),
            day("2026-01-04", 4),
            day("2026-01-12", 8),
        ]);
        let weeks = weeks(&days);
        let weeks: Vec<_> =
            weeks.iter().map(|of| (of.period.as_str(), of.first_day.as_str(), of.messages)).collect();
        let expected = [
            ("2025-W52", "2025-12-22", 1),
            ("2026-W01", "2025-12-29", 6),
            ("2026-W02", "2026-01-05", 0),
            ("2026-W03", "2026-01-12", 8),
        ];
        assert_eq!(weeks, expected);
    }

    #[test]
    fn months_without_activity_are_included() {
        let months = months(&with_gaps([day("2025-11-30", 1), day("2026-01-01", 2), day("2026-01-31", 4)]));
        let months: Vec<_> =
            months.iter().map(|of| (of.period.as_str(), of.first_day.as_str(), of.messages)).collect();
        assert_eq!(
            months,
            [("2025-11", "2025-11-01", 1), ("2025-12", "2025-12-01", 0), ("2026-01", "2026-01-01", 6)]
        );
    }
}
