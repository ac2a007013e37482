//! Writes a folder of generated sessions for benchmarks, the same for the same arguments:
//!
//! ```text
//! cargo run --release -p amplifier-session-testkit --example corpus -- DIR [SESSIONS MESSAGES EVENTS SEED]
//! ```
//!
//! The default is 200 sessions of 50 messages and 100 events each, with seed 1. The folder contains `projects/` and a
//! `queries.json` with search queries.

#![allow(clippy::print_stdout, reason = "a program")]

use std::{env, error::Error, path::PathBuf};

use amplifier_session_testkit::corpus::{Corpus, CorpusSize};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("name the folder to write")?);
    let numbers = arguments.map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let size = CorpusSize { sessions: number(0, 200), messages: number(1, 50), events: number(2, 100) };
    let mut corpus = Corpus::new(number(3, 1) as u64);
    corpus.write(&root, size)?;
    corpus.write_queries(&root)?;
    println!("{size:?} in {}", root.display());
    Ok(())
}
