//! Runs an in-memory account of Azure Cosmos DB on this machine, to try things out.
//!
//!     cargo run -p amplifier-session-testkit --features cosmos --example cosmos_account -- --port 8081
//!
//! It prints the variables to set and serves until it is stopped. Nothing is kept. Options: `--port` with a number, and
//! `--without-full-text` for an account whose containers have no full-text policy.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::{io, process::ExitCode};

use amplifier_session_testkit::cosmos::{AccountOptions, CosmosAccount};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let mut options = AccountOptions::default();
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--port" => {
                let port = arguments.next().and_then(|value| value.parse().ok());
                options.port = port.ok_or("--port takes a number")?;
            }
            "--without-full-text" => options.full_text = false,
            _ => return Err(format!("no such option: {option}")),
        }
    }
    let account = CosmosAccount::start(options).await.map_err(|error| error.to_string())?;
    print_variables(&account).map_err(|error| error.to_string())?;
    std::future::pending().await
}

/// Prints the variables to set, and flushes the output for programs that read it.
fn print_variables(account: &CosmosAccount) -> io::Result<()> {
    println!("export AMPLIFIER_COSMOS_ENDPOINT={}", account.endpoint());
    println!("export AMPLIFIER_COSMOS_AUTH_METHOD=key");
    println!("export AMPLIFIER_COSMOS_KEY={}", account.key());
    io::Write::flush(&mut io::stdout())
}
