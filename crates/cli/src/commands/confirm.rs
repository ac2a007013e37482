//! Asks for confirmation on a terminal.

use std::io::{self, Write as _};

use crate::{environment::Environment, render::text::printable};

/// Writes `preview` and `question` to stderr, and returns whether the answer is yes.
pub(super) fn confirmed(preview: &[String], question: &str) -> io::Result<bool> {
    let environment = Environment::current();
    let mut stderr = environment.stderr.clone();
    for line in preview {
        writeln!(stderr, "{line}")?;
    }
    write!(stderr, "{} [y/N] ", printable(question))?;
    stderr.flush()?;
    let mut answer = String::new();
    if environment.stdin.read(|stdin| stdin.read_line(&mut answer))? == 0 {
        writeln!(stderr)?;
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
