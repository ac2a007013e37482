//! The name of the program.

/// The path by which the program was called, so that hints work even if it is not installed.
pub(crate) fn name() -> String {
    let called = std::env::args().next().filter(|called| !called.is_empty());
    called.unwrap_or_else(|| env!("CARGO_PKG_NAME").to_owned())
}
