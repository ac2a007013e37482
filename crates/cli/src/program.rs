//! The name of the program.

use crate::environment::Environment;

/// The path by which the program was called, so that hints work even if it is not installed.
pub(crate) fn name() -> String {
    let environment = Environment::current();
    let called = environment.arguments.first().filter(|called| !called.is_empty());
    called.map_or_else(|| env!("CARGO_PKG_NAME").to_owned(), |called| called.to_string_lossy().into_owned())
}

/// The name of the program with options that were typed, for hints.
#[derive(Debug)]
pub(crate) struct TypedProgram {
    /// With the options that select store and sessions.
    pub(crate) name: String,
    /// Also with those of the embedding provider.
    pub(crate) with_embedding: String,
    /// Only with those of the store.
    pub(crate) with_store: String,
}
