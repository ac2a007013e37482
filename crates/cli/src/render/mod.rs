//! Formatting for terminals and pipes.

pub(crate) use amplifier_session_api::ids;

pub(crate) mod card;
pub(crate) mod chart;
pub(crate) mod conversation;
pub(crate) mod deleted;
pub(crate) mod embeddings;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod groups;
pub(crate) mod kept;
pub(crate) mod markdown;
pub(crate) mod message;
pub(crate) mod note;
pub(crate) mod recent;
pub(crate) mod result;
pub(crate) mod rewound;
pub(crate) mod search;
pub(crate) mod secrets;
pub(crate) mod sessions;
pub(crate) mod snippet;
#[cfg(feature = "duckdb-system")]
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod superseded;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod timeline;
pub(crate) mod tool_call;
pub(crate) mod turn;
pub(crate) mod upgrade;
pub(crate) mod wrap;
