//! The id of the machine.

use std::path::{Path, PathBuf};

use amplifier_session_core::model::Digest;

/// Where Linux keeps the machine's id; elsewhere there is no such file, and the host's name is what there is.
pub(super) fn machine_id_files() -> Vec<PathBuf> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"].map(PathBuf::from).to_vec()
}

/// The id in `file`: 32 hexadecimal digits by `machine-id(5)`, which images may leave empty or `uninitialized`.
pub(super) fn machine_id(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

/// A hash of `id` that is this library's own, so that it says nothing to others who know the id.
pub(super) fn hashed(id: &str) -> String {
    let Digest(hash) = Digest::of(format!("amplifier-session-storage host {id}").as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
