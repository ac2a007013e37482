//! Search results by session.

use std::io;

use amplifier_session_api::operations::search::{FoundMessage, FoundSession};
use amplifier_session_storage::{model::Timestamp, search::SearchResult};
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    message::MessageOptions,
    result::{label, marked, remarks, similar, whole_message},
    snippet::{on_one_line, wrapped},
    table::{Column, TableCell, table},
    text::{fitted, fitted_end, grouped, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// How to show groups.
#[derive(Clone, Copy)]
pub(crate) struct GroupOptions<'a> {
    /// Whether to name the owners.
    pub(crate) owners: bool,
    /// The maximum length in characters of each message of the group at a rank, if there is a limit.
    pub(crate) max_chars: &'a dyn Fn(usize) -> Option<usize>,
}

/// A result of a session: a message or a turn.
pub(crate) trait GroupedFound {
    /// Its fields in a line.
    fn line(&self) -> GroupedLine<'_>;
    /// Its lines on a terminal.
    fn block(&self, out: &Out, indent: &str, max_chars: Option<usize>) -> Vec<String>;
    /// The lines of the complete message, if it was requested.
    fn whole(&self, options: MessageOptions) -> Vec<String>;
}

/// The fields of a result of a session.
pub(crate) struct GroupedLine<'a> {
    pub(crate) address: &'a str,
    pub(crate) score: f32,
    /// When it was written, and whether that is an estimate.
    pub(crate) written: (Timestamp, bool),
    /// The mark of a result without any word of the query.
    pub(crate) mark: Option<String>,
    pub(crate) snippet: &'a str,
    pub(crate) highlights: &'a [(u32, u32)],
}

impl GroupedFound for FoundMessage {
    fn line(&self) -> GroupedLine<'_> {
        let SearchResult { score, ts, ts_estimated, match_kind, similarity, snippet, highlights, .. } =
            &self.result;
        GroupedLine {
            address: &self.address,
            score: *score,
            written: (*ts, *ts_estimated),
            mark: similar(*match_kind, *similarity),
            snippet,
            highlights,
        }
    }

    fn block(&self, out: &Out, _: &str, max_chars: Option<usize>) -> Vec<String> {
        found_lines(out, self, max_chars)
    }

    fn whole(&self, options: MessageOptions) -> Vec<String> {
        whole_message(&self.result, "  ", options)
    }
}

/// Writes groups as blocks for a terminal: rank and title, session, and its best results.
pub(crate) fn blocks<Found: GroupedFound>(
    out: &mut Out,
    groups: &[FoundSession<Found>],
    options: GroupOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for (rank, group) in groups.iter().enumerate() {
        if rank > 0 {
            out.line("")?;
        }
        let title = one_line(group.title.as_deref().unwrap_or(group.project.as_str()));
        let number = format!("{:>2}. ", rank + 1);
        let room = out.width.saturating_sub(number.len());
        out.line(&format!("{number}{}", out.paint.title(&fitted(&title, room))))?;
        out.line(&format!("{INDENT}{}", session_line(out, group, options, now)))?;
        for found in &group.results {
            out.lines(&found.block(out, INDENT, (options.max_chars)(rank)))?;
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
fn session_line<Found: GroupedFound>(
    out: &Out,
    group: &FoundSession<Found>,
    options: GroupOptions<'_>,
    now: &Zoned,
) -> String {
    let short = &group.session;
    let mut known = format!(" · {}", when(group, now));
    if options.owners {
        known = format!("{known} · {}", one_line(group.user_id.as_str()));
    }
    let room = out.width.saturating_sub(INDENT.len() + short.width() + known.width() + 3);
    known = format!("{known} · {}", fitted_end(&one_line(group.project.as_str()), room));
    format!("{short}{}", out.paint.aside(&known))
}

/// When the session last changed, or if it can't be read, when the message was written.
fn when<Found: GroupedFound>(group: &FoundSession<Found>, now: &Zoned) -> String {
    match (group.updated, group.results.first()) {
        (Some(updated), _) => dates::about_minute(updated, group.dates_estimated == Some(true), now),
        (None, Some(found)) => {
            let (ts, is_estimated) = found.line().written;
            dates::about_minute(ts, is_estimated, now)
        }
        (None, None) => String::new(),
    }
}

/// A result: its address and role, and its snippet or complete message.
fn found_lines(out: &Out, found: &FoundMessage, max_chars: Option<usize>) -> Vec<String> {
    const DEEPER: &str = "      ";
    let FoundMessage { address, result: hit, .. } = found;
    let known = [vec![label(hit.content_type).to_owned()], remarks(hit)].concat();
    let kind = out.paint.aside(&format!("· {}", known.join(" · ")));
    let mut lines = vec![format!("{INDENT}{address} {kind}")];
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

/// Writes one line per session: address, time of its last change, project, title, and the owner if requested. A table on
/// a terminal, tab-separated fields in a pipe. Sessions without any word of the query are marked.
pub(crate) fn list<Found: GroupedFound>(
    out: &mut Out,
    groups: &[FoundSession<Found>],
    owners: bool,
    now: &Zoned,
) -> io::Result<()> {
    let owner =
        |group: &FoundSession<Found>| if owners { one_line(group.user_id.as_str()) } else { String::new() };
    let project = |group: &FoundSession<Found>| one_line(group.project.as_str());
    let title = |group: &FoundSession<Found>| one_line(group.title.as_deref().unwrap_or_default());
    if !out.is_terminal() {
        return groups.iter().try_for_each(|group| {
            let updated = changed(group).map(|time| dates::with_offset(time, now)).unwrap_or_default();
            let title = marked(mark(group).as_deref(), &title(group));
            let mut fields = vec![group.session.clone(), updated, project(group), title];
            fields.extend(owners.then(|| owner(group)));
            out.line(&fields.join("\t"))
        });
    }
    let columns = [
        Column::text("session"),
        Column::text("owner"),
        Column::text("changed"),
        Column::text("match"),
        Column::text("project").shrinking(1, 6).cut_at_start(),
        Column::text("title").shrinking(2, 12),
    ];
    let row = |group: &FoundSession<Found>| {
        let changed = TableCell::styled(when(group, now), Paint::aside);
        let mark = TableCell::styled(mark(group).unwrap_or_default(), Paint::aside);
        let [session, owner, project, title] =
            [group.session.clone(), owner(group), project(group), title(group)].map(TableCell::plain);
        vec![session, owner, changed, mark, project, title]
    };
    let rows: Vec<Vec<TableCell>> = groups.iter().map(row).collect();
    out.lines(&table(&columns, &rows, out.width, out.paint))
}

/// When the session last changed, or if it can't be read, when its best result was written.
fn changed<Found: GroupedFound>(group: &FoundSession<Found>) -> Option<Timestamp> {
    group.updated.or_else(|| Some(group.results.first()?.line().written.0))
}

/// The mark of a session if none of its results has a word of the query.
fn mark<Found: GroupedFound>(group: &FoundSession<Found>) -> Option<String> {
    let mut marks = group.results.iter().map(|found| found.line().mark);
    let best = marks.next()??;
    marks.all(|mark| mark.is_some()).then_some(best)
}

/// Writes groups as lines for a pipe, separated by tabs: score of the best result, session, time of its last change,
/// project, title, number of results, snippet of the best one, the owner if requested, and the address of the best
/// one. Complete messages follow, indented.
pub(crate) fn lines<Found: GroupedFound>(
    out: &mut Out,
    groups: &[FoundSession<Found>],
    options: GroupOptions<'_>,
    now: &Zoned,
) -> io::Result<()> {
    for (rank, group) in groups.iter().enumerate() {
        let Some(best) = group.results.first().map(GroupedFound::line) else { continue };
        let updated = group.updated.unwrap_or(best.written.0);
        let mut fields = vec![
            format!("{:.3}", best.score),
            group.session_id.to_string(),
            dates::with_offset(updated, now),
            one_line(group.project.as_str()),
            one_line(group.title.as_deref().unwrap_or_default()),
            (group.results.len() + group.more).to_string(),
            marked(best.mark.as_deref(), &on_one_line(best.snippet, best.highlights, out.paint)),
        ];
        fields.extend(options.owners.then(|| one_line(group.user_id.as_str())));
        fields.push(best.address.to_owned());
        out.line(&fields.join("\t"))?;
        let message =
            MessageOptions { max_chars: (options.max_chars)(rank), ..MessageOptions::whole(out.paint) };
        for found in &group.results {
            out.lines(&found.whole(message))?;
        }
    }
    Ok(())
}
