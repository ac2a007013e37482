//! The effects of keys on the state.

use amplifier_session_api::views::MessageView;

use super::{
    conversation::Conversation,
    copy::{self, CopiedPart},
    keys::{Action, Focus},
    results::Hit,
    state::{Effect, SearchState},
};

/// Why there is nothing to copy or to edit.
const NO_MESSAGE: &str = "no message is chosen";

impl SearchState {
    /// Performs the action of a key.
    pub(super) fn act(&mut self, action: Action) -> Effect {
        self.status = None;
        match (action, self.keys_go_to()) {
            (Action::Quit, _) => Effect::Quit(None),
            (Action::Redraw, _) => Effect::Redraw,
            (action, Focus::Help) => self.act_in_help(action),
            (Action::Help, _) => {
                self.help = Some(0);
                Effect::None
            }
            (action, Focus::Copying) => self.act_in_copying(&action),
            (action, Focus::Picker) => self.act_in_picker(action),
            (action, Focus::Conversation) => self.act_in_conversation(&action),
            (action, Focus::Search) => self.act_in_search(action),
        }
    }

    fn act_in_help(&mut self, action: Action) -> Effect {
        let Some(top) = self.help else { return Effect::None };
        match action {
            Action::Up => self.help = Some(top.saturating_sub(1)),
            Action::Down => self.help = Some(top + 1),
            Action::PageUp => self.help = Some(top.saturating_sub(self.page)),
            Action::PageDown => self.help = Some(top + self.page),
            Action::Type(' ') => self.help = Some(top + self.page),
            Action::Type('?' | 'q') | Action::Back | Action::Open | Action::Help => self.help = None,
            // Whoever goes on typing has read enough.
            action @ (Action::Type(_) | Action::Paste(_)) => {
                self.help = None;
                return self.act(action);
            }
            _ => {}
        }
        Effect::None
    }

    fn act_in_copying(&mut self, action: &Action) -> Effect {
        self.is_copying = false;
        let kind = match action {
            Action::Type('t') => CopiedPart::Text,
            Action::Type('c') => CopiedPart::Commands,
            Action::Type('a' | 'y') | Action::Copy | Action::Open => CopiedPart::Address,
            _ => return Effect::None,
        };
        self.copy(kind)
    }

    fn act_in_conversation(&mut self, action: &Action) -> Effect {
        let Some(conversation) = &mut self.conversation else { return Effect::None };
        match action {
            Action::Back | Action::Search => {
                self.chosen = Some(conversation.address());
                self.conversation = None;
            }
            Action::Copy => self.is_copying = true,
            Action::Edit => return self.edit(),
            Action::Up => conversation.scroll(1, false),
            Action::Down => conversation.scroll(1, true),
            Action::PageUp => conversation.page(false),
            Action::PageDown => conversation.page(true),
            Action::Home | Action::First => conversation.go(false),
            Action::End | Action::Last => conversation.go(true),
            Action::NextMessage | Action::Right => conversation.step(true),
            Action::PreviousMessage | Action::Left => conversation.step(false),
            Action::NextHit => self.go_to_hit(true),
            Action::PreviousHit => self.go_to_hit(false),
            Action::Full => conversation.toggle_full(&self.look),
            _ => {}
        }
        Effect::None
    }

    fn go_to_hit(&mut self, is_down: bool) {
        let Some(conversation) = &mut self.conversation else { return };
        if !conversation.go_to_hit(is_down) {
            let which = if is_down { "further" } else { "earlier" };
            self.status = Some(format!("no {which} hit in this session"));
        }
    }

    fn act_in_search(&mut self, action: Action) -> Effect {
        match action {
            Action::Back => return Effect::Quit(self.address()),
            Action::Type('?') if self.query.is_blank() => self.help = Some(0),
            Action::Open => self.open(),
            Action::Copy if self.list.hit().is_some() => self.is_copying = true,
            Action::Copy => self.status = Some(NO_MESSAGE.to_owned()),
            Action::Edit => return self.edit(),
            Action::Complete => self.complete(),
            Action::Filters => self.pick_filter(),
            Action::Mode => {
                self.filters.next_mode();
                return self.changed();
            }
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page.cast_signed()),
            Action::PageDown => self.step(self.page.cast_signed()),
            Action::First => self.go(false),
            Action::Last => self.go(true),
            Action::PreviewUp | Action::PreviewDown => {
                let is_down = action == Action::PreviewDown;
                self.preview.iter_mut().for_each(|preview| preview.scroll(is_down));
            }
            action => {
                if self.query.edit(&action) {
                    return self.changed();
                }
            }
        }
        Effect::None
    }

    fn step(&mut self, lines: isize) {
        self.list.step(lines);
        self.selected();
    }

    fn go(&mut self, is_end: bool) {
        self.list.go(is_end);
        self.selected();
    }

    /// A key has selected a result.
    fn selected(&mut self) {
        if let Some((_, hit)) = self.list.hit() {
            self.chosen = Some(hit.address.clone());
        }
        self.selection_changed();
        self.extend();
    }

    fn open(&mut self) {
        if self.list.unfold() {
            return self.selected();
        }
        let Some((group, hit)) = self.list.hit() else { return };
        let (group, Hit { sequence, address, .. }) = (group.clone(), hit.clone());
        self.hits_wanted = self.request_for_hits(&group.session);
        self.conversation = Some(Conversation::new(group, sequence));
        self.chosen = Some(address);
        self.opened += 1;
    }

    /// The address to print at the end: that of the message that was chosen or read last, or else of the best result. A
    /// recent session must have been chosen.
    fn address(&self) -> Option<String> {
        let best = self.list.hit().filter(|_| !self.list.found.are_recent);
        self.chosen.clone().or_else(|| best.map(|(_, hit)| hit.address.clone()))
    }

    /// The message to copy or to edit: the current one of the session, or the selected result.
    fn message(&self) -> Option<&MessageView> {
        match &self.conversation {
            Some(conversation) => conversation.message(),
            None => {
                let (_, hit) = self.list.hit()?;
                self.preview.as_ref().filter(|preview| preview.address == hit.address)?.message()
            }
        }
    }

    fn why_no_message(&self) -> String {
        let is_chosen = self.conversation.is_some() || self.list.hit().is_some();
        if is_chosen { "the message is not read yet" } else { NO_MESSAGE }.to_owned()
    }

    fn copy(&mut self, kind: CopiedPart) -> Effect {
        let address = match &self.conversation {
            Some(conversation) => Some(conversation.address()),
            None => self.list.hit().map(|(_, hit)| hit.address.clone()),
        };
        if kind == CopiedPart::Address {
            return address.map_or(Effect::None, |address| Effect::Copy(address.clone(), address));
        }
        let Some(message) = self.message() else {
            self.status = Some(self.why_no_message());
            return Effect::None;
        };
        let address = message.address.clone();
        match kind {
            CopiedPart::Text => Effect::Copy(copy::text(message), format!("the text of {address}")),
            _ => match copy::commands(message) {
                Some(commands) => Effect::Copy(commands, format!("the command of {address}")),
                None => {
                    self.status = Some(format!("{address} runs no command"));
                    Effect::None
                }
            },
        }
    }

    fn edit(&mut self) -> Effect {
        let Some(message) = self.message() else {
            self.status = Some(self.why_no_message());
            return Effect::None;
        };
        Effect::Edit { address: message.address.clone(), text: copy::text(message) }
    }
}
