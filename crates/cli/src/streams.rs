//! The standard streams of a run: those of the process, or others.

use std::{
    fmt,
    fs::File,
    io::{self, BufRead, IsTerminal as _, Write},
    sync::{Arc, Mutex, PoisonError},
};

/// Messages for a terminal that a pager uses. They are written when it ends.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Holds messages to the stderr of the process back, if it is a terminal.
pub(crate) fn hold_messages() {
    if io::stderr().is_terminal() {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }
}

/// Writes the messages that were held back.
pub(crate) fn release_messages() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    // As with all messages, errors of writing are ignored.
    let _ = io::stderr().write_all(&held.unwrap_or_default());
}

/// Writes to the stderr of the process, or holds the bytes back.
fn write_message(bytes: &[u8]) -> io::Result<usize> {
    match &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(held) => held.write(bytes),
        None => io::stderr().write(bytes),
    }
}

/// A stream for results or messages. Clones write to the same stream. Only a stream of the process can be a terminal.
#[derive(Clone)]
pub struct OutputStream(StreamTarget);

#[derive(Clone)]
enum StreamTarget {
    Stdout,
    Stderr,
    Given(Arc<Mutex<dyn Write + Send>>),
}

impl OutputStream {
    /// A stream that writes to `writer`.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self(StreamTarget::Given(Arc::new(Mutex::new(writer))))
    }

    pub(crate) const fn stdout_of_process() -> Self {
        Self(StreamTarget::Stdout)
    }

    pub(crate) const fn stderr_of_process() -> Self {
        Self(StreamTarget::Stderr)
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match self.0 {
            StreamTarget::Stdout => io::stdout().is_terminal(),
            StreamTarget::Stderr => io::stderr().is_terminal(),
            StreamTarget::Given(_) => false,
        }
    }

    /// The number of columns of the terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = match self.0 {
            StreamTarget::Stdout => terminal_size::terminal_size_of(io::stdout()),
            StreamTarget::Stderr => terminal_size::terminal_size_of(io::stderr()),
            StreamTarget::Given(_) => None,
        };
        size.map(|(columns, _)| usize::from(columns.0))
    }

    /// Whether it belongs to the process.
    pub(crate) fn is_of_process(&self) -> bool {
        !matches!(self.0, StreamTarget::Given(_))
    }

    /// A writer without the buffer of the process, if this is its stdout. Bytes that could not be written would stay in
    /// that buffer.
    pub(crate) fn unbuffered(&self) -> io::Result<Box<dyn Write + Send>> {
        if !matches!(self.0, StreamTarget::Stdout) {
            return Ok(Box::new(self.clone()));
        }
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(Box::new(File::from(handle)))
    }
}

impl Write for OutputStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            StreamTarget::Stdout => io::stdout().write(bytes),
            StreamTarget::Stderr => write_message(bytes),
            StreamTarget::Given(writer) => writer.lock().unwrap_or_else(PoisonError::into_inner).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.0 {
            StreamTarget::Stdout => io::stdout().flush(),
            StreamTarget::Stderr => io::stderr().flush(),
            StreamTarget::Given(writer) => writer.lock().unwrap_or_else(PoisonError::into_inner).flush(),
        }
    }
}

impl fmt::Debug for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputStream").finish_non_exhaustive()
    }
}

/// A stream of input. Only the stream of the process can be a terminal.
#[derive(Clone)]
pub struct InputStream(Option<Arc<Mutex<dyn BufRead + Send>>>);

impl InputStream {
    /// A stream that reads from `reader`.
    pub fn new(reader: impl BufRead + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(reader))))
    }

    pub(crate) const fn of_process() -> Self {
        Self(None)
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.is_none() && io::stdin().is_terminal()
    }

    /// The number of columns of the terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stdin());
        size.filter(|_| self.0.is_none()).map(|(columns, _)| usize::from(columns.0))
    }

    /// Reads with `read`. Nothing else reads from the stream meanwhile.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut dyn BufRead) -> T) -> T {
        match &self.0 {
            None => read(&mut io::stdin().lock()),
            Some(reader) => read(&mut *reader.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl fmt::Debug for InputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InputStream").finish_non_exhaustive()
    }
}
