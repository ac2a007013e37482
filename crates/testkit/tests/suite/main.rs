//! Tests of the storage that need no particular backend, the conformance suite on the in-memory backend, and tests of
//! the fakes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests fail by panicking")]

mod archives;
mod completeness;
mod fakes;
mod faults;
mod interruption;
mod redaction;
mod storage;

mod conformance {
    use amplifier_session_testkit::{MemoryBackend, conformance_suite};

    conformance_suite!(MemoryBackend::new());
}
