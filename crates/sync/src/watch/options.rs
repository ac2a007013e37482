//! What to watch, and how.

use std::{fmt, sync::Arc, time::Duration};

use amplifier_session_core::{Result, SessionStorage, model::Timestamp};
use futures_util::future::BoxFuture;

use crate::{options::SyncOptions, watchers::uptime};

/// Opens a store.
type StoreOpener = Arc<dyn Fn() -> BoxFuture<'static, Result<SessionStorage>> + Send + Sync>;

/// A store to keep up to date.
#[derive(Clone)]
pub struct WatchTarget {
    /// Its name in events.
    pub name: String,
    pub(super) open: StoreOpener,
    pub(super) is_exclusive: bool,
}

impl WatchTarget {
    /// A store that `open` opens. It is opened again after a failure.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> BoxFuture<'static, Result<SessionStorage>> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), open: Arc::new(open), is_exclusive: false }
    }

    /// Sets whether the store is closed whenever there is nothing to do, because no other process can use it while it
    /// is open.
    #[must_use]
    pub fn with_exclusive(mut self, is_exclusive: bool) -> Self {
        self.is_exclusive = is_exclusive;
        self
    }
}

impl fmt::Debug for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchTarget").field("name", &self.name).finish_non_exhaustive()
    }
}

type WatchClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
type Uptime = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// A point in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: Timestamp,
    /// How long the machine has been running, in microseconds, if known.
    pub(super) uptime: Option<u64>,
}

/// What a watcher follows, and how.
#[derive(Clone)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The roots, one for each of these options of syncs. `since`, `newest` and `dry_run` have no effect.
    pub roots: Vec<SyncOptions>,
    /// Whether to poll even if the file system has notifications, for example in a network folder that other machines
    /// write to.
    pub polls: bool,
    /// The intervals.
    pub intervals: Intervals,
    /// The id of this process. Other watchers use it to check whether this one still runs.
    pub process: u32,
    /// A random number that identifies this watcher and makes its waits differ from those of others.
    pub seed: u64,
    pub(super) clock: WatchClock,
    pub(super) uptime: Uptime,
}

impl WatchOptions {
    /// Follows the roots of these options, which must be distinct.
    #[must_use]
    pub fn new(roots: impl IntoIterator<Item = SyncOptions>) -> Self {
        let whole =
            |options: SyncOptions| SyncOptions { since: None, newest: None, dry_run: false, ..options };
        // Each root is followed, and can be missing, by itself.
        let each = |options: SyncOptions| {
            let roots = options.roots.clone();
            roots.into_iter().map(move |root| options.clone().with_roots([root]))
        };
        Self {
            roots: roots.into_iter().map(whole).flat_map(each).collect(),
            polls: false,
            intervals: Intervals::default(),
            process: std::process::id(),
            seed: fastrand::u64(..),
            clock: Arc::new(Timestamp::now),
            uptime: Arc::new(uptime),
        }
    }

    /// Sets whether to poll.
    #[must_use]
    pub fn with_polls(mut self, polls: bool) -> Self {
        self.polls = polls;
        self
    }

    /// Sets the intervals.
    #[must_use]
    pub fn with_intervals(mut self, intervals: Intervals) -> Self {
        self.intervals = intervals;
        self
    }

    /// Sets the clock. It shows whether the machine slept, and when a watcher was last seen.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets how to read how long the machine has been running, in microseconds. It shows whether another watcher is gone.
    #[must_use]
    pub fn with_uptime(mut self, uptime: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.uptime = Arc::new(uptime);
        self
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The time by both clocks.
    pub(super) fn times(&self) -> Now {
        Now { wall: self.now(), uptime: (self.uptime)() }
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("roots", &self.roots)
            .field("polls", &self.polls)
            .field("intervals", &self.intervals)
            .finish_non_exhaustive()
    }
}

/// The intervals of a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intervals {
    /// How long changes of a file are collected. Default: 0.2 s.
    pub debounce: Duration,
    /// How often to check whether a root still exists. Default: 2 s.
    pub check: Duration,
    /// How often to compare all sessions of a root that is followed. Default: 10 minutes.
    pub complete: Duration,
    /// How often to compare all sessions of a root that is polled. Default: 30 s.
    pub poll: Duration,
    /// The minimum time between comparisons of all sessions of a root because of lost notifications. Default: 10 s.
    pub overflow: Duration,
    /// How long the search index may wait for changes. Default: 10 s.
    pub index: Duration,
    /// How often to store the watcher's state. It expires after three times this interval. Default: 30 s.
    pub heartbeat: Duration,
    /// How long to wait after the first failure of a store, or of a session that could not be read. Default: 1 s.
    pub first_retry: Duration,
    /// The maximum wait. Default: 1 minute.
    pub longest_retry: Duration,
    /// How long a stopping watcher waits for sessions that are being written. Default: 10 s.
    pub grace: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(200),
            check: Duration::from_secs(2),
            complete: Duration::from_secs(600),
            poll: Duration::from_secs(30),
            overflow: Duration::from_secs(10),
            index: Duration::from_secs(10),
            heartbeat: Duration::from_secs(30),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        }
    }
}

impl Intervals {
    /// Sets how often to compare all sessions of a root that is followed.
    #[must_use]
    pub fn with_complete(mut self, complete: Duration) -> Self {
        self.complete = complete;
        self
    }

    /// Sets how often to compare all sessions of a root that is polled.
    #[must_use]
    pub fn with_poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Sets how often to check whether a root still exists.
    #[must_use]
    pub fn with_check(mut self, check: Duration) -> Self {
        self.check = check;
        self
    }

    /// Sets how long to wait after failures of a store or a session: after the first one, and at most.
    #[must_use]
    pub fn with_retries(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_retry, self.longest_retry) = (first, longest);
        self
    }

    /// Sets how often to store the watcher's state.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }
}
