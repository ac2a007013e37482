//! The summary of a sync.

use std::io;

use amplifier_session_storage::{StoreUrl, sync::SyncReport};

use super::{
    card::labelled,
    result::label,
    text::{counted, grouped, size},
};
use crate::out::Out;

/// Writes the counts of a sync, one per line, and where the sessions are stored.
pub(crate) fn summary(out: &mut Out, report: &SyncReport, store: Option<&StoreUrl>) -> io::Result<()> {
    let width = out.wrap_at();
    let store = store.map(|store| ("store", store.to_string()));
    let lines =
        rows(report).into_iter().chain(store).flat_map(|(label, value)| labelled(label, &value, width));
    out.lines(&lines.collect::<Vec<_>>())
}

fn rows(report: &SyncReport) -> Vec<(&'static str, String)> {
    let sessions = report.sessions;
    let by_outcome = [
        (sessions.new, "new"),
        (sessions.changed, "changed"),
        (sessions.unchanged, "unchanged"),
        (sessions.failed, "failed"),
    ];
    let by_outcome = list(by_outcome.into_iter());
    let messages = &report.messages;
    let texts =
        list(messages.by_content_type.iter().map(|(content_type, count)| (*count, label(*content_type))));
    let text_count = messages.by_content_type.values().sum();
    let vectors = report.vectors.values().sum();
    let by_type = list(report.vectors.iter().map(|(content_type, count)| (*count, label(*content_type))));
    let mut rows = vec![
        ("sessions", detailed(sessions.found, &by_outcome)),
        (
            "messages",
            grouped(messages.written)
                + &removed(messages.removed)
                + &superseded(messages.superseded)
                + &retimed(messages.retimed),
        ),
        // A message may have several texts, or none.
        ("texts", detailed(text_count, &texts)),
        (
            "events",
            grouped(report.events.written)
                + &removed(report.events.removed)
                + &superseded(report.events.superseded),
        ),
        ("vectors", detailed(vectors, &by_type)),
    ];
    if report.turns > 0 {
        rows.push(("turns", counted(report.turns, "vector")));
    }
    if sessions.deleted > 0 {
        let deleted = counted(sessions.deleted, "deleted session");
        rows.push(("ignored", format!("{deleted}; sync --include-deleted reads them again")));
    }
    if report.texts_refused > 0 {
        rows.push(("refused", counted(report.texts_refused, "text")));
    }
    if report.secrets_masked > 0 {
        rows.push(("masked", counted(report.secrets_masked, "secret")));
    }
    if report.secrets_masked_in_store > 0 {
        rows.push(("stored", format!("{} masked", counted(report.secrets_masked_in_store, "secret"))));
    }
    if !report.unfinished.is_empty() {
        let files = counted(report.unfinished.len() as u64, "file");
        rows.push(("partial", format!("{files}, which may be completed")));
    }
    if report.kept_rows > 0 {
        let files = counted(report.kept.len() as u64, "damaged file");
        rows.push(("kept", format!("{} of {files}", counted(report.kept_rows, "row"))));
    }
    if report.skipped_count > 0 {
        rows.push(("skipped", grouped(report.skipped_count)));
    }
    if report.warning_count > 0 {
        rows.push(("warnings", grouped(report.warning_count)));
    }
    rows.push(("read", size(report.bytes)));
    rows.push(("seconds", format!("{:.1}", report.seconds)));
    rows
}

/// `12 new, 3 changed`, without zeros.
pub(super) fn list(counts: impl Iterator<Item = (u64, &'static str)>) -> String {
    let counts =
        counts.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{} {name}", grouped(count)));
    counts.collect::<Vec<_>>().join(", ")
}

pub(super) fn detailed(total: u64, details: &str) -> String {
    if details.is_empty() { grouped(total) } else { format!("{} ({details})", grouped(total)) }
}

fn retimed(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {} with a new time", grouped(count)) }
}

fn superseded(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {} superseded", grouped(count)) }
}

fn removed(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {} removed", grouped(count)) }
}
