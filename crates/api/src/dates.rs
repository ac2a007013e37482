//! Dates as people type and read them, in local time.

use amplifier_session_core::model::Timestamp;
use jiff::{
    Span, ToSpan as _, Zoned,
    civil::{Date, DateTime, Weekday},
};

use crate::{ApiError, InvalidRequest, Notice};

/// The end of a period to which a date applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodEnd {
    /// The beginning: a day means its midnight.
    Since,
    /// The end: a day is included, so it means the next midnight.
    Until,
}

/// A period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatePeriod {
    /// Its beginning.
    pub since: Option<Timestamp>,
    /// Its end, which is not part of it.
    pub until: Option<Timestamp>,
}

impl DatePeriod {
    /// Parses the beginning and the end of a period. Adds a notice if the period has not begun yet.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NotADate`]; [`InvalidRequest::EndsBeforeItBegins`].
    pub fn parse(
        since: Option<&str>,
        until: Option<&str>,
        now: &Zoned,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, ApiError> {
        let period = Self {
            since: parse_optional(since, PeriodEnd::Since, now)?,
            until: parse_optional(until, PeriodEnd::Until, now)?,
        };
        if let (Some((since, begins)), Some((until, ends))) =
            (since.zip(period.since), until.zip(period.until))
            && ends <= begins
        {
            let (since, until) = (since.to_owned(), until.to_owned());
            return Err(InvalidRequest::EndsBeforeItBegins { since, until }.into());
        }
        if let Some((since, begins)) = since.zip(period.since)
            && begins > timestamp(now.timestamp())
        {
            notices.push(Notice::SinceIsInTheFuture { since: since.to_owned() });
        }
        Ok(period)
    }

    /// Whether a time is in the period.
    #[must_use]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

/// Parses `7d`, `12h`, `2w`, `3 months ago`, `today`, `yesterday`, `monday`, `last week`, an ISO date, or an ISO time
/// with or without offset.
///
/// # Errors
///
/// [`InvalidRequest::NotADate`] for other texts.
pub fn parse(text: &str, bound: PeriodEnd, now: &Zoned) -> Result<Timestamp, ApiError> {
    moment(text.trim(), bound, now).ok_or_else(|| InvalidRequest::NotADate { text: text.to_owned() }.into())
}

/// [`parse`] for an optional date.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_optional(
    text: Option<&str>,
    bound: PeriodEnd,
    now: &Zoned,
) -> Result<Option<Timestamp>, ApiError> {
    text.map(|text| parse(text, bound, now)).transpose()
}

/// The beginning of an age: `90d` is 90 days ago. Something older was last changed before it.
///
/// # Errors
///
/// As [`parse`]; [`InvalidRequest::AgeInTheFuture`], because everything would be older.
pub fn parse_age(age: Option<&str>, now: &Zoned) -> Result<Option<Timestamp>, ApiError> {
    let begins = parse_optional(age, PeriodEnd::Since, now)?;
    if let Some((age, begins)) = age.zip(begins)
        && begins > timestamp(now.timestamp())
    {
        return Err(InvalidRequest::AgeInTheFuture { age: age.to_owned() }.into());
    }
    Ok(begins)
}

/// The day and the minute, in the time zone of `now`: `2026-01-31 09:30`.
#[must_use]
pub fn minute(ts: Timestamp, now: &Zoned) -> String {
    formatted(ts, "%Y-%m-%d %H:%M", now)
}

/// [`minute`], with `~` in front of an estimate.
#[must_use]
pub fn about_minute(ts: Timestamp, is_estimated: bool, now: &Zoned) -> String {
    let mark = if is_estimated { "~" } else { "" };
    format!("{mark}{}", minute(ts, now))
}

/// The day and the second, in the time zone of `now`: `2026-01-31 09:30:15`.
#[must_use]
pub fn second(ts: Timestamp, now: &Zoned) -> String {
    formatted(ts, "%Y-%m-%d %H:%M:%S", now)
}

/// The second with its offset, in the time zone of `now`: `2026-01-31T09:30:00+01:00`.
#[must_use]
pub fn with_offset(ts: Timestamp, now: &Zoned) -> String {
    formatted(ts, "%Y-%m-%dT%H:%M:%S%:z", now)
}

fn formatted(ts: Timestamp, format: &str, now: &Zoned) -> String {
    let instant = jiff::Timestamp::from_microsecond(ts.as_micros());
    let zoned = instant.map(|instant| instant.to_zoned(now.time_zone().clone()));
    zoned.map_or_else(|_| ts.to_string(), |zoned| zoned.strftime(format).to_string())
}

fn moment(text: &str, bound: PeriodEnd, now: &Zoned) -> Option<Timestamp> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    match words[..] {
        ["now"] => Some(timestamp(now.timestamp())),
        ["today"] => day(now.date(), bound, now),
        ["yesterday"] => day(now.date().yesterday().ok()?, bound, now),
        [count, unit, "ago"] => back(number(count)?, unit, now),
        ["last", unit] => calendar(unit, true, bound, now),
        ["this", unit] => calendar(unit, false, bound, now),
        [name] => ago(name, now)
            .or_else(|| day(latest(weekday(name)?, now.date())?, bound, now))
            .or_else(|| iso(text, bound, now)),
        _ => iso(text, bound, now),
    }
}

/// A bound of the calendar period with this name: `last week` begins on a Monday and ends on a Sunday; `last monday` is
/// the one before today.
fn calendar(unit: &str, last: bool, bound: PeriodEnd, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    if let Some(weekday) = weekday(unit) {
        let from = if last { today.yesterday().ok()? } else { today };
        return day(latest(weekday, from)?, bound, now);
    }
    let (begins, length): (Date, Span) = match unit {
        "week" => (latest(Weekday::Monday, today)?, 1.week()),
        "month" => (today.first_of_month(), 1.month()),
        "year" => (today.first_of_year(), 1.year()),
        _ => return None,
    };
    let begins = if last { begins.checked_sub(length).ok()? } else { begins };
    bound_of(begins, length, bound, now)
}

/// The most recent day with this name, which may be `from`.
fn latest(weekday: Weekday, from: Date) -> Option<Date> {
    let days = from.weekday().since(weekday);
    from.checked_sub(i64::from(days).days()).ok()
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

fn number(text: &str) -> Option<i64> {
    match text {
        "a" | "an" | "one" => Some(1),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

/// `count` units of time before `now`.
fn back(count: i64, unit: &str, now: &Zoned) -> Option<Timestamp> {
    let span = match unit.strip_suffix('s').unwrap_or(unit) {
        "minute" | "min" => Span::new().try_minutes(count),
        "hour" => Span::new().try_hours(count),
        "day" => Span::new().try_days(count),
        "week" => Span::new().try_weeks(count),
        "month" => Span::new().try_months(count),
        "year" => Span::new().try_years(count),
        _ => return None,
    };
    Some(timestamp(now.checked_sub(span.ok()?).ok()?.timestamp()))
}

/// `7d`, `12h` or `2w` before `now`.
fn ago(text: &str, now: &Zoned) -> Option<Timestamp> {
    let unit = text.chars().last()?;
    let count = text.strip_suffix(unit).filter(|count| !count.is_empty())?;
    if !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unit = match unit {
        'h' => "hour",
        'd' => "day",
        'w' => "week",
        _ => return None,
    };
    back(count.parse().ok()?, unit, now)
}

fn iso(text: &str, bound: PeriodEnd, now: &Zoned) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp(instant));
    }
    if text.len() == "2026-01-31".len() {
        return day(text.parse::<Date>().ok()?, bound, now);
    }
    let local = text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok()?;
    Some(timestamp(local.timestamp()))
}

fn day(date: Date, bound: PeriodEnd, now: &Zoned) -> Option<Timestamp> {
    bound_of(date, 1.day(), bound, now)
}

/// A bound of the period that begins on this day and is this long.
fn bound_of(begins: Date, length: Span, bound: PeriodEnd, now: &Zoned) -> Option<Timestamp> {
    let date = match bound {
        PeriodEnd::Since => begins,
        PeriodEnd::Until => begins.checked_add(length).ok()?,
    };
    Some(timestamp(date.to_zoned(now.time_zone().clone()).ok()?.timestamp()))
}

fn timestamp(instant: jiff::Timestamp) -> Timestamp {
    Timestamp::from_micros(instant.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Saturday in Zürich, six days after the clocks went forward.
    fn now() -> Zoned {
        "2026-04-04T15:30:00+02:00[Europe/Zurich]".parse().unwrap()
    }

    fn since(text: &str) -> String {
        parse(text, PeriodEnd::Since, &now()).unwrap().to_string()
    }

    fn until(text: &str) -> String {
        parse(text, PeriodEnd::Until, &now()).unwrap().to_string()
    }

    #[test]
    fn spans_go_back_from_now() {
        assert_eq!(since("12h"), "2026-04-04T01:30:00.000000Z");
        // A day is a day on the calendar, not 24 hours.
        assert_eq!(since("7d"), "2026-03-28T14:30:00.000000Z");
        assert_eq!(since("2w"), "2026-03-21T14:30:00.000000Z");
        assert_eq!(until("0d"), "2026-04-04T13:30:00.000000Z");
    }

    #[test]
    fn spans_can_be_written_in_words() {
        assert_eq!(since("12 hours ago"), since("12h"));
        assert_eq!(since("7 days ago"), since("7d"));
        assert_eq!(since("2 weeks ago"), since("2w"));
        assert_eq!(since("a week ago"), since("1w"));
        assert_eq!(since("an hour ago"), since("1h"));
        assert_eq!(since("30 minutes ago"), "2026-04-04T13:00:00.000000Z");
        assert_eq!(since("3 months ago"), "2026-01-04T14:30:00.000000Z");
        assert_eq!(since("1 Year Ago"), "2025-04-04T13:30:00.000000Z");
    }

    #[test]
    fn days_of_the_week_are_the_most_recent() {
        assert_eq!(since("monday"), "2026-03-29T22:00:00.000000Z");
        assert_eq!(until("Monday"), "2026-03-30T22:00:00.000000Z");
        assert_eq!(since("sun"), "2026-03-28T23:00:00.000000Z");
        // Today counts.
        assert_eq!(since("saturday"), since("today"));
        assert_eq!(since("last saturday"), "2026-03-27T23:00:00.000000Z");
    }

    #[test]
    fn weeks_months_and_years_are_calendar_periods() {
        assert_eq!(since("last week"), "2026-03-22T23:00:00.000000Z");
        assert_eq!(until("last week"), "2026-03-29T22:00:00.000000Z");
        assert_eq!(since("this week"), until("last week"));
        assert_eq!(since("last month"), "2026-02-28T23:00:00.000000Z");
        assert_eq!(until("last month"), "2026-03-31T22:00:00.000000Z");
        assert_eq!(since("last year"), "2024-12-31T23:00:00.000000Z");
        assert_eq!(since("this year"), until("last year"));
    }

    #[test]
    fn days_begin_and_end_at_local_midnight() {
        assert_eq!(since("today"), "2026-04-03T22:00:00.000000Z");
        assert_eq!(until("today"), "2026-04-04T22:00:00.000000Z");
        assert_eq!(since("yesterday"), "2026-04-02T22:00:00.000000Z");
        assert_eq!(until("yesterday"), "2026-04-03T22:00:00.000000Z");
        assert_eq!(since("2026-01-31"), "2026-01-30T23:00:00.000000Z");
        assert_eq!(until("2026-01-31"), "2026-01-31T23:00:00.000000Z");
    }

    /// In Havana, the clock goes from 23:59 to 01:00, and months later from 00:59 to 00:00.
    #[test]
    fn a_day_begins_where_the_day_before_ends() {
        for zone in ["America/Havana", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"] {
            let now: Zoned = format!("2026-12-31T12:00:00[{zone}]").parse().unwrap();
            let read = |day: Date, bound| parse(&day.to_string(), bound, &now).unwrap();
            let days = jiff::civil::date(2026, 1, 1).series(1.day()).take(365);
            for (day, next) in days.clone().zip(days.skip(1)) {
                let [begins, ends] = [PeriodEnd::Since, PeriodEnd::Until].map(|bound| read(day, bound));
                assert_eq!(ends, read(next, PeriodEnd::Since), "{zone} {day}");
                assert_eq!(begins.day(now.time_zone()), Some(day), "{zone} {day}");
                let last = Timestamp::from_micros(ends.as_micros() - 1);
                assert_eq!(last.day(now.time_zone()), Some(day), "{zone} {day}");
            }
        }
        let now: Zoned = "2026-12-31T12:00:00[America/Havana]".parse().unwrap();
        let begins = parse("2026-03-08", PeriodEnd::Since, &now).unwrap();
        assert_eq!(with_offset(begins, &now), "2026-03-08T01:00:00-04:00");
    }

    #[test]
    fn times_without_an_offset_are_local() {
        assert_eq!(since("2026-01-31T09:30"), "2026-01-31T08:30:00.000000Z");
        assert_eq!(since("2026-01-31 09:30:15"), "2026-01-31T08:30:15.000000Z");
        assert_eq!(since("2026-01-31T09:30:00Z"), "2026-01-31T09:30:00.000000Z");
        assert_eq!(until("2026-01-31T09:30:00+05:00"), "2026-01-31T04:30:00.000000Z");
    }

    #[test]
    fn other_texts_are_usage_errors() {
        for text in [
            "",
            "d",
            "7",
            "7x",
            "-7d",
            "tomorrow",
            "last",
            "last decade",
            "x days ago",
            "-1 days ago",
            "3 moons ago",
            "2026-13-01",
            "2026-1-1",
            "99999999999999999999d",
            "é",
        ] {
            assert!(matches!(parse(text, PeriodEnd::Since, &now()), Err(ApiError::Invalid(_))), "{text:?}");
        }
    }

    #[test]
    fn a_period_ends_after_its_beginning() {
        let period = |since, until| DatePeriod::parse(Some(since), Some(until), &now(), &mut Vec::new());
        assert!(period("yesterday", "yesterday").is_ok());
        assert!(period("2w", "7d").is_ok());
        for (since, until) in [("7d", "2w"), ("today", "yesterday"), ("2026-03-02", "2026-03-01")] {
            assert!(matches!(period(since, until), Err(ApiError::Invalid(_))), "{since} {until}");
        }
    }

    #[test]
    fn an_age_is_not_in_the_future() {
        let age = |age| parse_age(Some(age), &now());
        assert_eq!(age("7d").unwrap().unwrap().to_string(), since("7d"));
        assert!(age("now").is_ok());
        let refused = age("2026-04-05");
        assert!(matches!(refused, Err(ApiError::Invalid(InvalidRequest::AgeInTheFuture { .. }))));
        assert_eq!(parse_age(None, &now()).unwrap(), None);
    }

    #[test]
    fn output_is_in_local_time() {
        let ts = Timestamp::parse("2026-01-31T23:59:30.5Z").unwrap();
        assert_eq!(minute(ts, &now()), "2026-02-01 00:59");
        assert_eq!(second(ts, &now()), "2026-02-01 00:59:30");
        assert_eq!(with_offset(ts, &now()), "2026-02-01T00:59:30+01:00");
    }
}
