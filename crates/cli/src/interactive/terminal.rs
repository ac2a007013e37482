//! The terminal: taking it over, restoring it, and its input.

use std::{
    io::{self, BufWriter, Write as _},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{self, DisableBracketedPaste, EnableBracketedPaste, Event},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{environment::Environment, out::understands_escapes, streams::OutputStream};

/// Whether a person can see the output and type.
pub(super) fn is_available(environment: &Environment) -> bool {
    let stream = stream(environment);
    environment.stdin.is_terminal() && stream.is_terminal() && understands_escapes(environment)
}

/// The stream of the terminal: stderr if stdout is not one, as in `$(amplifier-sessions search)`.
fn stream(environment: &Environment) -> &OutputStream {
    let Environment { stdout, stderr, .. } = environment;
    if stdout.is_terminal() { stdout } else { stderr }
}

/// Whether this process has taken over the terminal. It is restored only once: a second restore would move the cursor
/// back to its earlier position, over the message of a panic.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether it draws on stderr.
static IS_ON_STDERR: AtomicBool = AtomicBool::new(false);

/// The whole screen. Dropping it, or a panic anywhere, restores the terminal.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<OutputStream>>>,
}

impl Screen {
    pub(super) fn open(environment: &Environment) -> io::Result<Self> {
        restore_on_panic();
        let mut stream = stream(environment).clone();
        enable_raw_mode()?;
        IS_ON_STDERR.store(!environment.stdout.is_terminal(), Ordering::SeqCst);
        IS_TAKEN.store(true, Ordering::SeqCst);
        // From here on, an error restores the terminal.
        let restored = Restored;
        execute!(stream, EnterAlternateScreen, EnableBracketedPaste)?;
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(stream)))?;
        std::mem::forget(restored);
        Ok(Self { terminal })
    }

    pub(super) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(|_| ())
    }

    /// Draws everything the next time, not only what changed.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Asks the terminal to put text on the clipboard (OSC 52). Terminals that can't do it ignore this.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let stream = self.terminal.backend_mut();
        write!(stream, "\x1b]52;c;{}\x07", base64(text.as_bytes()))?;
        io::Write::flush(stream)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
    }
}

/// From now on, a panic restores the terminal before it is reported.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            restore();
            report(panicked);
        }));
    });
}

/// Restores the terminal. Ignores errors, because they can't be reported.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let mut stream = if IS_ON_STDERR.load(Ordering::SeqCst) {
        OutputStream::stderr_of_process()
    } else {
        OutputStream::stdout_of_process()
    };
    let _ = execute!(stream, DisableBracketedPaste, LeaveAlternateScreen, Show);
}

/// Typed input, read on a separate thread until it is stopped or the terminal is closed.
pub(super) struct TypedEvents {
    receiver: UnboundedReceiver<io::Result<Event>>,
    thread: JoinHandle<()>,
}

impl TypedEvents {
    pub(super) fn start() -> Self {
        const WAIT: Duration = Duration::from_millis(100);
        let (sender, receiver) = unbounded_channel();
        let thread = std::thread::spawn(move || {
            while !sender.is_closed() {
                let read = match event::poll(WAIT) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                let has_failed = read.is_err();
                if sender.send(read).is_err() || has_failed {
                    break;
                }
            }
        });
        Self { receiver, thread }
    }

    /// Waits for the next event. `None` if the terminal is closed.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.receiver.recv().await
    }

    /// The next event, if one has been typed already.
    pub(super) fn typed_meanwhile(&mut self) -> Option<io::Result<Event>> {
        self.receiver.try_recv().ok()
    }

    /// Stops reading, so that another program can read from the terminal.
    pub(super) fn stop(self) {
        drop(self.receiver);
        // The thread ends within its wait. A panic of it has been reported.
        let _ = self.thread.join();
    }
}

/// `bytes` in Base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32, shift: u32| {
        let at = ((bits >> shift) & 0x3f) as usize;
        DIGITS.get(at).map_or('=', |digit| char::from(*digit))
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.push(digit(bits, 18));
        text.push(digit(bits, 12));
        text.push(if chunk.len() > 1 { digit(bits, 6) } else { '=' });
        text.push(if chunk.len() > 2 { digit(bits, 0) } else { '=' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        let encoded = ["", "a", "ab", "abc", "7f3c9a52#14"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "YQ==", "YWI=", "YWJj", "N2YzYzlhNTIjMTQ="]);
    }
}
