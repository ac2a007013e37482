//! Limits on how many places are taken at the same time, both overall and per key: connections per address; readers, bodies,
//! exports and memory per token.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

/// A limited number of places.
pub(crate) struct Slots<K>(Arc<SlotCounts<K>>);

struct SlotCounts<K> {
    most: usize,
    /// The places that each key has taken.
    taken: Mutex<HashMap<K, usize>>,
    freed: Notify,
}

impl<K: Clone + Eq + Hash> Slots<K> {
    /// At most this many places in all.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(SlotCounts { most, taken: Mutex::default(), freed: Notify::new() }))
    }

    /// Takes `count` places. `None` if there are too few, or if the key would have more than `most_of_key`.
    pub(crate) fn take(&self, key: K, count: usize, most_of_key: usize) -> Option<TakenSlot<K>> {
        let mut slot = TakenSlot { slots: self.clone(), key, count: 0 };
        slot.grow(count, most_of_key).then_some(slot)
    }

    /// Takes `count` places, and waits until they are free. Waiting takes none, so those who wait for places of their own
    /// key stop nobody else. A count above the maximum is treated as the maximum.
    pub(crate) async fn wait(&self, key: K, count: usize, most_of_key: usize) -> TakenSlot<K> {
        let count = count.min(most_of_key).min(self.0.most);
        loop {
            // Created before the check, so that no freed place is missed.
            let freed = self.0.freed.notified();
            if let Some(slot) = self.take(key.clone(), count, most_of_key) {
                return slot;
            }
            freed.await;
        }
    }

    /// The number of places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Waits until all places are free.
    pub(crate) async fn all_free(&self) {
        loop {
            // Created before the check, so that no freed place is missed.
            let freed = self.0.freed.notified();
            if self.are_free() {
                return;
            }
            freed.await;
        }
    }

    fn are_free(&self) -> bool {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<K> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Slots<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("most", &self.0.most).finish_non_exhaustive()
    }
}

/// One or more places. They are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct TakenSlot<K: Clone + Eq + Hash> {
    slots: Slots<K>,
    key: K,
    count: usize,
}

impl<K: Clone + Eq + Hash> TakenSlot<K> {
    /// Takes more places, as [`Slots::take`] does. Returns whether they were there.
    pub(crate) fn grow(&mut self, count: usize, most_of_key: usize) -> bool {
        let mut taken = self.slots.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = taken.get(&self.key).copied().unwrap_or_default();
        let fits = |taken: usize, most: usize| taken.checked_add(count).is_some_and(|all| all <= most);
        if !fits(of_key, most_of_key) || !fits(taken.values().sum(), self.slots.0.most) {
            return false;
        }
        if count > 0 {
            taken.insert(self.key.clone(), of_key + count);
            self.count += count;
        }
        true
    }
}

impl<K: Clone + Eq + Hash> Drop for TakenSlot<K> {
    fn drop(&mut self) {
        // A failed attempt frees nothing, so it must not wake the waiters: each would check again at once, without end.
        if self.count == 0 {
            return;
        }
        let mut taken = self.slots.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= self.count;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
        drop(taken);
        self.slots.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn places_are_limited_in_all_and_by_key() {
        let slots = Slots::new(5);
        let of_ana = [slots.take("ana", 1, 2), slots.take("ana", 1, 2)];
        assert!(of_ana.iter().all(Option::is_some) && slots.take("ana", 1, 2).is_none());
        let of_ben: Vec<_> = (0..3).map(|_| slots.take("ben", 1, usize::MAX)).collect();
        assert!(of_ben.iter().all(Option::is_some) && slots.take("ben", 1, usize::MAX).is_none());
        drop(of_ana);
        assert!(slots.take("ana", 1, 2).is_some());
        assert!(slots.all_free().now_or_never().is_none());
        drop(of_ben);
        assert!(slots.all_free().now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_waits_for_their_own_places_stops_nobody() {
        let slots = Slots::new(5);
        let of_ana = slots.take("ana", 3, 3).unwrap();
        let mut waiting = std::pin::pin!(slots.wait("ana", 2, 3));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(slots.wait("ben", 2, 3).now_or_never().is_some());
        drop(of_ana);
        assert!(waiting.now_or_never().is_some());
        // A count above the maximum means all places of the key.
        assert_eq!(slots.wait("ana", 9, 3).await.count, 3);
    }

    #[tokio::test]
    async fn the_last_free_place_wakes_who_waits() {
        let slots = Slots::new(1);
        let slot = slots.take((), 1, 1);
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.all_free().await }
        });
        tokio::task::yield_now().await;
        drop(slot);
        waiting.await.unwrap();
    }
}
