//! The program on a terminal.

use std::{io::Write as _, process::Stdio};

use crate::support::{Home, Ran};

/// A terminal of 100 columns.
pub(crate) struct Terminal<'a> {
    pub(crate) home: &'a Home,
    columns: u16,
    typed: &'a str,
}

impl<'a> Terminal<'a> {
    pub(crate) fn new(home: &'a Home) -> Self {
        Self { home, columns: 100, typed: "" }
    }

    pub(crate) fn with_columns(self, columns: u16) -> Self {
        Self { columns, ..self }
    }

    /// Input that is typed while the program runs.
    pub(crate) fn with_typed(self, typed: &'a str) -> Self {
        Self { typed, ..self }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.home.command(arguments);
        command.env("AMPLIFIER_SESSIONS_FORCE_TTY", self.columns.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program without a question may have ended already.
        let _ = stdin.write_all(self.typed.as_bytes());
        drop(stdin);
        Ran::from(child.wait_with_output().unwrap())
    }
}
