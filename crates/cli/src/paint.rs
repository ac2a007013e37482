//! Colours.

use amplifier_session_storage::model::Role;
use owo_colors::{OwoColorize as _, Style};

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Whether to paint.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    /// What names something.
    pub(crate) fn title(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// A word that was searched for.
    pub(crate) fn hit(self, text: &str) -> String {
        self.with(Style::new().bold().yellow(), text)
    }

    /// What is there for those who look for it.
    pub(crate) fn aside(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Who speaks.
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

    /// A call of a tool.
    pub(crate) fn tool(self, text: &str) -> String {
        self.with(Style::new().magenta(), text)
    }

    /// Something that failed.
    pub(crate) fn failure(self, text: &str) -> String {
        self.with(Style::new().bold().red(), text)
    }

    /// Something to look at.
    pub(crate) fn warning(self, text: &str) -> String {
        self.with(Style::new().yellow(), text)
    }

    /// Nothing special.
    pub(crate) fn plain(self, text: &str) -> String {
        text.to_owned()
    }

    /// What can be typed.
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
