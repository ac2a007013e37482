//! Search: options, fusion and diversification of candidates, results.

mod candidates;
mod events;
mod filter;
mod fusion;
mod mmr;
mod neighbours;
mod options;
mod result;

pub use candidates::{Candidates, TextCandidate, VectorCandidate};
pub use events::{EventCursor, EventFilter, EventSearchOptions};
pub use filter::{SearchFilter, SessionFilter};
pub(crate) use fusion::{Fused, FusionWeights, fuse, rank_texts, rank_vectors};
pub(crate) use mmr::diversify;
pub use options::{SearchMode, SearchOptions, VectorSearchOptions};
pub use result::{MissingVectors, SearchResult, SearchResults, SearchSource};
