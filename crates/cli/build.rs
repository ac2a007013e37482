//! Tells the tests whether the files are there that some of them need and that are no part of the project. Without them
//! those tests show as ignored.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(shared_data)");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/python-library-databases");
    if folder.is_dir() {
        println!("cargo::rustc-cfg=shared_data");
        println!("cargo::rerun-if-changed={}", folder.display());
    }
}
