//! The result of a rewind.

use std::io;

use amplifier_session_api::operations::rewind::{RemovedRows, RewindResponse};

use super::{
    ids::{ShortIds, short},
    text::{counted, fitted, one_line},
};
use crate::out::Out;

/// The removed rows in words: `12 messages (9 with vectors) and 80 events`.
pub(crate) fn removed(rows: &RemovedRows) -> String {
    let vectors = match rows.messages_with_vectors {
        0 => String::new(),
        messages => format!(" ({messages} with vectors)"),
    };
    let messages = format!("{}{vectors}", counted(rows.messages, "message"));
    match rows.events {
        0 => messages,
        events => format!("{messages} and {}", counted(events, "event")),
    }
}

/// `after turn 4`.
pub(crate) fn after(turn: u32) -> String {
    match turn {
        0 => "from the first turn on".to_owned(),
        turn => format!("after turn {turn}"),
    }
}

/// Writes the result on one line.
pub(crate) fn line(out: &mut Out, response: &RewindResponse, short_ids: &ShortIds) -> io::Result<()> {
    let RewindResponse { session, to_turn, dry_run, last_turn, removed: rows, .. } = response;
    let session = &session.session;
    let label = match (rows.is_empty(), dry_run) {
        (true, _) => "unchanged",
        (false, true) => "would rewind",
        (false, false) => "rewound",
    };
    let line = if out.is_terminal() {
        let result = match (rows.is_empty(), dry_run, last_turn) {
            (false, false, _) => format!("to turn {to_turn}: removed {}", removed(rows)),
            (false, true, _) => format!("to turn {to_turn} and remove {}", removed(rows)),
            (true, _, Some(last)) => format!("nothing to remove: the last turn is {last}"),
            (true, _, None) => "nothing to remove: it has no turns".to_owned(),
        };
        fitted(&format!("{label}  {}  {result}", short(short_ids, &session.session_id)), out.width)
    } else {
        let fields = [
            label.to_owned(),
            session.session_id.to_string(),
            // The last turn after the rewind.
            last_turn.map_or(0, |last| last.min(*to_turn)).to_string(),
            rows.turns.to_string(),
            rows.messages.to_string(),
            rows.messages_with_vectors.to_string(),
            rows.events.to_string(),
            one_line(session.title()),
        ];
        fields.join("\t")
    };
    out.line(&line)
}
