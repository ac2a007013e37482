//! Follows one root: detects changes, and notifies all stores.

use std::{
    fs, mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use amplifier_session_core::{Result, blocking, model::Timestamp};
use notify::{
    Config, EventKind, RecommendedWatcher, RecursiveMode,
    event::{ModifyKind, RenameMode},
};
use notify_debouncer_full::{DebounceEventResult, DebouncedEvent, Debouncer, NoCache, new_debouncer_opt};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    Stop,
    backlog::Backlog,
    files::{Identity, identity},
    observer::{WatchEvent, WatchObserver},
    options::WatchOptions,
    overflow::Overflow,
};
use crate::{changed::Changed, options::SyncOptions, roots::projects_folders};

/// If the wall clock advances this much more than the running time of the process, the machine slept.
const SLEPT: Duration = Duration::from_secs(30);

/// The notifications of the file system for one root. They end when this is dropped.
type Notifications = Debouncer<RecommendedWatcher, NoCache>;

/// How a root is followed.
enum Mode {
    /// There is no folder with projects.
    Gone,
    /// Through notifications, which are held here.
    Following(#[expect(dead_code, reason = "it is only held")] Box<Notifications>),
    /// By comparing everything at intervals.
    Polling,
}

/// Problems that notifications report.
enum NotifyProblem {
    /// The folder was removed or renamed.
    Lost,
    /// There are more folders than the system can watch.
    Limit(String),
}

/// Follows one root.
pub(super) struct Follower {
    root: usize,
    options: Arc<WatchOptions>,
    backlogs: Vec<Arc<Backlog>>,
    observer: Arc<dyn WatchObserver>,
    stop: Stop,
    mode: Mode,
    /// The identities of the folders that are followed when they were last checked. Empty without a folder with projects.
    identities: Vec<Identity>,
    next_complete: Instant,
    overflow: Arc<Mutex<Overflow>>,
    problems: (mpsc::Sender<NotifyProblem>, mpsc::Receiver<NotifyProblem>),
}

impl Follower {
    pub(super) fn new(
        root: usize,
        options: &Arc<WatchOptions>,
        backlogs: Vec<Arc<Backlog>>,
        observer: Arc<dyn WatchObserver>,
        stop: Stop,
    ) -> Self {
        Self {
            root,
            options: Arc::clone(options),
            backlogs,
            observer,
            stop,
            mode: Mode::Gone,
            identities: Vec::new(),
            next_complete: Instant::now(),
            overflow: Arc::default(),
            problems: mpsc::channel(8),
        }
    }

    pub(super) async fn run(mut self) -> Result<()> {
        self.begin().await;
        if self.identities.is_empty() {
            self.report_gone();
        }
        let mut check = interval(self.options.intervals.check);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut clock = SleepClock::new(self.options.now());
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return Ok(()),
                Some(problem) = self.problems.1.recv() => self.handle(problem),
                _ = check.tick() => {
                    if clock.has_slept(self.options.now()) {
                        self.add_everything();
                    }
                    self.check().await;
                }
            }
        }
    }

    fn path(&self) -> &Path {
        self.options.roots.get(self.root).map_or(Path::new(""), SyncOptions::first_root)
    }

    /// The folders that contain projects: those of the root, and that with captures. Empty if the root has none.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> =
            projects_folders(self.path()).into_iter().map(|folder| folder.path).collect();
        let captures = self.options.roots.get(self.root).and_then(|root| root.captures.clone());
        let captures = captures.filter(|captures| captures.is_dir() && !folders.contains(captures));
        if !folders.is_empty() {
            folders.extend(captures);
        }
        // Some systems report paths without links.
        folders.into_iter().map(|folder| fs::canonicalize(&folder).unwrap_or(folder)).collect()
    }

    fn identities(&self) -> Vec<Identity> {
        self.folders().iter().filter_map(|folder| identity(folder)).collect()
    }

    /// Begins to follow the root, if it exists. Compares all of it, because anything may have changed before.
    async fn begin(&mut self) {
        self.mode = Mode::Gone;
        self.identities = self.identities();
        if self.identities.is_empty() {
            return;
        }
        self.mode = match self.notifications().await {
            Ok(notifications) => {
                self.report_following();
                Mode::Following(Box::new(notifications))
            }
            Err(reason) => {
                self.report_polling(&reason);
                Mode::Polling
            }
        };
        self.add_everything();
    }

    /// Checks whether the root exists, and compares all of it when that is due.
    async fn check(&mut self) {
        let now = self.identities();
        if now != self.identities {
            self.begin().await;
            if self.identities.is_empty() {
                self.report_gone();
            }
        } else if !now.is_empty() && Instant::now() >= self.next_complete {
            if matches!(self.mode, Mode::Polling) && !self.options.polls {
                // The system may be able to watch more folders now.
                if let Ok(notifications) = self.notifications().await {
                    self.report_following();
                    self.mode = Mode::Following(Box::new(notifications));
                }
            }
            self.add_everything();
        } else if lock(&self.overflow).is_due(Instant::now(), self.options.intervals.overflow) {
            self.add_everything();
        }
    }

    fn handle(&mut self, problem: NotifyProblem) {
        match problem {
            // The next check follows it again, if it exists.
            NotifyProblem::Lost => {
                self.mode = Mode::Gone;
                self.identities.fill((u64::MAX, u64::MAX));
            }
            NotifyProblem::Limit(reason) => {
                if matches!(mem::replace(&mut self.mode, Mode::Polling), Mode::Following(_)) {
                    self.report_polling(&reason);
                }
                self.add_everything();
            }
        }
    }

    fn add_everything(&mut self) {
        let Self { options, mode, .. } = self;
        let every = match mode {
            Mode::Polling => options.intervals.poll,
            _ => options.intervals.complete,
        };
        self.next_complete = Instant::now() + every;
        self.backlogs.iter().for_each(|backlog| backlog.add(self.root, Changed::everything()));
    }

    fn report_gone(&self) {
        self.observer.event(&WatchEvent::RootGone { root: self.path() });
    }

    fn report_following(&self) {
        self.backlogs.iter().for_each(|backlog| backlog.set_polls(self.root, None));
        self.observer.event(&WatchEvent::Following { root: self.path() });
    }

    fn report_polling(&self, reason: &str) {
        self.backlogs.iter().for_each(|backlog| backlog.set_polls(self.root, Some(reason)));
        let every = self.options.intervals.poll;
        self.observer.event(&WatchEvent::Polling { root: self.path(), reason, every });
    }

    /// Requests notifications from the file system, or returns why there are none.
    async fn notifications(&self) -> Result<Notifications, String> {
        if self.options.polls {
            return Err("polling was requested".to_owned());
        }
        let folders = self.folders();
        let debounce = self.options.intervals.debounce;
        let handler = self.handler(folders.clone());
        let begin = move || {
            // A link to a folder could lead anywhere, for example to all files of the machine.
            let config = Config::default().with_follow_symlinks(false);
            let mut notifications =
                new_debouncer_opt(debounce, Some(debounce / 2), handler, NoCache::new(), config)?;
            for folder in &folders {
                notifications.watch(folder, RecursiveMode::Recursive)?;
            }
            Ok(notifications)
        };
        match blocking(begin).await {
            Ok(begun) => begun.map_err(|error| explain(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn handler(&self, folders: Vec<PathBuf>) -> impl FnMut(DebounceEventResult) + Send + 'static {
        let (root, backlogs, problems) = (self.root, self.backlogs.clone(), self.problems.0.clone());
        // If the queue is full, the problem is known.
        let report = move |problem| drop(problems.try_send(problem));
        let (overflow, gap) = (Arc::clone(&self.overflow), self.options.intervals.overflow);
        move |result| {
            let mut changed = Changed::default();
            match result {
                Ok(events) => {
                    events.iter().for_each(|event| add(event, &folders, &mut changed));
                    if events.iter().any(|event| is_loss(event, &folders)) {
                        report(NotifyProblem::Lost);
                    }
                }
                Err(errors) => {
                    if let Some(error) = errors.iter().find(|error| is_limit(error)) {
                        report(NotifyProblem::Limit(explain(error)));
                    }
                    changed = Changed::everything();
                }
            }
            // Otherwise, the follower adds it later.
            let is_known = !changed.everything || lock(&overflow).add(Instant::now(), gap);
            if is_known && !changed.is_empty() {
                backlogs.iter().for_each(|backlog| backlog.add(root, changed.clone()));
            }
        }
    }
}

fn lock(overflow: &Mutex<Overflow>) -> MutexGuard<'_, Overflow> {
    overflow.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the sessions that an event affects.
fn add(event: &DebouncedEvent, folders: &[PathBuf], changed: &mut Changed) {
    // Events were lost.
    if event.need_rescan() {
        changed.add(Changed::everything());
    }
    // Caused by our own reads.
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    for folder in folders {
        for path in event.paths.iter().filter_map(|path| path.strip_prefix(folder).ok()) {
            changed.add_path(path);
        }
    }
}

/// Whether an event says that one of the folders itself is gone.
fn is_loss(event: &DebouncedEvent, folders: &[PathBuf]) -> bool {
    let is_removal = matches!(
        event.kind,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From | RenameMode::Any))
    );
    is_removal && event.paths.iter().any(|path| folders.contains(path))
}

/// Whether there are more folders than the system can watch.
fn is_limit(error: &notify::Error) -> bool {
    matches!(error.kind, notify::ErrorKind::MaxFilesWatch)
}

fn explain(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "there are more folders than the system can watch (sysctl fs.inotify.max_user_watches)".to_owned()
        }
        notify::ErrorKind::Io(error) if is_too_many(error) => {
            "too many programs of this user watch folders (sysctl fs.inotify.max_user_instances), or this one has too many open \
             files (ulimit -n)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(unix)]
fn is_too_many(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

#[cfg(not(unix))]
fn is_too_many(_: &std::io::Error) -> bool {
    false
}

/// Detects that the machine slept: the wall clock has then advanced more than the running time of the process.
struct SleepClock {
    wall: Timestamp,
    ran: Instant,
}

impl SleepClock {
    fn new(wall: Timestamp) -> Self {
        Self { wall, ran: Instant::now() }
    }

    /// Whether the machine slept since the last call.
    fn has_slept(&mut self, wall: Timestamp) -> bool {
        let before = mem::replace(self, Self::new(wall));
        let passed = wall.as_micros().saturating_sub(before.wall.as_micros());
        let passed = Duration::from_micros(u64::try_from(passed).unwrap_or(0));
        passed.saturating_sub(self.ran.duration_since(before.ran)) >= SLEPT
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use amplifier_session_core::model::{HostId, UserId};
    use notify::{Event, event::Flag};
    use tokio::sync::watch;

    use super::*;

    fn follower(root: &Path) -> (Follower, Arc<Backlog>, Arc<Mutex<Vec<String>>>) {
        let (user, host) = (UserId::new("ana").unwrap(), HostId::new("host").unwrap());
        let options = Arc::new(WatchOptions::new([SyncOptions::new(root, user, host)]));
        let backlog = Arc::new(Backlog::new(1));
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        let observer = move |event: &WatchEvent<'_>| log.lock().unwrap().push(format!("{event:?}"));
        let stop = Stop(watch::channel(false).1);
        (Follower::new(0, &options, vec![Arc::clone(&backlog)], Arc::new(observer), stop), backlog, seen)
    }

    #[tokio::test]
    async fn at_the_limit_of_the_system_it_polls_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("projects")).unwrap();
        let (mut follower, backlog, seen) = follower(home.path());
        follower.begin().await;
        assert!(matches!(follower.mode, Mode::Following(_)));
        assert_eq!(backlog.take(), Some((0, Changed::everything())));
        let mut handler = follower.handler(follower.folders());
        handler(Err(vec![notify::Error::new(notify::ErrorKind::MaxFilesWatch)]));
        let problem = follower.problems.1.recv().await.unwrap();
        follower.handle(problem);
        assert!(matches!(follower.mode, Mode::Polling));
        let last = seen.lock().unwrap().last().cloned().unwrap();
        assert!(last.starts_with("Polling") && last.contains("max_user_watches"), "{last}");
        assert!(backlog.polls(0).is_some());
        assert_eq!(backlog.take(), Some((0, Changed::everything())));
        // There is room again.
        follower.next_complete = Instant::now();
        follower.check().await;
        assert!(matches!(follower.mode, Mode::Following(_)) && backlog.polls(0).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_limit_of_the_system_is_named() {
        let error = std::io::Error::from(rustix::io::Errno::MFILE);
        let text = explain(&notify::Error::io(error));
        assert!(text.contains("max_user_instances") && text.contains("ulimit -n"), "{text}");
        let other = std::io::Error::from(rustix::io::Errno::ACCESS);
        assert_eq!(
            explain(&notify::Error::io(other)),
            notify::Error::io(rustix::io::Errno::ACCESS.into()).to_string()
        );
    }

    #[tokio::test]
    async fn lost_events_are_a_change_of_everything() {
        let home = tempfile::tempdir().unwrap();
        let (follower, backlog, _) = follower(home.path());
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        let event = DebouncedEvent::new(event, std::time::Instant::now());
        let mut handler = follower.handler(follower.folders());
        handler(Ok(vec![event.clone()]));
        assert_eq!(backlog.take(), Some((0, Changed::everything())));
        // The next loss has to wait.
        handler(Ok(vec![event]));
        assert_eq!(backlog.take(), None);
    }
}
