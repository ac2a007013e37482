//! Runs every target on its seeds, on earlier findings, and on mutated seeds for `FUZZ_SECONDS`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests fail by panicking and report what they did"
)]

use std::{path::Path, sync::Mutex, time::Duration};

use amplifier_session_fuzz::{Fuzzing, TARGETS};

/// Panics are collected for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn check(name: &str) {
    let _one = ONE_AT_A_TIME.lock();
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    limit_memory();
    target.replay();
    let number = |variable| std::env::var(variable).map_or(0, |value| value.parse().unwrap());
    let (seconds, seed) = (number("FUZZ_SECONDS"), number("FUZZ_SEED"));
    if seconds > 0 {
        let current = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        eprintln!("the input of the moment is in {}, in case that the process dies", current.display());
        let inputs = target.fuzz(&Fuzzing { time: Duration::from_secs(seconds), seed, current });
        eprintln!("{name}: {inputs} inputs");
    }
}

/// What asks for an absurd amount of memory fails instead of getting it.
fn limit_memory() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let most = Some(8 << 30);
        setrlimit(Resource::As, Rlimit { current: most, maximum: most }).unwrap();
    }
}

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )+

        #[test]
        fn every_target_is_tested() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),+]);
        }
    };
}

targets![transcript, events, metadata, archive, rows, store_url, query, index];
