//! Where a value ends.

use std::ops::Range;

use super::{cursor::TextCursor, values::is_digits};

/// The maximum number of characters in a quoted and in an unquoted value.
const LONGEST: usize = 4_000;
const LONGEST_BARE: usize = 1_000;
/// How much of a list or object is checked, in bytes.
const CONTAINER: usize = 600;
const BLOCK_LINES: usize = 60;

/// Opening and closing quotes.
const QUOTES: [(&str, &str); 10] = [
    ("\"\"\"", "\"\"\""),
    ("'''", "'''"),
    ("\"", "\""),
    ("'", "'"),
    ("`", "`"),
    ("“", "”"),
    ("„", "“"),
    ("‘", "’"),
    ("«", "»"),
    ("「", "」"),
];

/// A value without quotes.
pub(super) struct Bare {
    pub(super) span: Range<usize>,
    /// Whether another name and value follow directly, as in a connection string.
    pub(super) is_field: bool,
}

/// The text in the quotes at the cursor, which advances over them. A quote that is not closed ends with its line.
pub(super) fn quoted(cursor: &mut TextCursor<'_>) -> Option<Range<usize>> {
    let rest = cursor.rest();
    let (open, close) = QUOTES.iter().find(|(open, _)| rest.starts_with(open))?;
    if open.len() == 3 && open.is_ascii() && !rest.get(3..).is_some_and(|rest| rest.contains(close)) {
        // Three unclosed quotes are an empty value and another quote.
        return None;
    }
    cursor.at += open.len();
    let start = cursor.at;
    let many_lines = open.len() == 3 && open.is_ascii();
    let mut is_escaped = false;
    for (offset, c) in cursor.rest().char_indices().take(LONGEST) {
        let at = start + offset;
        let here = TextCursor::new(cursor.text, at);
        if c == '\n' && !many_lines {
            cursor.at = at;
            return Some(start..at);
        }
        if !is_escaped && here.rest().starts_with(close) {
            let doubled = close.len() == 1
                && at > start
                && here.rest().get(1..).is_some_and(|next| next.starts_with(close));
            if !doubled || !continues_after_doubled(here.rest()) {
                cursor.at = at + close.len();
                return Some(start..at);
            }
            is_escaped = true;
            continue;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    let length: usize = cursor.rest().chars().take(LONGEST).map(char::len_utf8).sum();
    cursor.at = start + length;
    Some(start..cursor.at)
}

/// The rest of the quoted text at the cursor, up to its closing `quote` if that is on the same line.
pub(super) fn to_quote(cursor: TextCursor<'_>, quote: char) -> Option<Range<usize>> {
    let mut is_escaped = false;
    for (offset, c) in cursor.rest().char_indices().take(LONGEST).take_while(|(_, c)| *c != '\n') {
        if c == quote && !is_escaped {
            return Some(cursor.at..cursor.at + offset);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

/// Whether two quotes are an escaped one, as in SQL, YAML and PowerShell, with more of the value after it.
fn continues_after_doubled(rest: &str) -> bool {
    rest.chars().nth(2).is_some_and(char::is_alphanumeric)
}

/// A value without quotes. It ends with white space or a closing bracket. If its name is one of several fields, with a
/// `separator` before it, the next separator ends it.
pub(super) fn bare(cursor: TextCursor<'_>, separator: Option<char>) -> Bare {
    let start = cursor.at;
    let separators = match separator {
        Some('?' | '&') => "&;",
        Some(';') => ";",
        Some(_) => ",",
        None => "",
    };
    let template = template(cursor);
    let mut end = start + template;
    let mut opened = 0_usize;
    for (offset, c) in cursor.rest().char_indices().take(LONGEST_BARE) {
        if offset < template {
            continue;
        }
        let here = TextCursor::new(cursor.text, start + offset);
        let ends = match c {
            _ if c.is_whitespace() || matches!(c, '，' | '。' | '；' | '、') => true,
            '"' | '\'' | '`' => closes(here),
            '{' | '[' => {
                opened += 1;
                false
            }
            '}' | ']' if opened > 0 => {
                opened -= 1;
                false
            }
            '}' | ']' => {
                here.rest().chars().nth(1).is_none_or(|next| next.is_whitespace() || ",}]".contains(next))
            }
            '\\' => ends_line(here),
            '<' => here.rest().starts_with("</") || here.rest().starts_with("<br"),
            // A number in a list.
            ',' if offset > 0 && cursor.rest().get(..offset).is_some_and(is_digits) => true,
            _ if offset > 0 && separators.contains(c) && is_followed_by_field(here) => {
                return Bare { span: start..start + offset, is_field: true };
            }
            _ => false,
        };
        if ends {
            return Bare { span: start..start + offset, is_field: false };
        }
        end = start + offset + c.len_utf8();
    }
    Bare { span: start..end, is_field: false }
}

/// The length of a template at the cursor, such as `${{ a template }}`, that ends on the same line.
fn template(cursor: TextCursor<'_>) -> usize {
    const LONGEST_TEMPLATE: usize = 200;
    let rest = cursor.rest();
    let end = [("${{", "}}"), ("{{", "}}"), ("${", "}"), ("$(", ")")].iter().find_map(|(start, end)| {
        let inner = rest.strip_prefix(start)?;
        let line = inner.get(
            ..inner.char_indices().take(LONGEST_TEMPLATE).take_while(|(_, c)| *c != '\n').last()?.0 + 1,
        )?;
        Some(start.len() + line.find(end)? + end.len())
    });
    end.unwrap_or(0)
}

/// Whether a quote inside a value ends it.
fn closes(mut here: TextCursor<'_>) -> bool {
    here.bump();
    here.peek().is_none_or(|next| next.is_whitespace() || ",}]);:\\<.|>".contains(next))
}

/// Whether a backslash escapes a quote or a line break, which the next level shows unescaped.
fn ends_line(mut here: TextCursor<'_>) -> bool {
    here.skip(40, |c| c == '\\');
    match here.peek() {
        Some('"' | '\'' | '`') | None => true,
        Some('n' | 'r' | 't') => {
            here.bump();
            let next = here.peek();
            next.is_none_or(|next| next.is_whitespace() || "\\\"'`-+#}".contains(next)) || is_field(here)
        }
        _ => false,
    }
}

fn is_followed_by_field(mut here: TextCursor<'_>) -> bool {
    here.bump();
    here.skip(4, |c| c == ' ');
    is_field(here)
}

/// Whether a name and `=` or `:` come next.
fn is_field(mut here: TextCursor<'_>) -> bool {
    here.skip(1, |c| matches!(c, '"' | '\''));
    let name = here.skip(60, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '));
    here.skip(1, |c| matches!(c, '"' | '\''));
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && matches!(here.peek(), Some('=' | ':'))
}

/// The lines of the YAML block, `|` or `>`, at the cursor; `indent` is that of its key.
pub(super) fn block(mut cursor: TextCursor<'_>, indent: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    cursor.bump();
    cursor.skip(2, |c| matches!(c, '-' | '+' | '1'..='9'));
    cursor.skip(8, |c| matches!(c, ' ' | '\r'));
    while lines.len() < BLOCK_LINES && cursor.eat("\n") {
        let spaces = cursor.skip(200, |c| c == ' ').len();
        let line = cursor.skip(LONGEST, |c| c != '\n');
        if !line.trim().is_empty() {
            if spaces <= indent {
                break;
            }
            lines.push(cursor.at - line.len()..cursor.at);
        }
    }
    lines
}

/// The quoted values in the list or object at the cursor, without its keys.
pub(super) fn inside(mut cursor: TextCursor<'_>) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    let latest = cursor.at + CONTAINER;
    let mut depth = 0_usize;
    while cursor.at < latest {
        match cursor.peek() {
            Some('[' | '{' | '(') => depth += 1,
            Some(']' | '}' | ')') if depth <= 1 => break,
            Some(']' | '}' | ')') => depth -= 1,
            Some('"' | '\'' | '`') => {
                if let Some(span) = quoted(&mut cursor) {
                    let mut after = cursor;
                    after.skip(8, |c| c == ' ');
                    if !after.rest().starts_with(':') && !after.rest().starts_with("=>") {
                        values.push(span);
                    }
                    continue;
                }
            }
            Some(_) => {}
            None => break,
        }
        cursor.bump();
    }
    values
}

/// The quoted values concatenated to the one before the cursor: with `+`, or with a backslash at the end of a line.
pub(super) fn joined(mut cursor: TextCursor<'_>) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    while values.len() < 50 {
        let between =
            cursor.skip(60, |c| c.is_whitespace() || matches!(c, '+' | '\\' | '&' | '.' | '(' | ')'));
        let is_joined =
            between.contains(['+', '\\', '.', '&']) && matches!(cursor.peek(), Some('"' | '\'' | '`'));
        match is_joined.then(|| quoted(&mut cursor)).flatten() {
            Some(span) => values.push(span),
            None => break,
        }
    }
    values
}
