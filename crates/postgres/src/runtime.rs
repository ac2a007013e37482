//! The runtime that the connections run on.

use std::fmt;

use amplifier_session_core::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime of its own. That of the caller may end while calls still run on its threads for blocking work; what these
/// threads wait for would then panic.
pub(crate) struct ConnectionRuntime {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl fmt::Debug for ConnectionRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionRuntime").finish_non_exhaustive()
    }
}

impl ConnectionRuntime {
    /// One thread: it only passes on what the server and the callers send.
    pub(crate) fn new() -> Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build();
        let runtime = runtime.map_err(|source| {
            Error::new(ErrorKind::StorageConnection, "the thread for connections can't be started")
                .with_source(source)
        })?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where tasks can be started.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for `work`, on a thread for blocking work.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }
}

impl Drop for ConnectionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait: the last handle of a store may be dropped in a task.
            runtime.shutdown_background();
        }
    }
}
