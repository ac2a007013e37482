//! The end of commands that run until they are told to stop.

use std::future::Future;

use crate::failure::Failure;

/// Resolves when the process receives a signal to stop.
#[cfg(unix)]
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Resolves when the process receives a signal to stop.
#[cfg(not(unix))]
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        // Without the signal handler, it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
