//! Versions of programs that exchange sessions.

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The header of requests and answers with the version of the program that sent it.
pub const VERSION_HEADER: &str = "x-amplifier-sessions-version";

/// Whether programs with these versions can exchange sessions: they are at most one release apart. Other differences of
/// a version, such as patches, do not count. A text that is not a version is not compatible with any.
#[must_use]
pub fn work_together(one: &str, other: &str) -> bool {
    match (release(one), release(other)) {
        (Some((major, minor)), Some((other_major, other_minor))) => {
            major == other_major && minor.abs_diff(other_minor) <= 1
        }
        _ => false,
    }
}

/// Major and minor version.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_one_release_apart_work_together() {
        for (one, other) in
            [("1.4.0", "1.5.2"), ("1.5.0", "1.4.9"), ("0.1.0", "0.1.7"), ("1.4.0-rc.1", "1.4.0")]
        {
            assert!(work_together(one, other), "{one} {other}");
        }
        for (one, other) in [("1.4.0", "1.6.0"), ("1.4.0", "2.4.0"), ("1.4.0", ""), ("x", "x"), ("1", "1")] {
            assert!(!work_together(one, other), "{one} {other}");
        }
        assert!(work_together(VERSION, VERSION));
    }
}
