//! Points in time: UTC, microseconds.

use std::{fmt, ops::Range};

use jiff::{civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{Error, ErrorField, Result};

/// A point in time in microseconds since 1970-01-01T00:00:00Z.
///
/// Written as ISO 8601 in UTC with six decimals, so that text order is time order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_microsecond())
    }

    /// The day in a time zone, unless it is too far away to be a date.
    #[must_use]
    pub fn day(self, zone: &TimeZone) -> Option<Date> {
        let instant = jiff::Timestamp::from_microsecond(self.0).ok()?;
        Some(zone.to_datetime(instant).date())
    }

    /// The beginning of its quarter of an hour. Days of all time zones begin with a quarter of an hour, as long as their
    /// offsets from UTC are multiples of it: in all zones since 1972.
    #[must_use]
    pub fn quarter_hour(self) -> Self {
        const QUARTER: i64 = 15 * 60 * 1_000_000;
        Self(self.0.div_euclid(QUARTER).saturating_mul(QUARTER))
    }

    /// Parses ISO 8601 with an offset or `Z`. Without an offset, it is UTC.
    ///
    /// # Errors
    ///
    /// `Validation` if the text is not a date with a time.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            return Ok(Self(instant.as_microsecond()));
        }
        let utc = |civil: jiff::civil::DateTime| civil.to_zoned(jiff::tz::TimeZone::UTC);
        match text.parse::<jiff::civil::DateTime>().and_then(utc) {
            Ok(zoned) => Ok(Self(zoned.timestamp().as_microsecond())),
            Err(source) => Err(Error::validation(ErrorField::Ts, "is not an ISO 8601 time")
                .with("value", format_args!("{text:?}"))
                .with_source(source)),
        }
    }

    /// Parses a JSON value in a file: ISO 8601 text, or a number since the epoch of seconds (below 10¹¹), milliseconds
    /// (below 10¹⁴), microseconds (below 10¹⁷) or nanoseconds.
    ///
    /// `None` outside 2000 to 2199: `0`, `-1` and the time of a monotonic clock are numbers, but not the time when a
    /// line was written.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        let ts = match value {
            Value::String(text) => Self::parse(text).ok()?,
            Value::Number(number) => Self(micros(number)?),
            _ => return None,
        };
        Some(ts).filter(|ts| ts.is_plausible())
    }

    /// Whether it is in 2000 to 2199, when lines may have been written.
    #[must_use]
    pub fn is_plausible(self) -> bool {
        PLAUSIBLE.contains(&self)
    }
}

/// 2000 to 2199.
const PLAUSIBLE: Range<Timestamp> = Timestamp(946_684_800_000_000)..Timestamp(7_258_118_400_000_000);

/// The microseconds of a number whose unit depends on its size.
fn micros(number: &Number) -> Option<i64> {
    if let Some(number) = number.as_i64() {
        return match number.unsigned_abs() {
            0..=99_999_999_999 => number.checked_mul(1_000_000),
            100_000_000_000..=99_999_999_999_999 => number.checked_mul(1_000),
            100_000_000_000_000..=99_999_999_999_999_999 => Some(number),
            _ => Some(number / 1_000),
        };
    }
    let number = number.as_f64()?;
    let scale = match number.abs() {
        ..1e11 => 1e6,
        ..1e14 => 1e3,
        ..1e17 => 1.0,
        _ => 1e-3,
    };
    // Larger numbers than fit become the largest one, which is not plausible.
    Some((number * scale).round() as i64)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<Timestamp> for String {
    fn from(ts: Timestamp) -> Self {
        ts.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_converted_to_utc() {
        let ts = Timestamp::parse("2026-01-05T10:00:00+02:00").unwrap();
        assert_eq!(ts, Timestamp::parse("2026-01-05T08:00:00Z").unwrap());
        assert_eq!(ts.to_string(), "2026-01-05T08:00:00.000000Z");
        assert_eq!(ts, Timestamp::parse("2026-01-05 08:00:00").unwrap());
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds() {
        let ts = Timestamp::parse("2026-01-05T08:00:00.5Z").unwrap();
        assert_eq!(Timestamp::from_json(&serde_json::json!(1_767_600_000.5)), Some(ts));
        assert_eq!(Timestamp::from_json(&serde_json::json!(1_767_600_000_500_i64)), Some(ts));
        assert_eq!(Timestamp::from_json(&serde_json::json!(1_767_600_000_500_000_i64)), Some(ts));
        assert_eq!(Timestamp::from_json(&serde_json::json!(1_767_600_000_500_000_000_i64)), Some(ts));
        assert_eq!(Timestamp::from_json(&serde_json::json!(1_767_600_000_500.0)), Some(ts));
        assert_eq!(Timestamp::from_json(&serde_json::json!(null)), None);
    }

    #[test]
    fn times_at_which_nothing_was_written_are_none() {
        use serde_json::json;

        let monotonic = [json!(12_345.678), json!(98_765_432)];
        let wrong =
            [json!(-1), json!(0), json!(0.0), json!(1e300), json!(-1e300), json!(i64::MIN), json!(u64::MAX)];
        let dates =
            ["1970-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "2255-01-01T00:00:00Z", "0001-01-01T00:00:00"];
        for value in monotonic.into_iter().chain(wrong).chain(dates.map(|date| json!(date))) {
            assert_eq!(Timestamp::from_json(&value), None, "{value}");
        }
        for date in ["2000-01-01T00:00:00Z", "2199-12-31T23:59:59Z"] {
            assert!(Timestamp::from_json(&json!(date)).is_some(), "{date}");
        }
    }

    #[test]
    fn invalid_times_are_errors() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "12"] {
            assert!(Timestamp::parse(text).is_err(), "{text:?}");
        }
    }
}
