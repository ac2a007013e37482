//! Events: reading, searching and counting. They are written with their session.

use async_trait::async_trait;

use super::{CountedEvents, EventState, SequenceRange};
use crate::{
    Result,
    model::{Event, MessageRef, Payload, SessionKey, UserId},
    scope::Scope,
    search::{EventFilter, EventSearchOptions},
};

/// Reads events.
#[async_trait]
pub trait Events: Send + Sync {
    /// A page of the states of a session's events, in order of sequence: their digests, and with `with_times`, what they
    /// say about times. A session may have a hundred thousand events, so a backend should read nothing else.
    async fn event_states(
        &self,
        key: &SessionKey,
        range: SequenceRange,
        with_times: bool,
    ) -> Result<Vec<EventState>>;

    /// A page of a session's events, without their payloads, in order of sequence.
    async fn read_events(&self, key: &SessionKey, range: SequenceRange) -> Result<Vec<Event>>;

    /// The payloads of the events of these sequences, in any order. Leaves out those that do not exist.
    async fn event_payloads(&self, key: &SessionKey, sequences: &[u32]) -> Result<Vec<(u32, Payload)>>;

    /// Which of `event_ids` the user has, and where.
    async fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>>;

    /// Events in the order of [`EventSearchOptions`]. Fewer than `limit` means the end of the list.
    async fn search_events(&self, scope: &Scope, options: &EventSearchOptions) -> Result<Vec<Event>>;

    /// Counts the events that `scope` and `filter` admit, grouped by their common fields, in any order. A backend that has
    /// to look at each event uses [`EventCounter`](super::EventCounter).
    ///
    /// An event counts once, and so does a model call: [`EventCounter`](super::EventCounter) says which lines of a log
    /// are the same event, and which are about the same call. The rest is [`EventCount::left_out`](super::EventCount::left_out). The usage of events
    /// that repeat a response's usage ([`REPEATS`](super::REPEATS)) counts only if their session has no
    /// [`RESPONSE`](super::RESPONSE) with usage, whether `filter` admits that one or not.
    async fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents>;
}
