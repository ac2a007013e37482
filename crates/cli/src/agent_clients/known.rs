//! The clients, and where they keep their configuration.

use std::path::{Path, PathBuf};

use super::ConfigFormat;
use crate::environment::Environment;

/// A program that runs agents.
#[derive(Debug)]
pub(crate) struct AgentClient {
    /// The name in commands.
    pub(crate) name: &'static str,
    /// The name in sentences.
    pub(crate) title: &'static str,
    pub(super) format: ConfigFormat,
    /// Whether it is started by a shell, so that it finds programs where the user's shell finds them.
    pub(crate) is_in_terminal: bool,
    place: fn(&Environment) -> Option<ClientPlace>,
}

/// Where a client keeps its configuration.
#[derive(Debug)]
struct ClientPlace {
    /// The user's configuration, which applies in all folders.
    file: PathBuf,
    /// A file or folder that exists if the client was ever used.
    sign: PathBuf,
}

impl ClientPlace {
    /// A file in a folder that belongs to the client.
    fn in_own_folder(folder: PathBuf, file: &str) -> Self {
        Self { file: folder.join(file), sign: folder }
    }
}

impl AgentClient {
    /// The client with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The user's configuration file. `None` if the client does not run on this system, or the home folder is unknown.
    pub(crate) fn file(&self, environment: &Environment) -> Option<PathBuf> {
        Some((self.place)(environment)?.file)
    }

    /// Whether the client seems to be installed.
    pub(crate) fn is_there(&self, environment: &Environment) -> bool {
        (self.place)(environment).is_some_and(|place| place.file.exists() || place.sign.exists())
    }
}

const SERVERS: ConfigFormat = ConfigFormat::Json { key: "mcpServers", has_type: false };

/// The clients, by name.
pub(crate) static CLIENTS: [AgentClient; 7] = [
    // https://github.com/microsoft/amplifier-module-tool-mcp, config.py: it reads ~/.amplifier/mcp.json whatever
    // AMPLIFIER_HOME is. The folder may only hold the store, so it says nothing about Amplifier.
    AgentClient {
        name: "amplifier",
        title: "Amplifier",
        format: SERVERS,
        is_in_terminal: true,
        place: |environment| {
            let folder = environment.home.as_ref()?.join(".amplifier");
            Some(ClientPlace { file: folder.join("mcp.json"), sign: folder.join("settings.yaml") })
        },
    },
    // https://code.claude.com/docs/en/mcp: the scope `user` is in ~/.claude.json. With CLAUDE_CONFIG_DIR, that file is
    // in that folder: https://github.com/anthropics/claude-code/issues/48448.
    AgentClient {
        name: "claude-code",
        title: "Claude Code",
        format: ConfigFormat::Json { key: "mcpServers", has_type: true },
        is_in_terminal: true,
        place: |environment| match folder_in(environment, "CLAUDE_CONFIG_DIR") {
            Some(folder) => Some(ClientPlace::in_own_folder(folder, ".claude.json")),
            None => {
                let home = environment.home.as_ref()?;
                Some(ClientPlace { file: home.join(".claude.json"), sign: home.join(".claude") })
            }
        },
    },
    // https://modelcontextprotocol.io/quickstart/user: macOS and Windows only.
    AgentClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        format: SERVERS,
        is_in_terminal: false,
        place: |environment| {
            let folder =
                (cfg!(target_os = "macos") || cfg!(windows)).then(|| settings_folder(environment))??;
            Some(ClientPlace::in_own_folder(folder.join("Claude"), "claude_desktop_config.json"))
        },
    },
    // https://developers.openai.com/codex/mcp: `[mcp_servers.NAME]` in ~/.codex/config.toml, or in CODEX_HOME.
    AgentClient {
        name: "codex",
        title: "Codex",
        format: ConfigFormat::Toml,
        is_in_terminal: true,
        place: |environment| {
            let named = folder_in(environment, "CODEX_HOME");
            let folder = named.or_else(|| Some(environment.home.as_ref()?.join(".codex")))?;
            Some(ClientPlace::in_own_folder(folder, "config.toml"))
        },
    },
    // https://cursor.com/docs/mcp.
    AgentClient {
        name: "cursor",
        title: "Cursor",
        format: SERVERS,
        is_in_terminal: false,
        place: |environment| {
            Some(ClientPlace::in_own_folder(environment.home.as_ref()?.join(".cursor"), "mcp.json"))
        },
    },
    // https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md; GEMINI_CLI_HOME takes the place of
    // the home folder (packages/core/src/utils/paths.ts).
    AgentClient {
        name: "gemini-cli",
        title: "Gemini CLI",
        format: SERVERS,
        is_in_terminal: true,
        place: |environment| {
            let home = folder_in(environment, "GEMINI_CLI_HOME").or_else(|| environment.home.clone())?;
            Some(ClientPlace::in_own_folder(home.join(".gemini"), "settings.json"))
        },
    },
    // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration: `servers` in mcp.json of the user profile.
    AgentClient {
        name: "vscode",
        title: "VS Code",
        format: ConfigFormat::Json { key: "servers", has_type: true },
        is_in_terminal: false,
        place: |environment| {
            let folder = settings_folder(environment)?.join("Code").join("User");
            Some(ClientPlace::in_own_folder(folder, "mcp.json"))
        },
    },
];

/// The folder that a variable names, with a `~` that no shell has replaced.
fn folder_in(environment: &Environment, variable: &str) -> Option<PathBuf> {
    let folder = Path::new(environment.os_variable(variable).filter(|folder| !folder.is_empty())?);
    match (folder.strip_prefix("~"), &environment.home) {
        (Ok(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(folder.to_owned()),
    }
}

/// The folder in which desktop programs have their folders.
fn settings_folder(environment: &Environment) -> Option<PathBuf> {
    let home = environment.home.as_ref();
    if cfg!(target_os = "macos") {
        return Some(home?.join("Library/Application Support"));
    }
    let (variable, default) =
        if cfg!(windows) { ("APPDATA", "AppData/Roaming") } else { ("XDG_CONFIG_HOME", ".config") };
    let named = folder_in(environment, variable).filter(|folder| folder.is_absolute());
    named.or_else(|| Some(home?.join(default)))
}
