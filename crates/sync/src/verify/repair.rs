//! Repairs what a verification found.

use std::collections::BTreeSet;

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::IndexUpdate,
    model::{Difference, DifferenceKind, RowKind, SessionId, SessionKey},
    storage::IngestRepair,
};

use super::{Differing, ListedDifferences, Round, RunningVerification, VerifyReport};
use crate::{
    plan::{Plan, Planned, ReadingCost},
    progress::NoProgress,
    report::SyncReport,
    repository::RepositoryCache,
    run::{affects_all, ingest},
    session::Context,
    unchanged,
};

/// How often to repair a session that another process writes at the same time.
const ATTEMPTS: usize = 3;

impl RunningVerification<'_> {
    /// Repairs what differs, and returns the remaining differences.
    pub(super) async fn repair(&self, round: &Round) -> Result<ListedDifferences> {
        // Another sync may run at the same time: rows are compared when they are written.
        let _turn = self.storage.backend().begin_sync();
        unchanged::forget(&self.storage);
        let mut problems = ListedDifferences::default();
        self.sync(round, &mut problems).await?;
        self.adopt_rows(round, &mut problems).await?;
        for session in round.differing.keys() {
            if let Err(error) = self.repair_rows(session).await {
                self.add_problem(session, error, &mut problems)?;
            }
        }
        if !round.differing.is_empty() {
            unless_damaged(self.storage.vectors().embed_pending(&self.options.user, None).await)?;
            self.embed_turns(round).await?;
        }
        self.repair_index(round).await?;
        let sessions: BTreeSet<SessionId> = round.differing.keys().cloned().collect();
        let mut again = self.round(&sessions, &mut VerifyReport::default()).await?;
        // The reason why something could not be repaired matters only if it still differs.
        if again.found.count > 0 {
            problems.extend(std::mem::take(&mut again.found.listed), again.found.count);
            return Ok(problems);
        }
        Ok(again.found)
    }

    /// Completely reads the folders of differing sessions, and rewrites what is stored wrongly.
    async fn sync(&self, round: &Round, problems: &mut ListedDifferences) -> Result<()> {
        if self.options.roots.is_empty() {
            return Ok(());
        }
        let options = self.options.of_sync();
        let mut sessions = Vec::new();
        for (session, differing) in &round.differing {
            let Some(folder) = self.folders.get(session) else { continue };
            let key = self.key(session);
            // Stray rows would conflict with the rows of missing messages.
            if differing.check.repair.stray {
                self.storage.backend().remove_stray_rows(&key).await?;
            }
            if differing.has_no_record
                && let Err(error) = self
                    .storage
                    .verification()
                    .recreate_session(&key, &self.options.host, &folder.project)
                    .await
            {
                self.add_problem(session, error, problems)?;
                continue;
            }
            let is_known = match self.storage.backend().get_session(&key).await {
                Ok(stored) => stored.is_some(),
                Err(error) if error.kind() == ErrorKind::Damaged => continue,
                Err(error) => return Err(error),
            };
            sessions.push(Planned {
                is_known,
                is_changed: true,
                bytes: Some(folder.bytes),
                cost: ReadingCost::default(),
                repair: Some(ingest_repair(differing)),
                folder: folder.clone(),
            });
        }
        let context = Context {
            storage: &self.storage,
            options: &options,
            progress: &NoProgress,
            repositories: &RepositoryCache::default(),
        };
        let mut report = SyncReport::default();
        if let Some(embedder) = ingest(context, &Plan { sessions }, &mut report, &|| true).await? {
            unless_damaged(embedder.finish().await)?;
        }
        for failure in report.failures {
            let reason = format!(
                "the folder of {} could not be read: {}",
                session_of(&failure.session),
                failure.error
            );
            problems.add(Difference::new(DifferenceKind::Unreadable, reason));
        }
        Ok(())
    }

    /// Gives rows without a session and without a folder a session, or removes them if they are copies of rows that
    /// were just repaired: a damaged session id moves a row to a session that does not exist.
    async fn adopt_rows(&self, round: &Round, problems: &mut ListedDifferences) -> Result<()> {
        let others: Vec<SessionKey> = round.differing.keys().map(|session| self.key(session)).collect();
        for (session, differing) in &round.differing {
            if !differing.has_no_record || self.folders.contains_key(session) {
                continue;
            }
            let adopted =
                self.storage.verification().adopt_rows(&self.key(session), &self.options.host, &others).await;
            if let Err(error) = adopted {
                self.add_problem(session, error, problems)?;
            }
        }
        Ok(())
    }

    /// Derives wrong data of a session again, after its lines were repaired.
    async fn repair_rows(&self, session: &SessionId) -> Result<()> {
        let key = self.key(session);
        for attempt in 1..=ATTEMPTS {
            let Some(stored) = self.storage.backend().get_session(&key).await? else { return Ok(()) };
            let check = self.storage.verification().check_session(&stored).await?;
            let repaired = self.storage.verification().repair_session(&key, &check).await;
            match repaired {
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        Ok(())
    }

    /// Embeds the turns of sessions that had vectors of turns: a message that is written again loses that of its turn.
    async fn embed_turns(&self, round: &Round) -> Result<()> {
        let storage = self.storage.clone();
        let storage = storage.with_settings(self.storage.settings().clone().with_turns(true));
        let had_turns = round.differing.iter().filter(|(_, differing)| differing.check.turn_vectors > 0);
        for (session, _) in had_turns {
            unless_damaged(storage.vectors().embed_pending(&self.options.user, Some(session)).await)?;
        }
        Ok(())
    }

    /// Updates the index, and rebuilds it if that is not enough.
    async fn repair_index(&self, round: &Round) -> Result<()> {
        self.storage.update_index().await?;
        if round.index_differs && self.storage.backend().check_index().await?.problem_count > 0 {
            self.storage.backend().update_index(IndexUpdate::Rebuild).await?;
        }
        Ok(())
    }

    fn add_problem(&self, session: &SessionId, error: Error, problems: &mut ListedDifferences) -> Result<()> {
        if affects_all(&error) {
            return Err(error.with_operation("verify"));
        }
        let reason = format!("it could not be repaired: {error}");
        problems.add(Difference::of(&self.key(session), DifferenceKind::Damaged, reason));
        Ok(())
    }
}

/// The rows to rewrite. All events are rewritten, because they are only a few megabytes or can be compressed fast.
fn ingest_repair(differing: &Differing) -> IngestRepair {
    let check = &differing.check;
    let events = differing.lacks_lines || !check.damaged_of(RowKind::Event).is_empty();
    IngestRepair::new(check.damaged_of(RowKind::Message).clone(), events, check.gaps.clone())
}

/// Skips a damaged message, which gets no vectors. It still differs.
fn unless_damaged<T>(embedded: Result<T>) -> Result<()> {
    match embedded {
        Err(error) if error.kind() != ErrorKind::Damaged => Err(error),
        _ => Ok(()),
    }
}

fn session_of(session: &Option<String>) -> &str {
    session.as_deref().unwrap_or("a project")
}
