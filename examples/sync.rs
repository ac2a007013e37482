//! Stores the sessions below a folder and reports what happened.
//!
//!     cargo run --example sync -- ~/.amplifier sessions.sqlite

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, path::PathBuf};

use amplifier_session_storage::{
    OpenOptions, Result, embedding, identity, open,
    sync::{NoProgress, SyncOptions, sync},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "crates/cli/samples".to_owned());
    let file = arguments.next().unwrap_or_else(|| "sessions.sqlite".to_owned());
    run(root.into(), file.into()).await
}

async fn run(root: PathBuf, file: PathBuf) -> Result<()> {
    let options = OpenOptions::default().with_embedding(embedding::provider("local")?);
    let storage = open(&format!("sqlite:{}", file.display()), options).await?;

    // The owner of the sessions and the machine they come from: from the environment, the Azure CLI or the system.
    let sources = identity::Sources::from_env();
    let options = SyncOptions::new(root, sources.user()?.user_id, sources.host_id()?).with_newest(Some(50));
    let report = sync(&storage, &options, &NoProgress).await?;

    println!(
        "{} sessions: {} new, {} changed",
        report.sessions.found, report.sessions.new, report.sessions.changed
    );
    println!("{} messages, {} events written", report.messages.written, report.events.written);
    for line in &report.skipped {
        println!("left out: {line:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_takes_in_the_samples_twice() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/samples");
        for _ in 0..2 {
            runtime.block_on(super::run(samples.into(), folder.path().join("s.sqlite"))).unwrap();
        }
    }
}
