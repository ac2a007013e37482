//! Faults of an account.

use std::time::Duration;

use super::{Call, Kind};

/// The fault of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call is rejected without effect.
    Refuse {
        /// The status.
        status: u16,
        /// The substatus (`x-ms-substatus`).
        substatus: Option<u32>,
        /// The delay before a retry (`x-ms-retry-after-ms`).
        retry_after: Option<Duration>,
    },
    /// The batch is rejected without effect because of one operation. The response has the status of that operation,
    /// and 424 for all others. Calls other than batches are answered.
    RefuseOperation {
        /// The index of the operation. If the batch is shorter, its last operation.
        operation: usize,
        /// Its status.
        status: u16,
    },
    /// The connection is closed before anything is done.
    CutBefore,
    /// The call is executed, and the connection is closed in the middle of the response.
    CutInside,
    /// The call waits until [`CosmosAccount::release`](super::CosmosAccount::release) and is then executed.
    Hold,
    /// The call is executed after this time.
    Delay(Duration),
}

impl Fault {
    /// A rejection with this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Refuse { status, substatus: None, retry_after: None }
    }

    /// A rejection because of too many requests.
    #[must_use]
    pub fn throttled(retry_after: Duration) -> Self {
        Self::Refuse { status: 429, substatus: Some(3200), retry_after: Some(retry_after) }
    }

    /// A rejection of this operation of a batch.
    #[must_use]
    pub fn operation(operation: usize, status: u16) -> Self {
        Self::RefuseOperation { operation, status }
    }
}

/// Selects calls.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Calls {
    /// The kind; `None` for every kind.
    pub kind: Option<Kind>,
    /// The container; `None` for every container and for calls without one.
    pub container: Option<String>,
}

impl Calls {
    /// All calls.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// The calls of a kind.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), container: None }
    }

    /// Keeps only the calls about a container.
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

/// Which of the selected calls have the fault.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// Answers `after` calls, and then applies the fault to the next `times` calls.
    Next { after: usize, times: usize },
    /// Every n-th call.
    Every { nth: usize, seen: usize },
}

/// The faults of future calls.
#[derive(Debug, Default)]
pub(super) struct Script(pub(super) Vec<(Calls, When, Fault)>);

impl Script {
    /// The first fault that applies to `call`.
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
    fn only_selected_calls_have_a_fault() {
        let mut script = Script::default();
        let batches = Calls::of(Kind::Batch).in_container("events");
        script.0.push((batches, When::Next { after: 1, times: 2 }, Fault::CutBefore));
        assert_eq!(script.fault(&call(Kind::Read)), None);
        let met = [(); 4].map(|()| script.fault(&call(Kind::Batch)).is_some());
        assert_eq!(met, [false, true, true, false]);
        let others = Calls::any().in_container("sessions");
        script.0.push((others, When::Next { after: 0, times: 1 }, Fault::Hold));
        assert_eq!(script.fault(&call(Kind::Batch)), None);
    }

    #[test]
    fn a_repeated_fault_applies_to_every_third_call() {
        let mut script = Script::default();
        script.0.push((Calls::any(), When::Every { nth: 3, seen: 0 }, Fault::status(429)));
        let met = [(); 6].map(|()| script.fault(&call(Kind::Read)).is_some());
        assert_eq!(met, [false, false, true, false, false, true]);
    }
}
