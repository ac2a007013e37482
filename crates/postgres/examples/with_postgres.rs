//! Runs a command with a PostgreSQL server for tests, which is stopped and removed afterwards:
//!
//! ```text
//! cargo run -p amplifier-session-postgres --example with_postgres -- COMMAND [ARGUMENT…]
//! ```
//!
//! If the environment names a server already, the command uses that one.

#![allow(clippy::print_stderr, reason = "a program")]

use std::{
    env,
    process::{Command, ExitCode},
};

use amplifier_session_testkit::postgres::{PROGRAMS, PostgresServer, URL};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: with_postgres COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    let is_named = env::var_os(URL).is_some_and(|url| !url.is_empty());
    let server = (!is_named).then(PostgresServer::shared);
    if let Some(server) = &server {
        command.env(URL, server.url()).env(PROGRAMS, server.programs());
    }
    // The command decides what Ctrl+C does. It does not inherit the handler.
    let _interrupts = signal(SignalKind::interrupt());
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
