//! `quickstart`.

use clap::Args;

/// Take in sessions, show what there is and answer a question from it
#[derive(Debug, Args)]
#[command(long_about = "\
Takes the newest 200 sessions of ~/.amplifier into the store, shows how many there are of what, and answers a question \
from them. Where there are no sessions, it takes the sample sessions that come with the program into a store that is \
thrown away again.")]
#[command(after_long_help = "\
Exit code 3 says that nothing was found for the question that was typed.

Examples:
  amplifier-sessions quickstart
  amplifier-sessions quickstart why was the card charged twice")]
pub(crate) struct QuickstartArgs {
    /// Your own question, instead of the ones chosen for you
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,
}
