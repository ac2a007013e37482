//! How long a service wants to be left alone.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Nobody waits longer than this, whatever a service says: Azure OpenAI has been seen to ask for a day.
const LONGEST: Duration = Duration::from_secs(3600);

/// What `headers` say about when the same call may be made again, the most exact first:
///
/// 1. `retry-after-ms`, and `x-ms-retry-after-ms`, in milliseconds (OpenAI, Azure);
/// 2. `Retry-After` in seconds, or as a date (RFC 9110, section 10.2.3);
/// 3. `x-ratelimit-reset-requests` and `-tokens` in seconds (Azure). OpenAI's are of the form `6m0s`, and come along
///    with one of those above.
///
/// At most an hour.
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
        // By the service's own clock, so that it does not matter what time it is here.
        let (until, now) = (date(RETRY_AFTER.as_str())?, date(DATE.as_str())?);
        Some(until.duration_since(now).unwrap_or_default())
    })
}

fn reset(headers: &HeaderMap) -> Option<Duration> {
    let resets = ["x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"];
    let waits = resets.into_iter().filter_map(|name| number(headers, name).and_then(duration));
    // Zero and less is what Azure says when it does not know.
    waits.max().filter(|wait| !wait.is_zero())
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    text(headers, name)?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `None` for what is no time to wait: less than nothing, or not a number.
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

    /// The milliseconds to wait.
    fn wait(pairs: &[(&'static str, &'static str)]) -> Option<u128> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        asked_for(&pairs.collect()).map(|wait| wait.as_millis())
    }

    #[test]
    fn each_way_to_say_it_is_understood() {
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
    fn the_most_exact_counts() {
        let all = [("retry-after-ms", "1"), ("retry-after", "2"), ("x-ratelimit-reset-tokens", "3")];
        assert_eq!(wait(&all), Some(1));
        assert_eq!(wait(&all[1..]), Some(2000));
        // One that makes no sense is passed over.
        assert_eq!(wait(&[("retry-after-ms", "soon"), ("retry-after", "2")]), Some(2000));
    }

    #[test]
    fn what_makes_no_sense_is_no_answer() {
        for pairs in [
            &[] as &[_],
            &[("retry-after", "")],
            &[("retry-after", "-1")],
            &[("retry-after", "NaN")],
            &[("retry-after", "tomorrow")],
            // A date without the service's own time says nothing.
            &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")],
            &[("x-ratelimit-reset-requests", "0"), ("x-ratelimit-reset-tokens", "-1")],
            &[("x-ratelimit-reset-requests", "6m0s")],
        ] {
            assert_eq!(wait(pairs), None, "{pairs:?}");
        }
    }

    #[test]
    fn nobody_waits_for_a_day() {
        for asked in ["86400", "1e300", "inf"] {
            assert_eq!(wait(&[("retry-after", asked)]), Some(3_600_000), "{asked}");
        }
    }
}
