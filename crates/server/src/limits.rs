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
    answer_meter::AnswerMemory,
    problem::HttpProblem,
    routes::RoutePace,
    settings::ServerLimits,
    slots::{Slots, TakenSlot},
};

type Rates<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// The memory of a body that is read piece by piece, in bytes: rows of one write, a line that is not long, and what the
/// decompression needs.
const BODY_MEMORY: u32 = 12 << 20;
/// The long lines that are in memory at the same time. One token has at most one of them.
const LONG_LINES: usize = 2;
/// After this many keys, those that have not been used for a while are forgotten.
const MOST_KEYS: usize = 10_000;

/// Limits of requests and searches.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    requests: Rates<String>,
    events: Rates<String>,
    failed_sign_ins: Rates<IpAddr>,
    searches: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    exports: Slots<String>,
    most_exports: usize,
    /// Reads of all lines of a user.
    scans: Slots<String>,
    readers: Slots<String>,
    most_readers: usize,
    pub(crate) answers: Arc<AnswerMemory>,
    /// Bodies that are read piece by piece, and those that are read as a whole.
    streams: Slots<String>,
    stores: Slots<String>,
    most_stores: usize,
    /// The bytes of memory for bodies that are read piece by piece.
    streamed_bodies: Arc<Semaphore>,
    long_lines: Slots<String>,
    /// The bytes of memory for bodies that are read as a whole.
    bodies: Arc<Semaphore>,
    most_bodies: u32,
    bodies_of_token: Slots<String>,
    most_of_token: usize,
    most_streamed: usize,
}

impl RequestLimits {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        let some = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let most_streamed = limits.streamed_bodies.max(BODY_MEMORY as usize);
        let most_bodies = u32::try_from(limits.bodies.max(limits.stored_body)).unwrap_or(u32::MAX);
        let rate = |number, burst| Quota::per_second(some(number)).allow_burst(some(burst));
        let (requests, events) =
            (rate(limits.requests, limits.request_burst), rate(limits.events, limits.event_burst));
        Self {
            requests: RateLimiter::hashmap(requests),
            events: RateLimiter::hashmap(events),
            failed_sign_ins: RateLimiter::hashmap(Quota::per_minute(some(limits.failed_sign_ins))),
            searches: Arc::new(Semaphore::new(limits.searches.max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting: limits.waiting_searches,
            exports: Slots::new(limits.exports.max(1)),
            most_exports: limits.exports_of_token.max(1),
            scans: Slots::new(usize::MAX),
            readers: Slots::new(limits.readers),
            most_readers: limits.readers_of_token,
            answers: Arc::new(AnswerMemory::new(limits)),
            streams: Slots::new(usize::MAX),
            stores: Slots::new(usize::MAX),
            most_stores: limits.stores_of_token.max(1),
            streamed_bodies: Arc::new(Semaphore::new(most_streamed)),
            long_lines: Slots::new(LONG_LINES),
            bodies: Arc::new(Semaphore::new(most_bodies as usize)),
            most_bodies,
            bodies_of_token: Slots::new(usize::MAX),
            most_of_token: limits.bodies_of_token.max(limits.stored_body).min(most_bodies as usize),
            most_streamed,
        }
    }

    /// Counts a request of a caller. Posted events have a rate of their own.
    pub(crate) fn request(&self, by: &str, pace: RoutePace) -> Result<(), HttpProblem> {
        let rates = if pace == RoutePace::Event { &self.events } else { &self.requests };
        rates.check_key(&by.to_owned()).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            HttpProblem::too_many("too many requests with this token", wait.as_secs() + 1)
        })?;
        if rates.len() > MOST_KEYS {
            rates.retain_recent();
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
    pub(crate) fn export(&self, by: &str) -> Result<TakenSlot<String>, HttpProblem> {
        let place = self.exports.take(by.to_owned(), 1, self.most_exports);
        place.ok_or_else(|| HttpProblem::too_many("too many exports are running", 10))
    }

    /// The permission to read all lines of a user, one at a time with a token.
    pub(crate) fn scan(&self, by: &str) -> Result<RequestPlace, HttpProblem> {
        let place = self.scans.take(by.to_owned(), 1, 1).map(RequestPlace::from);
        place.ok_or_else(|| HttpProblem::too_many("another request of this token reads all lines", 10))
    }

    /// A place for a reader who waits for changes.
    pub(crate) fn reader(&self, by: &str) -> Result<TakenSlot<String>, HttpProblem> {
        let place = self.readers.take(by.to_owned(), 1, self.most_readers);
        place.ok_or_else(|| HttpProblem::too_many("too many readers wait for changes", 10))
    }

    /// Waits until no reader waits for changes.
    pub(crate) async fn readers_gone(&self) {
        self.readers.all_free().await;
    }

    /// Waits for the place and the memory of a body of at most `bytes`, which is read as a whole: first among those of the
    /// token, so that others do not wait for them.
    pub(crate) async fn body(&self, by: &str, bytes: usize) -> Result<RequestPlace, HttpProblem> {
        let place = self.stores.wait(by.to_owned(), 1, self.most_stores).await;
        let share = self.bodies_of_token.wait(by.to_owned(), bytes, self.most_of_token).await;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.most_bodies);
        let permit = self.bodies.clone().acquire_many_owned(bytes).await;
        let memory = permit.map_err(|_| HttpProblem::busy("the server is stopping", 10))?;
        Ok(RequestPlace { _place: place, _memory: Some((share, memory)) })
    }

    /// Waits for the place of a body that is read piece by piece, among those of the token.
    pub(crate) async fn stream(&self, by: &str) -> RequestPlace {
        self.streams.wait(by.to_owned(), 1, self.most_stores).await.into()
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

    /// Waits for the memory of a long line, of which a token has one at a time. Its holder waits for nothing else, so that
    /// there is no deadlock.
    pub(crate) async fn long_line(&self, by: &str) -> TakenSlot<String> {
        self.long_lines.wait(by.to_owned(), 1, 1).await
    }

    /// The number of searches that are waiting.
    pub(crate) fn waiting_searches(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// The place of a request, until it is answered; that of a body which is read as a whole also has memory.
#[derive(Debug)]
pub(crate) struct RequestPlace {
    _place: TakenSlot<String>,
    _memory: Option<(TakenSlot<String>, OwnedSemaphorePermit)>,
}

impl From<TakenSlot<String>> for RequestPlace {
    fn from(place: TakenSlot<String>) -> Self {
        Self { _place: place, _memory: None }
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
            events: 1,
            event_burst: 1,
            failed_sign_ins: 2,
            searches: 1,
            waiting_searches: 1,
            exports: 2,
            exports_of_token: 1,
            ..ServerLimits::default()
        })
    }

    #[test]
    fn tokens_do_not_share_their_rate() {
        let limits = limits();
        for _ in 0..3 {
            limits.request("ana", RoutePace::Short).unwrap();
        }
        assert_eq!(limits.request("ana", RoutePace::Short).unwrap_err().status().as_u16(), 429);
        assert!(limits.request("ben", RoutePace::Short).is_ok());
        // Posted events are counted apart.
        assert!(limits.request("ana", RoutePace::Event).is_ok());
        assert_eq!(limits.request("ana", RoutePace::Event).unwrap_err().status().as_u16(), 429);
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
        let status = |by| limits.export(by).unwrap_err().status().as_u16();
        let running = limits.export("ana").unwrap();
        assert_eq!(status("ana"), 429);
        let _of_ben = limits.export("ben").unwrap();
        assert_eq!(status("cleo"), 429);
        drop(running);
        assert!(limits.export("cleo").is_ok());
    }

    #[tokio::test]
    async fn bodies_of_a_token_wait_for_each_other_only() {
        let limits = RequestLimits::new(&ServerLimits {
            stored_body: 80,
            bodies: 160,
            bodies_of_token: 80,
            ..ServerLimits::default()
        });
        let _large = limits.body("ana", 80).await.unwrap();
        assert!(limits.body("ana", 1).now_or_never().is_none());
        let of_ben = [limits.body("ben", 10).await.unwrap(), limits.body("ben", 10).await.unwrap()];
        assert!(limits.body("ben", 10).now_or_never().is_none());
        drop(of_ben);
        assert!(limits.body("ben", 80).now_or_never().is_some());
        let _long = limits.long_line("ana").await;
        assert!(limits.long_line("ana").now_or_never().is_none());
        assert!(limits.long_line("ben").now_or_never().is_some());
    }
}
