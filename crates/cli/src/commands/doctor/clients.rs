//! Checks of the clients of MCP.

use std::path::{PathBuf, is_separator};

use amplifier_session_storage::StoreUrl;

use super::Check;
use crate::{
    agent_clients::{AgentClient, CLIENTS, ClientConfig, ServerCommand, ServerEntry, program_on_path},
    app::App,
};

const NAME: &str = "mcp";

/// Which of the installed clients start this program. Nothing if there are no clients.
pub(super) fn check(app: &App, checks: &mut Vec<Check>) {
    let (mut connected, mut others) = (Vec::new(), Vec::new());
    for client in CLIENTS.iter().filter(|client| client.is_there(&app.environment)) {
        match ClientConfig::read(app, client) {
            Ok(config) => match config.entry.as_ref().and_then(ServerEntry::ours) {
                Some(command) => {
                    connected.push(client.title);
                    checks.extend(missing(app, client, command));
                }
                None => others.push(client),
            },
            Err(failure) => {
                let hint = failure.hint(&app.program(), None).unwrap_or_default();
                checks.push(Check::warning(NAME, failure.message(), hint));
            }
        }
    }
    let hint = others.first().map(|client| install(app, client));
    let not_connected: Vec<&str> = others.iter().map(|client| client.title).collect();
    let text = match (connected.as_slice(), not_connected.as_slice()) {
        ([], []) => return,
        (connected, []) => format!("connected: {}", connected.join(", ")),
        ([], others) => format!("not connected: {}", others.join(", ")),
        (connected, others) => {
            format!("connected: {}; not connected: {}", connected.join(", "), others.join(", "))
        }
    };
    checks.push(Check { hint, ..Check::ok(NAME, text) });
}

/// The program or the store of an entry, if it does not exist.
fn missing(app: &App, client: &AgentClient, command: &ServerCommand) -> Option<Check> {
    let is_path = command.program.contains(is_separator);
    let program = if is_path {
        Some(PathBuf::from(&command.program)).filter(|path| path.is_file())
    } else {
        program_on_path(app, &command.program)
    };
    if program.is_none() {
        let text = format!("{} starts {}, which does not exist", client.title, command.program);
        return Some(Check::warning(NAME, text, install(app, client)));
    }
    let store = command.option("--store")?;
    let url = StoreUrl::parse(store, app.home.as_deref()).ok()?;
    let is_missing = url.file().is_some_and(|file| !file.try_exists().unwrap_or(true));
    is_missing.then(|| {
        let text = format!("{} reads the store {url}, which does not exist", client.title);
        Check::warning(NAME, text, install(app, client))
    })
}

fn install(app: &App, client: &AgentClient) -> String {
    format!("`{} mcp install {}` connects {}", app.program(), client.name, client.title)
}
