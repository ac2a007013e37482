//! Other programs on the terminal of this one: the pager and the editor.
//!
//! They are started as `git` starts its own. Crates for pagers (`pager`, `minus`) replace the streams of the process or
//! bring a pager of their own, so this uses `std::process`.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    environment::Environment,
    failure::{Failure, say},
    out::understands_escapes,
    streams,
    unfinished::{TemporaryFolder, catch_signals},
};

/// The variable that names the pager of this program.
pub(crate) const PAGER_VARIABLE: &str = "AMPLIFIER_SESSIONS_PAGER";
/// The pager, if none is set.
pub(crate) const DEFAULT_PAGER: &str = "less";

/// The number of programs to which this one has lent its terminal.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// Whether another program uses the terminal. Ctrl-C is then meant for that program: pagers and editors do not end.
pub(crate) fn terminal_is_lent() -> bool {
    LENT.load(Ordering::SeqCst) > 0
}

/// Held while another program uses the terminal.
#[derive(Debug)]
struct LentTerminal;

impl LentTerminal {
    fn new() -> Self {
        // Without a handler, Ctrl-C would end this process.
        catch_signals();
        LENT.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The command of the pager, if output is paged: that of the environment, or `configured`, the one in the configuration
/// file. Empty text and `cat` mean that output is not paged. On Windows, there is no pager by default.
pub(crate) fn pager_command(environment: &Environment, configured: Option<&str>) -> Option<String> {
    if !environment.stdout.is_terminal() || !understands_escapes(environment) {
        return None;
    }
    let default = if cfg!(windows) { "" } else { DEFAULT_PAGER };
    let command = environment.variable(PAGER_VARIABLE).or(configured);
    let command = command.or_else(|| environment.variable("PAGER")).unwrap_or(default).trim();
    (!matches!(command, "" | "cat")).then(|| command.to_owned())
}

/// A pager that is running. Dropping it waits until the user quits it.
#[derive(Debug)]
pub(crate) struct RunningPager {
    command: String,
    child: Child,
    _lent: LentTerminal,
}

impl RunningPager {
    /// Starts it, and returns what it reads. Messages on stderr are held back until it ends, if that is a terminal:
    /// they would appear in the middle of a page.
    pub(crate) fn start(command: &str, environment: &Environment) -> io::Result<(Self, ChildStdin)> {
        let lent = LentTerminal::new();
        let mut process = process(command, None, environment);
        if environment.os_variable("LESS").is_none() {
            // Quit if the text fits on a screen, keep colours, and leave the text on the terminal at the end.
            process.env("LESS", "FRX");
        }
        let mut child = process.stdin(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        streams::hold_messages();
        Ok((Self { command: command.to_owned(), child, _lent: lent }, stdin))
    }

    /// Waits until the user quits it. Its text must be complete: whoever writes to it has dropped its stdin.
    fn wait(&mut self) {
        let status = self.child.wait();
        streams::release_messages();
        // A shell starts without the program that it runs.
        if status.is_ok_and(is_not_started) {
            say("warning", &format!("the pager `{}` could not be started", self.command));
            say("hint", "--no-pager prints the output without a pager");
        }
    }
}

impl Drop for RunningPager {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Text for an editor.
#[derive(Debug)]
pub(crate) struct EditorText<'a> {
    /// The name of the file, which tells the editor its format: `3a7c1e90-14.md`.
    pub(crate) name: &'a str,
    pub(crate) text: &'a [u8],
}

/// Shows a text in the user's editor, and waits until it is closed. The text is in a temporary file, which only the user
/// can read and which is removed afterwards; changes to it are lost. An interactive program must restore the terminal
/// before, and stop reading from it.
pub(crate) fn show_in_editor(environment: &Environment, shown: &EditorText<'_>) -> Result<(), Failure> {
    let command = editor_command(environment)?;
    let folder = TemporaryFolder::create()?;
    let path = folder.path().join(file_name(shown.name));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&path)?.write_all(shown.text)?;
    let lent = LentTerminal::new();
    let status = process(&command, Some(&path), environment).status();
    drop(lent);
    editor_outcome(&command, status)
}

/// The command of the editor.
fn editor_command(environment: &Environment) -> Result<String, Failure> {
    let is_set = |name: &&str| environment.variable(name).is_some_and(|command| !command.trim().is_empty());
    if let Some(command) = ["VISUAL", "EDITOR"].iter().find(|name| is_set(name)) {
        return Ok(environment.variable(command).unwrap_or_default().trim().to_owned());
    }
    if cfg!(windows) {
        return Ok("notepad".to_owned());
    }
    let Environment { stdin, stdout, .. } = environment;
    if stdin.is_terminal() && stdout.is_terminal() && understands_escapes(environment) {
        return Ok("vi".to_owned());
    }
    let message = "no editor is set, and there is no terminal for `vi`";
    Err(Failure::failed(message, EDITOR_HINT))
}

const EDITOR_HINT: &str = "set VISUAL or EDITOR to the command of your editor, such as `code --wait`";

fn editor_outcome(command: &str, status: io::Result<ExitStatus>) -> Result<(), Failure> {
    let message = match status {
        Ok(status) if status.success() => return Ok(()),
        // The shell has said why.
        Ok(status) if is_not_started(status) => format!("the editor `{command}` could not be started"),
        Ok(status) => return Err(Failure::without_hint(format!("the editor `{command}` failed: {status}"))),
        Err(error) => format!("the editor `{command}` could not be started: {error}"),
    };
    Err(Failure::failed(message, EDITOR_HINT))
}

/// Whether this is the exit code of a shell that could not start a program.
fn is_not_started(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

/// `name` as the name of a file.
fn file_name(name: &str) -> String {
    let of = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().map(of).collect::<String>().trim_start_matches('.').to_owned()
}

/// A process that runs `command` with an argument. A shell reads the command only if there is more in it than words: an
/// error of starting it is clearer without one.
fn process(command: &str, argument: Option<&Path>, environment: &Environment) -> Command {
    let is_plain = |c: char| c.is_alphanumeric() || " \t/._-+=:,@%".contains(c);
    let needs_shell = cfg!(unix) && !command.chars().all(is_plain);
    let mut process = if needs_shell {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{command} \"$@\"")).arg(command);
        shell
    } else if Path::new(command).is_file() {
        Command::new(command)
    } else {
        let mut words = command.split_whitespace();
        let mut program = Command::new(words.next().unwrap_or_default());
        program.args(words);
        program
    };
    process.args(argument).env_clear().envs(&environment.variables);
    process
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_no_special_characters() {
        assert_eq!(file_name("3a7c1e90#14.md"), "3a7c1e90-14.md");
        assert_eq!(file_name("../a b/c.md"), "-a-b-c.md");
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_only_commands_that_are_more_than_words() {
        let environment = Environment::of_process();
        let words = |command: &str| {
            let process = process(command, Some(Path::new("x.md")), &environment);
            let arguments = process.get_args().map(|word| word.to_string_lossy().into_owned());
            std::iter::once(process.get_program().to_string_lossy().into_owned())
                .chain(arguments)
                .collect::<Vec<_>>()
        };
        assert_eq!(words("code --wait"), ["code", "--wait", "x.md"]);
        assert_eq!(words("'my editor' -x"), ["sh", "-c", "'my editor' -x \"$@\"", "'my editor' -x", "x.md"]);
    }
}
