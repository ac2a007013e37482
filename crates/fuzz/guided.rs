//! One target with libFuzzer: see the script `guided` beside this file.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer calls a C function")]
#![allow(clippy::expect_used, reason = "a program of developers")]

use std::{env, fs, path::PathBuf, sync::LazyLock};

use amplifier_session_fuzz::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = env::var("FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|target| target.name == name).expect("FUZZ_TARGET is the name of a target")
});

libfuzzer_sys::fuzz_target!(
    init: {
        if let Some(corpus) = env::var_os("FUZZ_CORPUS").map(PathBuf::from) {
            for (number, seed) in (TARGET.seeds)().into_iter().enumerate() {
                fs::write(corpus.join(format!("seed-{number}")), seed).expect("the corpus can be written");
            }
        }
    },
    |input: &[u8]| (TARGET.check)(input)
);
