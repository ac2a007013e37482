//! Writing and removing superseded lines.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Result,
    model::{SessionKey, SupersededPiece, SupersededRef},
};

use crate::{
    Reader as _, Statement, Value,
    backend::{Database, Removed, Writer},
    superseded::{self, LINES},
};

const OPERATION: &str = "prune_superseded";

/// One statement removes at most this many pieces.
const REMOVED: usize = 500;

/// Adds the pieces that are not stored yet.
pub(super) fn insert(writer: &mut impl Writer, key: &SessionKey, pieces: &[SupersededPiece]) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    let mut stored: BTreeSet<String> = writer.rows(&superseded::ids(key))?.into_iter().collect();
    for piece in pieces {
        if stored.insert(piece.id.clone()) {
            writer.insert(&LINES, &superseded::row(piece))?;
        }
    }
    Ok(())
}

/// [`Superseded::prune_superseded`](amplifier_session_core::backend::Superseded::prune_superseded), without erasing.
pub(in crate::backend) fn prune_superseded<D: Database>(
    database: &D,
    pieces: &[SupersededRef],
) -> Result<Vec<bool>> {
    database.transaction(OPERATION, |writer| {
        let mut sessions: BTreeMap<&SessionKey, BTreeSet<&str>> = BTreeMap::new();
        for piece in pieces {
            sessions.entry(&piece.session).or_default().insert(&piece.id);
        }
        let mut stored: BTreeSet<SupersededRef> = BTreeSet::new();
        for (key, ids) in &sessions {
            let of_session = writer.rows(&superseded::ids(key))?;
            let named = of_session.into_iter().filter(|id| ids.contains(id.as_str()));
            stored.extend(named.map(|id| SupersededRef { session: (*key).clone(), id }));
        }
        if !stored.is_empty() {
            let revision = writer.next_revision()?;
            D::removing(writer, revision, Removed::SupersededLines)?;
        }
        for (key, ids) in &sessions {
            let ids: Vec<&str> = ids.iter().copied().collect();
            ids.chunks(REMOVED).try_for_each(|ids| remove(writer, key, ids))?;
        }
        Ok(pieces.iter().map(|piece| stored.remove(piece)).collect())
    })
}

fn remove(writer: &impl Writer, key: &SessionKey, ids: &[&str]) -> Result<()> {
    let places: Vec<String> = (3..ids.len() + 3).map(|place| format!("?{place}")).collect();
    let sql = format!(
        "DELETE FROM superseded_lines WHERE user_id = ?1 AND session_id = ?2 AND id IN ({})",
        places.join(", ")
    );
    let of_session = [key.user_id.to_string(), key.session_id.to_string()];
    let values = of_session.into_iter().chain(ids.iter().map(|id| (*id).to_owned())).map(Value::from);
    writer.execute(&Statement::once(OPERATION, sql, values)).map(drop)
}
