//! Time zones of requests and responses, by name.

use jiff::{
    Zoned,
    fmt::temporal::{DateTimeParser, DateTimePrinter},
    tz::TimeZone,
};

use crate::{ApiError, InvalidRequest};

const UTC: &str = "UTC";

/// Other names of UTC in the time zone database. Many servers have the first one.
const ALIASES_OF_UTC: [&str; 7] =
    ["Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"];

/// The name of the time zone of a computer that does not say which one it has.
const UNNAMED: &str = "local";

/// The time in the time zone that a request names, or else in its own.
///
/// # Errors
///
/// [`InvalidRequest::UnknownTimeZone`].
pub fn in_zone(now: &Zoned, tz: Option<&str>) -> Result<Zoned, ApiError> {
    let Some(name) = tz else { return Ok(now.clone()) };
    match DateTimeParser::new().parse_time_zone(name.trim()) {
        Ok(zone) if !zone.is_unknown() => Ok(now.with_time_zone(zone)),
        _ => Err(InvalidRequest::UnknownTimeZone { tz: name.to_owned() }.into()),
    }
}

/// The name of the time zone of `now`, as requests have it: `Europe/Berlin`, `UTC`, or for time zones without a name an
/// offset such as `+05:45` or a rule of POSIX.
#[must_use]
pub fn zone_name(now: &Zoned) -> String {
    let zone = now.time_zone();
    let is_alias = zone.iana_name().is_some_and(|name| ALIASES_OF_UTC.contains(&name));
    if zone.is_unknown() || is_alias || *zone == TimeZone::UTC {
        return UTC.to_owned();
    }
    DateTimePrinter::new().time_zone_to_string(zone).unwrap_or_else(|_| UNNAMED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-03-29T03:30:00+02:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn a_request_without_a_zone_has_that_of_the_caller() {
        assert_eq!(in_zone(&now(), None).unwrap(), now());
        assert_eq!(zone_name(&now()), "Europe/Berlin");
    }

    #[test]
    fn zones_have_names_that_can_be_read_again() {
        for (typed, name, time) in [
            ("UTC", "UTC", "2026-03-29T01:30:00"),
            ("europe/berlin", "Europe/Berlin", "2026-03-29T03:30:00"),
            (" Asia/Kathmandu", "Asia/Kathmandu", "2026-03-29T07:15:00"),
            ("America/New_York", "America/New_York", "2026-03-28T21:30:00"),
            ("+05:45", "+05:45", "2026-03-29T07:15:00"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T03:30:00"),
        ] {
            let zoned = in_zone(&now(), Some(typed)).unwrap();
            assert_eq!((zone_name(&zoned).as_str(), zoned.datetime().to_string().as_str()), (name, time));
            assert_eq!(in_zone(&now(), Some(name)).unwrap(), zoned);
        }
    }

    #[test]
    fn utc_has_one_name() {
        for alias in ["Etc/UTC", "etc/utc", "Zulu", "Universal"] {
            assert_eq!(zone_name(&in_zone(&now(), Some(alias)).unwrap()), "UTC", "{alias}");
        }
    }

    #[test]
    fn other_names_are_refused_by_name() {
        for name in ["", "Mars/Phobos", "Berlin", "Etc/Unknown", "+99:00", "../../etc/passwd", "é", "local"]
        {
            let refused = in_zone(&now(), Some(name));
            assert!(
                matches!(&refused, Err(ApiError::Invalid(InvalidRequest::UnknownTimeZone { tz })) if tz == name),
                "{name}: {refused:?}"
            );
        }
    }

    #[test]
    fn an_unknown_zone_of_the_system_is_utc() {
        let unknown = now().with_time_zone(TimeZone::unknown());
        assert_eq!(zone_name(&unknown), "UTC");
    }
}
