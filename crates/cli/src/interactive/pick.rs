//! Choosing filters, their values, and completions of fields, from lists.

use amplifier_session_api::Reach;

use super::{
    fields::{self, FieldWord},
    filters::FilterKind,
    input::Input,
    keys::Action,
    picker::{Picker, PickerItem, PickerPurpose},
    state::{Effect, SearchState},
    values::{KnownValue, ValueKind, ValueSource},
};
use crate::failure::Failure;

/// The item that removes a filter.
const ANY: &str = "any";
/// The filters that are always listed; the others only if they exclude something.
const ALWAYS_LISTED: usize = 10;

impl SearchState {
    /// Lists the filters.
    pub(super) fn pick_filter(&mut self) {
        let items = self.filter_items();
        self.picker = Some(Picker::new(PickerPurpose::Filters, Input::default()).with_items(items));
    }

    fn filter_items(&self) -> Vec<PickerItem> {
        let all = FilterKind::ALL.into_iter().enumerate();
        let items = all.filter_map(|(at, kind)| {
            let values = self.filters.of(kind);
            let help = match values.join(", ") {
                _ if kind == FilterKind::Mode => return Some(self.mode_item()),
                value if values.is_empty() || !value.is_empty() => value,
                _ => "on".to_owned(),
            };
            let is_on = !values.is_empty();
            (is_on || at < ALWAYS_LISTED).then(|| PickerItem { value: kind.name().to_owned(), help, is_on })
        });
        items.collect()
    }

    fn mode_item(&self) -> PickerItem {
        let kind = FilterKind::Mode;
        let help = self.filters.of(kind).pop().unwrap_or_else(|| "hybrid".to_owned());
        PickerItem { value: kind.name().to_owned(), help, is_on: !self.filters.of(kind).is_empty() }
    }

    /// Lists the values of a filter.
    fn pick_value(&mut self, kind: FilterKind) {
        let Some(source) = kind.values() else { return };
        let mut picker = Picker::new(PickerPurpose::Filter(kind), Input::default());
        if kind.accepts_text() {
            picker = picker.with_text();
        }
        self.picker = Some(picker);
        self.offer_from(source);
    }

    /// Completes the field at the cursor: at once, if there is only one way.
    pub(super) fn complete(&mut self) {
        if self.filters.is_plain() {
            self.status = Some("with the filter plain, a query has no fields".to_owned());
            return;
        }
        let word = FieldWord::before_cursor(self.query.before_cursor());
        let mut typed = Input::default();
        let source = match word.field {
            Some(name) => {
                typed.paste(&word.typed);
                ValueSource::of_field(name)
            }
            None => {
                let fits = fields::names().filter(|(name, _)| name.starts_with(&word.typed));
                let fits: Vec<KnownValue> = fits.map(|(name, help)| KnownValue::new(name, help)).collect();
                if let [only] = &fits[..] {
                    self.query.complete(word.start, &only.value);
                    return;
                }
                if fits.is_empty() {
                    self.status = Some(format!("no field begins with {}", word.typed));
                    return;
                }
                typed.paste(&word.typed);
                ValueSource::Known(fits)
            }
        };
        if source == ValueSource::Text {
            self.status = Some("type the end of a path".to_owned());
            return;
        }
        self.picker = Some(Picker::new(PickerPurpose::Field(word), typed));
        self.offer_from(source);
    }

    /// Offers the values of a source, which may have to be read first.
    fn offer_from(&mut self, source: ValueSource) {
        let scope = self.filters.scope();
        let values = match source {
            ValueSource::Known(values) => values,
            ValueSource::Text => Vec::new(),
            ValueSource::Stored(kind) => match self.values.get(&kind) {
                Some((known, values)) if *known == scope => values.clone(),
                _ => {
                    self.values_wanted = Some((kind, scope));
                    if let Some(picker) = &mut self.picker {
                        picker.is_loading = true;
                    }
                    return;
                }
            },
        };
        self.offer_values(values);
    }

    /// Offers values that were read.
    pub(super) fn offer(&mut self, kind: ValueKind, scope: Reach, found: Result<Vec<KnownValue>, String>) {
        let values = match found {
            Ok(values) => values,
            Err(error) => {
                self.status = Some(error);
                Vec::new()
            }
        };
        self.values.insert(kind, (scope, values.clone()));
        let source = self.picker.as_ref().and_then(|picker| match &picker.purpose {
            PickerPurpose::Filters => None,
            PickerPurpose::Filter(filter) => filter.values(),
            PickerPurpose::Field(word) => word.field.map(ValueSource::of_field),
        });
        if source == Some(ValueSource::Stored(kind)) {
            self.offer_values(values);
        }
    }

    fn offer_values(&mut self, values: Vec<KnownValue>) {
        let Some(picker) = &mut self.picker else { return };
        let mut items: Vec<PickerItem> = values.into_iter().map(PickerItem::from).collect();
        if let PickerPurpose::Filter(kind) = picker.purpose {
            // A chosen value can be removed even if it is not one of the known ones.
            for value in self.filters.of(kind) {
                if !items.iter().any(|item| item.value == value) {
                    items.push(KnownValue::new(value, "").into());
                }
            }
            for item in &mut items {
                item.is_on = self.filters.has(kind, &item.value);
            }
            if kind != FilterKind::Mode {
                let is_on = self.filters.of(kind).is_empty();
                let any = PickerItem { value: ANY.to_owned(), help: "no filter".to_owned(), is_on };
                items.insert(0, any);
            }
        }
        picker.offer(items);
    }

    pub(super) fn act_in_picker(&mut self, action: Action) -> Effect {
        let page = self.page.cast_signed();
        let Some(picker) = &mut self.picker else { return Effect::None };
        match action {
            Action::Back | Action::Filters => self.picker = None,
            Action::Up => picker.step(-1),
            Action::Down => picker.step(1),
            Action::PageUp => picker.step(-page),
            Action::PageDown => picker.step(page),
            Action::Open => return self.pick(false),
            Action::Complete => return self.pick(true),
            Action::Remove => return self.remove(),
            // At the end of the text, Delete has nothing to delete but the filter.
            Action::Delete if picker.typed.is_at_end() => return self.remove(),
            action => {
                if picker.typed.edit(&action) {
                    picker.narrowed();
                }
            }
        }
        Effect::None
    }

    /// Chooses the selected item. `stays` leaves the list open, where several items can be chosen.
    fn pick(&mut self, stays: bool) -> Effect {
        let Some(picker) = &self.picker else { return Effect::None };
        let Some(item) = picker.chosen() else { return Effect::None };
        match picker.purpose.clone() {
            PickerPurpose::Filters => match FilterKind::named(&item.value) {
                Some(kind) if kind.values().is_some() => self.pick_value(kind),
                _ => return self.remove(),
            },
            PickerPurpose::Filter(kind) => return self.pick_for(kind, &item.value, stays),
            PickerPurpose::Field(word) => {
                self.picker = None;
                self.query.complete(word.start, &word.completed(&item.value));
                return self.changed();
            }
        }
        Effect::None
    }

    fn pick_for(&mut self, kind: FilterKind, value: &str, stays: bool) -> Effect {
        let before = self.filters.clone();
        if value == ANY {
            self.filters.remove(kind);
        } else if stays {
            self.filters.choose(kind, value);
        } else {
            self.filters.choose_only(kind, value);
        }
        if let Err(error) = self.filters.search("").check(&self.look.now) {
            self.filters = before;
            self.status = Some(Failure::from(error).message().to_owned());
            return Effect::None;
        }
        if stays && kind.takes_many() {
            if let Some(source) = kind.values() {
                self.offer_from(source);
            }
        } else {
            self.picker = None;
        }
        self.changed()
    }

    /// Removes the selected filter, or the one whose values are listed.
    fn remove(&mut self) -> Effect {
        let Some(picker) = &self.picker else { return Effect::None };
        let (kind, is_list) = match &picker.purpose {
            PickerPurpose::Filters => (picker.chosen().and_then(|item| FilterKind::named(&item.value)), true),
            PickerPurpose::Filter(kind) => (Some(*kind), false),
            PickerPurpose::Field(_) => (None, false),
        };
        let Some(kind) = kind else { return Effect::None };
        if kind == FilterKind::User {
            self.status = Some("--user stays as the command line has it".to_owned());
            return Effect::None;
        }
        let was_on = self.filters.remove(kind);
        if is_list {
            let items = self.filter_items();
            self.picker.iter_mut().for_each(|picker| picker.offer(items.clone()));
        } else {
            self.picker = None;
        }
        if was_on { self.changed() } else { Effect::None }
    }
}
