//! Output of results to stdout, for terminals, pipes and programs.

use std::{
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use amplifier_session_api::remote::SkippedSessions;
use amplifier_session_storage::{SessionStorage, backend::ServiceUsage, model::DamagedRow};
use serde::Serialize;

use crate::{
    args::When,
    environment::Environment,
    failure::say,
    paint::Paint,
    render::text::escaped,
    streams::OutputStream,
    terminal_programs::{DEFAULT_PAGER, RunningPager, pager_command},
};

/// If set, the program treats stdout as a terminal; a number sets its width.
const FORCE: &str = "AMPLIFIER_SESSIONS_FORCE_TTY";
/// The line width without a terminal.
const DEFAULT_WIDTH: usize = 100;
/// The minimum line width.
const NARROWEST: usize = 40;
/// The maximum line width; longer lines are hard to read.
const WIDEST: usize = 120;

/// The forced width, if any.
fn forced_width(environment: &Environment) -> Option<usize> {
    environment.variable(FORCE)?.parse().ok()
}

/// Whether the terminal understands escape sequences, such as those for colours. On Windows, `TERM` is usually not set.
pub(crate) fn understands_escapes(environment: &Environment) -> bool {
    match environment.variable("TERM") {
        Some(term) => !term.is_empty() && term != "dumb",
        None => cfg!(windows),
    }
}

/// Whether the environment allows colours on a terminal.
pub(crate) fn allows_colors(environment: &Environment) -> bool {
    let no_color = environment.os_variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && understands_escapes(environment)
}

/// Whether stdout is a terminal.
pub(crate) fn is_terminal(environment: &Environment) -> bool {
    environment.stdout.is_terminal() || environment.os_variable(FORCE).is_some_and(|value| !value.is_empty())
}

/// The width at which messages on stderr are wrapped, if it is a terminal.
pub(crate) fn width_of_messages(environment: &Environment) -> Option<usize> {
    let columns = forced_width(environment).or_else(|| environment.stderr.columns());
    Some(columns?.clamp(NARROWEST, WIDEST))
}

/// Whether the output goes through a pager.
#[derive(Debug)]
enum Paging {
    Off,
    /// It begins with the first byte, so that what happens before needs no pager: progress, or an error without output.
    Ready {
        command: String,
    },
    Running {
        _pager: RunningPager,
    },
}

/// Stdout.
#[derive(Debug)]
pub(crate) struct Out {
    /// Not locked: if a thread panics during an interactive search, it restores the terminal.
    writer: BufWriter<OutputStream>,
    /// Reads from the writer, which is dropped before: then the pager knows that the text is complete.
    pager: Paging,
    /// Text that was written since [`Self::capture`].
    captured: Option<Vec<u8>>,
    json: bool,
    terminal: bool,
    for_editor: bool,
    /// Whether a person can answer questions.
    asks: bool,
    /// How to paint.
    pub(crate) paint: Paint,
    /// The number of columns.
    pub(crate) width: usize,
    /// The store that the command uses.
    store: OnceLock<SessionStorage>,
    /// The sessions that the server of the store skipped, if one has it.
    skipped_there: OnceLock<SkippedSessions>,
}

impl Out {
    /// Stdout, as configured on the command line.
    pub(crate) fn new(environment: &Environment, json: bool, color: When) -> Self {
        let forced = environment.variable(FORCE).filter(|value| !value.is_empty());
        let terminal = is_terminal(environment);
        let asks = environment.stdin.is_terminal() || forced.is_some();
        let paint = match color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && allows_colors(environment),
        };
        let columns = forced_width(environment).or_else(|| environment.columns());
        Self {
            writer: BufWriter::new(environment.stdout.clone()),
            pager: Paging::Off,
            captured: None,
            json,
            terminal,
            for_editor: false,
            asks,
            paint: Paint::new(paint),
            width: columns.unwrap_or(DEFAULT_WIDTH).clamp(NARROWEST, WIDEST),
            store: OnceLock::new(),
            skipped_there: OnceLock::new(),
        }
    }

    /// Sends everything that is written from now on through the user's pager, if stdout is a terminal. `configured` is
    /// the command of the pager in the configuration file.
    pub(crate) fn use_pager(&mut self, environment: &Environment, configured: Option<&str>) {
        if let Some(command) = pager_command(environment, configured) {
            self.pager = Paging::Ready { command };
        }
    }

    /// Collects everything that is written from now on for an editor, in the format of a pipe.
    pub(crate) fn collect_for_editor(&mut self) -> CollectedText {
        let collected = CollectedText::default();
        self.writer = BufWriter::new(OutputStream::new(collected.clone()));
        (self.terminal, self.for_editor, self.paint) = (false, true, Paint::new(false));
        collected
    }

    /// Starts the pager before the first byte. If that fails, the output goes to the terminal.
    fn start_pager(&mut self) {
        let Paging::Ready { command } = &self.pager else { return };
        let command = command.clone();
        match RunningPager::start(&command, &Environment::current()) {
            Ok((pager, stdin)) => {
                self.writer = BufWriter::new(OutputStream::new(stdin));
                self.pager = Paging::Running { _pager: pager };
            }
            Err(error) => {
                self.pager = Paging::Off;
                // Nobody asked for the default pager.
                if command != DEFAULT_PAGER {
                    say("warning", &format!("the pager `{command}` could not be started: {error}"));
                }
            }
        }
    }

    /// Waits until the user quits the pager, if there is one. Nothing is read or written afterwards: other programs may
    /// need the store while the user reads.
    pub(crate) fn end_pager(&mut self) {
        self.store.take();
        if matches!(self.pager, Paging::Running { .. }) {
            self.writer = BufWriter::new(Environment::current().stdout.clone());
        }
        self.pager = Paging::Off;
    }

    /// Whether to print results as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether a person reads it, on a terminal or in an editor.
    pub(crate) fn is_for_a_person(&self) -> bool {
        self.terminal || self.for_editor
    }

    /// Whether a person can answer questions.
    pub(crate) fn can_ask(&self) -> bool {
        self.asks
    }

    /// The width at which to wrap text; a pipe gets unwrapped lines.
    pub(crate) fn wrap_at(&self) -> Option<usize> {
        self.terminal.then_some(self.width)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.text(text)?;
        self.text("\n")
    }

    /// Writes lines.
    pub(crate) fn lines(&mut self, lines: &[String]) -> io::Result<()> {
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Writes text unchanged.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        if let Some(captured) = &mut self.captured {
            return captured.write_all(text.as_bytes());
        }
        self.start_pager();
        self.writer.write_all(text.as_bytes())
    }

    /// Captures text that is written from now on, until [`Self::captured`] returns it.
    pub(crate) fn capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// Text that was written since [`Self::capture`].
    pub(crate) fn captured(&mut self) -> String {
        let captured = self.captured.take().unwrap_or_default();
        String::from_utf8_lossy(&captured).into_owned()
    }

    /// A writer for raw bytes.
    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        self.start_pager();
        &mut self.writer
    }

    /// Writes `value`, an object, as one line of JSON, with its cost if the store charges for it.
    /// On a terminal, control characters and invisible characters are escaped; the values are the same.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let json = self.charged(value)?;
        self.line(&json)
    }

    /// Begins an object as [`Self::json`] writes it, whose first field is a list that is too long for memory. Each item
    /// is written by [`Self::item`], and the other fields by [`Self::end_list`].
    pub(crate) fn begin_list(&mut self, field: &str) -> io::Result<()> {
        self.text(&format!("{{\"{field}\":["))
    }

    /// Writes an item of the list.
    pub(crate) fn item<T: Serialize>(&mut self, is_first: bool, item: &T) -> io::Result<()> {
        let json = self.shown(serde_json::to_string(item)?);
        self.text(if is_first { "" } else { "," })?;
        self.text(&json)
    }

    /// Ends the list. `rest` is an object with at least one field.
    pub(crate) fn end_list<T: Serialize>(&mut self, rest: &T) -> io::Result<()> {
        let rest = self.charged(rest)?;
        self.line(&format!("],{}", rest.strip_prefix('{').unwrap_or(&rest)))
    }

    /// The value as JSON, with its cost.
    fn charged<T: Serialize>(&self, value: &T) -> io::Result<String> {
        let json = serde_json::to_string(value)?;
        Ok(self.shown(match self.service_usage() {
            Some(usage) => with_usage(&json, usage)?,
            None => json,
        }))
    }

    fn shown(&self, json: String) -> String {
        if self.terminal { escaped(&json) } else { json }
    }

    /// Remembers the store that the command uses.
    pub(crate) fn asks_of(&self, store: &SessionStorage) {
        // A command uses one store.
        let _ = self.store.set(store.clone());
    }

    /// Remembers what the server of the store skips.
    pub(crate) fn asks_of_server(&self, skipped: &SkippedSessions) {
        let _ = self.skipped_there.set(skipped.clone());
    }

    /// The sessions that the command has skipped so far because they can't be read.
    pub(crate) fn damaged_sessions(&self) -> Vec<DamagedRow> {
        if let Some(skipped) = self.skipped_there.get() {
            return skipped.rows();
        }
        self.store.get().map(|store| store.sessions().damaged_sessions()).unwrap_or_default()
    }

    /// The usage of the command so far, if the store charges for it.
    pub(crate) fn service_usage(&self) -> Option<ServiceUsage> {
        self.store.get()?.backend().info().usage
    }

    /// Flushes stdout, for example before a message is written to stderr.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Text that was written for an editor. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollectedText(Arc<Mutex<Vec<u8>>>);

impl CollectedText {
    /// Takes the text out.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for CollectedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds the usage of a command to its result, an object. Both are text here, because a struct with the result flattened
/// into it would compile the serialisation of every result twice.
fn with_usage(object: &str, usage: ServiceUsage) -> serde_json::Result<String> {
    let usage = serde_json::to_string(&usage)?;
    let fields = object.strip_suffix('}').unwrap_or(object);
    let comma = if fields.ends_with('{') { "" } else { "," };
    Ok(format!(r#"{fields}{comma}"service_usage":{usage}}}"#))
}
