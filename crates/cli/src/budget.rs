//! Answers with a limited number of tokens.

use amplifier_session_storage::content::tokens::{count, count_up_to};

use crate::{
    app::App,
    failure::{Failure, say},
    render::text::counted,
};

/// Lengths, longest first, to which the first message that does not fit is cut.
const CUTS: [usize; 7] = [4_000, 2_000, 1_000, 500, 200, 100, 50];

/// The part of an answer that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portion {
    /// The number of items, the most important first.
    pub(crate) items: usize,
    /// The length in characters to which the last of them is cut.
    pub(crate) last_chars: Option<usize>,
}

/// The items of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items {
    /// Their number.
    pub(crate) count: usize,
    /// The word for one of them.
    pub(crate) one: &'static str,
    /// Whether items can be cut.
    pub(crate) can_be_cut: bool,
}

impl Portion {
    /// The length in characters to which the item at `rank` is cut, if `most` is the limit of each item.
    pub(crate) fn chars_of(self, rank: usize, most: Option<usize>) -> Option<usize> {
        match self.last_chars.filter(|_| rank + 1 == self.items) {
            Some(last) => Some(most.map_or(last, |most| most.min(last))),
            None => most,
        }
    }
}

/// Writes as much of an answer as fits into `budget` tokens, or all of it without a budget. `render` writes a portion
/// to `app.out`. Returns the portion that was written.
pub(crate) fn write(
    app: &mut App,
    budget: Option<usize>,
    items: Items,
    mut render: impl FnMut(&mut App, Portion) -> Result<(), Failure>,
) -> Result<Portion, Failure> {
    let all = Portion { items: items.count, last_chars: None };
    let Some(budget) = budget else {
        render(app, all)?;
        return Ok(all);
    };
    let mut rendered = |items, last_chars| -> Result<(Portion, String), Failure> {
        let portion = Portion { items, last_chars };
        app.out.capture();
        let outcome = render(app, portion);
        let text = app.out.captured();
        outcome.map(|()| (portion, text))
    };
    let (portion, text) = largest(budget, items, &mut rendered)?;
    app.out.text(&text)?;
    Ok(portion)
}

fn largest(
    budget: usize,
    items: Items,
    rendered: &mut impl FnMut(usize, Option<usize>) -> Result<(Portion, String), Failure>,
) -> Result<(Portion, String), Failure> {
    let fits = |text: &str| count_up_to(text, budget).is_some();
    let all = rendered(items.count, None)?;
    if fits(&all.1) {
        return Ok(all);
    }
    let mut best = rendered(0, None)?;
    if !fits(&best.1) {
        let least = counted(count(&best.1) as u64, "token");
        let message = format!("--budget {budget} is too small: this answer needs at least {least}");
        return Err(Failure::wrong_use(message, format!("pass --budget {least} or more")));
    }
    // The length grows with the number of items, so the largest number that fits is found by bisection.
    let (mut fitting, mut too_long) = (0, items.count);
    while too_long - fitting > 1 {
        let middle = fitting + (too_long - fitting) / 2;
        let candidate = rendered(middle, None)?;
        if fits(&candidate.1) {
            (fitting, best) = (middle, candidate);
        } else {
            too_long = middle;
        }
    }
    if items.can_be_cut {
        for chars in CUTS {
            let candidate = rendered(fitting + 1, Some(chars))?;
            if fits(&candidate.1) {
                return Ok(candidate);
            }
        }
    }
    Ok(best)
}

/// Prints a note about what does not fit into the budget.
pub(crate) fn say_left_out(budget: Option<usize>, items: Items, portion: Portion) {
    let Some(budget) = budget else { return };
    if portion.items < items.count || portion.last_chars.is_some() {
        let all = counted(items.count as u64, items.one);
        let cut = if portion.last_chars.is_some() { ", the last one cut" } else { "" };
        let text = format!("{} of {all} fit into {}{cut}", portion.items, counted(budget as u64, "token"));
        say("note", &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portion(budget: usize, lengths: &[usize], can_be_cut: bool) -> Option<(Portion, usize)> {
        let items = Items { count: lengths.len(), one: "message", can_be_cut };
        let mut rendered = |items: usize, last_chars: Option<usize>| {
            let portion = Portion { items, last_chars };
            let words = lengths.iter().take(items).enumerate();
            let words = words
                .map(|(rank, words)| portion.chars_of(rank, None).map_or(*words, |c| (c / 5).min(*words)));
            Ok((portion, format!("head{}", " word".repeat(words.sum()))))
        };
        let (portion, text) = largest(budget, items, &mut rendered).ok()?;
        Some((portion, count(&text)))
    }

    #[test]
    fn an_answer_that_fits_is_complete() {
        let whole = Portion { items: 3, last_chars: None };
        assert_eq!(portion(31, &[10, 10, 10], true), Some((whole, 31)));
    }

    #[test]
    fn items_that_do_not_fit_are_left_out_or_cut() {
        assert_eq!(portion(25, &[10, 10, 10], false), Some((Portion { items: 2, last_chars: None }, 21)));
        let cut = Portion { items: 2, last_chars: Some(500) };
        assert_eq!(portion(150, &[10, 1_000, 10], true), Some((cut, 111)));
        assert_eq!(portion(1, &[10], true), Some((Portion { items: 0, last_chars: None }, 1)));
        assert_eq!(portion(0, &[10], true), None);
    }
}
