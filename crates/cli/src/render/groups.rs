//! Search results by session.

use std::io;

use amplifier_session_storage::{
    model::{ProjectSlug, SessionId, Timestamp, UserId},
    search::SearchResult,
};
use jiff::Zoned;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::{
    message::MessageOptions,
    result::{ResultNames, ResultView, label, remarks, whole_message},
    snippet::wrapped,
    text::{fitted, fitted_end, grouped, one_line},
};
use crate::{dates, messages::Estimated, out::Out};

/// The best results of a session.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The results to show, best first.
    pub(crate) hits: Vec<&'a SearchResult>,
    /// The number of further results in the session.
    pub(crate) more: usize,
    /// The maximum length in characters of each message, if there is a limit.
    pub(crate) max_chars: Option<usize>,
}

/// How to show groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupOptions<'a> {
    pub(crate) names: &'a ResultNames,
    /// Whether to name the owners.
    pub(crate) owners: bool,
    /// The sessions whose dates are estimates.
    pub(crate) estimated: &'a Estimated,
}

/// A group as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct GroupView<'a> {
    /// The short id of the session.
    session: &'a str,
    session_id: &'a SessionId,
    user_id: &'a UserId,
    title: Option<&'a str>,
    project: &'a ProjectSlug,
    /// When the session last changed.
    updated: Option<Timestamp>,
    /// Whether `updated` is an estimate.
    dates_estimated: Option<bool>,
    /// The best results of the session.
    results: Vec<ResultView<'a>>,
    /// The number of further results in the session.
    more: usize,
}

impl<'a> GroupView<'a> {
    /// The group, unless it is empty.
    pub(crate) fn new(group: &Group<'a>, names: &'a ResultNames, estimated: &Estimated) -> Option<Self> {
        let best = *group.hits.first()?;
        let session = names.session(best);
        let view = |hit: &&'a SearchResult| ResultView::new(hit, names, group.max_chars);
        Some(Self {
            session: names.short_id(best),
            session_id: &best.session_id,
            user_id: &best.user_id,
            title: names.title(best),
            project: &best.project,
            updated: session.map(|session| session.updated),
            dates_estimated: session.map(|session| estimated.has(session)),
            results: group.hits.iter().map(view).collect(),
            more: group.more,
        })
    }
}

/// Writes groups as blocks for a terminal: rank and title, session, and its best results.
pub(crate) fn blocks(
    out: &mut Out,
    groups: &[Group<'_>],
    options: GroupOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for (rank, group) in groups.iter().enumerate() {
        let Some(best) = group.hits.first() else { continue };
        if rank > 0 {
            out.line("")?;
        }
        let title = one_line(options.names.title(best).unwrap_or(best.project.as_str()));
        let number = format!("{:>2}. ", rank + 1);
        let room = out.width.saturating_sub(number.len());
        out.line(&format!("{number}{}", out.paint.title(&fitted(&title, room))))?;
        out.line(&format!("{INDENT}{}", session_line(out, best, options, now)))?;
        for hit in &group.hits {
            out.lines(&hit_lines(out, hit, group.max_chars, options.names))?;
        }
        if let Some(more) = more(group.more) {
            out.line(&format!("{INDENT}{}", out.paint.aside(&more)))?;
        }
    }
    Ok(())
}

const INDENT: &str = "    ";

/// How many more results there are, in words.
pub(crate) fn more(more: usize) -> Option<String> {
    (more > 0).then(|| format!("{} more in this session", grouped(more as u64)))
}

/// Details of a session: short id, time, owner, project. The project is shortened to fit.
fn session_line(out: &Out, best: &SearchResult, options: GroupOptions<'_>, now: &Zoned) -> String {
    let short = options.names.short_id(best);
    let mut known = format!(" · {}", when(best, options, now));
    if options.owners {
        known = format!("{known} · {}", one_line(best.user_id.as_str()));
    }
    let room = out.width.saturating_sub(INDENT.len() + short.width() + known.width() + 3);
    known = format!("{known} · {}", fitted_end(&one_line(best.project.as_str()), room));
    format!("{short}{}", out.paint.aside(&known))
}

/// When the session last changed, or if it can't be read, when the message was written.
fn when(best: &SearchResult, options: GroupOptions<'_>, now: &Zoned) -> String {
    match options.names.session(best) {
        Some(session) => dates::about_minute(session.updated, options.estimated.has(session), now),
        None => dates::about_minute(best.ts, best.ts_estimated, now),
    }
}

/// A result: its address and role, and its snippet or complete message.
fn hit_lines(out: &Out, hit: &SearchResult, max_chars: Option<usize>, names: &ResultNames) -> Vec<String> {
    const DEEPER: &str = "      ";
    let known = [vec![label(hit.content_type).to_owned()], remarks(hit)].concat();
    let kind = out.paint.aside(&format!("· {}", known.join(" · ")));
    let mut lines = vec![format!("{INDENT}{} {kind}", names.address(hit))];
    let message = MessageOptions { max_chars, width: Some(out.width), ..MessageOptions::whole(out.paint) };
    let whole = whole_message(hit, DEEPER, message);
    if whole.is_empty() {
        let width = out.width.saturating_sub(DEEPER.len());
        let snippet = wrapped(&hit.snippet, &hit.highlights, width, out.paint);
        lines.extend(snippet.iter().map(|line| format!("{DEEPER}{line}")));
    } else {
        lines.extend(whole);
    }
    lines
}

/// Writes groups as lines for a pipe, separated by tabs: score of the best result, session, time of its last change,
/// project, title, number of results, snippet of the best one, the owner if requested, and the address of the best
/// one. Complete messages follow, indented.
pub(crate) fn lines(
    out: &mut Out,
    groups: &[Group<'_>],
    options: GroupOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for group in groups {
        let Some(best) = group.hits.first() else { continue };
        let updated = options.names.session(best).map_or(best.ts, |session| session.updated);
        let mut fields = vec![
            format!("{:.3}", best.score),
            best.session_id.to_string(),
            dates::with_offset(updated, now),
            one_line(best.project.as_str()),
            one_line(options.names.title(best).unwrap_or_default()),
            (group.hits.len() + group.more).to_string(),
            wrapped(&best.snippet, &best.highlights, usize::MAX, out.paint).join(" "),
        ];
        fields.extend(options.owners.then(|| one_line(best.user_id.as_str())));
        fields.push(options.names.address(best));
        out.line(&fields.join("\t"))?;
        for hit in &group.hits {
            let message = MessageOptions { max_chars: group.max_chars, ..MessageOptions::whole(out.paint) };
            out.lines(&whole_message(hit, "  ", message))?;
        }
    }
    Ok(())
}
