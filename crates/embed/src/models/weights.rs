//! Checks a file of weights without reading the weights.
//!
//! The format, <https://huggingface.co/docs/safetensors>: 8 bytes with the length of the header, the header in JSON (the
//! type, shape and offsets of each tensor), and the tensors up to the end of the file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use amplifier_session_core::Result;
use serde::Deserialize;

use super::{
    broken,
    describe::{ModelDescription, WEIGHTS},
};

/// The format's limit on the size of a header.
const MOST_HEADER_BYTES: u64 = 100_000_000;

/// The tensor with a row for each token. In some models its name begins with `bert.`.
const WORDS: &str = "embeddings.word_embeddings.weight";

/// A tensor's entry in the header.
#[derive(Deserialize)]
struct Tensor {
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// Checks that the weights in `folder` are complete and have the right shape.
///
/// # Errors
///
/// `Embedding` if not, or if the file is missing.
pub(crate) fn check(folder: &Path, described: &ModelDescription) -> Result<()> {
    let wrong = |what: String| broken(folder, WEIGHTS, what);
    let (bytes, header) = match read_header(&folder.join(WEIGHTS)) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(folder)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(wrong("is truncated: its header is incomplete".to_owned()));
        }
        Err(error) => return Err(broken(folder, WEIGHTS, "can't be read").with_source(error)),
    };
    let tensors =
        tensors(&header).map_err(|error| wrong("has no safetensors header".to_owned()).with_source(error))?;
    let end = tensors.values().map(|tensor| tensor.data_offsets.1).max().unwrap_or(0);
    let whole = end.saturating_add(8 + header.len() as u64);
    if bytes != whole {
        return Err(wrong(format!("has {bytes} bytes instead of {whole}")));
    }
    let words = tensors.get(WORDS).or_else(|| tensors.get(&format!("bert.{WORDS}")));
    let expected = [described.vocabulary, described.dimensions];
    match words {
        None => Err(wrong(format!("has no tensor {WORDS:?}: these are not the weights of a BERT model"))),
        Some(words) if words.shape == expected => Ok(()),
        Some(words) => Err(wrong(format!(
            "has a tensor {WORDS:?} with the shape {:?}, but config.json requires {expected:?}",
            words.shape
        ))),
    }
}

/// Reads the length of the file, and its header.
fn read_header(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_HEADER_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is not in the safetensors format"));
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header)?;
    if (header.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((bytes, header))
}

fn tensors(header: &[u8]) -> serde_json::Result<BTreeMap<String, Tensor>> {
    let mut entries: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(header)?;
    entries.remove("__metadata__");
    entries.into_iter().map(|(name, value)| Ok((name, serde_json::from_value(value)?))).collect()
}

fn missing(folder: &Path) -> amplifier_session_core::Error {
    let others = ["pytorch_model.bin", "tf_model.h5", "model.safetensors.index.json"];
    match others.into_iter().find(|other| folder.join(other).exists()) {
        Some(other) => broken(folder, WEIGHTS, format_args!("is missing; {other} is not supported")),
        None => broken(folder, WEIGHTS, "is missing"),
    }
}
