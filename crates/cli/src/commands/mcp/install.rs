//! `mcp install` and `mcp uninstall`: the configuration of clients.

use std::{env, path::Path};

use amplifier_session_storage::config::SettingOrigin;
use serde::Serialize;

use crate::{
    absolute,
    agent_clients::{
        AgentClient, CLIENTS, ClientConfig, SERVER, ServerCommand, ServerEntry, program_on_path,
    },
    app::App,
    args::{InstallMcpArgs, ScopeArg, UninstallMcpArgs},
    failure::{Failure, Outcome, say},
    program, server_store,
};

/// What was done with the configuration of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum EntryChange {
    Installed,
    Updated,
    Removed,
    Unchanged,
    /// Only printed.
    Printed,
}

impl EntryChange {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Updated => "updated",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
            Self::Printed => "printed",
        }
    }
}

/// A client as JSON.
#[derive(Debug, Serialize)]
struct ClientView {
    client: &'static str,
    /// The configuration file. `null` with `--print` if it is unknown on this machine.
    file: Option<String>,
    change: EntryChange,
    /// The program that the client starts. `null` if it starts none.
    command: Option<String>,
    args: Option<Vec<String>>,
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct ClientsView<'a> {
    clients: &'a [ClientView],
}

/// A new text for a file. Without one, the file stays as it is.
#[derive(Debug)]
struct PlannedChange {
    config: ClientConfig,
    text: Option<String>,
    change: EntryChange,
    command: Option<ServerCommand>,
}

pub(super) fn install(app: &mut App, args: &InstallMcpArgs) -> Result<Outcome, Failure> {
    if args.print {
        return print(app, &args.clients);
    }
    let plan = |&client| plan_install(app, client, args.force);
    let changes = distinct(&args.clients).iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    write(app, &changes)?;
    for change in changes.iter().filter(|planned| planned.text.is_some()) {
        say("hint", &format!("restart {} if it runs", change.config.client.title));
    }
    warn_of_missing_token(app)?;
    Ok(Outcome::Done)
}

pub(super) fn uninstall(app: &mut App, args: &UninstallMcpArgs) -> Result<Outcome, Failure> {
    let changes: Vec<PlannedChange> = if args.clients.is_empty() {
        let clients = CLIENTS.iter().filter(|client| client.is_there(&app.environment));
        let changes = clients.map(|client| plan_uninstall(app, client)).collect::<Result<Vec<_>, _>>()?;
        changes.into_iter().filter(|planned| planned.text.is_some()).collect()
    } else {
        let plan = |&client| plan_uninstall(app, client);
        distinct(&args.clients).iter().map(plan).collect::<Result<Vec<_>, _>>()?
    };
    write(app, &changes)?;
    if changes.is_empty() {
        say("note", "no client is connected");
    }
    Ok(Outcome::found(!changes.is_empty()))
}

/// Warns if the program that a client starts may not find the token of the server. A token is never written into the file of
/// a client.
fn warn_of_missing_token(app: &App) -> Result<(), Failure> {
    let Some(error) = server_store::missing_in_file(app)? else { return Ok(()) };
    say("warning", &format!("{}, and clients may not pass variables on", error.message()));
    if let Some(hint) = error.hint() {
        say("hint", hint);
    }
    Ok(())
}

/// Prints the part of the configuration with the entry.
fn print(app: &mut App, clients: &[&'static AgentClient]) -> Result<Outcome, Failure> {
    let mut views = Vec::new();
    for client in distinct(clients) {
        let command = server_command(app, client)?;
        let file = client.file(&app.environment).map(|file| file.display().to_string());
        if !app.out.is_json() {
            app.out.text(&ClientConfig::only_entry(client, &command)?)?;
            app.out.finish()?;
            if let Some(file) = &file {
                say("note", &format!("this belongs into {file}"));
            }
        }
        views.push(view(client, file, EntryChange::Printed, Some(&command)));
    }
    if app.out.is_json() {
        app.out.json(&ClientsView { clients: &views })?;
    }
    warn_of_missing_token(app)?;
    Ok(Outcome::Done)
}

fn plan_install(app: &App, client: &'static AgentClient, force: bool) -> Result<PlannedChange, Failure> {
    let command = server_command(app, client)?;
    let config = ClientConfig::read(app, client)?;
    let (change, replace) = match &config.entry {
        None => (EntryChange::Installed, false),
        Some(ServerEntry::Command(there)) if *there == command => (EntryChange::Unchanged, false),
        Some(entry) if entry.ours().is_some() => (EntryChange::Updated, false),
        Some(_) if force => (EntryChange::Updated, true),
        Some(entry) => return Err(taken(&config, entry)),
    };
    let text = match change {
        EntryChange::Unchanged => None,
        _ => Some(config.with_entry(&command, replace)?),
    };
    Ok(PlannedChange { config, text, change, command: Some(command) })
}

fn plan_uninstall(app: &App, client: &'static AgentClient) -> Result<PlannedChange, Failure> {
    let config = ClientConfig::read(app, client)?;
    let is_ours = config.entry.as_ref().is_some_and(|entry| entry.ours().is_some());
    let text = is_ours.then(|| config.without_entry()).transpose()?;
    let change = if is_ours { EntryChange::Removed } else { EntryChange::Unchanged };
    Ok(PlannedChange { config, text, change, command: None })
}

/// Another server has the name of ours.
fn taken(config: &ClientConfig, entry: &ServerEntry) -> Failure {
    let what = match entry {
        ServerEntry::Command(command) => format!("`{command}`"),
        ServerEntry::Other => "a server that is not a command".to_owned(),
    };
    let AgentClient { name, title, .. } = config.client;
    let message = format!("{title} has another server `{SERVER}` in {}: {what}", config.file.display());
    let hint =
        format!("rename it there, or replace it with `{} mcp install {name} --force`", program::name());
    Failure::failed(message, hint)
}

/// Writes the files, and prints what was done.
fn write(app: &mut App, changes: &[PlannedChange]) -> Result<(), Failure> {
    let mut views = Vec::new();
    for PlannedChange { config, text, change, command } in changes {
        if let Some(text) = text {
            config.write(text)?;
        }
        let file = config.file.display().to_string();
        if !app.out.is_json() {
            let fields = [change.as_str(), config.client.name, &file];
            app.out.line(&fields.join(if app.out.is_terminal() { "  " } else { "\t" }))?;
        }
        views.push(view(config.client, Some(file), *change, command.as_ref()));
    }
    if app.out.is_json() {
        app.out.json(&ClientsView { clients: &views })?;
    }
    app.out.finish()?;
    Ok(())
}

fn view(
    client: &AgentClient,
    file: Option<String>,
    change: EntryChange,
    command: Option<&ServerCommand>,
) -> ClientView {
    ClientView {
        client: client.name,
        file,
        change,
        command: command.map(|command| command.program.clone()),
        args: command.map(|command| command.args.clone()),
    }
}

/// The clients without repetitions.
fn distinct(clients: &[&'static AgentClient]) -> Vec<&'static AgentClient> {
    let mut distinct: Vec<&AgentClient> = Vec::new();
    for client in clients {
        if distinct.iter().all(|there| there.name != client.name) {
            distinct.push(client);
        }
    }
    distinct
}

/// The command with which `client` starts the server.
fn server_command(app: &App, client: &AgentClient) -> Result<ServerCommand, Failure> {
    if app.has_server()? {
        app.global.check_for_server()?;
        app.global.check_groups_for_server()?;
    } else {
        // A URL with a password is an error here.
        app.store_url()?;
    }
    let mut args = options(app)?;
    args.push("mcp".to_owned());
    Ok(ServerCommand { program: program_for(app, client)?, args })
}

/// The name of this program if the client finds it, or else its path. A path from `PATH` is used as it is, because the
/// target of a link there may have a version in its name.
fn program_for(app: &App, client: &AgentClient) -> Result<String, Failure> {
    let own = env::current_exe()?;
    let is_own = |path: &Path| path.canonicalize().ok() == own.canonicalize().ok();
    let name = env!("CARGO_PKG_NAME");
    match program_on_path(app, name).filter(|path| is_own(path)) {
        // Desktop programs do not have the user's `PATH`.
        Some(_) if client.is_in_terminal => Ok(name.to_owned()),
        Some(path) => Ok(path.display().to_string()),
        None => Ok(own.display().to_string()),
    }
}

/// The options that select store and sessions, without those from the configuration file. Those from variables are
/// included: Codex passes only a few variables on to servers (codex-rs/rmcp-client/src/utils.rs), and desktop programs do
/// not have those of a shell.
fn options(app: &App) -> Result<Vec<String>, Failure> {
    let folder = env::current_dir()?;
    let mut options = Vec::new();
    let mut add = |option: &str, value: String| options.extend([option.to_owned(), value]);
    if let Some(config) = &app.global.config {
        add("--config", folder.join(config).display().to_string());
    }
    let store = absolute::store_url(&app.global.store, &folder);
    let in_file = matches!(app.config.origin("store"), SettingOrigin::File { .. });
    // A relative path in the configuration file depends on the current folder, too.
    if is_given(app, "store") || in_file && store != app.global.store {
        add("--store", store);
    }
    let teams = app.global.team.join(",");
    let settings = [
        ("user", "--user", app.global.user.as_deref()),
        ("teams", "--team", Some(&*teams)),
        ("org", "--org", app.global.org.as_deref()),
        ("embedding", "--embedding", Some(&*app.global.embedding)),
        ("redact", "--redact", app.config.text("redact")),
    ];
    for (key, option, value) in settings {
        if let Some(value) = value.filter(|value| !value.is_empty() && is_given(app, key)) {
            add(option, value.to_owned());
        }
    }
    if app.global.scope != ScopeArg::Own {
        add("--scope", app.global.scope.as_str().to_owned());
    }
    if app.global.allow_http {
        options.push("--allow-http".to_owned());
    }
    if app.global.utc {
        options.push("--utc".to_owned());
    }
    Ok(options)
}

/// Whether a setting comes from the command line or the environment.
fn is_given(app: &App, key: &str) -> bool {
    matches!(app.config.origin(key), SettingOrigin::CommandLine(_) | SettingOrigin::Environment(_))
}
