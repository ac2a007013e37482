//! Event ids occur once in the sessions of a user.

use std::collections::{HashMap, HashSet};

use crate::{
    Result,
    backend::{RowChange, StorageBackend},
    model::{Event, MessageRef, SessionKey, StoredEvent},
};

/// Gives an event its derived id if another event of the user has the id that its line states.
pub(super) async fn free_event_ids(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    events: &mut RowChange<StoredEvent>,
) -> Result<()> {
    let derived = |sequence: u32| Event::derived_id(&key.session_id, sequence);
    let mut given: HashMap<String, u32> = HashMap::new();
    for StoredEvent { event, .. } in &mut events.put {
        if !event.has_derived_id()
            && *given.entry(event.event_id.clone()).or_insert(event.sequence) != event.sequence
        {
            event.event_id = derived(event.sequence);
        }
    }
    if given.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = given.into_keys().collect();
    let taken: HashMap<String, MessageRef> =
        backend.find_events(&key.user_id, &ids).await?.into_iter().collect();
    // An id of an event that this change removes or replaces becomes free.
    let put: HashSet<u32> = events.put.iter().map(|stored| stored.event.sequence).collect();
    let goes =
        |sequence: u32| put.contains(&sequence) || events.truncate.is_some_and(|start| sequence >= start);
    let is_taken =
        |id: &str| taken.get(id).is_some_and(|event| event.session != *key || !goes(event.sequence));
    for StoredEvent { event, .. } in &mut events.put {
        if is_taken(&event.event_id) {
            event.event_id = derived(event.sequence);
        }
    }
    Ok(())
}
