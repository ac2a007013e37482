//! Answers people and programs over HTTP: the operations of `amplifier_session_api`, for callers with tokens.
//!
//! [`SessionServer`] listens on an address and answers until it is told to stop. A request passes these steps, each in
//! its own file:
//!
//! 1. `connection`: limits of connections, and the check of Host and Origin in `gate`, before any routing.
//! 2. `routes`: all routes as data, with the right and the reach that each needs. The router, the documentation and the
//!    tests are made from this table.
//! 3. `dispatch`: signs the caller in (`sign_in`), checks rights and limits, reads parameters and body, calls the
//!    handler, and records the request.
//! 4. `rest`: the handlers. A handler has a `HttpCall`, which exists only for a caller who has signed in, and reads and
//!    writes only through [`Api`](amplifier_session_api::Api) for this caller: see `call`. `live` answers over
//!    WebSockets, and `agents` in the Model Context Protocol.
//!
//! No handler makes a scope: [`ApiCaller::scope`](amplifier_session_api::ApiCaller::scope) does, from the reach of the
//! token. The server opens no store: it gets the handles.

mod agents;
mod answer;
mod answer_meter;
mod audit;
mod body;
mod body_stream;
mod call;
mod connection;
mod cursor;
mod dispatch;
mod documentation;
mod drained_body;
mod gate;
mod limits;
mod live;
mod metrics;
mod network;
mod pace;
mod problem;
mod public_url;
mod query;
mod quota;
mod random;
mod rest;
mod routes;
mod server;
mod settings;
mod sign_in;
mod slots;
mod state;
mod stream;
mod tls;
mod tokens;
mod trace;

pub use call::ServedStore;
pub use network::AddressRange;
pub use public_url::PublicUrl;
pub use quota::StorageQuota;
pub use server::SessionServer;
pub use settings::{ProxySignIn, ServerError, ServerLimits, ServerSettings, TlsFiles};
pub use tokens::{AccessToken, NewToken, TokenFile, TokenRecord};
