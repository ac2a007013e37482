//! Markdown: text is wrapped, headings are highlighted, code is unchanged.

use unicode_width::UnicodeWidthStr as _;

use super::{text::printable, wrap::wrapped_words};
use crate::paint::Paint;

/// The lines of `text`, wrapped to `width` if there is one.
pub(crate) fn markdown(text: &str, width: Option<usize>, paint: Paint) -> Vec<String> {
    let text = printable(text);
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.trim_matches('\n').lines() {
        let marker = fence_of(line);
        match (fence, marker) {
            (Some(open), Some(marker)) if marker.starts_with(open) => fence = None,
            (None, Some(marker)) => fence = Some(marker),
            (Some(_), _) => {}
            (None, None) => {
                // Where lines are wrapped, white space at their ends would take a line.
                let line = if width.is_some() { line.trim_end() } else { line };
                let wrapped = wrapped(line, width);
                let heading = is_heading(line);
                lines.extend(wrapped.into_iter().map(|line| if heading { paint.title(&line) } else { line }));
                continue;
            }
        }
        lines.push(line.to_owned());
    }
    lines
}

/// The back-ticks or tildes that open or close a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|first| "`~".contains(*first))?;
    let end = line.find(|c| c != first).unwrap_or(line.len());
    line.get(..end).filter(|marker| marker.len() >= 3)
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with(' ')
}

/// `line` as lines of at most `width` columns, if no single word is wider. Continuation lines are aligned with its
/// text, not with its indentation or bullet.
pub(crate) fn wrapped(line: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| line.width() > *width) else { return vec![line.to_owned()] };
    let (indent, text) = line.split_at(hanging(line));
    wrapped_words(text, indent, &" ".repeat(indent.width()), width)
}

/// The length in bytes of the indentation of `line`, including the bullet or number of an item, or the
/// beginning of a row of a table.
fn hanging(line: &str) -> usize {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marker = match text.get(digits..) {
        Some(rest) if digits > 0 && (rest.starts_with(". ") || rest.starts_with(") ")) => digits + 2,
        _ if ["- ", "* ", "+ ", "> ", "| "].iter().any(|bullet| text.starts_with(bullet)) => 2,
        _ => 0,
    };
    indent + marker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_wrapped_and_aligned() {
        assert_eq!(wrapped("one two three four", Some(9)), ["one two", "three", "four"]);
        assert_eq!(wrapped("  - one two three", Some(11)), ["  - one two", "    three"]);
        assert_eq!(wrapped("10. one two", Some(9)), ["10. one", "    two"]);
        assert_eq!(wrapped("- 日本語 日本語", Some(9)), ["- 日本語", "  日本語"]);
        assert_eq!(wrapped("averyverylongword x", Some(6)), ["averyverylongword", "x"]);
        assert_eq!(wrapped("one two three", None), ["one two three"]);
    }

    #[test]
    fn code_is_unchanged_and_headings_are_highlighted() {
        let text = "\n## A heading\n```sh\nls   --all --long\n# no heading\n```\n| a table | of two |\n\x1b[2Jlong long line";
        let lines = markdown(text, Some(12), Paint::new(true));
        let expected = [
            "\x1b[1m## A heading\x1b[0m",
            "```sh",
            "ls   --all --long",
            "# no heading",
            "```",
            "| a table |",
            "  of two |",
            "␛[2Jlong",
            "long line",
        ];
        assert_eq!(lines, expected);
    }
}
