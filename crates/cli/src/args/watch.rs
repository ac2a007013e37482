//! `watch` and its subcommands.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::{PushArgs, sync::EventsArg};

/// Keep the store up to date while sessions are written
#[derive(Debug, Args)]
#[command(long_about = "\
Follows the session folders and reads what changes into the store, within about a second. It runs until it gets SIGINT or \
SIGTERM (Ctrl-C); then it finishes writing and exits with 0. Everything is compared at the start, every 10 minutes, and \
whenever the system may have lost notifications, so nothing is missed. Vectors are created at the same time.")]
#[command(after_long_help = "\
If a store is down, `watch` tries again at growing intervals, and nothing is lost. If a root does not exist, `watch` waits \
for it. If there are more folders than the system can watch, `watch` says so and compares them every 30 seconds. Only one \
`watch` runs for a store and a root; `watch status` shows it. While it runs, searches do not read the folders themselves.

With --log-format json, each message on stderr is a JSON object; only an error that ends `watch` is text.

Examples:
  amplifier-sessions watch
  amplifier-sessions watch status
  amplifier-sessions watch service install
  amplifier-sessions watch --root ~/.amplifier --root /backup/amplifier
  amplifier-sessions watch --also-store sqlite:/mnt/backup/sessions.sqlite
  amplifier-sessions watch --push https://sessions.example.com
  amplifier-sessions watch --metrics 127.0.0.1:9187 --log-format json")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) what: WatchedArgs,
    /// The format of messages on stderr
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) action: Option<WatchAction>,
}

/// The subcommands of `watch`.
#[derive(Debug, Subcommand)]
pub(crate) enum WatchAction {
    Status(StatusArgs),
    Service(ServiceArgs),
}

/// How often all sessions are compared by default, in minutes.
const COMPARE_EVERY: u64 = 10;

/// The options that `watch` and `watch service install` share.
#[derive(Debug, Args)]
pub(crate) struct WatchedArgs {
    /// A folder that contains projects/; by default `root` of the configuration, or ~/.amplifier and ~/.amplifier-agent;
    /// may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Keep this store up to date too; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) also_store: Vec<String>,
    /// Skip sessions whose PROJECT/SESSION matches, in addition to `exclude` of the configuration; may be repeated
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    pub(crate) exclude: Vec<String>,
    /// How much of the event logs to store: complete lines, only their fields (a few bytes), or nothing; by default
    /// `events` of the configuration, or complete lines
    #[arg(long, value_name = "DETAIL")]
    pub(crate) events: Option<EventsArg>,
    /// How often to compare all sessions
    #[arg(long, value_name = "MINUTES", default_value_t = COMPARE_EVERY, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compare_every: u64,
    /// Compare all sessions every SECONDS instead of following the folders, for example in a network folder that other
    /// machines write to
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) poll: Option<u64>,
    #[command(flatten)]
    pub(crate) push: PushArgs,
    /// Serve metrics for Prometheus at this address of this machine, for example 127.0.0.1:9187
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) metrics: Option<SocketAddr>,
}

#[cfg(feature = "server")]
impl WatchedArgs {
    /// The folders `root`, without other options.
    pub(crate) fn of_roots(root: Vec<PathBuf>) -> Self {
        Self {
            root,
            also_store: Vec::new(),
            exclude: Vec::new(),
            events: None,
            compare_every: COMPARE_EVERY,
            poll: None,
            push: PushArgs::default(),
            metrics: None,
        }
    }
}

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "must be an address and a port, for example 127.0.0.1:9187".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("must be an address of this machine, such as 127.0.0.1 or [::1]".to_owned())
    }
}

/// Show whether the store is up to date
#[derive(Debug, Args)]
#[command(long_about = "\
Shows whether `watch` runs for the store, when sessions were last read, and which changes the store does not have yet. Compares \
the folders with the store, and reads no session.")]
#[command(after_long_help = "\
`lag` is how long the oldest of these changes has been waiting.

Examples:
  amplifier-sessions watch status
  amplifier-sessions watch status --json")]
pub(crate) struct StatusArgs {
    /// A folder that contains projects/; by default `root` of the configuration, or ~/.amplifier and ~/.amplifier-agent;
    /// may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
}

/// Run `watch` as a service of your account
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub(crate) action: ServiceAction,
}

/// The subcommands of `watch service`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceAction {
    Install(InstallServiceArgs),
    Uninstall(UninstallServiceArgs),
    Status(ServiceStatusArgs),
}

/// Install and start the service
#[derive(Debug, Args)]
#[command(long_about = "\
Writes a service of your account that runs `watch` with the same options, and starts it: a systemd unit, or a launchd agent \
on macOS. The environment variables of this program that are set now are written into it, except for keys, and relative \
paths become absolute.")]
pub(crate) struct InstallServiceArgs {
    #[command(flatten)]
    pub(crate) what: WatchedArgs,
    /// Only print the service
    #[arg(long)]
    pub(crate) print: bool,
}

/// Show whether the service runs, and where its messages are
#[derive(Debug, Args)]
pub(crate) struct ServiceStatusArgs {}

/// Stop and remove the service
#[derive(Debug, Args)]
pub(crate) struct UninstallServiceArgs {}
