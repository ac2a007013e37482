//! Counts and sizes as people read them.

/// A count with its noun, in the plural unless it is one.
///
/// ```
/// use amplifier_session_core::text::counted;
///
/// assert_eq!(counted(1_u64, "session"), "1 session");
/// assert_eq!(counted(1_234_u64, "event"), "1,234 events");
/// ```
#[must_use]
pub fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number with thousands separators.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A size in bytes, in units of 1,000 bytes: `1.5 MB` is 1,500,000 bytes.
///
/// ```
/// use amplifier_session_core::text::size;
///
/// assert_eq!(size(1_500_000), "1.5 MB");
/// ```
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        // What is printed as 1000.0 is one of the next unit.
        if amount < if unit == "B" { 1_000.0 } else { 999.95 } {
            break;
        }
        (amount, unit) = (amount / 1_000.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_readable() {
        assert_eq!(counted(1_u64, "session"), "1 session");
        assert_eq!(counted(1_234_567_u64, "event"), "1,234,567 events");
        assert_eq!(counted(0_u64, "turn"), "0 turns");
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 KB"),
            (2_048, "2.0 KB"),
            (999_949, "999.9 KB"),
            (999_950, "1.0 MB"),
            (3 << 20, "3.1 MB"),
            (5_000_000_000, "5.0 GB"),
            (u64::MAX, "18446744.1 TB"),
        ] {
            assert_eq!(size(bytes), shown, "{bytes}");
        }
    }
}
