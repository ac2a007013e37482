//! Builds the tables of the encoding `cl100k_base` from its vocabulary, which `src/content/encoding.rs` loads.
//!
//! The crate `bpe-openai` does the same for three encodings, and its build takes forty times as long.

#![allow(clippy::unwrap_used, reason = "a build script fails by panicking")]

use std::{env, fs, path::Path};

use bpe::byte_pair_encoding::{BytePairEncoding, read_tiktoken};

/// A factor with which no two tokens have the same hash, found by `bpe`'s authors.
const HASH_FACTOR: u64 = 17_846_336_922_010_275_747;

fn main() {
    let vocabulary = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("data/cl100k_base.tiktoken");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", vocabulary.display());

    let tokens = read_tiktoken(&fs::read_to_string(vocabulary).unwrap()).unwrap();
    let encoding = BytePairEncoding::from_dictionary(tokens, Some(HASH_FACTOR));
    let tables = Path::new(&env::var("OUT_DIR").unwrap()).join("cl100k_base.tables");
    fs::write(tables, rmp_serde::to_vec(&encoding).unwrap()).unwrap();
}
