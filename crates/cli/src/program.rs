//! What the program is called.

/// The program as it was called: what can be typed again, also when it is not installed.
pub(crate) fn name() -> String {
    let called = std::env::args().next().filter(|called| !called.is_empty());
    called.unwrap_or_else(|| env!("CARGO_PKG_NAME").to_owned())
}
