//! The plan of a sync: the session folders, and how much of each must be read.

use std::collections::{HashMap, HashSet};

use amplifier_session_core::{
    Error, ErrorField, Result, SessionStorage, blocking,
    model::{HostId, SessionId, SessionKey, UserId},
    storage::IngestRepair,
    text::composed,
};
use globset::{Glob, GlobSet, GlobSetBuilder};

#[cfg(feature = "watch")]
use crate::{changed::Changed, discover::discover_some};
use crate::{
    discover::{Discovery, FolderSearch, Rejected, RejectedBecause, SessionFolder, discover_in},
    options::SyncOptions,
    report::{FolderFailure, Kept, Skipped, SyncReport},
    state::SyncState,
};

/// Number of states to read at a time.
const PAGE: usize = 1_000;

/// Fewer states than this are read one by one.
const FEW: usize = 200;

/// The sessions of a sync, newest first.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sessions: Vec<Planned>,
}

/// A session in a plan.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) folder: SessionFolder,
    /// Whether a sync read it before.
    pub(crate) is_known: bool,
    /// Whether it has changed since it was read. Otherwise, its files only have to be checked again.
    pub(crate) is_changed: bool,
    /// The number of bytes to read; `None` if the stored session is up to date.
    pub(crate) bytes: Option<u64>,
    pub(crate) cost: ReadingCost,
    /// Known problems of the stored rows. If present, all files are compared completely.
    pub(crate) repair: Option<IngestRepair>,
}

/// The cost of reading a session, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadingCost {
    /// Transcript lines that were not read before.
    pub(crate) new_lines: u64,
    /// Everything else: lines that are compared with the store, metadata, events.
    pub(crate) other: u64,
}

impl Plan {
    /// Compares the folders with the stored states. Folders that can't be read are added to `report`.
    pub(crate) async fn new(
        storage: &SessionStorage,
        options: &SyncOptions,
        report: &mut SyncReport,
    ) -> Result<Self> {
        let search = options.search();
        let found = blocking(move || discover_in(&search)).await??;
        let states = states(storage, &options.user).await?;
        let folders = folders(storage, options, found, &states, report).await?;
        Ok(Self::of(storage, options, folders, states, report))
    }

    /// As [`Plan::new`], but leaves out folders with these fingerprints, and does not read their states. Also returns the
    /// fingerprints of all folders.
    pub(crate) async fn without(
        storage: &SessionStorage,
        options: &SyncOptions,
        known: Vec<u64>,
        report: &mut SyncReport,
    ) -> Result<(Self, Vec<u64>)> {
        let search = FolderSearch { known, ..options.search() };
        let mut found = blocking(move || discover_in(&search)).await??;
        let mut fingerprints = std::mem::take(&mut found.known);
        fingerprints.extend(found.sessions.iter().map(|folder| folder.fingerprint));
        let states = match found.sessions.len() {
            ..FEW => states_of(storage, options, &found.sessions).await?,
            _ => states(storage, &options.user).await?,
        };
        let folders = folders(storage, options, found, &states, report).await?;
        Ok((Self::of(storage, options, folders, states, report), fingerprints))
    }

    /// As [`Plan::new`], for some sessions. Lists only these folders and reads only their states.
    #[cfg(feature = "watch")]
    pub(crate) async fn of_changed(
        storage: &SessionStorage,
        options: &SyncOptions,
        changed: Changed,
        report: &mut SyncReport,
    ) -> Result<Self> {
        let search = options.search();
        let found = blocking(move || discover_some(&search, &changed)).await?;
        let states = states_of(storage, options, &found.sessions).await?;
        let folders = folders(storage, options, found, &states, report).await?;
        Ok(Self::of(storage, options, folders, states, report))
    }

    fn of(
        storage: &SessionStorage,
        options: &SyncOptions,
        folders: Vec<SessionFolder>,
        mut states: HashMap<SessionId, SyncState>,
        report: &mut SyncReport,
    ) -> Self {
        if options.accepts_removals() {
            states.values_mut().for_each(SyncState::forget_damage);
        }
        if options.verify {
            states.values_mut().for_each(SyncState::forget_positions);
        }
        let planned = |mut folder: SessionFolder| {
            let state = states.get(&folder.session);
            if let Some(state) = state {
                folder.files = state.choose(std::mem::take(&mut folder.files));
            }
            for (file, reason) in &folder.files.passed_over {
                report.skip(Skipped::file(&folder, Some(file), (*reason).to_owned()));
            }
            // A copy that was compared with the stored rows and has not changed since has nothing to store.
            let copy = state.and_then(|state| state.known_copy(&folder, &options.host));
            if let (Some((kind, read)), Some(transcript)) = (&copy, folder.files.transcript) {
                report.copy(&folder, Some(transcript.name), kind.reason(read, &options.host));
                return Planned {
                    is_known: true,
                    is_changed: false,
                    bytes: None,
                    cost: ReadingCost::default(),
                    folder,
                    repair: None,
                };
            }
            let lacks_repository = state.is_some_and(SyncState::lacks_repository);
            let unchanged = || lacks_repository.then_some(0).filter(|_| folder.files.all().next().is_some());
            let bytes = bytes_to_read(storage, &folder, state).or_else(unchanged);
            if let (None, Some(state)) = (bytes, state) {
                report.keep_damages(&folder, state);
            }
            let cost = cost(&folder, state, bytes.unwrap_or(0));
            let is_outdated = |state: &SyncState| {
                state.is_outdated(&folder.project, &folder.files, storage.settings().events)
            };
            let is_changed = bytes.is_some() && state.is_none_or(is_outdated);
            Planned { is_known: state.is_some(), is_changed, bytes, cost, folder, repair: None }
        };
        Self { sessions: folders.into_iter().map(planned).collect() }
    }

    /// The total number of bytes to read.
    pub(crate) fn bytes(&self) -> u64 {
        self.sessions.iter().filter_map(|planned| planned.bytes).sum()
    }
}

fn bytes_to_read(storage: &SessionStorage, folder: &SessionFolder, state: Option<&SyncState>) -> Option<u64> {
    // The only file may be a transcript that is being appended to.
    folder.files.all().next()?;
    let detail = storage.settings().events;
    match state {
        Some(state) => state.bytes_to_read(&folder.project, &folder.files, detail),
        None => SyncState::of(&folder.project, None)
            .bytes_to_read(&folder.project, &folder.files, detail)
            .or(Some(0)),
    }
}

/// The cost of reading `bytes` of a session. Most of a transcript that has grown was read before.
fn cost(folder: &SessionFolder, state: Option<&SyncState>, bytes: u64) -> ReadingCost {
    let Some(transcript) = folder.files.transcript else { return ReadingCost { new_lines: 0, other: bytes } };
    let known = state.and_then(|state| state.file(transcript.name)).map_or(0, |known| known.stamp.size);
    let size = transcript.stamp.size;
    let new_lines = size.checked_sub(known).unwrap_or(size).min(bytes);
    ReadingCost { new_lines, other: bytes - new_lines }
}

/// The folders selected by the options.
pub(crate) async fn folders(
    storage: &SessionStorage,
    options: &SyncOptions,
    found: Discovery,
    states: &HashMap<SessionId, SyncState>,
    report: &mut SyncReport,
) -> Result<Vec<SessionFolder>> {
    let excluded = globs(&options.exclude)?;
    let Discovery { mut sessions, rejected, .. } = found;
    rejected.into_iter().for_each(|folder| report.reject(folder));
    sessions.retain(|folder| !excluded.is_match(format!("{}/{}", folder.project, folder.session)));
    let mut sessions = one_of_each(sessions, states, &options.host, report);
    if !options.include_deleted {
        let found = sessions.len();
        let deleted: HashSet<_> =
            storage.backend().deleted_sessions(&options.user).await?.into_iter().collect();
        sessions.retain(|folder| !deleted.contains(&folder.session));
        report.sessions.deleted = (found - sessions.len()) as u64;
    }
    sessions.retain(|folder| options.since.is_none_or(|since| folder.modified >= since));
    // After everything that is left out, so that as many sessions remain as were asked for.
    sessions.truncate(options.newest.unwrap_or(usize::MAX));
    for folder in &sessions {
        for file in &folder.files.dangling {
            report.fail(FolderFailure::of(folder, format!("{file} is a link that leads nowhere")));
        }
    }
    for folder in sessions.iter().filter(|folder| folder.files.transcript_withheld) {
        let reason = "the transcript is being appended to, and there is no backup to read instead".to_owned();
        report.skip(Skipped::file(folder, Some(crate::files::TRANSCRIPT), reason));
    }
    Ok(sessions)
}

/// One folder of each session: the longest transcript that is not known to be a copy, or else the one that was read
/// before. The other ones are reported.
fn one_of_each(
    sessions: Vec<SessionFolder>,
    states: &HashMap<SessionId, SyncState>,
    host: &HostId,
    report: &mut SyncReport,
) -> Vec<SessionFolder> {
    let rank = |folder: &SessionFolder| {
        let state = states.get(&folder.session);
        let is_copy = state.is_some_and(|state| state.known_copy(folder, host).is_some());
        let is_read_one = state.is_some_and(|state| state.read_elsewhere(&folder.path, host).is_none());
        (!is_copy, folder.files.transcript.map_or(0, |transcript| transcript.stamp.size), is_read_one)
    };
    let mut chosen: Vec<SessionFolder> = Vec::new();
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    for mut folder in sessions {
        let place = *places.entry(folder.session.clone()).or_insert(chosen.len());
        let Some(other) = chosen.get_mut(place) else {
            chosen.push(folder);
            continue;
        };
        if rank(&folder) > rank(other) {
            std::mem::swap(&mut folder, other);
        }
        let reason = format!("{} has a longer history of this session", other.path.display());
        report.copy(&folder, None, reason);
    }
    chosen
}

fn globs(patterns: &[String]) -> Result<GlobSet> {
    let invalid = |error: globset::Error| {
        Error::validation(ErrorField::Exclude, format!("is not a valid glob: {error}"))
            .with_operation("sync")
            .with_source(error)
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(&composed(pattern)).map_err(invalid)?);
    }
    set.build().map_err(invalid)
}

/// The states of all sessions of a user, with a few queries regardless of the number of sessions.
pub(crate) async fn states(storage: &SessionStorage, user: &UserId) -> Result<HashMap<SessionId, SyncState>> {
    let mut states = HashMap::new();
    let mut after = None;
    loop {
        let page = storage.backend().sync_states(user, after.as_ref(), PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(states) };
        after = Some(last.clone());
        states.extend(
            page.into_iter().filter_map(|(session, state)| Some((session, SyncState::parse(&state)?))),
        );
    }
}

/// The states of the sessions of these folders.
async fn states_of(
    storage: &SessionStorage,
    options: &SyncOptions,
    folders: &[SessionFolder],
) -> Result<HashMap<SessionId, SyncState>> {
    let mut states = HashMap::new();
    for folder in folders {
        let key = SessionKey::new(options.user.clone(), folder.session.clone());
        let stored = storage.backend().get_session(&key).await?;
        let state = stored.and_then(|stored| SyncState::parse(&stored.sync_state?));
        states.extend(state.map(|state| (folder.session.clone(), state)));
    }
    Ok(states)
}

impl SyncReport {
    /// Reports the damaged files of a session that is not read again.
    fn keep_damages(&mut self, folder: &SessionFolder, state: &SyncState) {
        for (file, damage) in state.damages(&folder.files) {
            self.keep(Kept::of(folder, file.name, damage));
        }
    }

    /// Reports a folder that can't be read.
    fn reject(&mut self, Rejected { project, session, because, reason }: Rejected) {
        match because {
            RejectedBecause::LeadsOutside | RejectedBecause::LeadsNowhere => {
                self.skip(Skipped { project, session, file: None, line: None, reason })
            }
            RejectedBecause::InvalidName | RejectedBecause::Unreadable => {
                self.fail(FolderFailure { project, session, error: reason })
            }
        }
    }
}
