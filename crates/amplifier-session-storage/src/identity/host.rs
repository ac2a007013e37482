//! The id of the machine.

use std::path::{Path, PathBuf};

use amplifier_session_core::model::Digest;

/// Where Linux keeps the machine's id. Other systems have no such file.
pub(super) fn machine_id_files() -> Vec<PathBuf> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"].map(PathBuf::from).to_vec()
}

/// The id in `file`: 32 hexadecimal digits according to `machine-id(5)`. Images may leave it empty or `uninitialized`.
pub(super) fn machine_id(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

/// A hash of `id` that only this library makes, so that it can't be matched with the id elsewhere.
pub(super) fn hashed(id: &str) -> String {
    let Digest(hash) = Digest::of(format!("amplifier-session-storage host {id}").as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
