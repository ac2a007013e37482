//! Serves one client on a pair of streams.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{
    ServiceExt as _,
    service::{QuitReason, ServerInitializeError},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::sleep,
};

use crate::ToolServer;

/// How long calls may take to finish after the input has ended. A client that closes its pipe expects the process to end
/// within a second.
const LAST_CALLS: Duration = Duration::from_millis(600);

/// Answers the requests on `input`, one message a line, until it ends. Nothing but answers is written to `output`.
///
/// # Errors
///
/// If the client does not speak the protocol, or the streams fail.
#[crate::compiled_here]
pub async fn serve(
    server: ToolServer,
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
) -> Result<(), ServeError> {
    let ended = Arc::new(Notify::new());
    let input = WatchedInput { input, ended: ended.clone() };
    let served = async {
        let running = match server.serve((input, output)).await {
            Ok(running) => running,
            // The client left before it asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(ServeError(format!("the client does not speak the protocol: {error}"))),
        };
        match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError(error.to_string())),
            Ok(_) => Ok(()),
        }
    };
    let last_calls = async {
        ended.notified().await;
        sleep(LAST_CALLS).await;
    };
    tokio::select! {
        result = served => result,
        () = last_calls => Ok(()),
    }
}

/// Why a client could not be served.
#[derive(Debug)]
pub struct ServeError(String);

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// An input that says when it has ended.
#[derive(Debug)]
struct WatchedInput<R> {
    input: R,
    ended: Arc<Notify>,
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let has_ended = match &polled {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended {
            self.ended.notify_one();
        }
        polled
    }
}
