//! Search: options, fusion and diversification of candidates, results.

mod candidates;
mod command;
mod conditions;
mod events;
mod evidence;
mod explanation;
mod filter;
mod fusion;
mod mmr;
mod neighbours;
mod options;
mod result;
mod sessions;
mod syntax;
mod timeline;
mod turns;

/// The operation of errors of searches: see [`Error::operation`](crate::Error::operation).
pub const SEARCH_OPERATION: &str = "search";

pub use candidates::{Candidates, DatedMessage, TextCandidate, VectorCandidate};
pub(crate) use command::TypedCommand;
pub(crate) use conditions::Checks;
pub use conditions::TextConditions;
pub use events::{EventCursor, EventFilter, EventSearchOptions};
pub(crate) use evidence::{Evidence, EvidenceFinder, coverage};
pub use explanation::{Explanation, Lowered, SearchExplanation, SearchedTerm};
pub use filter::{SearchFilter, SessionFilter};
pub(crate) use fusion::{Fused, FusionWeights, Judgements, RankedText, fuse, most_relevant};
pub(crate) use mmr::{diversify, dot};
pub use options::{SearchMode, SearchOptions, VectorSearchOptions};
pub use result::{MatchKind, MissingVectors, Repeat, SearchResult, SearchResults, SearchSource};
pub use syntax::{Field, FieldName, TypedQuery};
pub(crate) use timeline::LONGEST_GAP;
pub use timeline::{Period, PeriodUnit, Timeline, TimelineRow};
pub use turns::{TurnResult, TurnResults};
