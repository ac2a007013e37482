//! Search results.

use std::io;

use amplifier_session_api::operations::search::FoundMessage;
use amplifier_session_storage::search::{Lowered, SearchResult};
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    message::MessageOptions,
    result::{label, marked, remarks, similar, whole_message},
    snippet::{on_one_line, wrapped},
    text::{fitted, fitted_end, one_line},
    wrap::wrapped_words,
};
use crate::{dates, out::Out};

/// How to show results.
#[derive(Clone, Copy)]
pub(crate) struct ResultOptions<'a> {
    /// Whether to name the owners.
    pub(crate) owners: bool,
    /// The maximum length in characters of the message at a rank, if there is a limit.
    pub(crate) max_chars: &'a dyn Fn(usize) -> Option<usize>,
}

/// Writes results as blocks for a terminal: rank and title, address, snippet.
pub(crate) fn blocks(
    out: &mut Out,
    results: &[FoundMessage],
    options: ResultOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for (rank, found) in results.iter().enumerate() {
        if rank > 0 {
            out.line("")?;
        }
        let message = MessageOptions {
            max_chars: (options.max_chars)(rank),
            width: Some(out.width),
            ..MessageOptions::whole(out.paint)
        };
        out.lines(&block(rank + 1, found, options, message, now))?;
    }
    Ok(())
}

/// Writes results as lines for a pipe, separated by tabs: score, session, message, time, project, content type,
/// snippet, the owner if requested, and the address. Complete messages follow, indented.
pub(crate) fn lines(
    out: &mut Out,
    results: &[FoundMessage],
    options: ResultOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for (rank, FoundMessage { address, result, .. }) in results.iter().enumerate() {
        let mut fields = vec![
            format!("{:.3}", result.score),
            result.session_id.to_string(),
            result.sequence.to_string(),
            dates::with_offset(result.ts, now),
            one_line(result.project.as_str()),
            result.content_type.to_string(),
            marked(
                similar(result.match_kind, result.similarity).as_deref(),
                &on_one_line(&result.snippet, &result.highlights, out.paint),
            ),
        ];
        fields.extend(options.owners.then(|| one_line(result.user_id.as_str())));
        fields.push(address.clone());
        out.line(&fields.join("\t"))?;
        let message =
            MessageOptions { max_chars: (options.max_chars)(rank), ..MessageOptions::whole(out.paint) };
        out.lines(&whole_message(result, "  ", message))?;
        out.lines(&explained(result).map(|why| format!("  {why}")).into_iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

fn block(
    number: usize,
    found: &FoundMessage,
    options: ResultOptions<'_>,
    message: MessageOptions,
    now: &Zoned,
) -> Vec<String> {
    const INDENT: &str = "    ";
    let MessageOptions { paint, width, .. } = message;
    let width = width.unwrap_or(usize::MAX);
    let FoundMessage { address: place, title, result, .. } = found;
    let title = title.as_deref().unwrap_or(result.project.as_str());
    let room = width.saturating_sub(INDENT.len() + place.width() + 1);
    let mut lines = vec![
        format!("{number:>2}. {}", paint.title(&fitted(&one_line(title), width - INDENT.len()))),
        format!("{INDENT}{place} {}", paint.aside(&known(result, options.owners, room, now))),
    ];
    let whole = whole_message(result, INDENT, message);
    if whole.is_empty() {
        let snippet = wrapped(&result.snippet, &result.highlights, width - INDENT.len(), paint);
        lines.extend(snippet.iter().map(|line| format!("{INDENT}{line}")));
    } else {
        lines.extend(whole);
    }
    let explained = explained(result).map(|why| wrapped_words(&why, "", "  ", width - INDENT.len()));
    lines.extend(explained.into_iter().flatten().map(|line| format!("{INDENT}{}", paint.aside(&line))));
    lines
}

/// Details of a result in `room` columns. The project is shortened first, then the score is left out.
fn known(result: &SearchResult, owners: bool, room: usize, now: &Zoned) -> String {
    const LEAST: usize = 6;
    let mut known =
        vec![label(result.content_type).to_owned(), dates::about_minute(result.ts, result.ts_estimated, now)];
    known.extend(owners.then(|| one_line(result.user_id.as_str())));
    known.extend(remarks(result));
    let score = format!("{:.2}", result.score);
    let joined = |known: &[String]| format!("· {}", known.join(" · "));
    let left = room.saturating_sub(joined(&known).width() + score.width() + 6);
    if left >= LEAST {
        known.push(fitted_end(&one_line(result.project.as_str()), left));
    }
    if joined(&known).width() + score.width() + 3 <= room {
        known.push(score);
    }
    fitted(&joined(&known), room)
}

/// Why a result has its rank, in one line.
fn explained(result: &SearchResult) -> Option<String> {
    let why = result.explanation?;
    let words = why.text_rank.map(|rank| {
        let bm25 = result.text_score.map_or_else(String::new, |score| format!(", BM25 {score:.2}"));
        format!("words {:.2} (rank {rank}{bm25})", why.words)
    });
    let meaning = why.vector_rank.map(|rank| {
        let similarity =
            result.similarity.map_or_else(String::new, |found| format!(", similarity {found:.2}"));
        format!("meaning {:.2} (rank {rank}{similarity})", why.meaning)
    });
    let lifts = [("neighbours", why.neighbours), ("session", why.session), ("title", why.title)];
    let lifts = lifts.into_iter().filter(|(_, share)| *share > 0.0);
    let shares: Vec<String> = words
        .into_iter()
        .chain(meaning)
        .chain(lifts.map(|(name, share)| format!("{name} {share:.2}")))
        .collect();
    let shares = if shares.is_empty() { "newest first".to_owned() } else { shares.join(" + ") };
    let lowered = why.lowered.map_or_else(String::new, |lowered| {
        let reason = match lowered {
            Lowered::RepeatedQuestion => "repeats the query",
            Lowered::Noise => "only noise matches, such as a todo list",
            _ => "inserted by a program",
        };
        format!("; times {} already applied: {reason}", lowered.factor())
    });
    Some(format!("relevance {:.2} = {shares}{lowered}", why.relevance))
}
