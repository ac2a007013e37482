//! Search: what is asked, how the candidates of a backend are fused and diversified, what is answered.

mod context;
mod fusion;
mod mmr;
mod options;
mod result;

pub use fusion::{Fused, FusionWeights, fuse, rank_texts, rank_vectors};
pub use mmr::diversify;
pub use options::{SearchFilter, SearchMode, SearchOptions};
pub use result::{SearchResult, SearchResults, SearchSource};
