//! Colours.

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
    pub(crate) fn role(self, text: &str) -> String {
        self.with(Style::new().bold().cyan(), text)
    }

    /// What can be typed.
    pub(crate) fn command(self, text: &str) -> String {
        self.with(Style::new().green(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.on { text.style(style).to_string() } else { text.to_owned() }
    }
}
