//! Text for terminals.

pub(crate) use amplifier_session_api::text::{escaped, fitted, fitted_end, one_line, printable, visible};
pub(crate) use amplifier_session_storage::text::{counted, grouped, size};

/// A duration in milliseconds, in readable units.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms => format!("{:.0} min {:02.0} s", (ms / 60_000.0).floor(), ((ms % 60_000.0) / 1_000.0).floor()),
    }
}

/// A long duration in seconds, in the two largest units.
pub(crate) fn hours(seconds: u64) -> String {
    let minutes = seconds / 60;
    match minutes {
        0 => format!("{seconds} s"),
        1..60 => format!("{minutes} min"),
        60..1440 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", grouped(minutes / 1440), minutes % 1440 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, hours};

    #[test]
    fn long_durations_have_two_units() {
        let shown = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 180_000].map(hours);
        assert_eq!(
            shown,
            ["0 s", "59 s", "1 min", "59 min", "1 h 00 min", "23 h 59 min", "1 d 0 h", "2 d 2 h"]
        );
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(
            [duration(12.4), duration(6_209.0), duration(132_370.0)],
            ["12 ms", "6.2 s", "2 min 12 s"]
        );
    }
}
