//! The standard streams for asynchronous code.
//!
//! Threads of their own read and write, because a read that waits can't be ended: a thread of the runtime would keep the
//! process from ending.

use std::{
    io::{self, Write as _},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    runtime::Handle,
    sync::watch,
    time::timeout,
};

use crate::environment::Environment;

/// The size of buffers in bytes.
const BUFFER: usize = 64 * 1024;
/// How long the last answers may take to be written.
const LAST_WRITE: Duration = Duration::from_millis(200);

/// The standard input of a run.
pub(super) fn input(environment: &Arc<Environment>) -> io::Result<DuplexStream> {
    let (stream, mut write) = duplex(BUFFER);
    let (stdin, runtime) = (environment.stdin.clone(), Handle::current());
    let read = move || {
        loop {
            let bytes = stdin.read(|input| {
                let bytes = input.fill_buf().unwrap_or_default().to_vec();
                input.consume(bytes.len());
                bytes
            });
            // At the end, the other half of the stream learns that this one is dropped.
            if bytes.is_empty() || runtime.block_on(write.write_all(&bytes)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("mcp-input".to_owned()).spawn(read)?;
    Ok(stream)
}

/// The standard output of a run, and its state.
pub(super) fn output(environment: &Arc<Environment>) -> io::Result<(DuplexStream, WrittenOutput)> {
    let (stream, mut read) = duplex(BUFFER);
    let (mut stdout, runtime) = (environment.stdout.clone(), Handle::current());
    let (end, ended) = watch::channel(());
    let write = move || {
        let mut buffer = vec![0; BUFFER];
        while let Ok(length @ 1..) = runtime.block_on(read.read(&mut buffer)) {
            let bytes = buffer.get(..length).unwrap_or_default();
            if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
        drop(end);
    };
    thread::Builder::new().name("mcp-output".to_owned()).spawn(write)?;
    Ok((stream, WrittenOutput(ended)))
}

/// What becomes of the output.
#[derive(Debug)]
pub(super) struct WrittenOutput(watch::Receiver<()>);

impl WrittenOutput {
    /// Returns once nothing more is written: after the last answer, or because writing failed.
    pub(super) async fn ended(&self) {
        // Nothing is sent, so this is the end of the other half.
        while self.0.clone().changed().await.is_ok() {}
    }

    /// As [`Self::ended`], but does not wait long.
    pub(super) async fn ended_soon(&self) {
        let _ = timeout(LAST_WRITE, self.ended()).await;
    }
}
