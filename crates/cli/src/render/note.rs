//! Errors, notes and hints on a terminal: wrapped between words, but never inside text to copy and paste.

use amplifier_session_storage::KnownPart;
use unicode_width::UnicodeWidthStr as _;

use super::wrap;

/// `label: text` in lines of at most `width` columns. A command that is wider stays on one line, so that it can be
/// copied: the terminal wraps it.
pub(crate) fn wrapped(label: &str, text: &str, width: usize) -> String {
    let mut begin = format!("{label}: ");
    let below = " ".repeat(begin.width());
    let mut shown = Vec::new();
    for line in text.split('\n') {
        if begin.width() + line.width() <= width {
            shown.push(format!("{begin}{line}"));
        } else {
            shown.extend(wrapped_line(line, &begin, &below, width));
        }
        begin.clear();
    }
    shown.join("\n")
}

/// One line of a message in lines of at most `width` columns. The first begins with `begin`, the others with `below`.
pub(crate) fn wrapped_line(line: &str, begin: &str, below: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(below.width());
    let is_copied = |piece: &str| piece.contains(['`', ' ']) || piece.starts_with('-');
    let of = |piece| if is_copied(piece) { vec![piece] } else { wrap::pieces(piece, room) };
    wrap::lines(pieces(line).into_iter().map(of), begin, below, width)
}

/// The parts of a line between which it may break: words, text between backticks, and options with their values.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, _) in line.match_indices(' ') {
        let (piece, next) = (line.part(start..at), line.part(at + 1..));
        if !continues(piece, next) {
            pieces.push(piece);
            start = at + 1;
        }
    }
    pieces.push(line.part(start..));
    pieces
}

/// Whether `next`, after a space, still belongs to `piece`.
fn continues(piece: &str, next: &str) -> bool {
    if piece.matches('`').count() % 2 == 1 {
        // A backtick without a second one is an ordinary character.
        return next.contains('`');
    }
    let (option, value) = match piece.split_once(' ') {
        Some((option, value)) => (option, Some(value)),
        None => (piece, None),
    };
    let is_option = option.len() > 2 && option.starts_with("--") && !option.ends_with([',', ';', ':', '.']);
    match value {
        None => is_option && !next.starts_with('-'),
        Some(value) => is_option && value.matches('\'').count() % 2 == 1 && next.contains('\''),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let wrapped = wrapped("hint", "type more of the session's id, or its name", 20);
        assert_eq!(wrapped, "hint: type more of\n      the session's\n      id, or its\n      name");
    }

    #[test]
    fn commands_and_options_are_not_broken() {
        let text = "see `x --store 'a b' show 7f3c9a52` or --user dana, --name 'a b' and --json too";
        let expected = "hint: see\n      `x --store 'a b' show 7f3c9a52`\n      or --user dana,\n      --name 'a b' and\n      --json too";
        assert_eq!(wrapped("hint", text, 24), expected);
    }

    #[test]
    fn text_that_fits_and_its_own_line_breaks_are_unchanged() {
        assert_eq!(wrapped("error", "short  as  it is", 24), "error: short  as  it is");
        assert_eq!(wrapped("error", "LINE 1: x\n        ^", 24), "error: LINE 1: x\n        ^");
        assert_eq!(wrapped("note", "one ` two three", 12), "note: one `\n      two\n      three");
    }
}
