//! Parses the command line. Clap reads variables only from the process, so those of the environment are added here.

use std::ffi::OsString;

#[cfg(feature = "watch")]
use clap::{Arg, Args as _};
use clap::{ArgMatches, Command, FromArgMatches as _, error::ErrorKind, parser::ValueSource};

#[cfg(feature = "watch")]
use super::WatchArgs;
use super::{Cli, QueryLine, command_of_width};
use crate::environment::Environment;

/// The width of help if that of the terminal is unknown.
const DEFAULT_WIDTH: usize = 100;
/// The maximum width of help.
const WIDEST: usize = 110;

/// The parsed arguments.
#[derive(Debug)]
pub(crate) struct ParsedArguments {
    /// The text that the user typed.
    pub(crate) typed: ArgMatches,
    /// The same, with values from variables.
    pub(crate) all: ArgMatches,
}

/// Parses the arguments of an environment. Also returns what was typed.
pub(crate) fn parse_arguments(environment: &Environment) -> Result<(Cli, ArgMatches), clap::Error> {
    let command = command_of_width(width_of_help(environment));
    let typed = &environment.arguments;
    let arguments = QueryLine::split(&command, typed).map_or_else(|| typed.clone(), |line| line.joined());
    match parse_arguments_for(command.clone(), environment, &arguments) {
        Err(error) if is_help(&error) => {
            // Help names the variables.
            let matches = command.try_get_matches_from(&arguments)?;
            Ok((Cli::from_arg_matches(&matches)?, matches))
        }
        parsed => {
            let ParsedArguments { typed, all } = parsed?;
            #[cfg(feature = "watch")]
            check_options_of_watch(command, &typed)?;
            Ok((Cli::from_arg_matches(&all)?, typed))
        }
    }
}

/// Parses arguments for `command`. Of the variables, only those are added that clap must check: the configuration reads
/// all others.
pub(crate) fn parse_arguments_for(
    command: Command,
    environment: &Environment,
    arguments: &[OsString],
) -> Result<ParsedArguments, clap::Error> {
    let with_variables = command.clone();
    let mut command = without_variables(command);
    let typed = command.try_get_matches_from_mut(arguments)?;
    let mut all = arguments.to_vec();
    for argument in with_variables.get_arguments() {
        let value = argument.get_env().and_then(|variable| environment.variables.get(variable));
        let (Some(option), Some(value)) = (argument.get_long(), value) else { continue };
        let is_typed = typed.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
        let is_checked = !argument.get_possible_values().is_empty() || value.to_str().is_none();
        if is_checked && !is_typed {
            let mut added = OsString::from(format!("--{option}="));
            added.push(value);
            all.insert(all.len().min(1), added);
        }
    }
    let has_more = all.len() > arguments.len();
    let all = if has_more { command.try_get_matches_from_mut(all)? } else { typed.clone() };
    Ok(ParsedArguments { typed, all })
}

/// `command`, such that clap does not read variables of the process.
fn without_variables(command: Command) -> Command {
    command.mut_args(|argument| argument.env(None::<&str>)).mut_subcommands(without_variables)
}

/// Refuses options of `watch` with one of its subcommands, where they would have no effect.
#[cfg(feature = "watch")]
fn check_options_of_watch(mut command: Command, typed: &ArgMatches) -> Result<(), clap::Error> {
    let Some(watch) = typed.subcommand_matches("watch") else { return Ok(()) };
    let Some(subcommand) = watch.subcommand_name() else { return Ok(()) };
    let own = WatchArgs::augment_args(Command::new("watch"));
    let is_typed =
        |option: &&Arg| watch.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    match own.get_arguments().find(is_typed).and_then(Arg::get_long) {
        Some(option) => {
            let message = format!("the argument '--{option}' cannot be used before `{subcommand}`");
            Err(command.error(ErrorKind::ArgumentConflict, message))
        }
        None => Ok(()),
    }
}

fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// The width of help, as clap finds it out in a process.
fn width_of_help(environment: &Environment) -> usize {
    let columns = || environment.variable("COLUMNS")?.parse().ok();
    environment.columns().or_else(columns).unwrap_or(DEFAULT_WIDTH).min(WIDEST)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io};

    use jiff::Zoned;

    use super::*;
    use crate::{
        args::ScopeArg,
        streams::{InputStream, OutputStream},
    };

    fn environment(arguments: &[&str], scope: &str) -> Environment {
        let arguments = ["x"].iter().chain(arguments).map(OsString::from).collect();
        Environment {
            arguments,
            variables: BTreeMap::from([("AMPLIFIER_SESSIONS_SCOPE".into(), scope.into())]),
            home: None,
            now: Zoned::default(),
            stdin: InputStream::new(io::empty()),
            stdout: OutputStream::new(io::sink()),
            stderr: OutputStream::new(io::sink()),
        }
    }

    #[test]
    fn variables_come_from_the_environment_after_what_is_typed() {
        let scope = |arguments: &[&str], variable: &str| {
            parse_arguments(&environment(arguments, variable)).map(|(cli, _)| cli.global.scope)
        };
        assert_eq!(scope(&["sessions"], "all").unwrap(), ScopeArg::All);
        assert_eq!(scope(&["sessions", "--scope", "visible"], "all").unwrap(), ScopeArg::Visible);
        let wrong = scope(&["sessions"], "mine").unwrap_err().to_string();
        assert!(wrong.starts_with("error: invalid value 'mine' for '--scope <SCOPE>'"), "{wrong}");
        assert_eq!(scope(&["sessions", "--scope", "own"], "mine").unwrap(), ScopeArg::Own);
    }

    #[test]
    fn help_names_the_variables() {
        let help = parse_arguments(&environment(&["--help"], "mine")).unwrap_err().to_string();
        assert!(help.contains("[env: AMPLIFIER_SESSIONS_SCOPE]"), "{help}");
    }
}
