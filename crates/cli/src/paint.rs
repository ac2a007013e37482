//! Colours.

use amplifier_session_storage::model::Role;
use owo_colors::{OwoColorize as _, Style};

/// Colours text, or leaves it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Whether to colour text.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    /// A title or name.
    pub(crate) fn title(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// A matched word.
    pub(crate) fn hit(self, text: &str) -> String {
        self.with(Style::new().bold().yellow(), text)
    }

    /// Less important text.
    pub(crate) fn aside(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// The speaker of a message.
    pub(crate) fn speaker(self, role: Role, text: &str) -> String {
        let style = Style::new().bold();
        let style = match role {
            Role::User => style.green(),
            Role::Assistant => style.cyan(),
            Role::Tool => style.magenta(),
            Role::System | Role::Developer => style.yellow(),
        };
        self.with(style, text)
    }

    /// A tool call.
    pub(crate) fn tool(self, text: &str) -> String {
        self.with(Style::new().magenta(), text)
    }

    /// A line that an edit removes.
    pub(crate) fn removed(self, text: &str) -> String {
        self.with(Style::new().red(), text)
    }

    /// A line that an edit adds.
    pub(crate) fn added(self, text: &str) -> String {
        self.with(Style::new().green(), text)
    }

    /// Something that failed.
    pub(crate) fn failure(self, text: &str) -> String {
        self.with(Style::new().bold().red(), text)
    }

    /// A warning.
    pub(crate) fn warning(self, text: &str) -> String {
        self.with(Style::new().yellow(), text)
    }

    /// Normal text.
    pub(crate) fn plain(self, text: &str) -> String {
        text.to_owned()
    }

    /// A command.
    pub(crate) fn command(self, text: &str) -> String {
        self.with(Style::new().green(), text)
    }

    /// A bar of a chart.
    pub(crate) fn bar(self, text: &str) -> String {
        self.with(Style::new().cyan(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.on { text.style(style).to_string() } else { text.to_owned() }
    }
}
