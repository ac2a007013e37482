//! The result of a rewind.

use std::io;

use amplifier_session_storage::{model::Session, storage::RewindReport};

use super::text::{counted, fitted, one_line};
use crate::out::Out;

/// The outcome of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Removed,
    WouldRemove,
    /// There is nothing to remove.
    Nothing,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "rewound",
            Self::WouldRemove => "would rewind",
            Self::Nothing => "unchanged",
        }
    }
}

/// The removed rows in words: `12 messages (9 with vectors) and 80 events`.
pub(crate) fn removed(report: &RewindReport) -> String {
    let vectors = match report.messages_with_vectors {
        0 => String::new(),
        messages => format!(" ({messages} with vectors)"),
    };
    let messages = format!("{}{vectors}", counted(report.messages, "message"));
    match report.events {
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
pub(crate) fn line(
    out: &mut Out,
    what: What,
    session: &Session,
    id: &str,
    to_turn: u32,
    report: &RewindReport,
) -> io::Result<()> {
    let line = if out.is_terminal() {
        let result = match (what, report.last_turn) {
            (What::Removed, _) => format!("to turn {to_turn}: removed {}", removed(report)),
            (What::WouldRemove, _) => format!("to turn {to_turn}: would remove {}", removed(report)),
            (What::Nothing, Some(last)) => format!("nothing to remove: the last turn is {last}"),
            (What::Nothing, None) => "nothing to remove: it has no turns".to_owned(),
        };
        fitted(&format!("{}  {id}  {result}", what.as_str()), out.width)
    } else {
        let fields = [
            what.as_str().to_owned(),
            session.session_id.to_string(),
            // The last turn after the rewind.
            report.last_turn.map_or(0, |last| last.min(to_turn)).to_string(),
            report.turns.to_string(),
            report.messages.to_string(),
            report.messages_with_vectors.to_string(),
            report.events.to_string(),
            one_line(session.title()),
        ];
        fields.join("\t")
    };
    out.line(&line)
}
