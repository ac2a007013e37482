//! `completions`.

use clap::Args;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(long_about = "\
Prints a script that lets a shell complete commands, options, and values from the store: sessions, projects, tags, bundles, \
models and users. The script runs the program each time, so the script itself rarely changes.")]
#[command(after_long_help = "\
The folder of the script must exist (`mkdir -p`).

Examples:
  amplifier-sessions completions bash > ~/.local/share/bash-completion/completions/amplifier-sessions
  source <(amplifier-sessions completions bash)
  amplifier-sessions completions zsh > ~/.zfunc/_amplifier-sessions
  amplifier-sessions completions fish > ~/.config/fish/completions/amplifier-sessions.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
