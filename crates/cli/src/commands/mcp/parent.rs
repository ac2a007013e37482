//! The program that started this one.

use std::time::Duration;

use tokio::time::sleep;

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(400);

/// Returns once the process that started this one is gone. Its end of a pipe may stay open in another process, so the
/// input need not end then.
pub(super) async fn gone() {
    let started_by = parent();
    while parent() == started_by {
        sleep(INTERVAL).await;
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
