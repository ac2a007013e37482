//! Finds where the value of a name begins.

use super::{
    cursor::TextCursor,
    match_context::MatchContext,
    names::{Name, NameKind},
    values::is_generated,
};
use amplifier_session_core::KnownPart;

/// The maximum number of spaces between a name and its value.
const BLANKS: usize = 80;
/// The maximum number of characters between a name and the field that contains its value.
const TO_VALUE_FIELD: usize = 60;

/// Where a value begins, and its relation to the name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joint {
    pub(super) place: MatchContext,
    pub(super) at: usize,
    /// Whether it is on a line below the name.
    pub(super) is_next_line: bool,
    /// Whether the value may be unquoted.
    pub(super) takes_bare: bool,
    /// Where the value ends, if known.
    pub(super) end: Option<usize>,
}

impl Joint {
    fn new(place: MatchContext, at: usize) -> Self {
        Self { place, at, is_next_line: false, takes_bare: true, end: None }
    }

    fn in_quotes(place: MatchContext, at: usize) -> Self {
        Self { takes_bare: false, ..Self::new(place, at) }
    }
}

/// Finds the value of a name; `None` if there is none.
pub(super) fn joint(text: &str, name: &Name) -> Option<Joint> {
    let mut cursor = TextCursor::new(text, name.span.end);
    let before = text.part(..name.span.start);
    if before.ends_with("?<") || before.ends_with("?P<") {
        // This is the name of a group in a regular expression.
        return None;
    }
    let is_in_tag = before.ends_with('<');
    let closers = closers(&mut cursor);
    let is_quoted_name = closers.contains(['"', '\'', '`']);
    if (is_in_tag || is_quoted_name) && cursor.eat(">") {
        let tag = if is_in_tag { text.part(name.span.clone()) } else { "" };
        return element(cursor, tag);
    }
    let annotated = annotation(cursor);
    if let Some(at) = annotated {
        return Some(Joint::in_quotes(MatchContext::Loose, at));
    }
    if closers.is_empty() && cursor.rest().starts_with('(') {
        cursor.bump();
        return Some(Joint::in_quotes(MatchContext::Beside, cursor.at));
    }
    let blanks = cursor.skip(BLANKS, is_blank);
    let before = cursor.at;
    let Some((operator, mut place)) = operator(&mut cursor, is_quoted_name) else {
        return without_operator(cursor, name, blanks);
    };
    let is_path = text.get(..name.span.start).is_some_and(|before| before.ends_with("::"));
    if (closers.contains(')') && operator == ":") || (is_path && operator == "=>") {
        // These follow the parameters of a function and the pattern of a match arm.
        return None;
    }
    let blanks_after = after_operator(&mut cursor);
    if !is_quoted_name && is_closing(cursor, name) {
        return None;
    }
    let mut takes_bare = true;
    if operator == "," {
        if let Some(at) = value_field(TextCursor::new(text, before)) {
            return Some(Joint::new(MatchContext::Loose, at));
        }
        takes_bare = false;
    }
    if matches!(operator, "=" | ":=" | "?=") && blanks.is_empty() && blanks_after == 0 {
        place = if name.is_variable { MatchContext::Variable } else { MatchContext::Direct };
    }
    let line = cursor.at;
    let breaks = cursor.skip(200, char::is_whitespace).contains('\n');
    if breaks && !matches!(operator, ":" | "=" | "=>" | "：") {
        return None;
    }
    if breaks && place == MatchContext::Direct {
        place = MatchContext::Loose;
    }
    let is_next_line = breaks && cursor.at > line;
    Some(Joint { place, at: cursor.at, is_next_line, takes_bare, end: None })
}

/// The characters that close or decorate a name: quotes, brackets, Markdown's asterisks, `?` after an optional field.
fn closers<'a>(cursor: &mut TextCursor<'a>) -> &'a str {
    let start = cursor.at;
    while cursor.at < start + 6 {
        let rest = cursor.rest();
        let next = rest.chars().nth(1);
        let is_closer = match cursor.peek() {
            Some('"' | '\'' | '`' | ']' | ')' | '}' | '*' | '”' | '’') => true,
            Some('?' | '!') => next == Some(':'),
            Some('[') => {
                let mut after = *cursor;
                after.bump();
                after.skip(8, |c| c.is_ascii_alphanumeric());
                if after.eat("]") {
                    *cursor = after;
                    continue;
                }
                false
            }
            _ => false,
        };
        if !is_closer {
            break;
        }
        cursor.bump();
    }
    cursor.text.part(start..cursor.at)
}

/// Whether the quote at the cursor closes a text that begins with the name, as in `"Password: "`.
fn is_closing(mut cursor: TextCursor<'_>, name: &Name) -> bool {
    if name.quote.is_none() || cursor.peek() != name.quote {
        return false;
    }
    cursor.bump();
    cursor.skip(BLANKS, is_blank);
    cursor.peek().is_none_or(|next| ",)+;]}\n\r".contains(next))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}')
}

/// The operators, longest first.
fn operator(cursor: &mut TextCursor<'_>, is_quoted_name: bool) -> Option<(&'static str, MatchContext)> {
    const OPERATORS: [(&str, MatchContext); 19] = [
        ("-> ", MatchContext::Beside),
        ("→", MatchContext::Beside),
        ("===", MatchContext::Beside),
        ("!==", MatchContext::Beside),
        ("==", MatchContext::Beside),
        ("!=", MatchContext::Beside),
        ("=>", MatchContext::Loose),
        (":=", MatchContext::Loose),
        ("?=", MatchContext::Loose),
        ("+=", MatchContext::Loose),
        ("||=", MatchContext::Loose),
        ("??=", MatchContext::Loose),
        ("||", MatchContext::Beside),
        ("??", MatchContext::Beside),
        ("=", MatchContext::Loose),
        (":", MatchContext::Loose),
        ("：", MatchContext::Loose),
        ("|", MatchContext::Beside),
        (",", MatchContext::Beside),
    ];
    if cursor.rest().starts_with('|') && !cursor.text.get(..cursor.at)?.ends_with(is_blank) {
        return None;
    }
    // The path of a module, or a URL.
    if cursor.rest().starts_with("::") || cursor.rest().starts_with("://") {
        return None;
    }
    let found = OPERATORS.iter().find(|(operator, _)| cursor.rest().starts_with(operator))?;
    if found.0 == "," && !is_quoted_name {
        return value_field(*cursor).map(|_| *found);
    }
    cursor.eat(found.0);
    Some(*found)
}

/// Advances over spaces and Markdown's asterisks after an operator, and returns the number of spaces.
fn after_operator(cursor: &mut TextCursor<'_>) -> usize {
    let mut after = *cursor;
    after.skip(2, |c| matches!(c, '*' | '_'));
    if after.at > cursor.at && after.peek().is_some_and(is_blank) {
        *cursor = after;
    }
    cursor.skip(BLANKS, is_blank).len()
}

/// The content of an XML element, with the name `tag` if known.
fn element(cursor: TextCursor<'_>, tag: &str) -> Option<Joint> {
    const FARTHEST: usize = 2_000;
    let end = cursor.rest().char_indices().take(FARTHEST).find(|(_, c)| *c == '<')?.0;
    let is_end = cursor.rest().get(end..)?.strip_prefix("</").is_some_and(|rest| rest.starts_with(tag));
    let place = if tag.is_empty() { MatchContext::Beside } else { MatchContext::Loose };
    is_end.then_some(Joint { end: Some(cursor.at + end), ..Joint::new(place, cursor.at) })
}

/// Where the string of a name with a type begins: `password: &str = "…"`, `password string = "…"`.
fn annotation(mut cursor: TextCursor<'_>) -> Option<usize> {
    let is_type = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '&' | '<' | '>' | '[' | ']' | '.' | '*' | '\'' | '|' | ' ' | '?')
    };
    cursor.skip(4, is_blank);
    let most_words = if cursor.eat(":") { 3 } else { 1 };
    let name = cursor.skip(60, is_type);
    let is_name =
        name.trim_start().starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '&' | '*' | '['));
    if !is_name
        || !name.trim_end().ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '>' | ']' | '*'))
    {
        return None;
    }
    if name.replace('|', " ").split_whitespace().count() > most_words {
        return None;
    }
    (cursor.eat("=") && !cursor.rest().starts_with(['=', '>', '~'])).then_some(())?;
    cursor.skip(4, is_blank);
    let string = cursor.rest().trim_start_matches(['r', 'b', 'f', 'u', '@', '$', '#']);
    string.starts_with(['"', '\'', '`']).then_some(cursor.at)
}

/// Where the value begins in `"name": "DB_PASSWORD", "value": "…"` and `set DB_PASSWORD --body "…"`.
fn value_field(mut cursor: TextCursor<'_>) -> Option<usize> {
    cursor.skip(TO_VALUE_FIELD, |c| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\''));
    let mut option = cursor;
    if ["--body", "--value", "--string", "-b", "-v"].iter().any(|word| option.eat_word(word)) {
        let blanks = option.skip(BLANKS, |c| is_blank(c) || c == '=');
        return (!blanks.is_empty()).then_some(option.at);
    }
    let is_value = ["value", "default", "defaultValue", "val"].iter().any(|word| cursor.eat_word(word));
    if !is_value {
        return None;
    }
    cursor.skip(2, |c| matches!(c, '"' | '\''));
    cursor.skip(8, is_blank);
    (cursor.eat(":") || cursor.eat("=")).then_some(())?;
    cursor.skip(TO_VALUE_FIELD, char::is_whitespace);
    Some(cursor.at)
}

/// Finds a value without an operator: in another field, after words, or after spaces.
fn without_operator(mut cursor: TextCursor<'_>, name: &Name, blanks: &str) -> Option<Joint> {
    const WORDS: [&str; 12] =
        ["is", "was", "equals", "or", "是", "ist", "lautet", "est", "es", "to", "as", "set"];
    let joint = |place, at, takes_bare| Some(Joint { takes_bare, ..Joint::new(place, at) });
    if is_closing(cursor, name) {
        return None;
    }
    if let Some(at) = value_field(cursor) {
        return joint(MatchContext::Loose, at, true);
    }
    let starts_quote = |cursor: &TextCursor<'_>| cursor.rest().starts_with(['"', '\'', '`', '“', '«']);
    if cursor.rest().starts_with('是') || !blanks.is_empty() {
        let start = cursor.at;
        // After a name such as `token`, the words `to`, `as` and `set` often belong to another sentence.
        let words = WORDS.get(..if name.kind == NameKind::Password { 12 } else { 9 }).unwrap_or(&WORDS);
        while words.iter().any(|word| cursor.eat_word(word) || (!word.is_ascii() && cursor.eat(word))) {
            cursor.skip(1, |c| matches!(c, ':' | '：'));
            cursor.skip(4, is_blank);
        }
        if cursor.at > start {
            return joint(MatchContext::Sentence, cursor.at, true);
        }
    }
    if blanks.is_empty() {
        return None;
    }
    if name.is_flag {
        return joint(MatchContext::Flag, cursor.at, true);
    }
    if starts_quote(&cursor) {
        return joint(MatchContext::Beside, cursor.at, false);
    }
    let before = cursor.text.part(..name.span.start);
    let is_set = before.trim_end_matches(['/', ':', '_']).ends_with("set ");
    let rest = cursor.rest();
    let is_generated =
        name.kind != NameKind::Weak && rest.split_whitespace().next().is_some_and(is_generated);
    let is_apart = is_generated || blanks.len() > 1 || blanks.contains('\t') || is_set;
    let is_bearer =
        cursor.text.get(name.span.clone()).is_some_and(|name| name.eq_ignore_ascii_case("bearer"));
    (is_apart || is_bearer).then_some(())?;
    joint(MatchContext::Beside, cursor.at, true)
}
