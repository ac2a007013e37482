//! The status of vectors, and estimates of making them.

use amplifier_session_api::operations::vectors::VectorsOfMessage;
use amplifier_session_storage::{
    model::ContentType,
    storage::{EmbedReport, Estimate, GenerationStatus, VectorStatus},
};

use super::{
    card::{labelled, row},
    result::label,
    summary::{detailed, list},
    table::{Column, TableCell, table as laid_out},
    text::{counted, grouped, one_line},
};
use crate::paint::Paint;

const COLUMNS: [Column; 6] = [
    Column::text("Model").shrinking(1, 16),
    Column::number("Messages"),
    Column::number("Vectors"),
    Column::number("Pending"),
    Column::number("Failed"),
    Column::text(""),
];

/// A table of the models, for a terminal.
pub(crate) fn table(status: &VectorStatus, width: usize, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let rows: Vec<Vec<TableCell>> = generations(status)
        .map(|(state, of)| {
            let counts = [of.counts.messages, of.counts.vectors, of.counts.pending];
            let mut row = vec![TableCell::plain(one_line(&of.space.to_string()))];
            row.extend(counts.map(|count| TableCell::plain(grouped(count))));
            // A column without failures is left out.
            let failed = Some(failed(of)).filter(|failed| *failed > 0);
            row.push(TableCell::plain(failed.map(grouped).unwrap_or_default()));
            row.push(TableCell::styled(state, Paint::aside));
            row
        })
        .collect();
    if !rows.is_empty() {
        lines.extend(laid_out(&COLUMNS, &rows, width, paint));
        lines.push(String::new());
    }
    let (embeddable, nothing) = (counted(status.embeddable, "message"), grouped(status.nothing));
    lines.push(format!("{embeddable} with something to embed, {nothing} with nothing"));
    if status.leftover_vectors > 0 {
        let left = counted(status.leftover_vectors, "vector");
        lines.push(format!("{left} of earlier models, which the next rebuild removes"));
    }
    lines
}

/// One line per model, for a pipe.
pub(crate) fn tabbed(status: &VectorStatus) -> Vec<String> {
    let line = |(state, of): (&str, &GenerationStatus)| {
        let (model, dimensions) = (one_line(&of.space.model), of.space.dimensions);
        let (counts, failed) = (&of.counts, failed(of));
        let (messages, vectors, pending) = (counts.messages, counts.vectors, counts.pending);
        format!("{state}\t{model}\t{dimensions}\t{messages}\t{vectors}\t{pending}\t{failed}")
    };
    generations(status).map(line).collect()
}

/// The messages of a session with the texts that have vectors, one per line: aligned for a terminal, separated by tabs
/// for a pipe.
pub(crate) fn of_messages(messages: &[VectorsOfMessage], terminal: bool) -> Vec<String> {
    let line = |VectorsOfMessage { sequence, has_vectors }: &VectorsOfMessage| {
        let has = |kind: &ContentType| has_vectors.get(kind.as_str()).copied().unwrap_or(false);
        let types = ContentType::EMBEDDED.into_iter().filter(has);
        if terminal {
            let labels: Vec<&str> = types.map(label).collect();
            let labels = if labels.is_empty() { "no vectors".to_owned() } else { labels.join(", ") };
            return format!("{:<6} {labels}", format!("#{sequence}"));
        }
        let names: Vec<&str> = types.map(|kind| kind.as_str()).collect();
        format!("{sequence}\t{}", names.join(","))
    };
    messages.iter().map(line).collect()
}

fn generations(status: &VectorStatus) -> impl Iterator<Item = (&'static str, &GenerationStatus)> {
    let current = status.current.iter().map(|of| ("searched", of));
    current.chain(status.next.iter().map(|of| ("being made", of)))
}

fn failed(of: &GenerationStatus) -> u64 {
    of.counts.failed.values().sum()
}

/// An estimate, with the price and the cost if known.
pub(crate) fn estimate(estimate: &Estimate, cost: Option<(f64, f64)>, terminal: bool) -> Vec<String> {
    let counts = [
        ("messages", estimate.messages),
        ("texts", estimate.texts),
        ("tokens", estimate.tokens),
        ("calls", estimate.calls),
    ];
    let shown = |count: u64| if terminal { grouped(count) } else { count.to_string() };
    let mut lines: Vec<String> =
        counts.into_iter().map(|(name, count)| row(name, &shown(count), terminal)).collect();
    if let Some((price, cost)) = cost {
        let at = if terminal { format!(" at {price} per million tokens") } else { String::new() };
        lines.push(row("cost", &format!("{cost:.4}{at}"), terminal));
    }
    lines
}

/// What was embedded, one item per line, wrapped if `width` is given.
pub(crate) fn report(report: &EmbedReport, width: Option<usize>) -> Vec<String> {
    let by_type = list(report.vectors.iter().map(|(content_type, count)| (*count, label(*content_type))));
    let mut rows =
        vec![("messages", grouped(report.messages)), ("vectors", detailed(report.total(), &by_type))];
    if report.turns > 0 {
        rows.push(("turns", grouped(report.turns)));
    }
    if report.refused > 0 {
        rows.push(("refused", counted(report.refused, "text")));
    }
    if report.secrets > 0 {
        rows.push(("masked", counted(report.secrets, "secret")));
    }
    rows.into_iter().flat_map(|(name, value)| labelled(name, &value, width)).collect()
}
