//! Turns: one in full, and the results of a search.

use std::io;

use amplifier_session_api::operations::{search_turns::FoundTurn, turn::TurnResponse};
use amplifier_session_storage::{search::TurnResult, storage::SummarySource, text::Snippet};
use jiff::Zoned;

use super::{
    conversation,
    groups::{GroupedFound, GroupedLine},
    markdown::wrapped as wrapped_line,
    message::MessageOptions,
    result::{marked, similar},
    snippet::{on_one_line, wrapped},
    text::{fitted, one_line, printable},
};
use crate::{dates, out::Out, paint::Paint};

/// The width of the labels of sides.
const LABEL: usize = 11;

/// The sides of a result: the user's text, and the summary or else the answer.
fn sides(result: &TurnResult) -> Vec<(&'static str, &Snippet)> {
    let answer = match (&result.summary, &result.assistant) {
        (Some(summary), _) => Some(("Summary", summary)),
        (None, Some(assistant)) => Some(("Assistant", assistant)),
        (None, None) => None,
    };
    std::iter::once(("User", &result.user)).chain(answer).collect()
}

/// Writes results as blocks for a terminal: rank and title, addresses, both sides.
pub(crate) fn blocks(out: &mut Out, results: &[FoundTurn], owners: bool, now: &Zoned) -> io::Result<()> {
    const INDENT: &str = "    ";
    let (width, paint) = (out.width, out.paint);
    for (rank, found) in results.iter().enumerate() {
        if rank > 0 {
            out.line("")?;
        }
        let FoundTurn { address: place, title, result } = found;
        let title = title.as_deref().unwrap_or(result.project.as_str());
        let mut known = known(found);
        known.push(dates::about_minute(result.ts, result.ts_estimated, now));
        known.extend(owners.then(|| one_line(result.user_id.as_str())));
        known.extend(similar(result.match_kind, result.similarity));
        known.push(format!("{:.2}", result.score));
        let room = width.saturating_sub(INDENT.len() + place.len() + 1);
        let known = fitted(&format!("· {}", known.join(" · ")), room);
        out.line(&format!(
            "{:>2}. {}",
            rank + 1,
            paint.title(&fitted(&one_line(title), width - INDENT.len()))
        ))?;
        out.line(&format!("{INDENT}{place} {}", paint.aside(&known)))?;
        out.lines(&side_lines(result, INDENT, width, paint))?;
    }
    Ok(())
}

/// The turn of a result and the address of the answer.
fn known(found: &FoundTurn) -> Vec<String> {
    let turn = format!("turn {}", found.result.turn);
    std::iter::once(turn).chain(found.answer().map(|answer| format!("answer {answer}"))).collect()
}

/// Both sides of a result, as lines.
fn side_lines(result: &TurnResult, indent: &str, width: usize, paint: Paint) -> Vec<String> {
    let mut shown = Vec::new();
    for (label, side) in sides(result) {
        let lines = wrapped(&side.text, &side.highlights, width - indent.len() - LABEL, paint);
        for (at, line) in lines.iter().enumerate() {
            let label = format!("{:<LABEL$}", if at == 0 { label } else { "" });
            shown.push(format!("{indent}{}{line}", paint.aside(&label)));
        }
    }
    shown
}

impl GroupedFound for FoundTurn {
    fn line(&self) -> GroupedLine<'_> {
        let TurnResult { score, ts, ts_estimated, match_kind, similarity, snippet, highlights, .. } =
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

    fn block(&self, out: &Out, indent: &str, _: Option<usize>) -> Vec<String> {
        const DEEPER: usize = 2;
        let mut known = known(self);
        known.extend(self.line().mark);
        let kind = out.paint.aside(&format!("· {}", known.join(" · ")));
        let mut lines = vec![format!("{indent}{} {kind}", self.address)];
        let deeper = format!("{indent}{:DEEPER$}", "");
        lines.extend(side_lines(&self.result, &deeper, out.width, out.paint));
        lines
    }

    fn whole(&self, _: MessageOptions) -> Vec<String> {
        Vec::new()
    }
}

/// Writes results as lines for a pipe, separated by tabs: score, session, message, time, project, turn, user's text,
/// answer or summary, the owner if requested, and the addresses of both messages.
pub(crate) fn lines(out: &mut Out, results: &[FoundTurn], owners: bool, now: &Zoned) -> io::Result<()> {
    for found in results {
        let FoundTurn { address, result, .. } = found;
        let mut texts =
            sides(result).into_iter().map(|(_, side)| on_one_line(&side.text, &side.highlights, out.paint));
        let mark = similar(result.match_kind, result.similarity);
        let mut fields = vec![
            format!("{:.3}", result.score),
            result.session_id.to_string(),
            result.sequence.to_string(),
            dates::with_offset(result.ts, now),
            one_line(result.project.as_str()),
            result.turn.to_string(),
            marked(mark.as_deref(), &texts.next().unwrap_or_default()),
            texts.next().unwrap_or_default(),
        ];
        fields.extend(owners.then(|| one_line(result.user_id.as_str())));
        fields.push(address.clone());
        fields.push(found.answer().unwrap_or_default());
        out.line(&fields.join("\t"))?;
    }
    Ok(())
}

/// Writes one turn in full.
pub(crate) fn whole(out: &mut Out, response: &TurnResponse, now: &Zoned) -> io::Result<()> {
    let TurnResponse { address, title, turn, turn_count, .. } = response;
    conversation::title(out, title)?;
    let about = [
        format!("turn {} of {}", turn.turn, turn_count.unwrap_or(turn.turn)),
        dates::about_minute(turn.ts, turn.ts_estimated, now),
        one_line(turn.project.as_str()),
    ];
    for line in wrapped_line(&about.join(" · "), out.wrap_at()) {
        out.line(&out.paint.aside(&line))?;
    }
    let summary = turn.summary.as_ref().map(|text| {
        let source = match turn.summary_source {
            Some(SummarySource::Imported) => "imported",
            _ => "from the transcript",
        };
        (format!("Summary, {source}"), text)
    });
    let assistant = turn.assistant.as_ref();
    let assistant =
        assistant.map(|side| (format!("Assistant {}", response.address_of(side.sequence)), &side.text));
    let user = (format!("User {address}"), &turn.user.text);
    let width = out.wrap_at().map(|width| width.saturating_sub(2));
    for (label, text) in std::iter::once(user).chain(assistant).chain(summary) {
        out.line("")?;
        out.line(&out.paint.aside(&label))?;
        for line in printable(text).lines().flat_map(|line| wrapped_line(line, width)) {
            out.line(format!("  {line}").trim_end())?;
        }
    }
    Ok(())
}
