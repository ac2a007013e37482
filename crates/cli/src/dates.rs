//! Dates as people type and read them, in local time.

use amplifier_session_storage::model::Timestamp;
use jiff::{
    Span, ToSpan as _, Zoned,
    civil::{Date, DateTime},
};

use crate::failure::{Failure, say};

/// Which end of a stretch of time a date is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The beginning: a day begins at midnight.
    Since,
    /// The end: a day is meant whole, so it ends at the next midnight.
    Until,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl Period {
    /// Reads what `--since` and `--until` say. Says so when the period has not begun yet.
    pub(crate) fn parse(since: Option<&str>, until: Option<&str>, now: &Zoned) -> Result<Self, Failure> {
        let period = Self {
            since: parse_optional(since, Bound::Since, now)?,
            until: parse_optional(until, Bound::Until, now)?,
        };
        if let (Some(begins), Some(ends)) = (period.since, period.until)
            && ends <= begins
        {
            let (since, until) = (since.unwrap_or_default(), until.unwrap_or_default());
            let message = format!("--until {until} lies before --since {since}");
            return Err(Failure::wrong_use(message, "a period begins with --since and ends with --until"));
        }
        if period.since.is_some_and(|since| since > timestamp(now.timestamp())) {
            say("note", &format!("--since {} lies in the future", since.unwrap_or_default()));
        }
        Ok(period)
    }
}

/// Reads `7d`, `12h`, `2w`, `today`, `yesterday`, an ISO date, or an ISO time with or without offset.
pub(crate) fn parse(text: &str, bound: Bound, now: &Zoned) -> Result<Timestamp, Failure> {
    moment(text.trim(), bound, now).ok_or_else(|| {
        let hint = "dates are 7d, 12h, 2w, today, yesterday, 2026-01-31 or 2026-01-31T09:30";
        Failure::wrong_use(format!("{text:?} is not a date"), hint)
    })
}

/// [`parse`], for a date that may be missing.
pub(crate) fn parse_optional(
    text: Option<&str>,
    bound: Bound,
    now: &Zoned,
) -> Result<Option<Timestamp>, Failure> {
    text.map(|text| parse(text, bound, now)).transpose()
}

/// The day and the minute, in the time zone of `now`: `2026-01-31 09:30`.
pub(crate) fn minute(ts: Timestamp, now: &Zoned) -> String {
    in_zone(ts, now).map_or_else(|| ts.to_string(), |zoned| zoned.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The day and the second, in the time zone of `now`: `2026-01-31 09:30:15`.
pub(crate) fn second(ts: Timestamp, now: &Zoned) -> String {
    in_zone(ts, now).map_or_else(|| ts.to_string(), |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// The second with its offset, in the time zone of `now`: `2026-01-31T09:30:00+01:00`.
pub(crate) fn with_offset(ts: Timestamp, now: &Zoned) -> String {
    in_zone(ts, now)
        .map_or_else(|| ts.to_string(), |zoned| zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

fn in_zone(ts: Timestamp, now: &Zoned) -> Option<Zoned> {
    let instant = jiff::Timestamp::from_microsecond(ts.as_micros()).ok()?;
    Some(instant.to_zoned(now.time_zone().clone()))
}

fn moment(text: &str, bound: Bound, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    match text {
        "now" => Some(timestamp(now.timestamp())),
        "today" => day(today, bound, now),
        "yesterday" => day(today.yesterday().ok()?, bound, now),
        _ => ago(text, now).or_else(|| iso(text, bound, now)),
    }
}

/// A number of hours, days or weeks before `now`.
fn ago(text: &str, now: &Zoned) -> Option<Timestamp> {
    let unit = text.chars().last()?;
    let number = text.strip_suffix(unit)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = number.parse().ok()?;
    let span = match unit {
        'h' => Span::new().try_hours(number),
        'd' => Span::new().try_days(number),
        'w' => Span::new().try_weeks(number),
        _ => return None,
    };
    Some(timestamp(now.checked_sub(span.ok()?).ok()?.timestamp()))
}

fn iso(text: &str, bound: Bound, now: &Zoned) -> Option<Timestamp> {
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp(instant));
    }
    if text.len() == "2026-01-31".len() {
        return day(text.parse::<Date>().ok()?, bound, now);
    }
    let local = text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok()?;
    Some(timestamp(local.timestamp()))
}

fn day(date: Date, bound: Bound, now: &Zoned) -> Option<Timestamp> {
    let date = match bound {
        Bound::Since => date,
        Bound::Until => date.checked_add(1.day()).ok()?,
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
        parse(text, Bound::Since, &now()).unwrap().to_string()
    }

    fn until(text: &str) -> String {
        parse(text, Bound::Until, &now()).unwrap().to_string()
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
    fn days_begin_and_end_at_local_midnight() {
        assert_eq!(since("today"), "2026-04-03T22:00:00.000000Z");
        assert_eq!(until("today"), "2026-04-04T22:00:00.000000Z");
        assert_eq!(since("yesterday"), "2026-04-02T22:00:00.000000Z");
        assert_eq!(until("yesterday"), "2026-04-03T22:00:00.000000Z");
        assert_eq!(since("2026-01-31"), "2026-01-30T23:00:00.000000Z");
        assert_eq!(until("2026-01-31"), "2026-01-31T23:00:00.000000Z");
    }

    #[test]
    fn times_are_local_unless_they_say_otherwise() {
        assert_eq!(since("2026-01-31T09:30"), "2026-01-31T08:30:00.000000Z");
        assert_eq!(since("2026-01-31 09:30:15"), "2026-01-31T08:30:15.000000Z");
        assert_eq!(since("2026-01-31T09:30:00Z"), "2026-01-31T09:30:00.000000Z");
        assert_eq!(until("2026-01-31T09:30:00+05:00"), "2026-01-31T04:30:00.000000Z");
    }

    #[test]
    fn other_texts_are_wrong_use() {
        for text in
            ["", "d", "7", "7x", "-7d", "tomorrow", "2026-13-01", "2026-1-1", "99999999999999999999d", "é"]
        {
            assert!(matches!(parse(text, Bound::Since, &now()), Err(Failure::WrongUse(_))), "{text:?}");
        }
    }

    #[test]
    fn a_period_ends_behind_its_beginning() {
        let period = |since, until| Period::parse(Some(since), Some(until), &now());
        assert!(period("yesterday", "yesterday").is_ok());
        assert!(period("2w", "7d").is_ok());
        for (since, until) in [("7d", "2w"), ("today", "yesterday"), ("2026-03-02", "2026-03-01")] {
            assert!(matches!(period(since, until), Err(Failure::WrongUse(_))), "{since} {until}");
        }
    }

    #[test]
    fn what_is_shown_is_local() {
        let ts = Timestamp::parse("2026-01-31T23:59:30.5Z").unwrap();
        assert_eq!(minute(ts, &now()), "2026-02-01 00:59");
        assert_eq!(second(ts, &now()), "2026-02-01 00:59:30");
        assert_eq!(with_offset(ts, &now()), "2026-02-01T00:59:30+01:00");
    }
}
