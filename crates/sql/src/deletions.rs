//! Which sessions were deleted: statements that every database understands.
//!
//! A session that is stored is not a deleted one, whatever is remembered: so what is written again, or moves to another
//! user, needs no care.

/// The table. Without a key: DuckDB checks one before the deletions of the same transaction.
pub const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS deleted_sessions (user_id TEXT NOT NULL, session_id TEXT NOT NULL);";

/// The sessions of user `?1`, in order.
pub const LIST: &str = "SELECT DISTINCT d.session_id FROM deleted_sessions d
    WHERE d.user_id = ?1 AND NOT EXISTS
        (SELECT 1 FROM sessions s WHERE s.user_id = d.user_id AND s.session_id = d.session_id)
    ORDER BY d.session_id";

/// Forgets session `?2` of user `?1`, so that [`REMEMBER`] makes the only row of it.
pub const FORGET: &str = "DELETE FROM deleted_sessions WHERE user_id = ?1 AND session_id = ?2";

/// Remembers session `?2` of user `?1`.
pub const REMEMBER: &str = "INSERT INTO deleted_sessions (user_id, session_id) VALUES (?1, ?2)";
