//! How things look on a terminal and in a pipe.

pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod ids;
pub(crate) mod message;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod snippet;
pub(crate) mod summary;
pub(crate) mod text;
