//! Models in folders, and the folder where they are installed.
//!
//! An installed model is a folder `NAME` with the model's files and a `manifest.json`, which records their source and
//! their hashes. [`InstalledModels`] lists, installs and verifies models. [`KNOWN`] lists those that can be installed by
//! name. Nothing is downloaded unless [`InstalledModels::install`] is called.

mod copy;
mod describe;
#[cfg(feature = "http")]
mod download;
mod families;
mod installed;
mod known;
mod manifest;
mod sha256;
mod weights;

use std::{fmt, path::Path};

use amplifier_session_core::{Error, ErrorField, ErrorKind, Result};

pub use describe::ModelDescription;
#[cfg(feature = "local-transformer")]
pub(crate) use describe::{CONFIG, TOKENIZER, WEIGHTS, describe, read};
pub use families::{Pooling, Prompts};
#[cfg(feature = "local-transformer")]
pub(crate) use installed::folder_name;
pub use installed::{InstalledModel, InstalledModels, ModelVerification};
pub use known::{Hub, KNOWN, KnownModel};
pub use manifest::Problem;
#[cfg(feature = "local-transformer")]
pub(crate) use {manifest::Manifest, sha256::of_bytes, weights::check as check_weights};

/// An error about a file in a model's folder.
pub(crate) fn broken(folder: &Path, file: &str, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Embedding, format!("{file} {what}")).with("folder", folder.display())
}

/// Checks a model's name, which is also the name of its folder.
///
/// # Errors
///
/// `Validation` unless it consists of letters, digits, `.`, `_` and `-`, and begins with a letter or digit.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain) && name.len() <= 100 {
        return Ok(());
    }
    let rule = "the name of a model may contain only letters, digits, '.', '_' and '-'";
    Err(Error::validation(ErrorField::Model, rule).with("value", format_args!("{name:?}")))
}
