//! Runs an embedding service with the API of OpenAI and Azure OpenAI on this machine, to try things out.
//!
//!     cargo run -p amplifier-session-testkit --features http --example mock_embeddings -- --latency-ms 50
//!
//! It prints the variables to set and serves until it is stopped. Options, each with a value: `--port`, `--key`,
//! `--latency-ms`, `--fail` (the share of calls that fail, such as 0.3), `--seed`, `--model` (an additional model) and
//! `--dimensions` (the length of its vectors).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::{process::ExitCode, time::Duration};

use amplifier_session_testkit::http::{MockEmbeddings, MockOptions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(arguments: &[String]) -> Result<(), String> {
    let mut options = MockOptions::default();
    let (mut share, mut seed, mut model, mut dimensions) = (0.0, 0, None, 768);
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { return Err(format!("{} needs a value", pair.concat())) };
        match option.as_str() {
            "--port" => options.port = number(option, value)?,
            "--key" => options.key = Some(value.clone()),
            "--latency-ms" => options.latency = Duration::from_millis(number(option, value)?),
            "--fail" => share = number(option, value)?,
            "--seed" => seed = number(option, value)?,
            "--model" => model = Some(value.clone()),
            "--dimensions" => dimensions = number(option, value)?,
            _ => return Err(format!("no such option: {option}")),
        }
    }
    if let Some(model) = model {
        options = options.with_model(&model, dimensions);
    }
    let key = options.key.clone().unwrap_or_else(|| "any".to_owned());
    let mock = MockEmbeddings::start(options).await.map_err(|error| error.to_string())?;
    mock.fail_share(share, seed);
    println!("OPENAI_BASE_URL={} OPENAI_API_KEY={key}", mock.openai_url());
    println!("AZURE_OPENAI_ENDPOINT={} AZURE_OPENAI_API_KEY={key}", mock.azure_endpoint());
    report(&mock).await;
    Ok(())
}

/// Prints the new calls every second, if there are any.
async fn report(mock: &MockEmbeddings) {
    let mut reported = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let calls = mock.calls();
        if calls != reported {
            reported = calls;
            eprintln!("{calls} calls, {} vectors", mock.texts());
        }
    }
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{option} takes a number, not {value:?}"))
}
