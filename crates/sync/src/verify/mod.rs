//! Compares a store with the session folders on disk, and with itself.

mod compare;
mod diff;
mod options;
mod repair;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    ErrorKind, Result, Scope, SessionStorage,
    backend::{IndexUpdate, StoredSession},
    blocking,
    model::{Difference, DifferenceKind, RowKind, SessionId, SessionKey},
    storage::SessionCheck,
};

use self::{
    compare::{Compared, Comparison},
    report::ListedDifferences,
};
use crate::{
    discover::{SessionFolder, discover_in},
    last::LastSyncs,
    plan::{folders, states},
    progress::NoProgress,
    report::SyncReport,
};

pub use options::VerifyOptions;
pub use report::{KnownDifferences, VerifyReport};

/// How often to retry a session that changes while it is checked.
const ATTEMPTS: usize = 3;

/// Receives the progress of a verification.
pub trait VerifyProgress: Send + Sync {
    /// Called with the number of sessions to compare, and again after a repair with the number of those to compare
    /// again.
    fn begin(&self, _sessions: u64) {}

    /// Called when a session was compared.
    fn session(&self, _session: &SessionId) {}

    /// Called when the comparison of the search index begins.
    fn index(&self) {}
}

impl VerifyProgress for NoProgress {}

/// A verification that is running.
struct RunningVerification<'a> {
    storage: SessionStorage,
    options: &'a VerifyOptions,
    progress: &'a dyn VerifyProgress,
    folders: BTreeMap<SessionId, SessionFolder>,
}

/// A session that differs.
#[derive(Debug, Default)]
struct Differing {
    check: SessionCheck,
    /// Whether stored events lack their lines.
    lacks_lines: bool,
    /// Whether rows are stored, but no session.
    has_no_record: bool,
}

/// The sessions that differ, and all differences.
#[derive(Debug, Default)]
struct Round {
    found: ListedDifferences,
    differing: BTreeMap<SessionId, Differing>,
    index_differs: bool,
    /// Whether an index of the database differs from its table, so that not all rows were read.
    tables_differ: bool,
}

/// Compares the sessions of a user with their folders in roots and with themselves, and the search index with the
/// rows.
///
/// A difference is something that a sync would change, or that no sync would notice. Things that a sync leaves
/// unchanged are only counted in [`VerifyReport::known`]: deleted and rewound sessions, rows that were kept when a file
/// was damaged, lines that can't be read, and events in a store that keeps no events. Reads everything, a few rows at a
/// time; only the digests of one session's lines are in memory.
///
/// With [`VerifyOptions::repair`], completely reads the folders of sessions that differ and rewrites wrong rows;
/// derives counts, turns, vectors and the search index again; and then compares these sessions once more.
///
/// # Errors
///
/// `Validation` for a root without `projects`; errors of the store that affect all sessions.
pub async fn verify(
    storage: &SessionStorage,
    options: &VerifyOptions,
    progress: &dyn VerifyProgress,
) -> Result<VerifyReport> {
    let begun = storage.now();
    let mut report = VerifyReport::default();
    let mut unreadable = ListedDifferences::default();
    let verification =
        RunningVerification::new(storage, options, progress, &mut report, &mut unreadable).await?;
    let sessions = verification.sessions().await?;
    let mut round = verification.round(&sessions, &mut report).await?;
    let mut found = unreadable.clone();
    found.extend(std::mem::take(&mut round.found.listed), round.found.count);
    (report.differences, report.difference_count) = (found.listed, found.count);
    if options.repair {
        // Unreadable files stay unreadable.
        let mut left = unreadable;
        if report.difference_count > 0 {
            if round.tables_differ {
                storage.backend().update_index(IndexUpdate::Rebuild).await?;
                round = verification.round(&sessions, &mut VerifyReport::default()).await?;
            }
            let again = verification.repair(&round).await?;
            left.extend(again.listed, again.count);
        }
        (report.left, report.left_count) = (Some(left.listed), left.count);
    }
    report.seconds = (storage.now().as_micros() - begun.as_micros()) as f64 / 1e6;
    Ok(report)
}

impl Round {
    /// Whether a difference is about a message that is known to be damaged.
    fn is_damaged(&self, difference: &Difference) -> bool {
        let differing = difference.session_id.as_ref().and_then(|session| self.differing.get(session));
        let rows = differing.map(|differing| differing.check.damaged_of(RowKind::Message));
        rows.zip(difference.sequence).is_some_and(|(rows, sequence)| rows.contains(&sequence))
    }
}

impl<'a> RunningVerification<'a> {
    async fn new(
        storage: &SessionStorage,
        options: &'a VerifyOptions,
        progress: &'a dyn VerifyProgress,
        report: &mut VerifyReport,
        unreadable: &mut ListedDifferences,
    ) -> Result<Self> {
        let mut verification = Self { storage: storage.clone(), options, progress, folders: BTreeMap::new() };
        if options.roots.is_empty() {
            return Ok(verification);
        }
        let mut sync = options.of_sync();
        sync.exclude.clone_from(&options.exclude);
        let last = LastSyncs::read(storage, &sync).await?;
        // As in the last sync: what it left out is not missing, and it chose which lines of events are stored.
        sync.exclude.extend(last.exclude());
        if let Some(events) = last.events() {
            let settings = storage.settings().clone().with_events(events);
            verification.storage = storage.clone().with_settings(settings);
        }
        let search = sync.search();
        let found = blocking(move || discover_in(&search)).await??;
        let mut notes = SyncReport::default();
        let states = states(storage, &options.user).await?;
        let mut folders = folders(storage, &sync, found, &states, &mut notes).await?;
        let is_copy = |folder: &SessionFolder| {
            states.get(&folder.session).is_some_and(|state| state.known_copy(folder, &sync.host).is_some())
        };
        report.copies = notes.copies;
        report.copies.extend(folders.extract_if(.., |folder| is_copy(folder)).map(|folder| folder.path));
        report.known.deleted_sessions = notes.sessions.deleted;
        report.known.skipped_folders = notes.skipped_count;
        for failure in notes.failures {
            let place = failure.session.map_or_else(String::new, |session| format!("/{session}"));
            let reason = format!("{}{place}: {}", failure.project, failure.error);
            unreadable.add(Difference::new(DifferenceKind::Unreadable, reason));
        }
        let chosen = folders.into_iter().filter(|folder| options.includes(&folder.session));
        verification.folders = chosen.map(|folder| (folder.session.clone(), folder)).collect();
        Ok(verification)
    }

    fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey::new(self.options.user.clone(), session.clone())
    }

    /// The sessions to compare: stored sessions, and sessions on disk.
    async fn sessions(&self) -> Result<BTreeSet<SessionId>> {
        let scope = Scope::User(self.options.user.clone());
        let stored = self.storage.backend().session_names(&scope).await?;
        let names = stored.into_iter().map(|name| name.session_id);
        let mut sessions: BTreeSet<SessionId> = names.filter(|id| self.options.includes(id)).collect();
        sessions.extend(self.folders.keys().cloned());
        Ok(sessions)
    }

    /// Compares these sessions, and the index.
    async fn round(&self, sessions: &BTreeSet<SessionId>, report: &mut VerifyReport) -> Result<Round> {
        let mut round = Round::default();
        self.progress.begin(sessions.len() as u64);
        for session in sessions {
            self.session(session, &mut round, report).await?;
            self.progress.session(session);
        }
        self.records(sessions, &mut round).await?;
        self.index(sessions, &mut round, report).await?;
        Ok(round)
    }

    /// Compares a session. If it changes meanwhile and seems to differ, compares it again.
    async fn session(&self, session: &SessionId, round: &mut Round, report: &mut VerifyReport) -> Result<()> {
        let key = self.key(session);
        for attempt in 1..=ATTEMPTS {
            let stored = match self.storage.backend().get_session(&key).await {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    let reason = format!("the session can't be read: {}", error.message());
                    round.found.add(Difference::of(&key, DifferenceKind::Damaged, reason));
                    round.differing.entry(session.clone()).or_default();
                    return Ok(());
                }
                stored => stored?,
            };
            let Some(stored) = stored else {
                self.not_stored(&key, round);
                return Ok(());
            };
            if !self.options.admits(&stored.session) {
                return Ok(());
            }
            let (check, compared) = self.compare(&stored).await?;
            let count =
                check.difference_count + compared.as_ref().map_or(0, |of| of.differences.len() as u64);
            // A sync may have written after the store was read and before the files were.
            if count > 0 && attempt < ATTEMPTS {
                let after = self.storage.backend().get_session(&key).await?;
                if after.is_none_or(|after| after.version != stored.version) {
                    continue;
                }
            }
            report.add(&check, compared.as_ref());
            if !self.options.roots.is_empty() && compared.is_none() {
                report.known.without_folder += 1;
            }
            if count > 0 {
                let mut check = check;
                let lacks_lines = compared.as_ref().is_some_and(|compared| compared.lacks_lines);
                let on_disk = compared.map(|compared| compared.differences).unwrap_or_default();
                round.found.extend(std::mem::take(&mut check.differences).into_iter().chain(on_disk), count);
                let differing = Differing { check, lacks_lines, has_no_record: false };
                round.differing.insert(session.clone(), differing);
            }
            return Ok(());
        }
        Ok(())
    }

    async fn compare(&self, stored: &StoredSession) -> Result<(SessionCheck, Option<Compared>)> {
        let check = self.storage.verification().check_session(stored).await?;
        let Some(folder) = self.folders.get(&stored.session.session_id) else { return Ok((check, None)) };
        let compared = Comparison::new(&self.storage, folder, stored, &check).await?.run().await?;
        Ok((check, Some(compared)))
    }

    /// Adds a folder whose session is not stored, unless a sync would not store it either.
    fn not_stored(&self, key: &SessionKey, round: &mut Round) {
        let Some(folder) = self.folders.get(&key.session_id) else { return };
        let is_other = self.options.projects.as_ref().is_some_and(|named| !named.contains(&folder.project));
        // Only a sync looks up the repository of a folder.
        let is_unknown = self.options.repositories.is_some();
        if is_other || is_unknown || folder.files.all().next().is_none() {
            return;
        }
        let reason = format!("the session in {} is not in the store", folder.path.display());
        round.found.add(Difference::of(key, DifferenceKind::NotStored, reason));
        round.differing.entry(key.session_id.clone()).or_default();
    }

    /// Adds sessions that have stored rows but no record.
    async fn records(&self, sessions: &BTreeSet<SessionId>, round: &mut Round) -> Result<()> {
        let is_partial = self.options.is_partial();
        for key in self.storage.verification().check_records(&self.options.user).await? {
            if is_partial && !sessions.contains(&key.session_id) {
                continue;
            }
            let reason = "rows are stored, but not their session";
            round.found.add(Difference::of(&key, DifferenceKind::NoSession, reason));
            round.differing.entry(key.session_id).or_default().has_no_record = true;
        }
        Ok(())
    }

    /// Compares the index with all rows. The row of a damaged message may be unreadable, so that it is not compared.
    async fn index(
        &self,
        sessions: &BTreeSet<SessionId>,
        round: &mut Round,
        report: &mut VerifyReport,
    ) -> Result<()> {
        self.progress.index();
        let check = self.storage.backend().check_index().await?;
        report.add_index(&check);
        round.tables_differ = check.tables_differ;
        let is_partial = self.options.is_partial();
        let differences: Vec<Difference> = check.problems.into_iter().map(Difference::from).collect();
        let (mine, others): (Vec<_>, Vec<_>) = differences.into_iter().partition(|difference| {
            let is_chosen = |session| !is_partial || sessions.contains(session);
            difference.session_id.as_ref().is_none_or(is_chosen) && !round.is_damaged(difference)
        });
        round.index_differs = !mine.is_empty();
        let unlisted = if is_partial { 0 } else { check.problem_count - (mine.len() + others.len()) as u64 };
        let count = mine.len() as u64 + unlisted;
        round.found.extend(mine, count);
        Ok(())
    }
}
