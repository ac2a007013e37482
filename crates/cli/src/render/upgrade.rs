//! What an upgrade did, or would do.

use amplifier_session_storage::upgrade::{Outcome, Upgrade};

use super::text::{counted, grouped, one_line};

/// A line for each thing that there is to know.
pub(crate) fn summary(upgrade: &Upgrade, terminal: bool) -> Vec<String> {
    let file = one_line(&upgrade.file.display().to_string());
    let Some(generation) = upgrade.generation else {
        return vec![format!("{file} needs no upgrade: nothing to do")];
    };
    let done = match upgrade.outcome {
        Outcome::WouldUpgrade => "would be upgraded",
        _ => "is upgraded",
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
    if upgrade.owing > 0 {
        rows.push(("owed", format!("vectors of {}", counted(upgrade.owing, "message"))));
    }
    rows.extend(upgrade.backup.iter().map(|backup| ("backup", one_line(&backup.display().to_string()))));
    let line = |(name, value): (&str, String)| match terminal {
        true => format!("{name:<9} {value}"),
        false => format!("{name}\t{value}"),
    };
    std::iter::once(format!("{file} {done}")).chain(rows.into_iter().map(line)).collect()
}
