//! Asks for confirmation on a terminal.

use std::io::{self, Write as _};

use crate::{
    app::App,
    environment::Environment,
    failure::Failure,
    out::width_of_messages,
    render::{text::printable, wrap::wrapped_words},
};

/// A question before a change that can't be undone.
pub(super) struct ChangeQuestion<'a> {
    /// The change: "3 sessions would be deleted".
    pub(super) change: String,
    /// The lines before the question.
    pub(super) preview: Vec<String>,
    /// The question.
    pub(super) question: String,
    /// The hint if nobody can be asked.
    pub(super) hint: &'a str,
}

impl ChangeQuestion<'_> {
    /// Asks, and returns whether the answer is yes. Fails if input is not a terminal.
    pub(super) fn is_confirmed(&self, app: &App) -> Result<bool, Failure> {
        if !app.out.can_ask() {
            let message = format!("{}, but input is not a terminal to ask for confirmation", self.change);
            return Err(Failure::wrong_use(message, self.hint));
        }
        Ok(confirmed(&self.preview, &self.question)?)
    }
}

/// Writes `preview` and `question` to stderr, and returns whether the answer is yes.
fn confirmed(preview: &[String], question: &str) -> io::Result<bool> {
    let environment = Environment::current();
    let mut stderr = environment.stderr.clone();
    for line in preview {
        writeln!(stderr, "{line}")?;
    }
    let question = format!("{} [y/N]", printable(question));
    let width = width_of_messages(&environment).unwrap_or(usize::MAX);
    write!(stderr, "{} ", wrapped_words(&question, "", "", width).join("\n"))?;
    stderr.flush()?;
    let mut answer = String::new();
    if environment.stdin.read(|stdin| stdin.read_line(&mut answer))? == 0 {
        writeln!(stderr)?;
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
