//! The result of an upgrade, or of a dry run.

use amplifier_session_storage::upgrade::{Upgrade, UpgradeOutcome};

use super::{
    card::row,
    text::{counted, grouped, one_line},
};

/// The report, in lines.
pub(crate) fn summary(upgrade: &Upgrade, terminal: bool) -> Vec<String> {
    let file = one_line(&upgrade.file.display().to_string());
    let Some(generation) = upgrade.generation else {
        return vec![format!("{file} needs no upgrade: nothing to do")];
    };
    let is_planned = upgrade.outcome == UpgradeOutcome::WouldUpgrade;
    // Only a file that the store replaces is kept as a backup.
    let done = match (&upgrade.backup, is_planned) {
        (Some(_), true) => "would be upgraded".to_owned(),
        (Some(_), false) => "was upgraded".to_owned(),
        (None, true) => format!("would be copied to {}", one_line(&upgrade.store)),
        (None, false) => format!("was copied to {}", one_line(&upgrade.store)),
    };
    let count = |count: u64| if terminal { grouped(count) } else { count.to_string() };
    let mut rows = vec![
        ("from", format!("the Python library, generation {generation}")),
        ("sessions", count(upgrade.counts.sessions)),
        ("messages", count(upgrade.counts.messages)),
        ("events", count(upgrade.counts.events)),
        ("vectors", count(upgrade.counts.vectors)),
    ];
    rows.extend(upgrade.space.iter().map(|space| ("model", one_line(&space.to_string()))));
    if upgrade.skipped > 0 {
        rows.push(("skipped", format!("{} that the store has or had", counted(upgrade.skipped, "session"))));
    }
    if upgrade.pending > 0 {
        rows.push(("pending", format!("vectors of {}", counted(upgrade.pending, "message"))));
    }
    rows.extend(upgrade.backup.iter().map(|backup| ("backup", one_line(&backup.display().to_string()))));
    let rows = rows.into_iter().map(|(name, value)| row(name, &value, terminal));
    std::iter::once(format!("{file} {done}")).chain(rows).collect()
}
