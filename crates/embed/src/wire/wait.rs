//! Reads how long a service asks to wait before another attempt.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The maximum wait to report: Azure OpenAI has been observed to ask for a day.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long to wait according to `headers`, at most an hour. The most exact header counts:
///
/// 1. `retry-after-ms`, and `x-ms-retry-after-ms`, in milliseconds (OpenAI, Azure);
/// 2. `Retry-After` in seconds, or as a date (RFC 9110, section 10.2.3);
/// 3. `x-ratelimit-reset-requests` and `-tokens` in seconds (Azure). OpenAI's have the form `6m0s`, and always come with
///    one of the headers above.
pub(super) fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    milliseconds(headers)
        .or_else(|| retry_after(headers))
        .or_else(|| reset(headers))
        .map(|wait| wait.min(LONGEST))
}

fn milliseconds(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| number(headers, name).and_then(|ms| duration(ms / 1000.0));
    number("retry-after-ms").or_else(|| number("x-ms-retry-after-ms"))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    number(headers, RETRY_AFTER.as_str()).and_then(duration).or_else(|| {
        let date = |name| httpdate::parse_http_date(text(headers, name)?).ok();
        // Relative to the service's own clock, so that this machine's clock does not matter.
        let (until, now) = (date(RETRY_AFTER.as_str())?, date(DATE.as_str())?);
        Some(until.duration_since(now).unwrap_or_default())
    })
}

fn reset(headers: &HeaderMap) -> Option<Duration> {
    let resets = ["x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"];
    let waits = resets.into_iter().filter_map(|name| number(headers, name).and_then(duration));
    // Azure sends 0 or less if it does not know.
    waits.max().filter(|wait| !wait.is_zero())
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    text(headers, name)?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `None` for a negative number or NaN.
fn duration(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        return None;
    }
    Some(Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    /// How many milliseconds to wait.
    fn wait(pairs: &[(&'static str, &'static str)]) -> Option<u128> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        asked_for(&pairs.collect()).map(|wait| wait.as_millis())
    }

    #[test]
    fn every_header_is_read() {
        assert_eq!(wait(&[("retry-after-ms", "1500.5")]), Some(1500));
        assert_eq!(wait(&[("x-ms-retry-after-ms", "20")]), Some(20));
        assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", " 0.25 ")]), Some(250));
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), now]), Some(30_000));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), now]), Some(0));
        assert_eq!(
            wait(&[("x-ratelimit-reset-requests", "1"), ("x-ratelimit-reset-tokens", "9")]),
            Some(9000)
        );
    }

    #[test]
    fn the_most_exact_header_counts() {
        let all = [("retry-after-ms", "1"), ("retry-after", "2"), ("x-ratelimit-reset-tokens", "3")];
        assert_eq!(wait(&all), Some(1));
        assert_eq!(wait(&all[1..]), Some(2000));
        // An invalid header is ignored.
        assert_eq!(wait(&[("retry-after-ms", "soon"), ("retry-after", "2")]), Some(2000));
    }

    #[test]
    fn invalid_values_are_ignored() {
        for pairs in [
            &[] as &[_],
            &[("retry-after", "")],
            &[("retry-after", "-1")],
            &[("retry-after", "NaN")],
            &[("retry-after", "tomorrow")],
            // A date can't be used without the service's own time.
            &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")],
            &[("x-ratelimit-reset-requests", "0"), ("x-ratelimit-reset-tokens", "-1")],
            &[("x-ratelimit-reset-requests", "6m0s")],
        ] {
            assert_eq!(wait(pairs), None, "{pairs:?}");
        }
    }

    #[test]
    fn waits_are_limited_to_an_hour() {
        for asked in ["86400", "1e300", "inf"] {
            assert_eq!(wait(&[("retry-after", asked)]), Some(3_600_000), "{asked}");
        }
    }
}
