//! The data model: sessions, messages, events and vector records, with their identifiers.

mod cost;
mod damage;
mod difference;
mod event;
mod ids;
mod message;
mod raw;
mod repository;
mod session;
mod superseded;
mod time_source;
mod timestamp;
mod tolerant;
mod turn;
mod vector;

pub use cost::Cost;
pub use damage::{DamagedRow, RowKind};
pub use difference::{Difference, DifferenceKind};
pub(crate) use event::normalised_type;
pub use event::{Event, Level, Payload, StoredEvent, event_mentions};
pub use ids::{Digest, HostId, MessageRef, ProjectSlug, Repository, SessionId, SessionKey, UserId};
pub use message::{Message, MessageState, Retimed, Role, VectorState};
pub use raw::RawJson;
pub use repository::RepositoryKind;
pub use session::{MetadataFile, Session, SessionField, SessionSource, Visibility};
pub use superseded::{LineKind, SupersededPiece, SupersededReason, SupersededRef};
pub use time_source::{TimeSource, time_fields};
pub use timestamp::Timestamp;
pub use turn::TurnSummary;
pub use vector::{ContentType, ContentTypes, EmbeddedTurn, EmbeddingSpace, VectorRecord, VectorText};
