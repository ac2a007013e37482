//! `completions`: a script that makes a shell complete what is typed.

use clap::CommandFactory as _;

use crate::{
    app::App,
    args::{Cli, CompletionsArgs},
    failure::{Failure, Outcome},
};

pub(super) fn run(app: &mut App, args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "amplifier-sessions", &mut script);
    app.out.text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
