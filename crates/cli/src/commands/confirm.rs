//! Asks for confirmation on a terminal.

use std::io::{self, BufRead as _, Write as _};

use crate::render::text::printable;

/// Writes `preview` and `question` to stderr, and returns whether the answer is yes.
pub(super) fn confirmed(preview: &[String], question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr().lock();
    for line in preview {
        writeln!(stderr, "{line}")?;
    }
    write!(stderr, "{} [y/N] ", printable(question))?;
    stderr.flush()?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        writeln!(stderr)?;
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
