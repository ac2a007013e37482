//! Answers agents over the Model Context Protocol: five tools that read sessions.
//!
//! [`ToolServer`] has the tools; [`serve()`] answers one client on a pair of streams, until they end, and with the feature
//! `http`, `answer_http` answers one request of a client over HTTP. A tool reads its parameters, opens the sessions through
//! a [`SessionAccess`], asks the operations of `amplifier_session_api`, and fits the response into the budget of the caller.
//!
//! What agents read may have been written to command them. Text from sessions is quoted, so that it can't pass for text
//! of this program, and its secrets are masked: see [`OpenedSessions::new`].

mod access;
mod answer;
mod failure;
mod messages;
#[cfg(feature = "http")]
mod over_http;
mod parameters;
mod quoted;
mod remarks;
mod serve;
mod server;
mod tools;
mod words;

/// Compiles the body of an async function in this crate, with what it needs of rmcp. Without it, each crate that awaits the
/// function does.
pub(crate) use async_recursion::async_recursion as compiled_here;

pub use access::{AccessError, OpenedSessions, SessionAccess, StoreUse};
#[cfg(feature = "http")]
pub use over_http::answer_http;
pub use serve::{ServeError, serve};
pub use server::ToolServer;
