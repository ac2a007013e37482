//! Exchanges sessions with a store behind a server, and asks it for operations.
//!
//! [`HttpStore`] is the other side of [push and pull](amplifier_session_core::storage::SessionExchange): a
//! [`RowTarget`](amplifier_session_core::storage::RowTarget) and a
//! [`RowOrigin`](amplifier_session_core::storage::RowOrigin) over the routes `/v1/rows` of `amplifier_session_server`. It
//! decides nothing about sessions; `core` does.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `address.rs` | the address of a server, and those of its routes |
//! | `changes.rs` | the sessions that changed on the server |
//! | `credentials.rs` | the tokens, each of which belongs to one server |
//! | `http_store.rs` | requests, and further attempts |
//! | `operations.rs` | operations, with requests and answers as JSON |
//! | `upload.rs` | a stream of sessions that is being sent |
//! | `refusal.rs` | answers that are no success, as errors |
//!
//! A token is sent only to its server: redirects are not followed, and plain `http://` to another machine needs to be
//! allowed.

mod address;
mod changes;
mod credentials;
mod http_store;
mod operations;
mod refusal;
mod upload;

pub use address::ServerAddress;
pub use changes::ServerChanges;
pub use credentials::{CREDENTIALS_FILE, ServerCredentials, TOKEN_VARIABLE};
pub use http_store::{HttpStore, TokenOwner};
