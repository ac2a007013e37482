//! Commands that have another name now. An old name is replaced before the arguments are parsed, so each command has one
//! definition.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Args as _, Command};

use super::GlobalArgs;

/// The old names, and what to type now.
const MOVED: [(&str, &str); 12] = [
    ("init", "config init"),
    ("status", "watch status"),
    ("service", "watch service"),
    ("recent", "sessions --by project"),
    ("context", "show --context"),
    ("turn", "show --turn"),
    ("summaries import", "import --summaries"),
    ("prune", "delete --superseded"),
    ("gaps", "verify --gaps"),
    ("backfill", "embeddings backfill"),
    ("rebuild", "embeddings rebuild"),
    ("models", "embeddings models"),
];

/// Replaces an old name in `arguments`, of which the first is the program. Returns a note with the new name.
pub(crate) fn use_new_name(arguments: &mut Vec<OsString>) -> Option<String> {
    let first = next_word(arguments, 1)?;
    let is_help = word(arguments, first) == "help";
    let at = if is_help { next_word(arguments, first + 1)? } else { first };
    let (old, new) = moved(|old| word(arguments, at) == old)?;
    if let Some((_, second)) = old.split_once(' ')
        && let Some(next) = next_word(arguments, at + 1)
    {
        if word(arguments, next) != second {
            return None;
        }
        arguments.remove(next);
    }
    let mut commands: Vec<OsString> = new.split(' ').map(OsString::from).collect();
    let is_command = |word: &OsString| !word.to_string_lossy().starts_with('-');
    let mut options = commands.split_off(commands.iter().take_while(|word| is_command(word)).count());
    let mut after = at + commands.len();
    arguments.splice(at..=at, commands);
    let is_option = |typed: &OsString| {
        options.first().is_some_and(|new| typed.to_string_lossy().split('=').next() == new.to_str())
    };
    if arguments.iter().any(is_option) {
        options.clear();
    }
    if old == "turn" {
        // The number after `--turn` is optional, so the option must not come directly before the session.
        after = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    }
    if !is_help {
        arguments.splice(after..after, options);
    }
    Some(format!("`{old}` is now `{new}`"))
}

/// The new name of the command with an old name that fits.
pub(crate) fn new_name(fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    moved(fits).map(|(_, new)| new)
}

/// The names of the command whose old name, or its first word, fits.
fn moved(fits: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
    MOVED.into_iter().find(|(old, _)| old.split(' ').next().is_some_and(&fits))
}

fn word(arguments: &[OsString], at: usize) -> &OsStr {
    arguments.get(at).map(OsString::as_os_str).unwrap_or_default()
}

/// The position of the first word, from `from` on, that is neither an option nor the value of one.
pub(super) fn next_word(arguments: &[OsString], from: usize) -> Option<usize> {
    let global = GlobalArgs::augment_args(Command::new("global"));
    let mut at = from;
    loop {
        let typed = arguments.get(at)?.to_string_lossy();
        if typed == "--" {
            return None;
        }
        if !typed.starts_with('-') {
            return Some(at);
        }
        let is_typed = |option: &&Arg| option.get_long() == typed.strip_prefix("--");
        let option = global.get_arguments().find(is_typed);
        at += if option.is_some_and(|option| option.get_action().takes_values()) { 2 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    fn renamed(typed: &str) -> String {
        let mut arguments: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        use_new_name(&mut arguments);
        arguments.join(&OsString::from(" ")).into_string().unwrap()
    }

    #[test]
    fn old_names_are_replaced() {
        for (typed, new) in [
            ("x status --json", "x watch status --json"),
            ("x --json --store sqlite:a status", "x --json --store sqlite:a watch status"),
            ("x --store=status service install", "x --store=status watch service install"),
            ("x recent --days 3", "x sessions --by project --days 3"),
            ("x context 3a#4", "x show --context 3a#4"),
            ("x context 3a#4 --context", "x show 3a#4 --context"),
            ("x gaps --gaps", "x verify --gaps"),
            ("x recent --by=project", "x sessions --by=project"),
            ("x turn 3a --turn 2", "x show 3a --turn 2"),
            ("x turn 3a#4 --json", "x show 3a#4 --json --turn"),
            ("x turn -- 3a#4", "x show --turn -- 3a#4"),
            ("x summaries import -", "x import --summaries -"),
            ("x summaries --json import a", "x import --summaries --json a"),
            ("x models install a", "x embeddings models install a"),
            ("x help prune", "x help delete"),
            ("x help models install", "x help embeddings models install"),
        ] {
            assert_eq!(renamed(typed), new, "{typed}");
        }
    }

    #[test]
    fn other_words_stay() {
        for typed in [
            "x",
            "x search status",
            "x --user status sessions",
            "x -- status",
            "x show status",
            "x summaries list",
        ] {
            assert_eq!(renamed(typed), typed);
        }
    }

    #[test]
    fn no_command_has_an_old_name() {
        for (old, _) in MOVED {
            assert!(command().find_subcommand(old).is_none(), "{old}");
        }
    }
}
