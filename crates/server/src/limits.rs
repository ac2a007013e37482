//! Limits of requests and searches.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    state::keyed::HashMapStateStore,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    problem::HttpProblem,
    settings::ServerLimits,
    slots::{Slots, TakenSlot},
};

type Rates<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// The memory of a body that is read piece by piece, in bytes: rows of one write, a line that is not long, and what the
/// decompression needs.
const BODY_MEMORY: u32 = 12 << 20;
/// After this many keys, those that have not been used for a while are forgotten.
const MOST_KEYS: usize = 10_000;

/// Limits of requests and searches.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    requests: Rates<String>,
    failed_sign_ins: Rates<IpAddr>,
    searches: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    exports: Arc<Semaphore>,
    readers: Slots<String>,
    most_readers: usize,
    /// The bytes of memory for bodies that are read piece by piece.
    streamed_bodies: Arc<Semaphore>,
    long_lines: Arc<Semaphore>,
    /// The bytes of memory for bodies that are read as a whole.
    bodies: Arc<Semaphore>,
    most_bodies: u32,
    most_streamed: usize,
}

impl RequestLimits {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        let some = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let most_streamed = limits.streamed_bodies.max(BODY_MEMORY as usize);
        let most_bodies = u32::try_from(limits.bodies.max(limits.stored_body)).unwrap_or(u32::MAX);
        let requests = Quota::per_second(some(limits.requests)).allow_burst(some(limits.request_burst));
        Self {
            requests: RateLimiter::hashmap(requests),
            failed_sign_ins: RateLimiter::hashmap(Quota::per_minute(some(limits.failed_sign_ins))),
            searches: Arc::new(Semaphore::new(limits.searches.max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting: limits.waiting_searches,
            exports: Arc::new(Semaphore::new(limits.exports.max(1))),
            readers: Slots::new(limits.readers),
            most_readers: limits.readers_of_token,
            streamed_bodies: Arc::new(Semaphore::new(most_streamed)),
            long_lines: Arc::new(Semaphore::new(1)),
            bodies: Arc::new(Semaphore::new(most_bodies as usize)),
            most_bodies,
            most_streamed,
        }
    }

    /// Counts a request of a caller.
    pub(crate) fn request(&self, by: &str) -> Result<(), HttpProblem> {
        self.requests.check_key(&by.to_owned()).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            HttpProblem::too_many("too many requests with this token", wait.as_secs() + 1)
        })?;
        if self.requests.len() > MOST_KEYS {
            self.requests.retain_recent();
        }
        Ok(())
    }

    /// Counts a failed attempt to sign in. The failure of who tries too often says only that: others with the same
    /// address and a valid token are not affected.
    pub(crate) fn failed_sign_in(&self, address: IpAddr, failure: HttpProblem) -> HttpProblem {
        let counted = self.failed_sign_ins.check_key(&address);
        if self.failed_sign_ins.len() > MOST_KEYS {
            self.failed_sign_ins.retain_recent();
        }
        match counted {
            Ok(()) => failure,
            Err(until) => {
                let wait = until.wait_time_from(DefaultClock::default().now());
                HttpProblem::too_many("too many attempts to sign in from this address", wait.as_secs() + 1)
            }
        }
    }

    /// Waits for the permission to search.
    pub(crate) async fn search(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        let busy = || HttpProblem::busy("too many searches are waiting", 1);
        if let Ok(permit) = self.searches.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = WaitingSearch::begin(&self.waiting);
        if waiting.before >= self.most_waiting {
            return Err(busy());
        }
        self.searches.clone().acquire_owned().await.map_err(|_| busy())
    }

    /// The permission to export.
    pub(crate) fn export(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        let permit = self.exports.clone().try_acquire_owned();
        permit.map_err(|_| HttpProblem::busy("too many exports are running", 10))
    }

    /// A place for a reader who waits for changes.
    pub(crate) fn reader(&self, by: &str) -> Result<TakenSlot<String>, HttpProblem> {
        let place = self.readers.take(by.to_owned(), self.most_readers);
        place.ok_or_else(|| HttpProblem::too_many("too many readers wait for changes", 10))
    }

    /// Waits until no reader waits for changes.
    pub(crate) async fn readers_gone(&self) {
        self.readers.all_free().await;
    }

    /// Waits for the memory of a body of at most `bytes`, which is read as a whole.
    pub(crate) async fn body(&self, bytes: usize) -> Result<OwnedSemaphorePermit, HttpProblem> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.most_bodies);
        let permit = self.bodies.clone().acquire_many_owned(bytes).await;
        permit.map_err(|_| HttpProblem::busy("the server is stopping", 10))
    }

    /// The memory that bodies may use now, in bytes.
    pub(crate) fn body_bytes(&self) -> usize {
        (self.most_bodies as usize).saturating_sub(self.bodies.available_permits())
            + self.most_streamed.saturating_sub(self.streamed_bodies.available_permits())
    }

    /// The number of readers who wait for changes.
    pub(crate) fn readers(&self) -> usize {
        self.readers.taken()
    }

    /// Waits for the memory of a body that is read piece by piece.
    pub(crate) async fn streamed_body(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        let permit = self.streamed_bodies.clone().acquire_many_owned(BODY_MEMORY).await;
        permit.map_err(|_| HttpProblem::busy("the server is stopping", 10))
    }

    /// Waits for the memory of a long line. Its holder waits for nothing else, so that there is no deadlock.
    pub(crate) async fn long_line(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        let permit = self.long_lines.clone().acquire_owned().await;
        permit.map_err(|_| HttpProblem::busy("the server is stopping", 10))
    }

    /// The number of searches that are waiting.
    pub(crate) fn waiting_searches(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Counts a waiting search until it is dropped, also if its client leaves.
struct WaitingSearch<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> WaitingSearch<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        Self { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for WaitingSearch<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    fn limits() -> RequestLimits {
        RequestLimits::new(&ServerLimits {
            requests: 1,
            request_burst: 3,
            failed_sign_ins: 2,
            searches: 1,
            waiting_searches: 1,
            exports: 1,
            ..ServerLimits::default()
        })
    }

    #[test]
    fn tokens_do_not_share_their_rate() {
        let limits = limits();
        for _ in 0..3 {
            limits.request("ana").unwrap();
        }
        assert_eq!(limits.request("ana").unwrap_err().status().as_u16(), 429);
        assert!(limits.request("ben").is_ok());
    }

    #[test]
    fn failed_attempts_are_counted_by_address() {
        let limits = limits();
        let failed = |address: &str| {
            let failure = HttpProblem::unauthenticated("x", "Bearer");
            limits.failed_sign_in(address.parse().unwrap(), failure).status().as_u16()
        };
        assert_eq!([failed("192.0.2.1"), failed("192.0.2.1"), failed("192.0.2.1")], [401, 401, 429]);
        assert_eq!(failed("192.0.2.2"), 401);
    }

    #[tokio::test]
    async fn only_some_searches_wait() {
        let limits = limits();
        let running = limits.search().await.unwrap();
        {
            let mut waiting = pin!(limits.search());
            assert!((&mut waiting).now_or_never().is_none());
            assert_eq!(limits.waiting_searches(), 1);
            assert_eq!(limits.search().await.unwrap_err().status().as_u16(), 503);
            drop(running);
            assert!(waiting.now_or_never().unwrap().is_ok());
        }
        assert_eq!(limits.waiting_searches(), 0);
    }

    #[test]
    fn exports_do_not_wait() {
        let limits = limits();
        let running = limits.export().unwrap();
        assert_eq!(limits.export().unwrap_err().status().as_u16(), 503);
        drop(running);
        assert!(limits.export().is_ok());
    }
}
