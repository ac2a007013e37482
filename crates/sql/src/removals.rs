//! Sessions that left a scope: statements that every database understands.
//!
//! When a session is deleted, given to another user, or shared with fewer readers, a row is added with its key and how it
//! was shared before. The feed of changes reports it as removed to those readers only. The rows stay: there are few, and
//! a reader may have been away for long.

/// The table. `{texts}` is the type of a list of texts. `key` is that of the session.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS session_removals (
    revision BIGINT NOT NULL,
    key BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    visibility TEXT NOT NULL,
    org_id TEXT,
    team_ids {texts} NOT NULL
);
";

/// Adds the sessions that `which`, a condition, selects.
#[must_use]
pub fn add(revision: i64, which: &str) -> String {
    format!(
        "INSERT INTO session_removals (revision, key, user_id, session_id, visibility, org_id, team_ids)
         SELECT {revision}, key, user_id, session_id, visibility, org_id, team_ids FROM sessions WHERE {which}"
    )
}
