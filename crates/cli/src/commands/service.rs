//! `watch service`: runs `watch` as a service of systemd or launchd.

mod paths;

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use amplifier_session_storage::config::SettingOrigin;
use serde::Serialize;

use crate::{
    app::App,
    args::{InstallServiceArgs, ServiceAction, ServiceArgs},
    environment::Environment,
    failure::{Failure, Outcome, say},
    file::write_private,
    render::{card::labelled, text::printable},
};

/// The name of the unit of systemd.
const UNIT: &str = "amplifier-sessions-watch.service";
/// The name of the agent of launchd.
const AGENT: &str = "amplifier-sessions.watch";
/// The prefixes of environment variables that are written into the service.
const PREFIXES: [&str; 7] = [
    "AMPLIFIER_SESSIONS_",
    "AMPLIFIER_COSMOS_",
    "AZURE_OPENAI_",
    "OPENAI_",
    // The folders to watch.
    "AMPLIFIER_HOME",
    "AMPLIFIER_AGENT_HOME",
    "AMPLIFIER_CONTEXT_INTELLIGENCE_BASE_PATH",
];
/// Parts of names of variables that are left out: secrets, and variables for terminals only.
const LEFT_OUT: [&str; 4] = ["KEY", "SECRET", "TOKEN", "FORCE_TTY"];

/// The command that reads the messages of the service. On macOS, the path is that in the home folder.
const LOG: &str = if cfg!(target_os = "macos") {
    "Library/Logs/amplifier-sessions-watch.log"
} else {
    "journalctl --user -u amplifier-sessions-watch"
};

/// The command line and environment of the service.
#[derive(Debug)]
struct Service {
    command: Vec<String>,
    variables: Vec<(String, String)>,
    /// The file for its messages, with launchd.
    log: String,
}

/// The state of the service.
#[derive(Serialize)]
struct ServiceView {
    /// The file that defines it.
    file: String,
    /// As the system names it, for example `active` or `failed`.
    state: String,
    /// The command that reads its messages.
    log: String,
}

pub(super) fn run(app: &mut App, args: ServiceArgs) -> Result<Outcome, Failure> {
    match args.action {
        ServiceAction::Install(args) => install(app, &args),
        ServiceAction::Uninstall(_) => uninstall(app),
        ServiceAction::Status(_) => status(app),
    }
}

fn install(app: &mut App, args: &InstallServiceArgs) -> Result<Outcome, Failure> {
    // Options that the service would reject are rejected now.
    super::watch::check(app, &args.what)?;
    let service = Service::of_this_process(app)?;
    let text = if cfg!(target_os = "macos") { service.agent() } else { service.unit() };
    if args.print {
        app.out.text(&if app.out.is_terminal() { printable(&text) } else { text })?;
        return Ok(Outcome::Done);
    }
    let file = file(app)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(&file, &error))?;
    }
    write_private(&file, &text)?;
    let file = file.display().to_string();
    let commands: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["launchctl", "load", "-w", &file]]
    } else {
        &[
            &["systemctl", "--user", "daemon-reload"],
            &["systemctl", "--user", "enable", UNIT],
            &["systemctl", "--user", "restart", UNIT],
        ]
    };
    run_all(commands)?;
    say("installed", &file);
    say(
        "hint",
        &format!(
            "`{} watch service status` shows whether it runs, and where its messages are",
            app.program()
        ),
    );
    if cfg!(target_os = "linux") {
        say("hint", "it ends when you log out; `loginctl enable-linger` keeps it running");
    }
    Ok(Outcome::Done)
}

fn uninstall(app: &App) -> Result<Outcome, Failure> {
    let file = file(app)?;
    if !file.exists() {
        return Err(not_installed());
    }
    let path = file.display().to_string();
    let stop: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["launchctl", "unload", "-w", &path]]
    } else {
        &[&["systemctl", "--user", "disable", "--now", UNIT]]
    };
    let stopped = run_all(stop);
    fs::remove_file(&file).map_err(|error| failed(&file, &error))?;
    if !cfg!(target_os = "macos") {
        stopped.and_then(|()| run_all(&[&["systemctl", "--user", "daemon-reload"]]))?;
    }
    say("removed", &path);
    Ok(Outcome::Done)
}

fn not_installed() -> Failure {
    Failure::failed("the service is not installed", "`watch service install` installs it")
}

/// Shows whether the service runs, and where its messages are. Fails if it does not run.
fn status(app: &mut App) -> Result<Outcome, Failure> {
    let file = file(app)?;
    if !file.exists() {
        return Err(not_installed());
    }
    let state = if cfg!(target_os = "macos") {
        answer(&["launchctl", "list", AGENT])
            // launchd names no state, but lists a process id only while the process runs.
            .map(|listed| if listed.contains("\"PID\"") { "active" } else { "inactive" }.to_owned())
    } else {
        answer(&["systemctl", "--user", "is-active", UNIT])
    };
    let state = state
        .map_err(|error| Failure::without_hint(format!("the state of the service is unknown: {error}")))?;
    let view = ServiceView { file: file.display().to_string(), state, log: log(app) };
    if app.out.is_json() {
        app.out.json(&view)?;
    } else {
        let width = app.out.wrap_at();
        let rows = [("service", &view.file), ("state", &view.state), ("log", &view.log)];
        let lines: Vec<_> =
            rows.into_iter().flat_map(|(label, value)| labelled(label, value, width)).collect();
        app.out.lines(&lines)?;
    }
    app.out.finish()?;
    match view.state.as_str() {
        "active" | "activating" => Ok(Outcome::Done),
        state => Err(Failure::failed(
            format!("the service does not run: {state}"),
            format!("its messages may say why: {}", view.log),
        )),
    }
}

/// The place of the messages of the service: a command, or a file.
fn log(app: &App) -> String {
    match app.home.as_ref().filter(|_| cfg!(target_os = "macos")) {
        Some(home) => home.join(LOG).display().to_string(),
        None => LOG.to_owned(),
    }
}

/// The output of a command, even if the command fails.
fn answer(command: &[&str]) -> io::Result<String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(String::new()) };
    let output = Command::new(program).args(arguments).output()?;
    let shown = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if shown.is_empty() {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    } else {
        Ok(shown)
    }
}

/// Whether the service is installed.
pub(super) fn is_installed(app: &App) -> bool {
    file(app).is_ok_and(|file| file.exists())
}

/// The file that defines the service.
fn file(app: &App) -> Result<PathBuf, Failure> {
    let home = app.home.clone();
    let home = || home.ok_or_else(|| Failure::failed("the home folder is unknown", "set HOME"));
    if cfg!(target_os = "macos") {
        return Ok(home()?.join("Library/LaunchAgents").join(format!("{AGENT}.plist")));
    }
    let config =
        app.environment.os_variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.map_or_else(|| Ok::<_, Failure>(home()?.join(".config")), Ok)?;
    Ok(config.join("systemd/user").join(UNIT))
}

fn failed(file: &Path, error: &io::Error) -> Failure {
    let message = format!("{} can't be changed: {error}", file.display());
    Failure::failed(
        message,
        "`watch service install --print` prints the service, so that you can install it yourself",
    )
}

/// Runs commands until one fails.
fn run_all(commands: &[&[&str]]) -> Result<(), Failure> {
    for command in commands {
        let Some((program, arguments)) = command.split_first() else { continue };
        let reason = match Command::new(program).args(arguments).output() {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        let command = command.join(" ");
        return Err(Failure::failed(
            format!("`{command}` failed: {reason}"),
            format!("run `{command}` yourself"),
        ));
    }
    Ok(())
}

impl Service {
    /// `watch` with the options of this command line, because `watch service install` accepts the same ones.
    fn of_this_process(app: &App) -> Result<Self, Failure> {
        let folder = env::current_dir()?;
        let Environment { arguments, variables, .. } = &*app.environment;
        let mut command: Vec<String> =
            arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let last =
            |before: usize, name: &str| command.iter().take(before).rposition(|argument| argument == name);
        let words = last(command.len(), "install").and_then(|at| Some((last(at, "service")?, at)));
        let Some((service, install)) = words else {
            let hint = "pass the words as they are, without abbreviations";
            return Err(Failure::wrong_use("the command line does not contain `service install`", hint));
        };
        command.retain({
            let mut n = 0;
            move |argument| {
                n += 1;
                ![service, install].contains(&(n - 1)) && argument != "--print"
            }
        });
        if let Some(program) = command.first_mut() {
            *program = env::current_exe()?.display().to_string();
        }
        let mut command = paths::arguments(command, &folder);
        // A relative path in the configuration file depends on the current folder, too.
        let in_file = matches!(app.config.origin("store"), SettingOrigin::File { .. });
        if let Some(store) = app.config.text("store").filter(|_| in_file) {
            let absolute = paths::value("--store", store, &folder);
            if absolute != store {
                command.extend(["--store".to_owned(), absolute]);
            }
        }
        let is_setting = |name: &str| {
            PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                && !LEFT_OUT.iter().any(|part| name.contains(part))
        };
        let text = |(name, value): (&OsString, &OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let set = variables.iter().filter_map(text).filter(|(name, _)| is_setting(name));
        let mut variables: Vec<_> = set
            .map(|(name, value)| {
                let value = paths::value(&name, &value, &folder);
                (name, value)
            })
            .collect();
        variables.sort();
        Ok(Self { command, variables, log: log(app) })
    }

    /// The unit of systemd.
    fn unit(&self) -> String {
        let command: Vec<String> = self.command.iter().map(|argument| quoted_for_systemd(argument)).collect();
        let variables: String = self
            .variables
            .iter()
            .map(|(name, value)| {
                let set =
                    format!("{name}={value}").replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
                format!("Environment=\"{set}\"\n")
            })
            .collect();
        format!(
            "[Unit]\n\
             Description=Keeps the store of AI agents' sessions up to date\n\
             \n\
             [Service]\n\
             Type=notify\n\
             NotifyAccess=main\n\
             {variables}\
             ExecStart={}\n\
             Restart=on-failure\n\
             RestartSec=30\n\
             Nice=5\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            command.join(" "),
        )
    }

    /// The agent of launchd.
    fn agent(&self) -> String {
        let strings: String = self
            .command
            .iter()
            .map(|argument| format!("        <string>{}</string>\n", escaped_for_xml(argument)))
            .collect();
        let variables: String = self
            .variables
            .iter()
            .map(|(name, value)| {
                format!("        <key>{name}</key><string>{}</string>\n", escaped_for_xml(value))
            })
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n    \
             <key>Label</key><string>{AGENT}</string>\n    \
             <key>ProgramArguments</key>\n    <array>\n{strings}    </array>\n    \
             <key>EnvironmentVariables</key>\n    <dict>\n{variables}    </dict>\n    \
             <key>StandardErrorPath</key><string>{}</string>\n    \
             <key>RunAtLoad</key><true/>\n    \
             <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n    \
             <key>ProcessType</key><string>Background</string>\n\
             </dict>\n</plist>\n",
            escaped_for_xml(&self.log),
        )
    }
}

/// An argument in a command line of systemd.
fn quoted_for_systemd(argument: &str) -> String {
    let escaped = argument
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('$', "$$")
        .replace('%', "%%")
        .replace('\n', r"\n");
    format!("\"{escaped}\"")
}

fn escaped_for_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        let command = ["/opt/a b/amplifier-sessions", "watch", "--exclude", "*\"$HOME\"%h<&>"];
        Service {
            command: command.map(str::to_owned).to_vec(),
            variables: vec![("AMPLIFIER_SESSIONS_USER".to_owned(), "ana 100%".to_owned())],
            log: "/Users/ana/watch.log".to_owned(),
        }
    }

    #[test]
    fn arguments_are_quoted_for_systemd() {
        let unit = service().unit();
        let command = r#"ExecStart="/opt/a b/amplifier-sessions" "watch" "--exclude" "*\"$$HOME\"%%h<&>""#;
        assert!(unit.lines().any(|line| line == command), "{unit}");
        assert!(
            unit.lines().any(|line| line == r#"Environment="AMPLIFIER_SESSIONS_USER=ana 100%%""#),
            "{unit}"
        );
    }

    #[test]
    fn arguments_are_escaped_for_launchd() {
        let agent = service().agent();
        assert!(agent.contains("<string>*\"$HOME\"%h&lt;&amp;&gt;</string>"), "{agent}");
    }
}
