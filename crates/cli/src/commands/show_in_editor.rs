//! `show --editor`: a part of a session in the user's editor.

use super::show_part;
use crate::{
    app::App,
    args::ShowArgs,
    failure::{Failure, Outcome},
    terminal_programs::{EditorText, show_in_editor},
};

pub(super) async fn run(app: &mut App, args: ShowArgs) -> Result<Outcome, Failure> {
    let name = args.file_name(app.out.is_json());
    let collected = app.out.collect_for_editor();
    let outcome = show_part(app, args.part()?).await;
    app.out.finish()?;
    let text = collected.take();
    // Nothing was found, or it can't be read.
    if !text.is_empty() {
        show_in_editor(&app.environment, &EditorText { name: &name, text: &text })?;
    }
    outcome
}
