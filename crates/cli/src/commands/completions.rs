//! `completions`: a completion script for a shell.

use crate::{
    app::App,
    args::CompletionsArgs,
    completion,
    failure::{Failure, Outcome},
    render::text::printable,
};

pub(super) fn run(app: &mut App, args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let unknown = || {
        Failure::wrong_use(
            "there is no script for this shell",
            "supported shells: bash, zsh, fish, powershell, elvish",
        )
    };
    let script = completion::script(args.shell).ok_or_else(unknown)?;
    app.out.text(&if app.out.is_terminal() { printable(&script) } else { script })?;
    Ok(Outcome::Done)
}
