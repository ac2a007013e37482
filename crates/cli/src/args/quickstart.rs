//! `quickstart`.

use clap::Args;

/// Read sessions, show a summary, and answer a question
#[derive(Debug, Args)]
#[command(long_about = "\
Reads the newest 200 sessions from ~/.amplifier into the store, shows a summary, and answers a question from them. If there \
are no sessions, it uses the sample sessions that come with the program, in a temporary store.")]
#[command(after_long_help = "\
Exits with 3 if nothing is found for your question.

Examples:
  amplifier-sessions quickstart
  amplifier-sessions quickstart why was the card charged twice")]
pub(crate) struct QuickstartArgs {
    /// Your own question; by default, one is chosen for you
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,
}
