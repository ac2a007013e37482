//! What a search found.

use std::{collections::HashMap, io};

use amplifier_session_storage::{
    model::{ContentType, SessionKey},
    search::{SearchResult, SearchResults},
};
use jiff::Zoned;

use super::{
    ids::{short, short_length},
    message::{self, Look as MessageLook},
    snippet::wrapped,
    text::{fitted, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// The titles of sessions.
pub(crate) type Titles = HashMap<SessionKey, String>;

/// Writes results as blocks for people: rank and title, place, snippet. `owners`: with whose they are.
pub(crate) fn blocks(
    out: &mut Out,
    found: &SearchResults,
    titles: &Titles,
    owners: bool,
    now: &Zoned,
) -> io::Result<()> {
    let length = short_length(found.results.iter().map(|result| &result.session_id));
    for (at, result) in found.results.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        let look = Look { length, owners, paint: out.paint, width: out.width };
        for line in block(at + 1, result, titles, look, now) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// Writes results as lines for a pipe: score, session, message, time, project, content type and snippet, separated
/// by tabs, and with `owners` whose they are. Whole messages follow below their line, indented.
pub(crate) fn lines(out: &mut Out, found: &SearchResults, owners: bool, now: &Zoned) -> io::Result<()> {
    for result in &found.results {
        let mut fields = vec![
            format!("{:.3}", result.score),
            result.session_id.to_string(),
            result.sequence.to_string(),
            dates::with_offset(result.ts, now),
            one_line(result.project.as_str()),
            result.content_type.to_string(),
            wrapped(&result.snippet, &result.highlights, usize::MAX, out.paint).join(" "),
        ];
        fields.extend(owners.then(|| one_line(result.user_id.as_str())));
        out.line(&fields.join("\t"))?;
        let message = whole_message(result, "  ", MessageLook::whole(out.paint));
        message.iter().try_for_each(|line| out.line(line))?;
    }
    Ok(())
}

/// How blocks look.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// The length of short ids.
    length: usize,
    owners: bool,
    paint: Paint,
    /// The columns that there are.
    width: usize,
}

fn block(rank: usize, result: &SearchResult, titles: &Titles, look: Look, now: &Zoned) -> Vec<String> {
    const INDENT: &str = "    ";
    let Look { length, owners, paint, width } = look;
    let key = SessionKey::new(result.user_id.clone(), result.session_id.clone());
    let title = titles.get(&key).map_or(result.project.as_str(), String::as_str);
    let place = format!("{} #{}", short(&result.session_id, length), result.sequence);
    let mut known = vec![label(result.content_type).to_owned(), dates::minute(result.ts, now)];
    known.extend(owners.then(|| one_line(result.user_id.as_str())));
    known.extend([one_line(result.project.as_str()), format!("{:.2}", result.score)]);
    let mut lines = vec![
        format!("{rank:>2}. {}", paint.title(&fitted(&one_line(title), width - INDENT.len()))),
        format!("{INDENT}{place} {}", paint.aside(&format!("· {}", known.join(" · ")))),
    ];
    let message_look = MessageLook { width: Some(width), ..MessageLook::whole(paint) };
    let whole = whole_message(result, INDENT, message_look);
    if whole.is_empty() {
        let snippet = wrapped(&result.snippet, &result.highlights, width - INDENT.len(), paint);
        lines.extend(snippet.iter().map(|line| format!("{INDENT}{line}")));
    } else {
        lines.extend(whole);
    }
    lines
}

fn whole_message(result: &SearchResult, indent: &str, look: MessageLook) -> Vec<String> {
    let line = result.message.as_ref().and_then(serde_json::Value::as_object);
    line.map_or_else(Vec::new, |line| message::body(line, result.role, look, indent))
}

/// A content type as people say it.
pub(crate) fn label(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::UserQuery => "user",
        ContentType::AssistantResponse => "assistant",
        ContentType::AssistantThinking => "thinking",
        ContentType::ToolOutput => "tool output",
        ContentType::System => "system",
        ContentType::ToolCall => "tool call",
    }
}
