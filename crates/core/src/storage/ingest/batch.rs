//! Commits several sessions at once.

use super::{IngestReport, SessionIngest};
use crate::{
    Error, ErrorKind, Result,
    storage::{Ingestion, StoredTurns, turns::stated_in},
};

impl Ingestion<'_> {
    /// [`SessionIngest::commit`] for several sessions. Returns a result for each, in order. For many small sessions,
    /// this is faster, because a backend may write them in one transaction.
    pub async fn commit_all(self, ingests: Vec<SessionIngest>) -> Vec<Result<IngestReport>> {
        let (mut changes, mut changed) = (Vec::new(), Vec::new());
        let mut outcomes = Vec::with_capacity(ingests.len());
        for mut ingest in ingests {
            let change = ingest.last_change().await;
            outcomes.push(change.map(|change| {
                if let Some(change) = change {
                    changed.push((outcomes.len(), stated_in(&change, || self.store.now())));
                    changes.push(change);
                }
                ingest.report
            }));
        }
        let mut written = self.store.backend.write(changes).await.into_iter();
        for (at, stated) in changed {
            let unanswered =
                || Err(Error::new(ErrorKind::StorageIo, "the backend returned no result for the session"));
            let written = match written.next().unwrap_or_else(unanswered) {
                Ok(_) => StoredTurns::new(self.store).keep_stated(stated).await,
                Err(error) => Err(error),
            };
            if let (Err(error), Some(outcome)) = (written, outcomes.get_mut(at)) {
                *outcome = Err(error);
            }
        }
        outcomes
    }
}
