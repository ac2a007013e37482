//! Builds the tables of the encoding `cl100k_base` from its vocabulary, which `src/content/encoding.rs` loads.
//!
//! The crate `bpe-openai` does the same for three encodings, and its build takes forty times as long.

#![allow(clippy::unwrap_used, reason = "a build script fails by panicking")]

use std::{collections::BTreeMap, env, fmt, fs, path::Path};

use bpe::byte_pair_encoding::{BytePairEncoding, read_tiktoken};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A factor with which no two tokens have the same hash, found by `bpe`'s authors.
const HASH_FACTOR: u64 = 17_846_336_922_010_275_747;

fn main() {
    let vocabulary = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("data/cl100k_base.tiktoken");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", vocabulary.display());

    let tokens = read_tiktoken(&fs::read_to_string(vocabulary).unwrap()).unwrap();
    let mut tables = Tables::new(tokens);
    // Counting tokens needs neither the ids of tokens nor all tokens that overlap: half of the memory.
    let bytes = Tables::new((0..=u8::MAX).map(|byte| vec![byte]));
    tables.token_by_hash.clear();
    tables.overlapping = bytes.overlapping;
    tables.overlapping_backwards = bytes.overlapping_backwards;
    let file = Path::new(&env::var("OUT_DIR").unwrap()).join("cl100k_base.tables");
    fs::write(file, rmp_serde::to_vec(&tables).unwrap()).unwrap();
}

/// [`BytePairEncoding`] as it is serialised.
#[derive(Serialize, Deserialize)]
struct Tables {
    tokens: Vec<u8>,
    starts: Vec<u32>,
    token_by_hash: BTreeMap<u32, u32>,
    halves: Vec<(u32, u32)>,
    pairs: BTreeMap<(u32, u32), u32>,
    longest: Bytes,
    overlapping: Bytes,
    overlapping_backwards: Bytes,
    next_prefix: Vec<u32>,
    hash_factor: u64,
}

impl Tables {
    fn new(tokens: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let encoding = BytePairEncoding::from_dictionary(tokens, Some(HASH_FACTOR));
        rmp_serde::from_slice(&rmp_serde::to_vec(&encoding).unwrap()).unwrap()
    }
}

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }

        deserializer.deserialize_bytes(Visitor)
    }
}
