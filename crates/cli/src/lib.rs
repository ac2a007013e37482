//! `amplifier-sessions`: stores and searches the sessions of AI agents, on the command line.
//!
//! Results go to stdout, everything else to stderr. Each command is a file in [`commands`]. They share [`app`] (the
//! store and the user), [`out`] (output of results), [`render`] (formatting) and [`dates`].

mod app;
mod args;
mod budget;
mod commands;
mod completion;
mod cut;
mod dates;
mod failure;
mod file;
mod groups;
mod interactive;
mod messages;
mod out;
mod paint;
mod program;
mod progress;
mod project;
mod refresh;
mod render;
mod roots;
mod samples;
mod unfinished;

use std::{process::ExitCode, time::Duration};

use amplifier_session_storage::config::Configuration;
use app::App;
use args::{Cli, Command};
use clap::FromArgMatches as _;
use failure::{Failure, Outcome};
use render::text::counted;

/// Most memory here is freed by a different thread from the one that allocated it, which fragments the heap of glibc's
/// allocator: a large sync used up to three times as much memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the system after 10 ms, as glibc does. By default, mimalloc waits a second, and keeps the
/// lines of several seconds: a sync of 320 lines of 2 MB took 280 MB instead of 190.
#[allow(unsafe_code, reason = "the crate has no function for this option")]
fn return_memory_soon() {
    use std::ffi::{c_int, c_long};

    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    /// `mi_option_purge_delay` in `mimalloc.h`, in milliseconds.
    const PURGE_DELAY: c_int = 15;
    // SAFETY: the declaration is that of `mimalloc.h`. The function stores a number, at any time, on any thread.
    unsafe { mi_option_set(PURGE_DELAY, 10) }
}

/// How long work that has begun may continue after the command has ended, such as a write to the store.
const LAST_WORK: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    return_memory_soon();
    if completion::answered() {
        return ExitCode::SUCCESS;
    }
    let parsed = args::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (mut cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return failure::report_usage(&error),
    };
    let mut config_error = None;
    let config = match cli.global.configure(&matches) {
        Ok(config) => config,
        // `doctor` reports it among its checks.
        Err(error) if matches!(cli.command, Command::Doctor(_)) => {
            config_error = Some(error);
            Configuration::default()
        }
        Err(error) => return Failure::from(error).report(&program::name(), None),
    };
    start_log(&cli);
    let mut app = App::new(cli.global, config);
    app.config_error = config_error;
    match run(&mut app, cli.command) {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            let store = app.store_url().ok().map(|url| url.to_string());
            failure.report(&app.program(), store.as_deref())
        }
    }
}

fn run(app: &mut App, command: Command) -> Result<Outcome, Failure> {
    // Two threads are enough for short searches; long work runs on threads for blocking work.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        survive_file_limit();
        commands::run(app, command).await
    });
    let finished = app.out.finish();
    // The command has ended, so the program does not wait for tasks that are still running: one may be waiting for a
    // server that never answers.
    runtime.shutdown_timeout(LAST_WORK);
    finished?;
    if let Some(usage) = app.out.service_usage().filter(|_| !app.out.is_json()) {
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

/// Starts the requested log, on stderr.
fn start_log(cli: &Cli) {
    use tracing_subscriber::{EnvFilter, fmt};
    #[cfg(feature = "watch")]
    if matches!(&cli.command, Command::Watch(args) if args.log_format == args::LogFormat::Json) {
        let level = cli.global.log_level().unwrap_or("warn,amplifier_sessions=info");
        let log = fmt().json().flatten_event(true).with_current_span(false);
        log.with_env_filter(EnvFilter::new(level)).with_writer(std::io::stderr).init();
        return;
    }
    if let Some(level) = cli.global.log_level() {
        let colors = std::io::IsTerminal::is_terminal(&std::io::stderr()) && out::allows_colors();
        fmt().with_ansi(colors).with_env_filter(EnvFilter::new(level)).with_writer(std::io::stderr).init();
    }
}
