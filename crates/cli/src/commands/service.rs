//! `service`: runs `watch` as a service of systemd or launchd.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    app::App,
    args::{InstallServiceArgs, ServiceAction, ServiceArgs},
    failure::{Failure, Outcome, say},
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

/// The command line and environment of the service.
#[derive(Debug)]
struct Service {
    command: Vec<String>,
    variables: Vec<(String, String)>,
    folder: String,
}

pub(super) fn run(app: &mut App, args: ServiceArgs) -> Result<Outcome, Failure> {
    match args.action {
        ServiceAction::Install(args) => install(app, &args),
        ServiceAction::Uninstall(_) => uninstall(app),
    }
}

fn install(app: &mut App, args: &InstallServiceArgs) -> Result<Outcome, Failure> {
    // Options that the service would reject are rejected now.
    super::watch::check(app, &args.what)?;
    let service = Service::of_this_process()?;
    let text = if cfg!(target_os = "macos") { service.agent() } else { service.unit() };
    if args.print {
        app.out.text(&text)?;
        return Ok(Outcome::Done);
    }
    let file = file(app)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(&file, &error))?;
    }
    fs::write(&file, text).map_err(|error| failed(&file, &error))?;
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
    say("hint", &format!("`{} status` shows whether it runs", app.program()));
    Ok(Outcome::Done)
}

fn uninstall(app: &App) -> Result<Outcome, Failure> {
    let file = file(app)?;
    if !file.exists() {
        return Err(Failure::failed("the service is not installed", "`service install` installs it"));
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

/// Whether the service is installed.
pub(super) fn is_installed(app: &App) -> bool {
    file(app).is_ok_and(|file| file.exists())
}

/// Where the service is defined.
fn file(app: &App) -> Result<PathBuf, Failure> {
    let home = app.home.clone();
    let home = || home.ok_or_else(|| Failure::failed("the home folder is unknown", "set HOME"));
    if cfg!(target_os = "macos") {
        return Ok(home()?.join("Library/LaunchAgents").join(format!("{AGENT}.plist")));
    }
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.map_or_else(|| Ok::<_, Failure>(home()?.join(".config")), Ok)?;
    Ok(config.join("systemd/user").join(UNIT))
}

fn failed(file: &Path, error: &io::Error) -> Failure {
    let message = format!("{} can't be changed: {error}", file.display());
    Failure::failed(
        message,
        "`service install --print` prints the service, so that you can install it yourself",
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
    /// `watch` with the options of this command line, because `service install` accepts the same ones.
    fn of_this_process() -> Result<Self, Failure> {
        let mut command: Vec<String> =
            env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let install = command.iter().rposition(|argument| argument == "install").unwrap_or(0);
        let service = command.iter().take(install).rposition(|argument| argument == "service").unwrap_or(0);
        command.retain({
            let mut n = 0;
            move |argument| {
                n += 1;
                n - 1 != install && argument != "--print"
            }
        });
        if let Some(name) = command.get_mut(service) {
            "watch".clone_into(name);
        }
        if let Some(program) = command.first_mut() {
            *program = env::current_exe()?.display().to_string();
        }
        let is_setting = |name: &str| {
            PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                && !LEFT_OUT.iter().any(|part| name.contains(part))
        };
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let mut variables: Vec<_> =
            env::vars_os().filter_map(text).filter(|(name, _)| is_setting(name)).collect();
        variables.sort();
        Ok(Self { command, variables, folder: env::current_dir()?.display().to_string() })
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
             WorkingDirectory={}\n\
             {variables}\
             ExecStart={}\n\
             Restart=on-failure\n\
             RestartSec=30\n\
             Nice=5\n\
             \n\
             [Install]\n\
             WantedBy=default.target\n",
            self.folder.replace('%', "%%"),
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
             <key>WorkingDirectory</key><string>{}</string>\n    \
             <key>RunAtLoad</key><true/>\n    \
             <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n    \
             <key>ProcessType</key><string>Background</string>\n\
             </dict>\n</plist>\n",
            escaped_for_xml(&self.folder),
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
            folder: "/home/ana".to_owned(),
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
