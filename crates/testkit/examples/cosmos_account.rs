//! An account of Azure Cosmos DB to try things out with: in memory, on this machine.
//!
//!     cargo run -p amplifier-session-testkit --features cosmos --example cosmos_account -- --port 8081
//!
//! It prints what to set, and serves until it is stopped; then all of it is gone. Options: `--port` with a number, and
//! `--without-full-text` for an account whose containers have no policy for full text.

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
    tell(&account).map_err(|error| error.to_string())?;
    std::future::pending().await
}

/// Says what to set; at once, also where a program reads it.
fn tell(account: &CosmosAccount) -> io::Result<()> {
    println!("export AMPLIFIER_COSMOS_ENDPOINT={}", account.endpoint());
    println!("export AMPLIFIER_COSMOS_AUTH_METHOD=key");
    println!("export AMPLIFIER_COSMOS_KEY={}", account.key());
    io::Write::flush(&mut io::stdout())
}
