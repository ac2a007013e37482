//! How an account fails.

use std::time::Duration;

use super::{Call, Kind};

/// What a call meets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A refusal. Nothing was done.
    Refuse {
        /// The status.
        status: u16,
        /// What the status means more exactly (`x-ms-substatus`).
        substatus: Option<u32>,
        /// When to come again (`x-ms-retry-after-ms`).
        retry_after: Option<Duration>,
    },
    /// A batch that is refused because of one operation: its status stands in the answer, all others have 424. Nothing was
    /// done. Another call than a batch is answered.
    RefuseOperation {
        /// Which operation, from 0; the last one when there are fewer.
        operation: usize,
        /// Its status.
        status: u16,
    },
    /// The connection ends before anything is done.
    CutBefore,
    /// The call is carried out, and the connection ends in the middle of the answer.
    CutInside,
    /// The call waits until [`CosmosAccount::release`](super::CosmosAccount::release); then it is carried out.
    Hold,
    /// The call is carried out after this time.
    Delay(Duration),
}

impl Fault {
    /// A refusal with this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Refuse { status, substatus: None, retry_after: None }
    }

    /// A refusal because too much was asked in a second.
    #[must_use]
    pub fn throttled(retry_after: Duration) -> Self {
        Self::Refuse { status: 429, substatus: Some(3200), retry_after: Some(retry_after) }
    }

    /// A batch of which this operation is refused.
    #[must_use]
    pub fn operation(operation: usize, status: u16) -> Self {
        Self::RefuseOperation { operation, status }
    }
}

/// Which calls are meant.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Calls {
    /// Of this kind; of any with `None`.
    pub kind: Option<Kind>,
    /// About this container; about any, or none, with `None`.
    pub container: Option<String>,
}

impl Calls {
    /// All of them.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Those of a kind.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), container: None }
    }

    /// Of these only those about a container.
    #[must_use]
    pub fn in_container(mut self, container: &str) -> Self {
        self.container = Some(container.to_owned());
        self
    }

    pub(super) fn include(&self, call: &Call) -> bool {
        self.kind.is_none_or(|kind| kind == call.kind)
            && self.container.as_ref().is_none_or(|container| Some(container) == call.container.as_ref())
    }
}

/// When a fault strikes, of the calls that are meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// So many that are answered first, then so many that are not.
    Next { after: usize, times: usize },
    /// Each n-th one.
    Every { nth: usize, seen: usize },
}

/// What the calls to come meet.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<(Calls, When, Fault)>);

impl Script {
    pub(super) fn add(&mut self, calls: Calls, when: When, fault: Fault) {
        self.0.push((calls, when, fault));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What `call` meets: the first fault that strikes.
    pub(super) fn fault(&mut self, call: &Call) -> Option<Fault> {
        let meant = self.0.iter_mut().filter(|(calls, ..)| calls.include(call));
        meant.filter_map(|(_, when, fault)| when.strikes().then(|| fault.clone())).next()
    }
}

impl When {
    fn strikes(&mut self) -> bool {
        match self {
            Self::Next { after, .. } if *after > 0 => {
                *after -= 1;
                false
            }
            Self::Next { times, .. } => {
                let strikes = *times > 0;
                *times = times.saturating_sub(1);
                strikes
            }
            Self::Every { nth, seen } => {
                *seen += 1;
                (*seen).is_multiple_of(*nth)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: Kind) -> Call {
        let container = Some("events".to_owned());
        Call { kind, path: String::new(), container, query: None, operations: 0 }
    }

    #[test]
    fn only_the_calls_that_are_meant_meet_a_fault() {
        let mut script = Script::default();
        script.add(
            Calls::of(Kind::Batch).in_container("events"),
            When::Next { after: 1, times: 2 },
            Fault::CutBefore,
        );
        assert_eq!(script.fault(&call(Kind::Read)), None);
        let met = [(); 4].map(|()| script.fault(&call(Kind::Batch)).is_some());
        assert_eq!(met, [false, true, true, false]);
        script.add(Calls::any().in_container("sessions"), When::Next { after: 0, times: 1 }, Fault::Hold);
        assert_eq!(script.fault(&call(Kind::Batch)), None);
    }

    #[test]
    fn a_storm_meets_each_third_call() {
        let mut script = Script::default();
        script.add(Calls::any(), When::Every { nth: 3, seen: 0 }, Fault::status(429));
        let met = [(); 6].map(|()| script.fault(&call(Kind::Read)).is_some());
        assert_eq!(met, [false, false, true, false, false, true]);
    }
}
