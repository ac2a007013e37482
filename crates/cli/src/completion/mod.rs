//! Shell completion of commands, options, and values from the store.
//!
//! The script that `completions SHELL` prints calls the program with [`VARIABLE`] set and the words typed so far after
//! `--`. The answer is one line per candidate, with its description after a tab, or `:files`. Completion is fast,
//! prints nothing on errors, and creates no store.

mod candidates;
mod scripts;
mod words;

use clap::CommandFactory as _;

use crate::{args::Cli, environment::Environment, program, streams::OutputStream};
use words::{Completion, complete};

pub(crate) use scripts::script;

/// The environment variable with the name of the shell that requests completions.
const VARIABLE: &str = "_AMPLIFIER_SESSIONS_COMPLETE";
/// Stands for an empty word, for shells that do not pass empty arguments.
const EMPTY: &str = ":empty";

/// Prints completions if a shell requests them. Returns whether it did.
pub(crate) fn answered(environment: &Environment) -> bool {
    let Some(shell) = environment.variable(VARIABLE) else { return false };
    let arguments = environment.arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let typed = arguments.skip_while(|word| word != "--").skip(1);
    let mut words: Vec<String> = typed.map(|word| if word == EMPTY { String::new() } else { word }).collect();
    if shell == "bash" {
        // Bash passes words as they are typed, with escapes.
        words = words.iter().map(|word| unescaped(word)).collect();
    }
    let last = words.last().cloned().unwrap_or_default();
    if shell == "bash" {
        words = glued(&words);
    }
    let mut command = Cli::command();
    command.build();
    let whole = words.last().cloned().unwrap_or_default();
    // Bash replaces only the last part of the word.
    let before = whole.strip_suffix(last.as_str()).unwrap_or_default();
    print(&mut environment.stdout.clone(), shell, before, complete(&command, &words));
    true
}

/// Prints the completions. Errors of writing are ignored.
fn print(stdout: &mut OutputStream, shell: &str, before: &str, completion: Completion) {
    use std::io::Write as _;
    let mut answer = String::new();
    match completion {
        Completion::Path if shell == "elvish" => {}
        Completion::Path => answer.push_str(":files\n"),
        Completion::Candidates(found) => {
            for candidate in &found {
                let Some(value) = candidate.value.strip_prefix(before) else { continue };
                match shell {
                    "bash" => answer.push_str(&escaped(value)),
                    _ => answer.push_str(value),
                }
                if matches!(shell, "zsh" | "fish" | "powershell") && !candidate.help.is_empty() {
                    answer.push('\t');
                    answer.push_str(&candidate.help);
                }
                answer.push('\n');
            }
        }
    }
    let _ = stdout.write_all(answer.as_bytes());
}

/// `value` escaped for Bash, which inserts it unchanged.
fn escaped(value: &str) -> String {
    let mut escaped = String::new();
    for c in value.chars() {
        if c.is_whitespace() || "\"'\\$&;|<>()*?[]{}!`".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// `word` without the backslashes that [`escaped`] put there.
fn unescaped(word: &str) -> String {
    let mut unescaped = String::new();
    let mut characters = word.chars();
    while let Some(c) = characters.next() {
        unescaped.push(if c == '\\' { characters.next().unwrap_or(c) } else { c });
    }
    unescaped
}

/// The path of the program, valid in any folder.
fn completer() -> String {
    let name = program::name();
    if name.contains(std::path::MAIN_SEPARATOR) {
        std::path::absolute(&name).map_or(name, |path| path.display().to_string())
    } else {
        name
    }
}

/// The words as they were typed. Bash splits words at `:` and `=`: it passes `--store`, `sqlite`, `:` and `x` for
/// `--store sqlite:x`.
fn glued(words: &[String]) -> Vec<String> {
    let is_break = |word: &str| !word.is_empty() && word.chars().all(|c| matches!(c, ':' | '='));
    let mut glued: Vec<String> = Vec::new();
    let mut sticks = false;
    for word in words {
        match glued.last_mut() {
            Some(last) if sticks || is_break(word) => last.push_str(word),
            _ => glued.push(word.clone()),
        }
        sticks = is_break(word);
    }
    glued
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_again() {
        let glue = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
            glued(&typed).join(" ")
        };
        assert_eq!(glue(&["x", "--store", "sqlite", ":", "~/a", "show", ""]), "x --store sqlite:~/a show ");
        assert_eq!(glue(&["x", "--limit", "=", "5"]), "x --limit=5");
        assert_eq!(glue(&["x", "--store", "sqlite", ":", ""]), "x --store sqlite:");
        assert_eq!(glue(&["x", "show", ""]), "x show ");
    }

    #[test]
    fn characters_that_are_special_in_bash_are_escaped() {
        for (value, typed) in
            [("last week", r"last\ week"), ("it's", r"it\'s"), ("a-b_c.d:e#4", "a-b_c.d:e#4")]
        {
            assert_eq!(escaped(value), typed);
            assert_eq!(unescaped(typed), value);
        }
        assert_eq!(unescaped(r"a\"), r"a\");
    }
}
