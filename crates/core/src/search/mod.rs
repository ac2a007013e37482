//! Search: options, fusion and diversification of candidates, results.

mod candidates;
mod events;
mod evidence;
mod filter;
mod fusion;
mod mmr;
mod neighbours;
mod options;
mod result;
mod sessions;

pub use candidates::{Candidates, TextCandidate, VectorCandidate};
pub use events::{EventCursor, EventFilter, EventSearchOptions};
pub(crate) use evidence::{Evidence, EvidenceFinder};
pub use filter::{SearchFilter, SessionFilter};
pub(crate) use fusion::{Fused, FusionWeights, Judgements, RankedText, fuse, most_relevant};
pub(crate) use mmr::diversify;
pub use options::{SearchMode, SearchOptions, VectorSearchOptions};
pub use result::{MatchKind, MissingVectors, Repeat, SearchResult, SearchResults, SearchSource};
