//! Programs that run agents (clients of MCP), and their configuration of the MCP server of this program.

mod config_file;
mod json_servers;
mod known;
mod toml_servers;

use std::{env, fmt, path::Path};

pub(crate) use config_file::{ClientConfig, program_on_path};
pub(crate) use known::{AgentClient, CLIENTS};

/// The name of the server in the configuration of a client. The client shows it, and names the tools after it.
pub(crate) const SERVER: &str = "sessions";

/// The name of this program, without the ending of executable files.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// The command with which a client starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCommand {
    /// The name or the path of the program.
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

impl ServerCommand {
    /// Whether it starts the MCP server of this program, whichever copy of it and with whichever options.
    pub(crate) fn is_ours(&self) -> bool {
        let program = Path::new(&self.program);
        let has_name = program.file_stem().is_some_and(|stem| stem == PROGRAM);
        // The file may have been renamed.
        let is_this = || env::current_exe().is_ok_and(|own| own == program);
        self.args.iter().any(|arg| arg == "mcp") && (has_name || is_this())
    }

    /// The value of an option, `--store URL` or `--store=URL`.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let next = self.args.iter().position(|arg| arg == name).and_then(|at| self.args.get(at + 1));
        let joined = self.args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        next.map(String::as_str).or(joined)
    }
}

impl fmt::Display for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::args::quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", crate::args::quoted(arg)))
    }
}

/// The entry [`SERVER`] in the configuration of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerEntry {
    /// A command.
    Command(ServerCommand),
    /// Something else, such as the URL of a server.
    Other,
}

impl ServerEntry {
    /// The command, if it starts the MCP server of this program.
    pub(crate) fn ours(&self) -> Option<&ServerCommand> {
        match self {
            Self::Command(command) => Some(command).filter(|command| command.is_ours()),
            Self::Other => None,
        }
    }
}

/// Why the configuration of a client can't be read or edited.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    /// The line, from 1, if it is known.
    line: Option<usize>,
    reason: String,
}

impl ConfigProblem {
    fn new(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// How a client writes its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFormat {
    /// JSON, possibly with comments: `{"KEY": {"sessions": {"command": "…", "args": […]}}}`.
    Json {
        key: &'static str,
        /// Whether an entry also has `"type": "stdio"`.
        has_type: bool,
    },
    /// TOML: `[mcp_servers.sessions]`.
    Toml,
}

impl ConfigFormat {
    /// The entry [`SERVER`].
    fn entry(self, text: &str) -> Result<Option<ServerEntry>, ConfigProblem> {
        match self {
            Self::Json { key, .. } => json_servers::entry(text, key),
            Self::Toml => toml_servers::entry(text),
        }
    }

    /// The text with the entry. An entry that is there gets this command and keeps the rest, unless `replace` is set.
    fn with_entry(self, text: &str, command: &ServerCommand, replace: bool) -> Result<String, ConfigProblem> {
        match self {
            Self::Json { key, has_type } => json_servers::with_entry(text, key, command, has_type, replace),
            Self::Toml => toml_servers::with_entry(text, command, replace),
        }
    }

    /// The text without the entry, and without the group of servers if nothing else is in it.
    fn without_entry(self, text: &str) -> Result<String, ConfigProblem> {
        match self {
            Self::Json { key, .. } => json_servers::without_entry(text, key),
            Self::Toml => toml_servers::without_entry(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, args: &[&str]) -> ServerCommand {
        ServerCommand { program: program.to_owned(), args: args.iter().map(|&arg| arg.to_owned()).collect() }
    }

    #[test]
    fn entries_of_this_program_are_known_by_its_name_or_path() {
        assert!(command("amplifier-sessions", &["mcp"]).is_ours());
        assert!(command("/opt/a b/amplifier-sessions", &["--store", "sqlite:x", "mcp"]).is_ours());
        assert!(command(&env::current_exe().unwrap().display().to_string(), &["mcp"]).is_ours());
        assert!(!command("amplifier-sessions", &["search"]).is_ours());
        assert!(!command("npx", &["amplifier-sessions", "mcp"]).is_ours());
    }

    #[test]
    fn options_of_a_command_are_found_in_both_forms() {
        assert_eq!(command("x", &["--store", "sqlite:a"]).option("--store"), Some("sqlite:a"));
        assert_eq!(command("x", &["mcp", "--store=sqlite:a"]).option("--store"), Some("sqlite:a"));
        assert_eq!(command("x", &["--stores", "sqlite:a"]).option("--store"), None);
        assert_eq!(command("x", &["--store"]).option("--store"), None);
    }

    #[test]
    fn commands_are_shown_as_they_are_typed() {
        assert_eq!(command("/a b/x", &["mcp", "it's"]).to_string(), r"'/a b/x' mcp 'it'\''s'");
    }
}
