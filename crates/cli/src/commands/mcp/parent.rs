//! The program that started this one.

use std::time::Duration;

use tokio::time::sleep;

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(400);

/// The process that started this one.
pub(super) struct ParentProcess(Option<i32>);

impl ParentProcess {
    /// The current one. To be called before anything is read: a client may end as soon as it has an answer.
    pub(super) fn current() -> Self {
        Self(parent())
    }

    /// Returns once it is gone. Its end of a pipe may stay open in another process, so the input need not end then.
    pub(super) async fn gone(self) {
        while parent() == self.0 {
            sleep(INTERVAL).await;
        }
    }
}

/// The id of the parent. It changes if the parent ends.
#[cfg(unix)]
fn parent() -> Option<i32> {
    rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get())
}

/// Unknown: on Windows, the input always ends.
#[cfg(not(unix))]
fn parent() -> Option<i32> {
    None
}
