//! Counting events.

use amplifier_session_core::{Result, Scope, backend::CountedEvents, search::EventFilter};
use amplifier_session_sql::read;

use crate::connection::PgReader;

/// The sessions that have a response with usage. It is found in the text of the summary, which has no spaces, because
/// PostgreSQL can't read JSON with a NUL character in a string.
const ANSWERED: &str = "SELECT DISTINCT user_id, session_id FROM events
    WHERE event_type = 'llm:response' AND position('\"usage\":{' IN summary) > 0";

/// The events that match `filter`, counted by group. Reads each event in scope.
pub(crate) fn count(reader: &PgReader<'_>, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
    read::events::count_each(reader, scope, filter, ANSWERED.to_owned())
}
