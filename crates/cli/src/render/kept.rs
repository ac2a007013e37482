//! Damaged files whose stored rows were kept.

use amplifier_session_storage::sync::Kept;

use super::text::{counted, one_line};
use crate::failure::say;

/// At most this many files are listed.
const LISTED: usize = 10;

/// Lists damaged files and the number of rows that were kept. `accept` is the command that removes them.
pub(crate) fn report_kept(all: &[Kept], accept: &str) {
    for kept in all.iter().take(LISTED) {
        let place = [&kept.project, &kept.session, &kept.file].map(|place| one_line(place)).join("/");
        let rows = match kept.messages {
            0 => counted(kept.events, "stored event"),
            messages => counted(messages, "stored message"),
        };
        say("kept", &format!("{place} {}: {rows} kept", kept.reason));
    }
    if all.len() > LISTED {
        say("kept", &format!("… and {} more, listed by `sync --json`", all.len() - LISTED));
    }
    if !all.is_empty() {
        let hint = format!("restore these files, or remove what they no longer contain with {accept}");
        say("hint", &hint);
    }
}
