//! Commits several sessions at once.

use super::{IngestReport, SessionIngest};
use crate::{
    Result,
    storage::{session_writer::SessionWriter, store::Ingestion},
};

impl Ingestion<'_> {
    /// [`SessionIngest::commit`] for several sessions. Returns a result for each, in order. For many small sessions,
    /// this is faster, because a backend may write them in one transaction.
    pub async fn commit_all(self, ingests: Vec<SessionIngest>) -> Vec<Result<IngestReport>> {
        let (mut reports, mut writers) = (Vec::with_capacity(ingests.len()), Vec::new());
        for mut ingest in ingests {
            let report = ingest.prepare_commit().await;
            if report.is_ok() {
                writers.push((ingest.writer, ingest.sync_state));
            }
            reports.push(report);
        }
        let mut finished = SessionWriter::finish_all(&*self.store.backend, writers).await.into_iter();
        let mut with_rows = |report: IngestReport| match finished.next() {
            Some(finished) => finished.map(|finished| report.with_rows(finished.rows)),
            None => Ok(report),
        };
        reports.into_iter().map(|report| report.and_then(&mut with_rows)).collect()
    }
}
