//! Calls of the command line: as a library, or as a process.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::{self, Cursor, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use amplifier_sessions::{Environment, InputStream, OutputStream};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

/// Hints name the program as it was typed. A fixed name makes lines break equally on every machine.
const TYPED: &str = "amplifier-sessions";
/// The stack of the main thread of a process. The threads of tests have less.
const STACK: usize = 8 << 20;

/// A call of the command line, with its environment.
#[derive(Clone)]
pub(crate) struct Call {
    home: PathBuf,
    arguments: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
    typed: String,
}

impl Call {
    pub(crate) fn new(home: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { home: home.to_owned(), arguments, variables: BTreeMap::new(), typed: String::new() }
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// Removes an environment variable.
    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.variables.remove(OsStr::new(name));
        self
    }

    /// Sets what is read from stdin.
    pub(crate) fn typed(self, typed: &str) -> Self {
        Self { typed: typed.to_owned(), ..self }
    }

    /// The time zone of the variable `TZ`, as the program has it.
    fn zone(&self) -> TimeZone {
        let name = self.variables.get(OsStr::new("TZ")).and_then(|name| name.to_str());
        TimeZone::get(name.unwrap_or("UTC")).unwrap_or_else(|_| TimeZone::unknown())
    }

    /// Runs it in this process. A panic is one of the test.
    pub(crate) fn run(self) -> Ran {
        let (stdout, stderr) = (Written::default(), Written::default());
        let environment = Environment {
            now: Timestamp::now().to_zoned(self.zone()),
            arguments: [TYPED.into()].into_iter().chain(self.arguments).collect(),
            variables: self.variables,
            home: Some(self.home),
            stdin: InputStream::new(Cursor::new(self.typed)),
            stdout: OutputStream::new(stdout.clone()),
            stderr: OutputStream::new(stderr.clone()),
        };
        // The test may have a runtime, which can't begin another one on the same thread.
        let run = move || amplifier_sessions::run(environment);
        let thread = thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
        let code = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ran { code: code.into(), stdout: stdout.text(), stderr: stderr.text() }
    }

    /// Runs it as a process.
    pub(crate) fn run_process(self) -> Ran {
        Ran::from(self.process().output().unwrap())
    }

    /// The same call as a process, without input.
    pub(crate) fn process(self) -> Command {
        assert_eq!(self.typed, "", "a process gets its input through a pipe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier-sessions"));
        command.args(self.arguments).env_clear().stdin(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut command, TYPED);
        // The folder where the system's loader finds DuckDB.
        command.envs(std::env::var_os("LD_LIBRARY_PATH").map(|folders| ("LD_LIBRARY_PATH", folders)));
        command.envs(self.variables);
        command
    }
}

/// The bytes that were written to a stream.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of a run of the program.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// Stdout as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.all()))
    }

    /// All output as one text.
    pub(crate) fn all(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}
