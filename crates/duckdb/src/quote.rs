//! Names and texts as parts of a statement, where DuckDB takes no parameters.

/// A name.
pub(crate) fn name(name: &str) -> String {
    quoted(name, '"')
}

/// A text, such as a path.
pub(crate) fn text(text: &str) -> String {
    quoted(text, '\'')
}

fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}
