//! `amplifier-sessions`: stores and searches the sessions of AI agents, on the command line.
//!
//! [`run`] runs a command in an [`Environment`]; the program does so in that of its process.
//!
//! Results go to stdout, everything else to stderr. Each command is a file in `commands`. They share `app` (the store
//! and the user), `out` (output of results) and `render` (formatting). Their logic is in `amplifier_session_api`.

mod absolute;
mod agent_clients;
mod app;
mod args;
mod budget;
mod commands;
mod completion;
mod environment;
mod failure;
mod file;
mod interactive;
mod opened;
mod out;
mod paint;
mod problems;
mod program;
mod progress;
mod refresh;
mod render;
mod roots;
mod samples;
#[cfg_attr(not(feature = "client"), path = "server_store_unsupported.rs")]
mod server_store;
#[cfg(any(feature = "watch", feature = "client"))]
mod stopping;
mod streams;
mod terminal_programs;
mod unfinished;
mod usage;
mod words;

use amplifier_session_api::{cut, dates, groups};
use std::{sync::Arc, time::Duration};

use amplifier_session_storage::config::Configuration;
use app::App;
use args::{Cli, Command};
use failure::{Failure, Outcome, SUCCESS};
use render::text::counted;

pub use environment::Environment;
pub use streams::{InputStream, OutputStream};

/// How long work that has begun may continue after the command has ended, such as a write to the store.
const LAST_WORK: Duration = Duration::from_secs(5);
/// As [`LAST_WORK`], for `mcp`, whose client expects it to end within a second. A write that is interrupted leaves the
/// store as it was.
const LAST_WORK_OF_SERVER: Duration = Duration::from_millis(100);

/// Runs the command of `environment.arguments`, and returns its exit code. Any number of runs can share a process. Not
/// for asynchronous code: it has a runtime of its own.
#[must_use]
pub fn run(mut environment: Environment) -> u8 {
    let moved = args::use_new_name(&mut environment.arguments);
    let environment = Arc::new(environment);
    let _entered = environment.enter();
    if completion::answered(&environment) {
        return SUCCESS;
    }
    if let Some(note) = moved {
        failure::say("note", &note);
    }
    let (mut cli, matches) = match args::parse_arguments(&environment) {
        Ok(parsed) => parsed,
        Err(error) => return usage::report_usage(&error),
    };
    let mut config_error = None;
    let config = match cli.global.configure(&matches, &environment) {
        Ok(config) => config,
        // `doctor` reports it among its checks.
        Err(error) if matches!(cli.command, Command::Doctor(_)) => {
            config_error = Some(error);
            Configuration::default()
        }
        Err(error) => return Failure::from(error).report(&program::name(), None),
    };
    start_log(&environment, &cli);
    let mut app = App::new(environment, cli.global, config);
    app.config_error = config_error;
    if cli.command.is_paged() && !app.out.is_json() && !app.global.no_pager {
        app.out.use_pager(&app.environment, app.config.text("pager"));
    }
    app.warn_of_unknown_zone();
    match run_command(&mut app, cli.command) {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            let store = app.store_url().ok().map(|url| url.to_string());
            failure.report(&app.program(), store.as_deref())
        }
    }
}

fn run_command(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    let last_work = if matches!(&command, Command::Mcp(args) if args.action.is_none()) {
        LAST_WORK_OF_SERVER
    } else {
        LAST_WORK
    };
    let environment = app.environment.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // Enough for short searches; long work runs on threads for blocking work.
        .worker_threads(2)
        .on_thread_start(move || environment.enter_for_good())
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        survive_file_limit();
        commands::run(app, command).await
    });
    let finished = app.out.finish();
    let usage = app.out.service_usage();
    app.out.end_pager();
    // The command has ended, so the program does not wait for tasks that are still running: one may be waiting for a
    // server that never answers.
    runtime.shutdown_timeout(last_work);
    finished?;
    if let Some(usage) = usage.filter(|_| !app.out.is_json()) {
        let requests = counted(usage.requests, "request");
        let throttled = match usage.throttled_requests {
            0 => String::new(),
            throttled => format!(", {throttled} of them throttled"),
        };
        failure::say("note", &format!("{:.2} request units, {requests}{throttled}", usage.request_units));
    }
    outcome
}

/// Makes a write beyond the size limit of files (`ulimit -f`) fail, as on a full disk. Otherwise, the signal that
/// precedes the failure ends the process.
fn survive_file_limit() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        // The handler stays after the receiver is dropped. Without it, the program still works.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}

/// Starts the requested log, on stderr. A process has one log, so the first run that starts it has it.
fn start_log(environment: &Environment, cli: &Cli) {
    use tracing_subscriber::{EnvFilter, fmt};

    let stderr = environment.stderr.clone();
    let writer = move || stderr.clone();
    #[cfg(feature = "watch")]
    if matches!(&cli.command, Command::Watch(args) if args.log_format == args::LogFormat::Json) {
        let level = cli.global.log_level().unwrap_or("warn,amplifier_sessions=info");
        let log = fmt().json().flatten_event(true).with_current_span(false);
        let _ = log.with_env_filter(EnvFilter::new(level)).with_writer(writer).try_init();
        return;
    }
    // Clients see only that the server failed; its log has the reason.
    #[cfg(feature = "server")]
    let usual = matches!(&cli.command, Command::Serve(_)).then_some("warn");
    #[cfg(not(feature = "server"))]
    let usual = None;
    if let Some(level) = cli.global.log_level().or(usual) {
        let colors = environment.stderr.is_terminal() && out::allows_colors(environment);
        let log = fmt().with_ansi(colors).with_env_filter(EnvFilter::new(level));
        let _ = log.with_writer(writer).try_init();
    }
}
