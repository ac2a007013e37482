//! The program `amplifier-sessions`: [`amplifier_sessions::run`] in the environment of the process.

use std::process::ExitCode;

use amplifier_sessions::Environment;

/// Most memory here is freed by a different thread from the one that allocated it, which fragments the heap of glibc's
/// allocator: a large sync used up to three times as much memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the system after 10 ms, as glibc does. By default, mimalloc waits a second, and keeps the
/// lines of several seconds: a sync of 320 lines of 2 MB took 280 MB instead of 190.
#[allow(unsafe_code, reason = "the crate has no function for this option")]
fn return_memory_soon() {
    use std::ffi::{c_int, c_long};

    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
    }
    /// `mi_option_purge_delay` in `mimalloc.h`, in milliseconds.
    const PURGE_DELAY: c_int = 15;
    // SAFETY: the declaration is that of `mimalloc.h`. The function stores a number, at any time, on any thread.
    unsafe { mi_option_set(PURGE_DELAY, 10) }
}

fn main() -> ExitCode {
    return_memory_soon();
    ExitCode::from(amplifier_sessions::run(Environment::of_process()))
}
