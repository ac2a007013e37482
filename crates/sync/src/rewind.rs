//! Rewinds a session that was read from files.

use amplifier_session_core::{
    Result, SessionStorage,
    model::{Session, SessionKey},
    storage::{RewindOptions, RewindReport},
};

use crate::state::SyncState;

/// Rewinds a session like [`Ingestion::rewind`](amplifier_session_core::storage::Ingestion::rewind). Afterwards, its
/// files count as read, although they may still contain the removed rows. A sync reads them again only if they change,
/// and then stores everything in them.
///
/// # Errors
///
/// As [`Ingestion::rewind`](amplifier_session_core::storage::Ingestion::rewind).
pub async fn rewind(
    storage: &SessionStorage,
    key: &SessionKey,
    options: RewindOptions,
) -> Result<RewindReport> {
    storage.ingestion().rewind(key, &options.with_sync_state(after_rewind)).await
}

fn after_rewind(state: &str, session: &Session) -> Option<String> {
    let mut state = SyncState::parse(state)?;
    state.set_rewound(session);
    Some(state.to_json())
}
