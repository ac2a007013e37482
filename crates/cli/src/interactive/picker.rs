//! A list to choose from, which typing narrows.

use std::cmp::Reverse;

use super::{fields::FieldWord, filters::FilterKind, input::Input, values::KnownValue};

/// The effect of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PickerPurpose {
    /// Choose a filter.
    Filters,
    /// Choose the value of a filter.
    Filter(FilterKind),
    /// Complete a field of the query.
    Field(FieldWord),
}

/// An item of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PickerItem {
    pub(super) value: String,
    /// A description, or empty.
    pub(super) help: String,
    /// Whether it is chosen now.
    pub(super) is_on: bool,
}

impl From<KnownValue> for PickerItem {
    fn from(KnownValue { value, help }: KnownValue) -> Self {
        Self { value, help, is_on: false }
    }
}

/// The list, with the selected item.
#[derive(Debug)]
pub(super) struct Picker {
    pub(super) purpose: PickerPurpose,
    pub(super) typed: Input,
    /// Whether the items are still being read.
    pub(super) is_loading: bool,
    /// Whether text that is not in the list can be chosen.
    accepts_text: bool,
    items: Vec<PickerItem>,
    at: usize,
}

impl Picker {
    pub(super) fn new(purpose: PickerPurpose, typed: Input) -> Self {
        Self { purpose, typed, is_loading: false, accepts_text: false, items: Vec::new(), at: 0 }
    }

    /// Offers these items.
    pub(super) fn with_items(mut self, items: Vec<PickerItem>) -> Self {
        self.items = items;
        self
    }

    /// Accepts any text besides the items.
    pub(super) fn with_text(mut self) -> Self {
        self.accepts_text = true;
        self
    }

    /// Offers these items from now on. The selection stays where it is.
    pub(super) fn offer(&mut self, items: Vec<PickerItem>) {
        self.is_loading = false;
        self.items = items;
    }

    /// The items that contain all typed words: first those that begin with what was typed. Text that is not in the list
    /// is the last item, if it can be chosen.
    pub(super) fn shown(&self) -> Vec<PickerItem> {
        let typed = self.typed.text();
        let wanted = typed.trim().to_lowercase();
        let fits = |item: &&PickerItem| {
            let text = format!("{} {}", item.value, item.help).to_lowercase();
            wanted.split_whitespace().all(|word| text.contains(word))
        };
        let mut shown: Vec<PickerItem> = self.items.iter().filter(fits).cloned().collect();
        let beginning = |item: &PickerItem| item.value.to_lowercase().starts_with(&wanted);
        shown.sort_by_key(|item| Reverse(beginning(item)));
        let value = typed.trim();
        if self.accepts_text && !value.is_empty() && !shown.iter().any(|item| item.value == value) {
            let help = "as typed".to_owned();
            shown.push(PickerItem { value: value.to_owned(), help, is_on: false });
        }
        shown
    }

    /// The position of the selected item.
    pub(super) fn at(&self) -> usize {
        self.at.min(self.shown().len().saturating_sub(1))
    }

    /// The selected item.
    pub(super) fn chosen(&self) -> Option<PickerItem> {
        self.shown().into_iter().nth(self.at())
    }

    /// Moves the selection by lines.
    pub(super) fn step(&mut self, lines: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.at = self.at().saturating_add_signed(lines).min(last);
    }

    /// Selects the best item after something was typed.
    pub(super) fn narrowed(&mut self) {
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(values: &[&str]) -> Picker {
        let items = values.iter().map(|value| KnownValue::new(*value, "some help").into()).collect();
        Picker::new(PickerPurpose::Filters, Input::default()).with_items(items)
    }

    fn shown(picker: &Picker) -> Vec<String> {
        picker.shown().into_iter().map(|item| item.value).collect()
    }

    #[test]
    fn typing_narrows_the_list() {
        let mut picker = picker(&["-home-ana-shop", "shop", "bakery"]);
        picker.step(5);
        assert_eq!(picker.chosen().unwrap().value, "bakery");
        picker.typed.paste("SHOP");
        picker.narrowed();
        assert_eq!(shown(&picker), ["shop", "-home-ana-shop"]);
        " ana".chars().for_each(|c| picker.typed.insert(c));
        assert_eq!(shown(&picker), ["-home-ana-shop"]);
        picker.typed.paste("x");
        assert!(shown(&picker).is_empty() && picker.chosen().is_none());
    }

    #[test]
    fn text_that_is_not_in_the_list_can_be_chosen_where_it_makes_sense() {
        let mut picker = picker(&["7d", "today"]).with_text();
        assert_eq!(shown(&picker), ["7d", "today"]);
        picker.typed.paste("2026-01-31");
        assert_eq!(shown(&picker), ["2026-01-31"]);
        picker.typed.clear();
        picker.typed.paste("7d");
        assert_eq!(shown(&picker), ["7d"]);
    }
}
