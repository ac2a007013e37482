//! Help texts that fit this build.

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::Cli;
use crate::render::wrap::wrapped_words;

/// Words that mark an example as needing a feature, and whether this build has that feature.
const NEEDED: [(&str, bool); 10] = [
    ("duckdb:", cfg!(feature = "duckdb-system")),
    ("cosmos:", cfg!(feature = "cosmos")),
    ("postgres:", cfg!(feature = "postgres")),
    ("models install", cfg!(feature = "local-transformer")),
    ("local:", cfg!(feature = "local-transformer")),
    ("openai", cfg!(feature = "openai")),
    ("azure-openai", cfg!(feature = "azure-openai")),
    ("--push", cfg!(feature = "client")),
    ("--from https:", cfg!(feature = "client")),
    ("--store https:", cfg!(feature = "client")),
];

/// The commands in the groups of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Find", &["search", "timeline", "sessions", "show", "files", "events", "stats", "sql"]),
    ("Keep in step", &["sync", "watch", "embeddings"]),
    ("Organise", &["edit", "tag", "share", "rewind", "delete", "secrets"]),
    ("Move and mend", &["export", "import", "copy", "backup", "restore", "verify", "salvage", "upgrade"]),
    ("Set up", &["quickstart", "config", "user", "mcp", "serve", "token", "skill", "doctor", "completions"]),
];

/// The definition of the command line. Help lists the commands in groups. It has only examples that this build can run.
/// `--read-only`, which only some stores support, and `--no-pager` are not in the help of every command.
pub(crate) fn command() -> Command {
    let command = fitted(Cli::command());
    let template = template(&command, usize::MAX);
    command.help_template(template)
}

/// [`command`] with help of this width.
pub(crate) fn command_of_width(width: usize) -> Command {
    let command = command();
    let template = template(&command, width);
    command.help_template(template).term_width(width)
}

/// The template of the help: clap has no groups of commands.
fn template(command: &Command, width: usize) -> String {
    let header = command.get_styles().get_header();
    let groups: Vec<String> = GROUPS.iter().map(|group| grouped(command, group, width)).collect();
    let groups = groups.join("\n");
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    )
}

/// A group with those of its commands that this build has.
fn grouped(command: &Command, (title, names): &(&str, &[&str]), width: usize) -> String {
    const BELOW: &str = "               ";
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let there = names.iter().filter_map(|name| command.find_subcommand(name));
    let lines = there.filter(|command| !command.is_hide_set()).map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let about = wrapped_words(&about, BELOW, BELOW, width).join("\n");
        format!("  {literal}{:11}{literal:#}  {}\n", command.get_name(), about.trim_start())
    });
    format!("{header}{title}:{header:#}\n{}", lines.collect::<String>())
}

fn fitted(command: Command) -> Command {
    let runnable = |text: &clap::builder::StyledStr| runnable(&text.to_string(), &NEEDED);
    let (short, long) = (command.get_after_help().map(runnable), command.get_after_long_help().map(runnable));
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    // They take the place of the global options.
    let hidden = |id, long| Arg::new(id).long(long).action(ArgAction::SetTrue).hide(true);
    command.mut_subcommands(|command| {
        fitted(command).arg(hidden("read_only", "read-only")).arg(hidden("no_pager", "no-pager"))
    })
}

/// `text` without the examples that this build can't run.
fn runnable(text: &str, needed: &[(&str, bool)]) -> String {
    let is_runnable = |line: &&str| {
        !is_example(line) || needed.iter().all(|(part, is_there)| *is_there || !line.contains(part))
    };
    let lines: Vec<&str> = text.lines().filter(is_runnable).collect();
    let text = lines.join("\n");
    text.trim_end().trim_end_matches("Examples:").trim_end().to_owned()
}

fn is_example(line: &str) -> bool {
    line.starts_with("  ") && line.contains("amplifier-sessions ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use amplifier_session_storage::StoreUrl;
    use clap::error::ErrorKind;

    use super::*;

    /// The arguments of an example, up to a pipe, a redirection, or its description.
    fn arguments(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote, mut spaces) = (Vec::new(), String::new(), None, 0);
        let program = example.find("amplifier-sessions ").unwrap_or_default();
        for c in example[program..].trim_end_matches(')').chars() {
            match (c, quote) {
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => {
                    spaces += 1;
                    if spaces > 1 {
                        break;
                    }
                    words.push(std::mem::take(&mut word));
                    continue;
                }
                ('|' | '>' | '&' | ';', None) => break,
                (c, _) => word.push(c),
            }
            spaces = 0;
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    fn texts(command: &Command, found: &mut Vec<String>) {
        let help = [command.get_after_help(), command.get_after_long_help(), command.get_long_about()];
        found.extend(help.into_iter().flatten().map(ToString::to_string));
        command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .for_each(|command| texts(command, found));
    }

    #[test]
    fn every_example_can_be_run() {
        let (mut found, home) = (Vec::new(), Some(Path::new("/home/ana")));
        texts(&command(), &mut found);
        let examples: Vec<&str> =
            found.iter().flat_map(|text| text.lines()).filter(|line| is_example(line)).collect();
        assert!(examples.len() > 80, "{}", examples.len());
        for example in examples {
            let words = arguments(example);
            match command().try_get_matches_from(&words) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                Err(error) => panic!("{example}\n{words:?}\n{error}"),
            }
            let stores = words.windows(2).filter(|pair| matches!(&*pair[0], "--store" | "--also-store"));
            // `restore` also takes the address of a server.
            for pair in stores.filter(|pair| !pair[1].starts_with("https:")) {
                StoreUrl::parse(&pair[1], home).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
            for url in words.iter().filter(|word| word.starts_with("duckdb:") || word.starts_with("cosmos:"))
            {
                StoreUrl::parse(url, home).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
        }
    }

    #[test]
    fn every_command_is_in_one_group_and_fits_on_a_line() {
        for command in command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, 1, "{name} must be in one of GROUPS");
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(name.len() <= 11 && about.chars().count() <= 65, "{name}: {about}");
        }
        assert!(command().get_subcommands().count() <= 34);
    }

    #[test]
    fn examples_for_other_builds_are_left_out() {
        let text =
            "Prints `duckdb:`.\n\nExamples:\n  amplifier-sessions x\n  amplifier-sessions --store duckdb:a x";
        let without = "Prints `duckdb:`.\n\nExamples:\n  amplifier-sessions x";
        assert_eq!(runnable(text, &[("duckdb:", true)]), text);
        assert_eq!(runnable(text, &[("duckdb:", false)]), without);
        assert_eq!(runnable(text, &[("amplifier", false)]), "Prints `duckdb:`.");
    }

    #[test]
    fn some_options_of_every_command_are_only_in_the_help_of_the_program() {
        let help = |arguments: &[&str]| command().try_get_matches_from(arguments).unwrap_err().to_string();
        let names = |help: &str| [help.contains("--read-only"), help.contains("--no-pager")];
        assert_eq!(names(&help(&["x", "--help"])), [true; 2]);
        for arguments in [&["x", "search", "--help"][..], &["x", "embeddings", "models", "list", "--help"]] {
            assert_eq!(names(&help(arguments)), [false; 2], "{arguments:?}");
        }
        let matches = command().try_get_matches_from(["x", "show", "y", "--no-pager"]).unwrap();
        assert!(matches.get_flag("no_pager"));
        for arguments in [
            &["x", "--read-only", "search", "y"][..],
            &["x", "search", "y", "--read-only"],
            &["x", "config", "show", "--read-only"],
            &["x", "config", "--read-only", "show"],
        ] {
            let matches = command().try_get_matches_from(arguments).unwrap();
            assert!(matches.get_flag("read_only"), "{arguments:?}");
        }
        let matches = command().try_get_matches_from(["x", "search", "y"]).unwrap();
        assert!(!matches.get_flag("read_only"));
    }
}
