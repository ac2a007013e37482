//! `completions`: a completion script for a shell.

use crate::{
    app::App,
    args::CompletionsArgs,
    completion,
    failure::{Failure, Outcome},
};

pub(super) fn run(app: &mut App, args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let unknown = || {
        Failure::wrong_use(
            "there is no script for this shell",
            "supported shells: bash, zsh, fish, powershell, elvish",
        )
    };
    app.out.text(&completion::script(args.shell).ok_or_else(unknown)?)?;
    Ok(Outcome::Done)
}
