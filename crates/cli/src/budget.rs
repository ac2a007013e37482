//! Answers with a limited number of tokens.

use amplifier_session_api::budget::{Items, Portion, largest};

use crate::{
    app::App,
    failure::{Failure, say},
    render::text::counted,
};

/// Writes as much of an answer as fits into `budget` tokens, or all of it without a budget. `render` writes a portion
/// to `app.out`. Returns the portion that was written.
pub(crate) fn write(
    app: &mut App,
    budget: Option<usize>,
    items: Items,
    mut render: impl FnMut(&mut App, Portion) -> Result<(), Failure>,
) -> Result<Portion, Failure> {
    let Some(budget) = budget else {
        let all = Portion::all(items.count);
        render(app, all)?;
        return Ok(all);
    };
    let (portion, text) = largest(budget, items, |portion| -> Result<String, Failure> {
        app.out.capture();
        let outcome = render(app, portion);
        let text = app.out.captured();
        outcome.map(|()| text)
    })?;
    app.out.text(&text)?;
    Ok(portion)
}

/// Prints a note about what does not fit into the budget. `one` is the word for an item.
pub(crate) fn say_left_out(budget: Option<usize>, items: Items, one: &str, portion: Portion) {
    let Some(budget) = budget else { return };
    if portion.items < items.count || portion.last_chars.is_some() {
        let all = counted(items.count as u64, one);
        let cut = if portion.last_chars.is_some() { ", the last one cut" } else { "" };
        let text = format!("{} of {all} fit into {}{cut}", portion.items, counted(budget as u64, "token"));
        say("note", &text);
    }
}
