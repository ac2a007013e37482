//! Completion of a command line.

use clap::{Arg, Command, ValueHint};

use super::candidates::{self, WordCompletion};

/// The result of completion.
#[derive(Debug, PartialEq)]
pub(super) enum Completion {
    Candidates(Vec<WordCompletion>),
    /// A file or folder, which the shell completes.
    Path,
}

/// Completes the last of `words`; the first one is the program. `command` must be built.
pub(super) fn complete(command: &Command, words: &[String]) -> Completion {
    let Some((typed, before)) = words.split_last() else { return Completion::Candidates(Vec::new()) };
    let mut position =
        Position { words, command, positionals: 0, escaped: false, option: None, has_value: false };
    for word in before.iter().skip(1) {
        position.pass(word);
    }
    position.complete(typed)
}

/// A position on a command line.
struct Position<'a> {
    /// All words.
    words: &'a [String],
    command: &'a Command,
    /// The number of positional arguments before it.
    positionals: usize,
    /// Whether `--` comes before it.
    escaped: bool,
    /// The option whose value is or may be at this position.
    option: Option<&'a Arg>,
    /// Whether the option already has a value.
    has_value: bool,
}

impl<'a> Position<'a> {
    fn pass(&mut self, word: &str) {
        let looks_like_option = !self.escaped && word.len() > 1 && word.starts_with('-');
        match self.option {
            Some(option) if !self.has_value && (needs_value(option) || !looks_like_option) => {
                self.option = takes_many(option).then_some(option);
                self.has_value = true;
                return;
            }
            Some(_) if !looks_like_option => return,
            _ => self.option = None,
        }
        if !self.escaped && word == "--" {
            self.escaped = true;
        } else if let Some(option) = self.option_named(word).filter(|_| looks_like_option) {
            if takes_values(option) && !word.contains('=') {
                (self.option, self.has_value) = (Some(option), false);
            }
        } else if let Some(command) = self.subcommand(word) {
            (self.command, self.positionals) = (command, 0);
        } else {
            self.positionals += 1;
        }
    }

    fn subcommand(&self, word: &str) -> Option<&'a Command> {
        if self.escaped || self.positionals > 0 { None } else { self.command.find_subcommand(word) }
    }

    fn option_named(&self, word: &str) -> Option<&'a Arg> {
        let mut options = self.command.get_arguments();
        match word.strip_prefix("--") {
            Some(long) => {
                let long = long.split_once('=').map_or(long, |(long, _)| long);
                options.find(|option| option.get_long() == Some(long))
            }
            None => {
                let short = word.chars().nth(1)?;
                options.find(|option| option.get_short() == Some(short))
            }
        }
    }

    fn complete(&self, typed: &str) -> Completion {
        if let Some(option) = self.option
            && !((self.has_value || !needs_value(option)) && typed.starts_with('-'))
        {
            return self.values(option, typed, "");
        }
        if !self.escaped && typed.starts_with('-') {
            if let Some((option, value)) = typed.split_once('=') {
                let named = self.option_named(option).filter(|named| takes_values(named));
                let prefix = format!("{option}=");
                return named
                    .map_or(Completion::Candidates(Vec::new()), |named| self.values(named, value, &prefix));
            }
            return Completion::Candidates(self.options(typed));
        }
        let mut found = self.subcommands(typed);
        if let Some(argument) = self.positional() {
            match self.values(argument, typed, "") {
                Completion::Path => return Completion::Path,
                Completion::Candidates(values) => found.extend(values),
            }
        }
        // For a command without positional arguments, show its options.
        if found.is_empty() && typed.is_empty() && !self.escaped {
            found = self.options(typed);
        }
        Completion::Candidates(found)
    }

    fn subcommands(&self, typed: &str) -> Vec<WordCompletion> {
        if self.escaped || self.positionals > 0 {
            return Vec::new();
        }
        let known = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        let fits = known.filter(|command| command.get_name().starts_with(typed));
        let candidate = |command: &Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            WordCompletion::new(command.get_name(), about)
        };
        fits.map(candidate).collect()
    }

    fn options(&self, typed: &str) -> Vec<WordCompletion> {
        let known = self.command.get_arguments().filter(|option| !option.is_hide_set());
        let candidate = |option: &Arg| {
            let name = format!("--{}", option.get_long()?);
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            name.starts_with(typed).then(|| WordCompletion::new(name, help))
        };
        known.filter_map(candidate).collect()
    }

    /// The positional argument at this position. The last one may take several values.
    fn positional(&self) -> Option<&'a Arg> {
        let mut arguments = self.command.get_positionals().filter(|argument| !argument.is_last_set());
        let last = || self.command.get_positionals().filter(|argument| takes_many(argument)).last();
        arguments.nth(self.positionals).or_else(last)
    }

    fn values(&self, argument: &Arg, typed: &str, prefix: &str) -> Completion {
        if matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
        {
            return Completion::Path;
        }
        let (before, typed) = match argument.get_value_delimiter().and_then(|at| typed.rsplit_once(at)) {
            Some((before, typed)) => (format!("{prefix}{before},"), typed),
            None => (prefix.to_owned(), typed),
        };
        let possible = argument.get_possible_values();
        let mut found = if possible.is_empty() {
            candidates::of(self.command.get_name(), argument.get_id().as_str(), self.words, typed)
        } else {
            let shown = possible.iter().filter(|value| !value.is_hide_set());
            let help = |value: &clap::builder::PossibleValue| {
                value.get_help().map(ToString::to_string).unwrap_or_default()
            };
            shown.map(|value| WordCompletion::new(value.get_name(), help(value))).collect()
        };
        found.retain(|candidate| candidate.value.starts_with(typed));
        for candidate in &mut found {
            candidate.value.insert_str(0, &before);
        }
        Completion::Candidates(found)
    }
}

fn takes_values(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|count| count.takes_values())
}

fn needs_value(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|count| count.min_values() > 0)
}

fn takes_many(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|count| count.max_values() > 1)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn completed(line: &str) -> Vec<String> {
        let mut command = Cli::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match complete(&command, &words) {
            Completion::Path => vec![":files".to_owned()],
            Completion::Candidates(found) => found.into_iter().map(|candidate| candidate.value).collect(),
        }
    }

    #[test]
    fn commands_and_subcommands() {
        assert_eq!(completed("x sea"), ["search"]);
        assert_eq!(completed("x re"), ["rewind", "restore"]);
        assert_eq!(completed("x --json re"), ["rewind", "restore"]);
        assert_eq!(completed("x --store sqlite:/none re"), ["rewind", "restore"]);
        assert_eq!(completed("x embeddings models l"), ["list"]);
        assert_eq!(completed("x help sear"), ["search"]);
        assert!(completed("x search se").is_empty());
    }

    #[test]
    fn options_and_their_values() {
        assert_eq!(completed("x search --mo"), ["--mode"]);
        assert_eq!(completed("x search --mode s"), ["semantic"]);
        assert_eq!(completed("x search --mode=f"), ["--mode=full-text"]);
        assert_eq!(completed("x search --in user,to"), ["user,tool"]);
        assert_eq!(completed("x stats --by da"), ["day"]);
        assert_eq!(completed("x sessions --sto"), ["--store"]);
        assert_eq!(completed("x export --out "), [":files"]);
        assert!(completed("x stats ").contains(&"--by".to_owned()));
        assert!(completed("x search -- --mo").is_empty());
        assert_eq!(completed("x sessions --by "), ["project"]);
        // Its value is optional.
        assert_eq!(completed("x show a --turn --cont"), ["--context"]);
        assert_eq!(completed("x show a --turn --context --bef"), ["--before"]);
    }
}
