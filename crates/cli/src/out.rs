//! Where results go: stdout, as people, pipes or programs want it.

use std::{
    io::{self, BufWriter, IsTerminal as _, StdoutLock, Write},
    sync::OnceLock,
};

use amplifier_session_storage::{SessionStorage, backend::ServiceUsage, storage::DamagedRow};
use serde::Serialize;

use crate::{args::When, paint::Paint, render::text::escaped};

/// When set, the program behaves as on a terminal wherever its results go; a number is its width.
const FORCE: &str = "AMPLIFIER_SESSIONS_FORCE_TTY";
/// The width of lines where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 100;
/// No terminal is taken for a narrower one.
const NARROWEST: usize = 40;
/// Lines longer than this are hard to read.
const WIDEST: usize = 120;

/// The width that is forced, if one is.
fn forced_width() -> Option<usize> {
    std::env::var(FORCE).ok()?.parse().ok()
}

/// The width at which what goes to stderr is wrapped, if a person reads it there.
pub(crate) fn width_of_messages() -> Option<usize> {
    let columns = || terminal_size::terminal_size_of(io::stderr()).map(|(columns, _)| usize::from(columns.0));
    Some(forced_width().or_else(columns)?.clamp(NARROWEST, WIDEST))
}

/// Stdout.
#[derive(Debug)]
pub(crate) struct Out {
    writer: BufWriter<StdoutLock<'static>>,
    /// What is written while it is being measured.
    captured: Option<Vec<u8>>,
    json: bool,
    terminal: bool,
    /// Whether somebody can be asked.
    asks: bool,
    /// How to paint.
    pub(crate) paint: Paint,
    /// How many columns there are.
    pub(crate) width: usize,
    /// The store that is asked.
    store: OnceLock<SessionStorage>,
}

/// A result that was charged for.
#[derive(Serialize)]
struct Charged<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    /// What the command has used so far.
    service_usage: ServiceUsage,
}

impl Out {
    /// Stdout, as asked for on the command line.
    pub(crate) fn new(json: bool, color: When) -> Self {
        let stdout = io::stdout();
        let forced = std::env::var(FORCE).ok().filter(|value| !value.is_empty());
        let terminal = stdout.is_terminal() || forced.is_some();
        let asks = io::stdin().is_terminal() || forced.is_some();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let paint = match color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && !no_color,
        };
        let columns = forced_width()
            .or_else(|| terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0)));
        Self {
            writer: BufWriter::new(stdout.lock()),
            captured: None,
            json,
            terminal,
            asks,
            paint: Paint::new(paint),
            width: columns.unwrap_or(DEFAULT_WIDTH).clamp(NARROWEST, WIDEST),
            store: OnceLock::new(),
        }
    }

    /// Whether results are to be JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person reads along.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.asks
    }

    /// The width to wrap text at: a pipe gets lines as they are.
    pub(crate) fn wrap_at(&self) -> Option<usize> {
        self.terminal.then_some(self.width)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.text(text)?;
        self.text("\n")
    }

    /// Writes text as it is.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        match &mut self.captured {
            Some(captured) => captured.write_all(text.as_bytes()),
            None => self.writer.write_all(text.as_bytes()),
        }
    }

    /// Keeps what is written from now on, until [`Self::captured`] hands it over.
    pub(crate) fn capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// What was written since [`Self::capture`].
    pub(crate) fn captured(&mut self) -> String {
        let captured = self.captured.take().unwrap_or_default();
        String::from_utf8_lossy(&captured).into_owned()
    }

    /// What takes bytes as they are.
    #[cfg(feature = "duckdb-system")]
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.writer
    }

    /// Writes `value`, an object, as one line of JSON; with what it cost, where that is charged.
    /// On a terminal, characters that would act on it or that nobody sees are escaped; the values are the same.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let json = match self.service_usage() {
            Some(service_usage) => serde_json::to_string(&Charged { result: value, service_usage })?,
            None => serde_json::to_string(value)?,
        };
        let json = if self.terminal { escaped(&json) } else { json };
        self.line(&json)
    }

    /// Remembers the store that is asked.
    pub(crate) fn asks_of(&self, store: &SessionStorage) {
        // A command asks one.
        let _ = self.store.set(store.clone());
    }

    /// The sessions that the command has left out so far because they can't be read.
    pub(crate) fn damaged_sessions(&self) -> Vec<DamagedRow> {
        self.store.get().map(SessionStorage::damaged_sessions).unwrap_or_default()
    }

    /// What the command has used so far, in a store that charges for it.
    pub(crate) fn service_usage(&self) -> Option<ServiceUsage> {
        self.store.get()?.backend().info().usage
    }

    /// Lets go of what is still waiting to be written, for example before something is said on stderr.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
