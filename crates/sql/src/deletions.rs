//! Remembered deletions of sessions: statements that every database understands.
//!
//! A stored session counts as not deleted, even if its deletion is remembered. So nothing needs to be done when a
//! session is written again or moves to another user.

/// The table. It has no key, because DuckDB checks keys before the deletions of the same transaction.
pub const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS deleted_sessions (user_id TEXT NOT NULL, session_id TEXT NOT NULL);";

/// The sessions of user `?1`, in order.
pub const LIST: &str = "SELECT DISTINCT d.session_id FROM deleted_sessions d
    WHERE d.user_id = ?1 AND NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.user_id = d.user_id AND s.session_id = d.session_id)
    ORDER BY d.session_id";

/// Forgets session `?2` of user `?1`, so that [`REMEMBER`] adds its only row.
pub const FORGET: &str = "DELETE FROM deleted_sessions WHERE user_id = ?1 AND session_id = ?2";

/// Remembers session `?2` of user `?1`.
pub const REMEMBER: &str = "INSERT INTO deleted_sessions (user_id, session_id) VALUES (?1, ?2)";
