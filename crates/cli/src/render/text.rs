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

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_are_readable() {
        assert_eq!(
            [duration(12.4), duration(6_209.0), duration(132_370.0)],
            ["12 ms", "6.2 s", "2 min 12 s"]
        );
    }
}
