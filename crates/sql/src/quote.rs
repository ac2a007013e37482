//! Quoted names and texts, for statements that take no parameters.

/// A quoted name.
#[must_use]
pub fn name(name: &str) -> String {
    quoted(name, '"')
}

/// A quoted text, such as a path.
#[must_use]
pub fn text(text: &str) -> String {
    quoted(text, '\'')
}

fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}
