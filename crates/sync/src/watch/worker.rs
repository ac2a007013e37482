//! Keeps one store up to date.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use amplifier_session_core::{Backoff, Error, ErrorKind, Result, SessionStorage, model::UserId};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    Stop,
    backlog::Backlog,
    embed::{Embedding, embed},
    files::{Identity, identity},
    lease::Lease,
    observer::{WatchEvent, WatchObserver},
    options::{WatchOptions, WatchTarget},
    retries::Retries,
};
use crate::{
    changed::Changed,
    discover::SessionFolder,
    options::SyncOptions,
    progress::{Progress, SessionOutcome},
    report::SyncReport,
    repository::RepositoryCache,
    roots::is_root,
    run::{sync_changed, sync_while},
    session::Context,
    watchers::{WatchFailure, WatcherState},
};

/// A state expires if it was not stored for this many intervals.
const LIFETIME: u32 = 3;

/// How soon after a sync the state is stored.
const SOON: Duration = Duration::from_secs(5);

/// Keeps one store up to date.
pub(super) struct Worker {
    target: WatchTarget,
    options: Arc<WatchOptions>,
    backlog: Arc<Backlog>,
    observer: Arc<dyn WatchObserver>,
    stop: Stop,
    /// One lease for each root.
    leases: Vec<Lease>,
    next_heartbeat: Instant,
    /// When the index must be updated, if rows were stored since its last update.
    index_due: Option<Instant>,
    /// Sessions that could not be read.
    retries: Retries,
}

/// A store that is open.
struct Opened {
    storage: SessionStorage,
    /// Its files, and their identities when it was opened.
    files: Vec<(PathBuf, Identity)>,
    embedding: Option<Embedding>,
}

impl Worker {
    pub(super) fn new(
        target: WatchTarget,
        options: &Arc<WatchOptions>,
        backlog: Arc<Backlog>,
        observer: Arc<dyn WatchObserver>,
        stop: Stop,
    ) -> Self {
        let token = format!("{:016x}", options.seed);
        let state = |root| WatcherState::new(root, options.process, token.clone(), options.now());
        let lifetime = options.intervals.heartbeat * LIFETIME;
        let leases = options.roots.iter().map(|root| Lease::new(state(root), lifetime)).collect();
        let retries = Retries::new(options.intervals.first_retry, options.intervals.longest_retry);
        Self {
            target,
            options: Arc::clone(options),
            backlog,
            observer,
            stop,
            leases,
            next_heartbeat: Instant::now(),
            index_due: None,
            retries,
        }
    }

    pub(super) async fn run(mut self) -> Result<()> {
        let intervals = self.options.intervals;
        let mut backoff = Backoff::new(intervals.first_retry, intervals.longest_retry, self.options.seed);
        let mut stop = self.stop.clone();
        let mut late = self.stop.clone();
        while !stop.is_set() {
            // A store that does not answer must not keep the watcher from stopping.
            let deadline = async {
                late.wait().await;
                sleep(intervals.grace * 2).await;
            };
            let served = tokio::select! {
                served = self.serve(&mut backoff) => served,
                () = deadline => Ok(()),
            };
            let Err(error) = served else { return Ok(()) };
            if is_final(&error) {
                return Err(error);
            }
            let retry_in = backoff.next(error.retry_after());
            let (target, backlog) = (&self.target.name, self.backlog.count());
            self.observer.event(&WatchEvent::StoreDown { target, error: &error, retry_in, backlog });
            // Data that the store had before it failed may be lost, for example if the store was replaced.
            self.backlog.add_everything();
            tokio::select! {
                () = sleep(retry_in) => {}
                () = stop.wait() => {}
            }
        }
        Ok(())
    }

    /// Keeps the store up to date until it fails or the watcher stops.
    async fn serve(&mut self, backoff: &mut Backoff) -> Result<()> {
        let mut opened = None;
        let mut is_new = true;
        let mut stop = self.stop.clone();
        while !stop.is_set() {
            let store = match opened.take() {
                Some(store) => store,
                None => tokio::select! {
                    opened = self.open() => opened?,
                    () = stop.wait() => return Ok(()),
                },
            };
            store.check()?;
            if is_new || self.is_heartbeat_due() {
                self.renew(&store.storage).await?;
            }
            if is_new {
                is_new = false;
                self.observer.event(&WatchEvent::StoreUp { target: &self.target.name });
            }
            let changed = self.backlog.take();
            if let Some((root, changed)) = changed.or_else(|| self.retries.due(Instant::now())) {
                self.batch(&store, root, changed).await?;
                backoff.reset();
                opened = Some(store);
                continue;
            }
            if self.target.is_exclusive {
                // Other processes can use it until a file changes.
                self.finish(&store).await?;
                drop(store);
            } else {
                if self.index_due.is_some_and(|due| Instant::now() >= due) {
                    self.update_index(&store.storage).await;
                }
                opened = Some(store);
            }
            let wake =
                self.index_due.into_iter().chain(self.retries.next()).fold(self.next_heartbeat, Ord::min);
            tokio::select! {
                () = stop.wait() => {}
                () = self.backlog.added() => {}
                () = sleep_until(wake) => {}
            }
        }
        self.release(opened).await;
        Ok(())
    }

    async fn open(&self) -> Result<Opened> {
        let storage = (self.target.open)().await?;
        let places = storage.backend().info().places;
        let files = places.into_iter().filter(|place| place.what == "store").filter_map(|place| {
            let file = place.files.into_iter().next()?;
            let identity = identity(&file)?;
            Some((file, identity))
        });
        // The tasks would keep an exclusive store open.
        let embedding = if self.target.is_exclusive {
            None
        } else {
            Embedding::start(&storage, self.users(), &self.target.name, &self.observer)
        };
        Ok(Opened { files: files.collect(), storage, embedding })
    }

    fn users(&self) -> BTreeSet<UserId> {
        self.options.roots.iter().map(|root| root.user.clone()).collect()
    }

    /// Whether to store the state, also because the claim expired while the machine slept.
    fn is_heartbeat_due(&self) -> bool {
        let now = self.options.times();
        Instant::now() >= self.next_heartbeat || self.leases.iter().any(|lease| lease.is_stale(now))
    }

    /// Stores the state of this watcher.
    async fn renew(&mut self, storage: &SessionStorage) -> Result<()> {
        let now = self.options.times();
        let backlog = self.backlog.count();
        for (root, lease) in self.leases.iter_mut().enumerate() {
            lease.state.backlog = backlog;
            lease.state.polls = self.backlog.polls(root);
            lease.renew(storage, now).await?;
        }
        self.next_heartbeat = Instant::now() + self.options.intervals.heartbeat;
        Ok(())
    }

    /// Syncs the changes of a root. If that fails, adds them to the backlog again.
    async fn batch(&mut self, store: &Opened, root: usize, changed: Changed) -> Result<()> {
        let Some(options) = self.options.roots.get(root).cloned() else { return Ok(()) };
        let grace = self.options.intervals.grace;
        let mut stop = self.stop.clone();
        let synced = {
            let work = WatchBatch { store, options: &options, stop: &self.stop }.run(changed.clone());
            tokio::pin!(work);
            loop {
                tokio::select! {
                    synced = &mut work => break synced,
                    () = stop.wait() => match timeout(grace, &mut work).await {
                        Ok(synced) => break synced,
                        // The data being written is stored completely or not at all.
                        Err(_) => return Ok(()),
                    },
                    () = sleep_until(self.next_heartbeat) => {
                        let mut leases = std::mem::take(&mut self.leases);
                        let now = self.options.times();
                        for lease in &mut leases {
                            // If the store rejects this, a long sync of it fails by itself.
                            let _ = lease.renew(&store.storage, now).await;
                        }
                        self.leases = leases;
                        self.next_heartbeat = Instant::now() + self.options.intervals.heartbeat;
                    }
                }
            }
        };
        match synced {
            Ok(report) => {
                self.finish_batch(root, options.first_root(), &changed, &report);
                if let Some(embedding) = store.embedding.as_ref().filter(|_| report.has_rows()) {
                    embedding.wake();
                }
                Ok(())
            }
            // It is compared when it exists again.
            Err(_) if !is_root(options.first_root()) => Ok(()),
            Err(error) => {
                self.backlog.add(root, changed);
                Err(error)
            }
        }
    }

    /// Reports what a sync did.
    fn finish_batch(&mut self, root: usize, path: &Path, changed: &Changed, report: &SyncReport) {
        let now = self.options.now();
        self.retries.record(root, changed, &report.failures, Instant::now());
        if let Some(lease) = self.leases.get_mut(root) {
            lease.state.last_sync = Some(now);
            let is_read = |project: &str, session: Option<&str>| {
                let session = session.unwrap_or_default();
                changed.everything
                    || changed.projects.contains(project)
                    || changed.sessions.contains(&(project.to_owned(), session.to_owned()))
            };
            let is_read = |failure: &WatchFailure| is_read(&failure.project, failure.session.as_deref());
            lease.state.set_failures(is_read, &report.failures, now);
        }
        if report.has_rows() {
            self.next_heartbeat = self.next_heartbeat.min(Instant::now() + SOON);
            self.index_due.get_or_insert_with(|| Instant::now() + self.options.intervals.index);
        }
        self.observer.event(&WatchEvent::Synced {
            target: &self.target.name,
            root: path,
            complete: changed.everything,
            report,
            backlog: self.backlog.count(),
        });
    }

    async fn update_index(&mut self, storage: &SessionStorage) {
        self.index_due = None;
        if let Err(error) = storage.update_index().await {
            self.observer.event(&WatchEvent::IndexFailed { target: &self.target.name, error: &error });
        }
    }

    /// Completes the remaining work before an exclusive store is closed.
    async fn finish(&mut self, store: &Opened) -> Result<()> {
        if self.index_due.is_none() {
            return Ok(());
        }
        if store.storage.embedding().is_some() {
            for user in self.users() {
                let report = embed(&store.storage, &user).await;
                self.observer.event(&WatchEvent::Embedded { target: &self.target.name, report: &report });
            }
        }
        self.update_index(&store.storage).await;
        self.renew(&store.storage).await
    }

    /// Gives up the claims, so that another watcher can begin at once.
    async fn release(&mut self, opened: Option<Opened>) {
        let opened = match opened {
            Some(opened) => Ok(opened),
            None => self.open().await,
        };
        let Ok(Opened { storage, .. }) = opened else { return };
        let (now, backlog) = (self.options.times(), self.backlog.count());
        for lease in &mut self.leases {
            lease.state.backlog = backlog;
            if let Err(error) = lease.release(&storage, now).await {
                tracing::debug!(%error, "the watcher's lease could not be released; it will expire");
            }
        }
    }
}

impl Opened {
    /// Fails if another file has replaced the store's file, for example because it was deleted: data written to the old
    /// one would be lost.
    fn check(&self) -> Result<()> {
        let is_same = |(file, known): &(PathBuf, Identity)| identity(file) == Some(*known);
        if self.files.iter().all(is_same) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::StorageConnection, "the file of the store was removed or replaced"))
    }
}

/// One sync of a root.
struct WatchBatch<'a> {
    store: &'a Opened,
    options: &'a SyncOptions,
    stop: &'a Stop,
}

impl WatchBatch<'_> {
    async fn run(self, changed: Changed) -> Result<SyncReport> {
        // Vectors are made in the background.
        let storage = self.store.storage.clone().with_embedding(None);
        let more = || !self.stop.is_set();
        let progress = StartEmbedding(self.store.embedding.as_ref());
        if changed.everything {
            return sync_while(&storage, self.options, &progress, &more).await;
        }
        let context = Context {
            storage: &storage,
            options: self.options,
            progress: &progress,
            repositories: &RepositoryCache::default(),
        };
        sync_changed(context, changed, &more).await
    }
}

/// Starts making vectors while more sessions are read.
struct StartEmbedding<'a>(Option<&'a Embedding>);

impl Progress for StartEmbedding<'_> {
    fn session(&self, _folder: &SessionFolder, outcome: SessionOutcome) {
        let is_changed = matches!(outcome, SessionOutcome::New | SessionOutcome::Changed);
        if let Some(embedding) = self.0.filter(|_| is_changed) {
            embedding.wake();
        }
    }
}

/// Whether trying again is useless.
fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Conflict => !error.is_retryable(),
        ErrorKind::Validation | ErrorKind::Unsupported => true,
        _ => false,
    }
}
