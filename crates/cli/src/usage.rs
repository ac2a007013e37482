//! Usage errors that clap finds.

use std::io::{self, Write as _};

use amplifier_session_storage::config::{ConfigSources, Configuration};

use crate::{
    args::{QueryLine, When, command, new_name},
    environment::Environment,
    failure::{Failure, SUCCESS, say},
    out::Out,
    paint::Paint,
    problems::USAGE_HINT,
    program,
};

/// Prints a usage error found by clap, or the requested help or version.
pub(crate) fn report_usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        let shown = print(error);
        return shown.map_or_else(|error| Failure::from(error).report(&program::name(), None), |()| SUCCESS);
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = print(error);
        return 2;
    }
    let line = QueryLine::split(&command(), &Environment::current().arguments);
    let unknown = || line.as_ref().and_then(unknown_option);
    if let Some(failure) = unknown_command(error).or_else(unknown) {
        return failure.report(&program::name(), None);
    }
    let rendered = error.render().to_string();
    let text = rendered.split("\nFor more information").next().unwrap_or_default().trim_end();
    say("error", text.strip_prefix("error: ").unwrap_or(text));
    match line.filter(QueryLine::has_incomplete_option) {
        Some(line) => say("hint", &quote_to_search(&line)),
        None => say("hint", hint_for(error)),
    }
    2
}

/// Advice for an error of the command line.
fn hint_for(error: &clap::Error) -> &'static str {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    // As in `grep --context 2`.
    let is_number = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(typed)) if typed.parse::<u32>().is_ok()
    );
    let has_context = || Environment::current().arguments.iter().any(|typed| typed == "--context");
    if error.kind() == ErrorKind::UnknownArgument && is_number && has_context() {
        "--context takes no number; use --before and --after, for example --before 2 --after 2"
    } else {
        USAGE_HINT
    }
}

/// The failure for an unknown option after a query.
fn unknown_option(line: &QueryLine) -> Option<Failure> {
    let typed = line.unknown_option()?;
    let name = typed.trim_start_matches('-').split('=').next().unwrap_or_default();
    let similar = line.options().iter().filter(|option| is_mistyped(name, option));
    let similar = similar.min_by_key(|option| edits(name, option));
    let meant = similar.map_or_else(String::new, |option| format!("; did you mean --{option}?"));
    Some(Failure::wrong_use(format!("unknown option {typed}{meant}"), quote_to_search(line)))
}

fn quote_to_search(line: &QueryLine) -> String {
    format!("to search for it as text, quote the query: {}", line.quoted())
}

/// Prints help or an error as clap renders it, with colours where the stream of the process allows them.
fn print(error: &clap::Error) -> io::Result<()> {
    let environment = Environment::current();
    if !error.use_stderr() && environment.stdout.is_terminal() {
        return page(error, &environment);
    }
    let stream = if error.use_stderr() { &environment.stderr } else { &environment.stdout };
    if stream.is_of_process() { error.print() } else { write!(stream.clone(), "{}", error.render()) }
}

/// Prints help on a terminal, through the pager.
fn page(error: &clap::Error, environment: &Environment) -> io::Result<()> {
    let mut out = Out::new(environment, false, When::Auto);
    if !environment.arguments.iter().any(|typed| typed == "--no-pager") {
        let sources = ConfigSources::new(environment.home.clone(), environment.variables.clone());
        // A configuration that can't be read must not keep anyone from the help.
        let configuration = Configuration::read(&sources).unwrap_or_default();
        out.use_pager(environment, configuration.text("pager"));
    }
    let text = error.render();
    let text = if out.paint == Paint::new(true) { text.ansi().to_string() } else { text.to_string() };
    out.text(&text)?;
    out.finish()
}

/// The failure for an unknown command, with the command that was probably meant.
fn unknown_command(error: &clap::Error) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    // The commands before the unknown one: `Usage: amplifier-sessions user [OPTIONS] [COMMAND]`.
    let before: Vec<&str> =
        usage.split_whitespace().skip(2).take_while(|word| !word.starts_with(['[', '<'])).collect();
    let program = [&[program::name().as_str()], before.as_slice()].concat().join(" ");
    if !before.is_empty() && has_no_subcommands(&before) {
        let message = format!("`{}` has no subcommands", before.join(" "));
        return Some(Failure::wrong_use(message, format!("`{program} --help` explains it")));
    }
    // Of the most similar names, clap puts the best last.
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(one)) => std::slice::from_ref(one),
        Some(ContextValue::Strings(several)) => several.as_slice(),
        _ => &[],
    };
    let similar = similar.iter().rev().map(String::as_str).find(|name| is_mistyped(typed, name));
    // After a command, as in `user ls`, these names mean something else.
    let meant = meaning(typed).filter(|_| before.is_empty());
    let moved = || new_name(|old| is_mistyped(typed, old)).filter(|_| before.is_empty());
    let hint = match meant.or(similar).or_else(moved) {
        Some(command) => format!("did you mean `{program} {command}`?"),
        None => format!("`{program} --help` lists the commands"),
    };
    Some(Failure::wrong_use(format!("unknown command '{typed}'"), hint))
}

/// Whether the command with these names has no subcommands: `help` accepts any words after it.
fn has_no_subcommands(names: &[&str]) -> bool {
    let program = command();
    let found = names.iter().try_fold(&program, |command, name| command.find_subcommand(name));
    found.is_some_and(|command| !command.has_subcommands())
}

/// Whether `typed` may stand for `name`: an abbreviation, or nearly the same letters.
fn is_mistyped(typed: &str, name: &str) -> bool {
    let typed = typed.to_ascii_lowercase();
    let is_short = typed.len() >= 3 && name.starts_with(&typed);
    is_short || edits(&typed, name) <= (typed.chars().count() + 1) / 3
}

/// How many letters must be inserted or removed to get `name`.
fn edits(typed: &str, name: &str) -> usize {
    let mut counts: Vec<usize> = (0..=name.chars().count()).collect();
    for (at, letter) in typed.chars().enumerate() {
        let mut before = at;
        let mut last = at + 1;
        for (count, other) in counts.iter_mut().skip(1).zip(name.chars()) {
            let replaced = before + if letter == other { 0 } else { 2 };
            before = *count;
            last = replaced.min(*count + 1).min(last + 1);
            *count = last;
        }
        if let Some(first) = counts.first_mut() {
            *first = at + 1;
        }
    }
    counts.last().copied().unwrap_or_default()
}

/// The command for a name that other programs use.
fn meaning(typed: &str) -> Option<&'static str> {
    Some(match typed.to_ascii_lowercase().as_str() {
        "find" | "grep" | "query" | "ask" => "search",
        "ls" | "list" | "session" | "ps" => "sessions",
        "history" => "sessions --by project",
        "log" | "logs" | "event" => "events",
        "rm" | "remove" | "del" | "drop" | "forget" => "delete",
        "cat" | "view" | "open" | "read" | "print" | "get" => "show",
        "stat" | "count" | "usage" | "cost" => "stats",
        "rename" => "edit",
        "undo" | "truncate" => "rewind",
        "check" | "fsck" | "validate" => "verify",
        "label" | "tags" => "tag",
        "recover" | "rescue" => "salvage",
        "follow" | "daemon" | "monitor" => "watch",
        "index" | "update" | "pull" | "ingest" | "refresh" => "sync",
        "start" | "demo" | "tutorial" => "quickstart",
        "create" | "new" => "config init",
        "settings" | "configure" => "config",
        "clean" | "gc" | "purge" | "vacuum" => "delete --superseded",
        "dump" => "export",
        "load" => "import",
        "cp" | "clone" => "copy",
        "embed" | "vectors" => "embeddings backfill",
        "migrate" => "upgrade",
        "whoami" => "user",
        "install" | "autostart" => "watch service",
        "version" => "--version",
        "completion" => "completions",
        _ => return None,
    })
}
