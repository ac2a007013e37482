//! How long tests run.

/// The number of rounds of a test that could go on for ever: `usual`, or `nightly` if `AMPLIFIER_TEST_NIGHTLY` is set, as
/// `.ci/nightly` does.
#[must_use]
pub fn rounds<T>(usual: T, nightly: T) -> T {
    if std::env::var_os("AMPLIFIER_TEST_NIGHTLY").is_some() { nightly } else { usual }
}
