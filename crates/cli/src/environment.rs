//! The environment of a run: arguments, variables, streams and the time.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use jiff::Zoned;

use crate::streams::{InputStream, OutputStream};

/// Everything that a run of the program takes from its process, so that several runs can share one.
///
/// Some things always belong to the process: signals, the working folder (relative paths of files refer to it), the
/// terminal of an interactive search, the log, the variables that libraries read themselves (such as `HTTPS_PROXY`),
/// and the environment of the programs that `watch service` starts.
pub struct Environment {
    /// The arguments. The first is the name by which the program was called.
    pub arguments: Vec<OsString>,
    /// The environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// The user's home folder, if it is known.
    pub home: Option<PathBuf>,
    /// The time at which the run begins, in the local time zone.
    pub now: Zoned,
    /// The standard input.
    pub stdin: InputStream,
    /// The standard output.
    pub stdout: OutputStream,
    /// The standard error.
    pub stderr: OutputStream,
}

thread_local! {
    /// The environment of the run to which this thread belongs.
    static CURRENT: RefCell<Option<Arc<Environment>>> = const { RefCell::new(None) };
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            arguments: std::env::args_os().collect(),
            variables: std::env::vars_os().collect(),
            home: std::env::home_dir(),
            now: Zoned::now(),
            stdin: InputStream::of_process(),
            stdout: OutputStream::stdout_of_process(),
            stderr: OutputStream::stderr_of_process(),
        }
    }

    /// The environment of the run to which this thread belongs. Messages are written in many places that know nothing
    /// else of the run. A thread that no run has started has the environment of the process.
    pub(crate) fn current() -> Arc<Self> {
        static PROCESS: LazyLock<Arc<Environment>> = LazyLock::new(|| Arc::new(Environment::of_process()));
        CURRENT.with_borrow(Clone::clone).unwrap_or_else(|| PROCESS.clone())
    }

    /// Makes this the environment of the calling thread, until the result is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> EnteredEnvironment {
        EnteredEnvironment { before: CURRENT.replace(Some(self.clone())) }
    }

    /// Makes this the environment of the calling thread, which belongs to one run only.
    pub(crate) fn enter_for_good(self: &Arc<Self>) {
        CURRENT.set(Some(self.clone()));
    }

    /// A variable, if it is set.
    pub(crate) fn os_variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable, if it is set and is valid Unicode.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.os_variable(name)?.to_str()
    }

    /// The folder for temporary files.
    pub(crate) fn temporary_folder(&self) -> PathBuf {
        let named = self.os_variable("TMPDIR").filter(|folder| cfg!(unix) && !folder.is_empty());
        named.map_or_else(std::env::temp_dir, PathBuf::from)
    }

    /// The number of columns of the terminal, if one of the streams is a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.stdout.columns().or_else(|| self.stderr.columns()).or_else(|| self.stdin.columns())
    }
}

impl fmt::Debug for Environment {
    // The variables may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// Restores the previous environment of the thread on drop.
#[derive(Debug)]
#[must_use]
pub(crate) struct EnteredEnvironment {
    before: Option<Arc<Environment>>,
}

impl Drop for EnteredEnvironment {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}
