//! Points in time: UTC, microseconds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result};

/// A point in time in microseconds since 1970-01-01T00:00:00Z.
///
/// Written as ISO 8601 in UTC with six decimals, so that text order is time order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// The day in UTC: `2026-01-31`.
    #[must_use]
    pub fn day(self) -> String {
        let mut text = self.to_string();
        // A year beyond 9999 has a sign and more digits.
        text.truncate(text.find('T').unwrap_or(text.len()));
        text
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
            Err(source) => Err(Error::validation("ts", "is not an ISO 8601 time")
                .with("value", format_args!("{text:?}"))
                .with_source(source)),
        }
    }

    /// Parses a JSON value: ISO 8601 text, or a number of seconds since the epoch (milliseconds from 10¹¹ on).
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => {
                let number = number.as_f64()?;
                let seconds = if number.abs() >= 1e11 { number / 1e3 } else { number };
                let micros = seconds * 1e6;
                // 9999-12-31 in microseconds; later times have no date.
                (micros.abs() < 2.534e17).then_some(Self(micros.round() as i64))
            }
            _ => None,
        }
    }
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
        assert_eq!(Timestamp::from_json(&serde_json::json!(1e300)), None);
        assert_eq!(Timestamp::from_json(&serde_json::json!(null)), None);
    }

    #[test]
    fn invalid_times_are_errors() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "12"] {
            assert!(Timestamp::parse(text).is_err(), "{text:?}");
        }
    }
}
