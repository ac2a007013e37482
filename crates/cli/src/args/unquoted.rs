//! Queries that are typed without quotes. Words of them may look like options: `search rm -rf x`, `search git reset
//! --hard`.

use std::ffi::OsString;

use clap::{Arg, Command};

use super::{global::quoted, moved::next_word, query::is_option_like};

/// The commands with queries.
const WITH_QUERIES: [&str; 2] = ["search", "timeline"];

/// The kind of an argument after the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentKind {
    /// A word of the query.
    Word,
    /// An option, with its value.
    Option,
    /// A short option that needs a value, or a number, and does not have it: perhaps one of another program.
    IncompleteOption,
    /// A word that looks like a long option but is not a known one.
    UnknownOption,
}

/// A command line with a query.
#[derive(Debug)]
pub(crate) struct QueryLine {
    /// The program, the options before the command, and the command.
    before: Vec<String>,
    arguments: Vec<(ArgumentKind, Vec<String>)>,
    /// `--` and what follows.
    after: Vec<String>,
    /// The names of all options.
    options: Vec<String>,
}

impl QueryLine {
    /// Splits `arguments`, of which the first is the program; `None` if the command has no query. `definition` is that of
    /// the whole command line.
    pub(crate) fn split(definition: &Command, arguments: &[OsString]) -> Option<Self> {
        let at = next_word(arguments, 1)?;
        let typed: Vec<String> =
            arguments.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
        let (before, rest) = typed.split_at_checked(at + 1)?;
        let name = before.last().filter(|name| WITH_QUERIES.contains(&name.as_str()))?;
        let command = with_all_options(definition, name)?;
        let dashes = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
        let (mut rest, after) = rest.split_at_checked(dashes)?;
        let mut split = Vec::new();
        while let Some((word, following)) = rest.split_first() {
            let (kind, words) = argument(&command, word, following.first());
            // An attached value does not follow.
            let has_next = words.len() > 1 && words.first() == Some(word);
            rest = if has_next { following.get(1..).unwrap_or_default() } else { following };
            split.push((kind, words));
        }
        let options = command.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
        Some(Self { before: before.to_vec(), arguments: split, after: after.to_vec(), options })
    }

    /// The arguments with the words of the query as one argument if some begin with a hyphen: clap takes them for options.
    pub(crate) fn joined(&self) -> Vec<OsString> {
        let is_word = |kind: ArgumentKind| kind == ArgumentKind::Word;
        let words: Vec<&str> = self.of_kind(is_word).collect();
        let joins = words.len() > 1 && words.iter().any(|word| word.starts_with('-'));
        let mut query = joins.then(|| words.join(" "));
        let mut joined = self.before.clone();
        for (kind, words) in &self.arguments {
            if joins && is_word(*kind) {
                joined.extend(query.take());
            } else {
                joined.extend(words.iter().cloned());
            }
        }
        joined.extend(self.after.iter().cloned());
        joined.into_iter().map(OsString::from).collect()
    }

    /// The first word that looks like an option but is not a known one.
    pub(crate) fn unknown_option(&self) -> Option<&str> {
        self.of_kind(|kind| kind == ArgumentKind::UnknownOption).next()
    }

    /// Whether a short option does not have the value that it needs.
    pub(crate) fn has_incomplete_option(&self) -> bool {
        self.of_kind(|kind| kind == ArgumentKind::IncompleteOption).next().is_some()
    }

    /// The names of all options of the command.
    pub(crate) fn options(&self) -> &[String] {
        &self.options
    }

    /// The command line on which everything is text that is no complete option, quoted.
    pub(crate) fn quoted(&self) -> String {
        let after = self.after.iter().skip(1).map(String::as_str);
        let text: Vec<&str> = self.of_kind(|kind| kind != ArgumentKind::Option).chain(after).collect();
        let text = text.join(" ");
        let before = self.before.iter().map(String::as_str);
        let options = self.of_kind(|kind| kind == ArgumentKind::Option);
        let words: Vec<String> = if is_option_like(&text) {
            before.chain(options).chain(["--", &text]).map(quoted).collect()
        } else {
            before.chain([text.as_str()]).chain(options).map(quoted).collect()
        };
        words.join(" ")
    }

    fn of_kind(&self, is_meant: impl Fn(ArgumentKind) -> bool) -> impl Iterator<Item = &str> {
        let meant = self.arguments.iter().filter(move |(kind, _)| is_meant(*kind));
        meant.flat_map(|(_, words)| words.iter().map(String::as_str))
    }
}

/// The argument that begins with `word`: its kind, and its words, which are two if it is an option with a value.
fn argument(command: &Command, word: &str, next: Option<&String>) -> (ArgumentKind, Vec<String>) {
    let alone = |kind| (kind, vec![word.to_owned()]);
    let with_next = |kind| match next {
        Some(value) => (kind, vec![word.to_owned(), value.clone()]),
        None => alone(kind),
    };
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return match command.get_arguments().find(|option| option.get_long() == Some(name)) {
            Some(option) if takes_value(option) && !long.contains('=') => with_next(ArgumentKind::Option),
            Some(_) => alone(ArgumentKind::Option),
            None if is_option_like(word) => alone(ArgumentKind::UnknownOption),
            None => alone(ArgumentKind::Word),
        };
    }
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return alone(ArgumentKind::Word);
    };
    for (at, letter) in letters.char_indices() {
        let Some(option) = command.get_arguments().find(|option| option.get_short() == Some(letter)) else {
            return alone(ArgumentKind::Word);
        };
        if !takes_value(option) {
            continue;
        }
        let (flags, attached) = word.split_at(1 + at + letter.len_utf8());
        if attached.is_empty() {
            let is_number = |value: &String| option.get_id() != "limit" || value.parse::<usize>().is_ok();
            let is_complete = next.is_some_and(is_number);
            return with_next(if is_complete {
                ArgumentKind::Option
            } else {
                ArgumentKind::IncompleteOption
            });
        }
        let value = attached.strip_prefix('=').unwrap_or(attached);
        let is_value = value.len() < attached.len() || value.bytes().all(|byte| byte.is_ascii_digit());
        return if is_value {
            // Clap would take it for a word, as `-postgres`.
            (ArgumentKind::Option, vec![flags.to_owned(), value.to_owned()])
        } else {
            alone(ArgumentKind::Word)
        };
    }
    alone(ArgumentKind::Option)
}

/// The command with this name, with the global options and `--help`, which clap adds when it parses.
fn with_all_options(definition: &Command, name: &str) -> Option<Command> {
    let command = definition.find_subcommand(name)?;
    let is_own = |option: &Arg| command.get_arguments().any(|own| own.get_id() == option.get_id());
    let global = definition.get_arguments().filter(|option| !is_own(option));
    let mut command = command.clone().args(global);
    command.build();
    Some(command)
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    fn line(typed: &str) -> QueryLine {
        let words: Vec<OsString> = typed.split(' ').map(|word| word.replace('_', " ").into()).collect();
        QueryLine::split(&command(), &words).unwrap()
    }

    #[test]
    fn words_with_hyphens_and_their_neighbours_are_one_argument() {
        for (typed, expected) in [
            ("x search rm -rf x", "x search rm_-rf_x"),
            ("x --json search rm --limit 3 -rf x -v", "x --json search rm_-rf_x --limit 3 -v"),
            ("x timeline timeout -postgres", "x timeline timeout_-postgres"),
            ("x search -la /tmp", "x search -la_/tmp"),
            ("x search ls -l", "x search ls -l"),
            ("x search a b", "x search a b"),
            ("x search a -n5 b", "x search a -n 5 b"),
            ("x search a -vn=5 -p -home-ana", "x search a -vn 5 -p -home-ana"),
            ("x search a --min-similarity -0.5", "x search a --min-similarity -0.5"),
            ("x search the flag -x -- --mode -y", "x search the_flag_-x -- --mode -y"),
            ("x search git reset --hard", "x search git reset --hard"),
        ] {
            let joined: Vec<String> =
                line(typed).joined().iter().map(|word| word.to_str().unwrap().replace(' ', "_")).collect();
            assert_eq!(joined.join(" "), expected, "{typed}");
        }
        let split = |typed: &str| {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            QueryLine::split(&command(), &words).is_some()
        };
        assert!(!split("x sessions rm -rf") && !split("x help search") && !split("x") && split("x search"));
    }

    #[test]
    fn the_quoted_command_keeps_its_options() {
        for (typed, unknown, quoted) in [
            ("x search git reset --hard", Some("--hard"), "x search 'git reset --hard'"),
            (
                "x --store sqlite:a search git --hard --limit 3 -- it's",
                Some("--hard"),
                r"x --store sqlite:a search 'git --hard it'\''s' --limit 3",
            ),
            ("x search --limt 3", Some("--limt"), "x search '--limt 3'"),
            ("x search --json --limt", Some("--limt"), "x search --json -- --limt"),
            ("x search grep -n foo", None, "x search 'grep -n foo'"),
            ("x search tail -n", None, "x search 'tail -n'"),
            ("x search a_b --limit 3", None, "x search 'a b' --limit 3"),
        ] {
            let line = line(typed);
            assert_eq!((line.unknown_option(), line.quoted()), (unknown, quoted.to_owned()), "{typed}");
        }
        assert!(line("x search grep -n foo").has_incomplete_option());
        assert!(!line("x search a -n 5").has_incomplete_option());
    }
}
