//! Totals and files, and the format of numbers.

use std::path::Path;

use amplifier_session_api::{
    operations::statistics::{StatisticsResponse, StoreVectors},
    text::cost,
};
use amplifier_session_storage::{
    backend::Usage,
    storage::{DayStatistics, LeftOut, Statistics},
};

use unicode_width::UnicodeWidthStr as _;

use crate::{
    paint::Paint,
    render::{
        card::labelled,
        text::{counted, grouped, one_line, size},
    },
};

/// The totals, one per line.
pub(super) fn totals(statistics: &Statistics, has_period: bool, width: usize) -> Vec<String> {
    let (totals, days) = (statistics.totals, &statistics.days);
    let sum = |of: fn(&DayStatistics) -> u64| days.iter().map(of).sum::<u64>();
    let (messages, events) = (sum(|day| day.messages), sum(|day| day.events));
    let users = format!("{} user", grouped(sum(|day| day.user_messages)));
    let mut rows = vec![("sessions", grouped(totals.sessions))];
    // A session counts if it was active in the period, but not all of its rows lie in it.
    if has_period {
        let of = |count, all| {
            if count == all {
                grouped(count)
            } else {
                format!("{} of {} in these sessions", grouped(count), grouped(all))
            }
        };
        rows.push(("messages", of(messages, totals.messages)));
        rows.push(("events", of(events, totals.events)));
    } else {
        let turns = counted(totals.turns, "turn");
        rows.push(("messages", format!("{} ({users}), {turns}", grouped(totals.messages))));
        rows.push(("events", grouped(totals.events)));
    }
    if statistics.usage.calls > 0 {
        rows.push(("models", used(statistics.usage)));
    }
    rows.extend(left_out(statistics.left_out).map(|left_out| ("left out", left_out)));
    if statistics.compacted_events > 0 {
        let text = format!("{} are only in superseded lines", counted(statistics.compacted_events, "event"));
        rows.push(("compacted", text));
    }
    if let (Some(first), Some(last)) = (days.first(), days.last()) {
        let active = days.iter().filter(|day| is_active(day)).count() as u64;
        rows.push(("days", format!("{} with activity, {} to {}", grouped(active), first.day, last.day)));
    }
    rows.iter().flat_map(|(label, value)| labelled(label, value, Some(width))).collect()
}

/// Whether anything was written on a day.
fn is_active(day: &DayStatistics) -> bool {
    day.sessions + day.messages + day.events > 0
}

fn used(usage: Usage) -> String {
    let (calls, input, output) =
        (counted(usage.calls, "call"), counted(usage.input_tokens, "token"), grouped(usage.output_tokens));
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cache = match read.saturating_add(written) {
        0 => String::new(),
        _ => format!(", {} read from cache, {} written to it", grouped(read), grouped(written)),
    };
    let cost = Some(cost(usage.cost)).filter(|cost| !cost.is_empty());
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
    let covered = covered(usage).map_or_else(String::new, |covered| format!("; {covered}"));
    format!("{calls}, {input} in, {output} out{cache}{cost}{covered}")
}

/// How many calls the cost covers, if not all of them.
pub(super) fn covered(usage: Usage) -> Option<String> {
    usage.has_partial_cost().then(|| {
        let unreadable = match usage.unreadable_costs {
            0 => String::new(),
            costs => format!(" ({} can't be read)", counted(costs, "cost")),
        };
        format!("cost covers {} of {}{unreadable}", grouped(usage.priced_calls), counted(usage.calls, "call"))
    })
}

/// The duplicates that the totals leave out.
fn left_out(left_out: LeftOut) -> Option<String> {
    let LeftOut { sessions, messages, turns, events, usage, .. } = left_out;
    let counts = [(messages, "message"), (turns, "turn"), (events, "event"), (usage.calls, "call")];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| counted(*count, name));
    let mut parts: Vec<String> = counts.collect();
    parts.extend(Some(cost(usage.cost)).filter(|cost| !cost.is_empty()));
    if parts.is_empty() {
        return None;
    }
    let of = match sessions {
        0 => "which logs have twice".to_owned(),
        sessions => format!("copied to {}", counted(sessions, "session")),
    };
    Some(format!("{}, {of}", parts.join(", ")))
}

/// The files of the store, their sizes, and the state of the vectors.
pub(super) fn places(
    response: &StatisticsResponse,
    home: Option<&Path>,
    width: usize,
    paint: Paint,
) -> Vec<String> {
    let sizes: Vec<String> =
        response.places.iter().map(|place| place.bytes.map_or_else(|| "?".to_owned(), size)).collect();
    let widest = sizes.iter().map(String::len).max().unwrap_or(0);
    let mut lines = vec![paint.title("Store")];
    for (place, size) in response.places.iter().zip(&sizes) {
        let line = format!("{:<9} {size:>widest$}", one_line(&place.what));
        let location = one_line(&below_home(&place.location, home));
        if line.width() + 2 + location.width() <= width {
            lines.push(format!("{line}  {location}"));
        } else {
            // The path stays on one line, so that it can be copied.
            lines.extend([line, format!("  {location}")]);
        }
    }
    lines.extend(labelled("vectors", &vectors(&response.vectors), Some(width)));
    lines
}

/// The location, with `~` for the home folder.
fn below_home(location: &str, home: Option<&Path>) -> String {
    let below = home.and_then(|home| Path::new(location).strip_prefix(home).ok());
    below.map_or_else(|| location.to_owned(), |below| format!("~/{}", below.display()))
}

fn vectors(vectors: &StoreVectors) -> String {
    let made = vectors.space.as_ref().map_or_else(|| "none".to_owned(), |space| one_line(&space.to_string()));
    let pending = match (vectors.pending_messages, vectors.pending_more) {
        (None, _) => return made,
        (Some(0), _) => "none pending".to_owned(),
        (Some(count), false) => format!("{} pending", counted(count as u64, "message")),
        (Some(count), true) => format!("more than {} messages pending", grouped(count as u64)),
    };
    format!("{made}; {pending}")
}

/// A share in per cent, or nothing if it is 0.
pub(super) fn share(part: u64, all: u64) -> String {
    match part as f64 * 100.0 / all.max(1) as f64 {
        0.0 => String::new(),
        percent if percent < 0.1 => "<0.1%".to_owned(),
        // Several events may report the failure of one use.
        percent => format!("{:.1}%", percent.min(100.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_cost_says_so() {
        let text = |calls, priced, unreadable| {
            let mut usage = Usage::of_calls(calls);
            (usage.priced_calls, usage.unreadable_costs) = (priced, unreadable);
            covered(usage)
        };
        assert_eq!((text(238, 238, 0), text(238, 0, 0)), (None, None));
        assert_eq!(text(238, 18, 0).as_deref(), Some("cost covers 18 of 238 calls"));
        assert_eq!(text(1, 0, 1).as_deref(), Some("cost covers 0 of 1 call (1 cost can't be read)"));
        assert_eq!(
            text(1_238, 18, 2).as_deref(),
            Some("cost covers 18 of 1,238 calls (2 costs can't be read)")
        );
    }

    #[test]
    fn shares_are_readable() {
        let shares = [share(0, 10), share(0, 0), share(1, 3), share(1, 2_000), share(7, 4)];
        assert_eq!(shares, ["", "", "33.3%", "<0.1%", "100.0%"]);
    }

    #[test]
    fn paths_in_the_home_folder_begin_with_a_tilde() {
        let named = |location| below_home(location, Some(Path::new("/home/ana")));
        assert_eq!(named("/home/ana/.amplifier/s.sqlite"), "~/.amplifier/s.sqlite");
        assert_eq!(named("/home/anabel/s.sqlite"), "/home/anabel/s.sqlite");
        assert_eq!(named("https://account/database"), "https://account/database");
        assert_eq!(below_home("/s.sqlite", None), "/s.sqlite");
    }

    #[test]
    fn pending_vectors_are_counted() {
        let text = |pending_messages, pending_more| {
            vectors(&StoreVectors { space: None, pending_messages, pending_more })
        };
        assert_eq!(text(None, false), "none");
        assert_eq!(text(Some(0), false), "none; none pending");
        assert_eq!(text(Some(1), false), "none; 1 message pending");
        assert_eq!(text(Some(12), false), "none; 12 messages pending");
        assert_eq!(text(Some(1_000), true), "none; more than 1,000 messages pending");
    }
}
