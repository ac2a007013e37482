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

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: with_postgres COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    let server = env::var_os(URL).is_none().then(PostgresServer::shared);
    if let Some(server) = &server {
        command.env(URL, server.url()).env(PROGRAMS, server.programs());
    }
    match command.status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
