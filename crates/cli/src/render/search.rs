//! What a search found.

use std::{collections::HashMap, io};

use amplifier_session_storage::{
    model::ContentType,
    search::{SearchResult, SearchResults},
};
use jiff::Zoned;

use super::{
    ids::{short, short_length},
    message,
    snippet::wrapped,
    text::{fitted, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// The titles of sessions, by id.
pub(crate) type Titles = HashMap<String, String>;

/// Writes results as blocks for people: rank and title, place, snippet.
pub(crate) fn blocks(out: &mut Out, found: &SearchResults, titles: &Titles, now: &Zoned) -> io::Result<()> {
    let length = short_length(found.results.iter().map(|result| &result.session_id));
    for (at, result) in found.results.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        let look = Look { length, paint: out.paint, width: out.width };
        for line in block(at + 1, result, titles, look, now) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// Writes results as lines for a pipe: score, session, message, time, project, content type and snippet, separated
/// by tabs. Whole messages follow below their line, indented.
pub(crate) fn lines(out: &mut Out, found: &SearchResults, now: &Zoned) -> io::Result<()> {
    for result in &found.results {
        let fields = [
            format!("{:.3}", result.score),
            result.session_id.to_string(),
            result.sequence.to_string(),
            dates::with_offset(result.ts, now),
            one_line(result.project.as_str()),
            result.content_type.to_string(),
            wrapped(&result.snippet, &result.highlights, usize::MAX, out.paint).join(" "),
        ];
        out.line(&fields.join("\t"))?;
        for line in whole_message(result, "  ", out.paint) {
            out.line(&line)?;
        }
    }
    Ok(())
}

/// How blocks look.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// The length of short ids.
    length: usize,
    paint: Paint,
    /// The columns that there are.
    width: usize,
}

fn block(rank: usize, result: &SearchResult, titles: &Titles, look: Look, now: &Zoned) -> Vec<String> {
    const INDENT: &str = "    ";
    let Look { length, paint, width } = look;
    let title = titles.get(result.session_id.as_str()).map_or(result.project.as_str(), String::as_str);
    let place = format!("{} #{}", short(&result.session_id, length), result.sequence);
    let known = [
        label(result.content_type).to_owned(),
        dates::minute(result.ts, now),
        one_line(result.project.as_str()),
        format!("{:.2}", result.score),
    ];
    let mut lines = vec![
        format!("{rank:>2}. {}", paint.title(&fitted(&one_line(title), width - INDENT.len()))),
        format!("{INDENT}{place} {}", paint.aside(&format!("· {}", known.join(" · ")))),
    ];
    let whole = whole_message(result, INDENT, paint);
    if whole.is_empty() {
        let snippet = wrapped(&result.snippet, &result.highlights, width - INDENT.len(), paint);
        lines.extend(snippet.iter().map(|line| format!("{INDENT}{line}")));
    } else {
        lines.extend(whole);
    }
    lines
}

fn whole_message(result: &SearchResult, indent: &str, paint: Paint) -> Vec<String> {
    let line = result.message.as_ref().and_then(serde_json::Value::as_object);
    line.map_or_else(Vec::new, |line| message::body(line, result.role, true, indent, paint))
}

/// A content type as people say it.
pub(crate) fn label(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::UserQuery => "user",
        ContentType::AssistantResponse => "assistant",
        ContentType::AssistantThinking => "thinking",
        ContentType::ToolOutput => "tool output",
        ContentType::System => "system",
    }
}
