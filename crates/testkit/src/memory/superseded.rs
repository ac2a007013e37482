//! Superseded lines.

use amplifier_session_core::{
    Result,
    backend::{Deletion, Superseded, SupersededQuery},
    model::{SupersededPiece, SupersededRef},
};
use async_trait::async_trait;

use super::{MemoryBackend, PAGE_SIZE};

#[async_trait]
impl Superseded for MemoryBackend {
    async fn list_superseded(&self, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
        let rows = self.rows();
        let sessions = rows.sessions.values().filter_map(|of| Some((&of.stored.as_ref()?.session, of)));
        let pieces =
            sessions.flat_map(|(session, of)| of.superseded.values().map(move |piece| (session, piece)));
        let admitted = pieces.filter(|(session, piece)| query.admits(session, piece));
        let data = |piece: &SupersededPiece| if query.with_data { piece.data.clone() } else { Vec::new() };
        let page = admitted.map(|(_, piece)| SupersededPiece { data: data(piece), ..piece.clone() });
        Ok(page.take(query.limit.min(PAGE_SIZE)).collect())
    }

    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
        let mut rows = self.rows();
        let removed = pieces.iter().map(|piece| {
            let session = rows.sessions.get_mut(&piece.session);
            Ok(session.and_then(|session| session.superseded.remove(&piece.id)).is_some())
        });
        Deletion::complete(removed.collect())
    }
}
