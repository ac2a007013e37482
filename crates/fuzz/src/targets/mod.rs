//! A file for each kind of input.

mod archive;
mod events;
mod index;
mod metadata;
mod query;
mod rows;
mod store_url;
mod transcript;

use crate::Target;

/// All targets.
pub static TARGETS: [Target; 8] = [
    transcript::TARGET,
    events::TARGET,
    metadata::TARGET,
    archive::TARGET,
    rows::TARGET,
    store_url::TARGET,
    query::TARGET,
    index::TARGET,
];
