//! `completions`: a script that makes a shell complete what is typed.

use crate::{
    app::App,
    args::CompletionsArgs,
    completion,
    failure::{Failure, Outcome},
};

pub(super) fn run(app: &mut App, args: &CompletionsArgs) -> Result<Outcome, Failure> {
    let unknown = || {
        Failure::wrong_use(
            "no script is known for this shell",
            "bash, zsh, fish, powershell and elvish have one",
        )
    };
    app.out.text(&completion::script(args.shell).ok_or_else(unknown)?)?;
    Ok(Outcome::Done)
}
