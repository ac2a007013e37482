//! Secrets with a name: `password = "…"`, `--token …`, `"apiKey": "…"`, `export SECRET=…`, `<password>…</password>`.
//!
//! The rules of gitleaks find values of letters and digits. People's passwords contain any characters, even spaces. So
//! the name, the operator after it and the quotes decide where a value begins and ends; and the form of the value decides
//! whether it is a secret, a word, an expression or a placeholder.

use std::{ops::Range, sync::OnceLock};

use aho_corasick::AhoCorasick;
use amplifier_session_core::{KnownPart, content::Certainty};

use super::{
    cursor::TextCursor,
    extents::{bare, block, inside, joined, quoted, to_quote},
    judging::{of_bare, of_quoted},
    match_context::MatchContext,
    names::{KEYWORDS, Name, NameKind},
    operators::{Joint, joint},
    values::is_strong,
};

/// How far a name extends before and after its keyword, in bytes.
const NAME_BEFORE: usize = 80;
const NAME_AFTER: usize = 60;

/// How much of a line is checked, in characters.
const LONGEST_LINE: usize = 4_000;

/// The maximum number of names that are checked within the value of another name.
const MOST_WITHIN: usize = 32;

/// Words before the secret in the value of a header.
const SCHEMES: [&str; 8] = ["bearer", "basic", "token", "digest", "apikey", "api-key", "bot", "key"];

/// A value, and how certain it is that it is a secret.
type Graded = (Range<usize>, Certainty);

static FINDER: OnceLock<Option<AhoCorasick>> = OnceLock::new();

fn finder() -> Option<&'static AhoCorasick> {
    let words = KEYWORDS.iter().chain(&["bearer"]);
    FINDER.get_or_init(|| AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()).as_ref()
}

/// Finds the values in `text` that may be secrets.
pub(super) fn find(text: &str) -> Vec<Graded> {
    let mut found = Vec::new();
    let Some(finder) = finder() else { return found };
    let mut done = 0;
    // Names within the value of another name are checked too, but only some, to keep the time linear.
    let (mut looked_to, mut within) = (0, 0);
    for hit in finder.find_iter(text) {
        if hit.start() < done {
            continue;
        }
        within = if hit.start() < looked_to { within + 1 } else { 0 };
        if within > MOST_WITHIN {
            continue;
        }
        let span = name_around(text, hit.range());
        done = span.end.max(hit.end());
        if let Some(name) = Name::of(text, span) {
            let (values, end) = values_of(text, &name);
            // After the end of the outer value, counting starts again.
            looked_to = if within == 0 { end } else { looked_to };
            done = values.last().map_or(done, |(last, _)| last.end.max(done));
            found.extend(values);
        }
    }
    found
}

/// The identifier around a keyword.
fn name_around(text: &str, hit: Range<usize>) -> Range<usize> {
    let before = text.part(..hit.start);
    let after = text.part(hit.end..);
    let mut left = 0;
    for c in before.chars().rev().take_while(|c| is_name_char(*c)) {
        if left >= NAME_BEFORE {
            break;
        }
        left += c.len_utf8();
    }
    // Chinese and Japanese have no spaces between words.
    let is_alphabet = text.get(hit.clone()).is_some_and(|hit| hit.chars().all(is_name_char));
    let mut right = 0;
    for c in after.chars().take_while(|c| is_alphabet && is_name_char(*c)) {
        if right >= NAME_AFTER {
            break;
        }
        right += c.len_utf8();
    }
    let joints = ['-', '.', '$', '@', '_'];
    let name = text.part(hit.start - left..hit.end + right);
    // `-Dname=value` sets a property.
    let trimmed = name.strip_prefix("-D").unwrap_or(name).trim_start_matches(joints);
    let start = hit.start - left + (name.len() - trimmed.len());
    start..start + trimmed.trim_end_matches(joints).len()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$') || (c.is_alphabetic() && c < '\u{600}')
}

/// The secrets that belong to the name, and the end of the text that was checked for them.
fn values_of(text: &str, name: &Name) -> (Vec<Graded>, usize) {
    let Some(joint) = joint(text, name) else { return (Vec::new(), name.span.end) };
    let end = joint.at + bare(TextCursor::new(text, joint.at), None).span.len();
    (secrets_after(text, name, joint), end)
}

fn secrets_after(text: &str, name: &Name, joint: Joint) -> Vec<Graded> {
    let Joint { place, at, is_next_line, takes_bare, end } = joint;
    let mut cursor = TextCursor::new(text, at);
    let graded = |place, span: Range<usize>| {
        let certainty = of_quoted(name.kind, place, text.part(span.clone()))?;
        Some((span, certainty))
    };
    if let Some(end) = end {
        return graded(place, at..end).into_iter().collect();
    }
    let strings = quoted_values(&mut cursor, name, place);
    if let Some(spans) = strings {
        return spans;
    }
    match cursor.peek() {
        Some('|' | '>') if place == MatchContext::Loose => {
            let lines = block(cursor, name.indent(text));
            if !lines.is_empty() {
                // If a line of a block is a secret, all of its lines are, as in a key in PEM format.
                let certainty = lines.iter().filter_map(|line| graded(place, line.clone())?.1.into()).max();
                let all = |certainty| lines.into_iter().map(|line| (line, certainty)).collect();
                return certainty.map_or_else(Vec::new, all);
            }
        }
        Some('[' | '{' | '(') if place != MatchContext::Beside => {
            let values = inside(cursor).into_iter();
            let values: Vec<_> = values.filter_map(|span| graded(MatchContext::Beside, span)).collect();
            if !values.is_empty() {
                return values;
            }
        }
        _ => {}
    }
    if !takes_bare {
        return Vec::new();
    }
    if let Some(span) = value_with_name(cursor, name, place) {
        return vec![span];
    }
    let place = if is_next_line { MatchContext::Beside } else { place };
    bare_values(cursor, name, place)
}

/// The quoted values at the cursor, including concatenated strings; `None` if there are no quotes.
fn quoted_values(cursor: &mut TextCursor<'_>, name: &Name, place: MatchContext) -> Option<Vec<Graded>> {
    let mut after = *cursor;
    let place = if skip_call(&mut after) { MatchContext::Beside } else { place };
    skip_prefix(&mut after);
    let span = quoted(&mut after)?;
    let span = without_scheme(after.text, span);
    // Another string after one that is no secret may still be one: `get("NAME", "value")`.
    let Some(first) = of_quoted(name.kind, place, after.slice(&span)) else { return Some(Vec::new()) };
    let mut values = vec![span];
    values.extend(joined(after));
    let certainty = values.iter().filter_map(|span| of_quoted(name.kind, place, after.slice(span))).max();
    let certainty = certainty.unwrap_or(first);
    Some(values.into_iter().map(|span| (span, certainty)).collect())
}

/// Advances over a call around a string: `SecretString::from(`, `Some(`, `new Secret(`.
fn skip_call(cursor: &mut TextCursor<'_>) -> bool {
    let mut after = *cursor;
    after.eat("new ");
    let name = after.skip(60, |c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '!'));
    let is_call = !name.is_empty() && name.starts_with(|c: char| c.is_alphabetic()) && after.eat("(");
    if is_call
        && after.rest().trim_start_matches(['r', 'b', 'f', 'u', '#', '@', '$']).starts_with(['"', '\'', '`'])
    {
        *cursor = after;
        return true;
    }
    false
}

/// Advances over the prefix of a quote, as in `rb"…"`, `@"…"`, `r#"…"#`, `!!str "…"`.
fn skip_prefix(cursor: &mut TextCursor<'_>) {
    let mut after = *cursor;
    after.eat("!!str ");
    after.skip(2, |c| matches!(c, 'r' | 'b' | 'f' | 'u' | 'R' | 'B' | 'F' | 'U' | 'L' | 'N' | '@' | '$'));
    after.skip(3, |c| c == '#');
    if after.rest().starts_with(['"', '\'', '`', '“', '„', '«', '‘', '「']) {
        *cursor = after;
    }
}

/// The span without the scheme of a header, such as `Bearer` and the space after it.
fn without_scheme(text: &str, span: Range<usize>) -> Range<usize> {
    let mut cursor = TextCursor::new(text, span.start);
    for scheme in SCHEMES {
        if cursor.eat_word(scheme) {
            let blanks = cursor.skip(8, |c| matches!(c, ' ' | '\t')).len();
            return if blanks > 0 && cursor.at < span.end { cursor.at..span.end } else { span };
        }
    }
    span
}

/// The value in `"name=value"` and in the header `'Name: value'`, which may contain spaces.
fn value_with_name(cursor: TextCursor<'_>, name: &Name, place: MatchContext) -> Option<Graded> {
    let quote = name.quote?;
    if cursor.text.get(name.span.end..)?.starts_with(quote) {
        return None;
    }
    let before = cursor.text.get(..name.span.start - quote.len_utf8())?.trim_end_matches([' ', '=']);
    let is_header = before.ends_with("-H") || before.ends_with("--header");
    let span = without_scheme(cursor.text, to_quote(cursor, quote)?);
    let value = cursor.slice(&span);
    let is_line = value.contains(' ') && !value.contains(['"', '\'', '`', '{', '(']);
    let place = match place {
        MatchContext::Loose if is_header => MatchContext::Loose,
        MatchContext::Direct | MatchContext::Variable if is_line => MatchContext::Beside,
        MatchContext::Loose if is_line && cursor.text.get(name.span.end..)?.starts_with('=') => {
            MatchContext::Beside
        }
        MatchContext::Loose if is_line && is_strong(value) => MatchContext::Beside,
        _ => return None,
    };
    of_quoted(name.kind, place, value).map(|certainty| (span, certainty))
}

fn bare_values(cursor: TextCursor<'_>, name: &Name, place: MatchContext) -> Vec<Graded> {
    let text = cursor.text;
    let mut line = cursor;
    line.skip(LONGEST_LINE, |c| c != '\n');
    let line_end = line.at;
    if text.get(name.span.clone()).is_some_and(|name| name.to_lowercase().ends_with("cookie")) {
        return cookies(cursor, line_end);
    }
    let start = without_scheme(text, cursor.at..line_end).start;
    let value = bare(TextCursor::new(text, start), name.separator);
    if value.span.is_empty() {
        return Vec::new();
    }
    let place = if start > cursor.at { MatchContext::Flag } else { place };
    let shown = text.part(value.span.clone());
    let certainty = of_bare(name.kind, place, shown, value.is_field);
    let end = value.span.end - usize::from(shown.ends_with([',', ';']));
    certainty.map(|certainty| (value.span.start..end, certainty)).into_iter().collect()
}

/// The cookies of a header that look like secrets, including their names.
fn cookies(mut cursor: TextCursor<'_>, line_end: usize) -> Vec<Graded> {
    let mut values = Vec::new();
    while cursor.at < line_end {
        cursor.skip(8, |c| matches!(c, ' ' | ';'));
        let value = bare(cursor, None);
        if value.span.is_empty() {
            break;
        }
        cursor.at = value.span.end;
        let cookie = cursor.slice(&value.span);
        if of_bare(NameKind::Weak, MatchContext::Flag, cookie, false).is_some() {
            let content = cookie.split_once('=').map_or(cookie, |(_, content)| content);
            let certainty = of_bare(NameKind::Secret, MatchContext::Flag, content, false);
            values.push((value.span, certainty.unwrap_or(Certainty::Possible)));
        }
    }
    values
}
