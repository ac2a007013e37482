//! Output as on a terminal.

use crate::{call::Ran, support::Home};

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
        let call = self.home.call(arguments).typed(self.typed);
        call.env("AMPLIFIER_SESSIONS_FORCE_TTY", self.columns.to_string()).run()
    }
}
