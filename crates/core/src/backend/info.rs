//! The description of a backend: its capabilities, places and usage.

use std::{fs, path::PathBuf};

use serde::Serialize;

use crate::model::UserId;

/// The abilities, locations and usage of a backend.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// The name of the backend, as in a store URL.
    pub name: &'static str,
    /// Whether a write of one session happens as a whole or not at all, whatever its size.
    pub atomic_writes: bool,
    /// Whether the data outlives the process.
    pub persistent: bool,
    /// Why the store cannot be written, for a person to read: for example, a read-only file system. `None` if it can be
    /// written. In a read-only store every read works, and every write fails with `StorageIo`.
    pub read_only: Option<String>,
    /// The user whose rows this handle is restricted to, if the database enforces that. Other users seem to have no
    /// rows.
    pub only_user: Option<UserId>,
    /// Where the data is kept, the store itself first.
    pub places: Vec<StorePlace>,
    /// The usage of a service that charges for requests, by this handle and its clones. `None` if nothing is charged.
    pub usage: Option<ServiceUsage>,
}

impl StoreInfo {
    /// A backend with atomic, persistent writes.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            atomic_writes: true,
            persistent: true,
            read_only: None,
            only_user: None,
            places: Vec::new(),
            usage: None,
        }
    }

    setters! {
        /// Sets whether writes are atomic.
        with_atomic_writes(atomic_writes: bool);
        /// Sets whether the data outlives the process.
        with_persistent(persistent: bool);
        /// Sets why the store cannot be written.
        with_read_only(read_only: Option<String>);
        /// Sets the user whose rows this handle is restricted to.
        with_only_user(only_user: Option<UserId>);
        /// Sets where the data is kept.
        with_places(places: Vec<StorePlace>);
    }

    optional_setters! {
        /// Sets the usage of a service.
        with_usage(usage: ServiceUsage);
    }
}

/// A place where a store keeps data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlace {
    /// The kind of data: `store` or `index`.
    pub what: &'static str,
    /// A path, or an address without secrets.
    pub location: String,
    /// The files and folders at this location; empty for a service.
    pub files: Vec<PathBuf>,
}

impl StorePlace {
    /// A place whose size is unknown, such as a service.
    #[must_use]
    pub fn remote(what: &'static str, location: String) -> Self {
        Self { what, location, files: Vec::new() }
    }

    /// A file or folder with its path as the location, and the files that belong to it.
    #[must_use]
    pub fn local(what: &'static str, path: PathBuf, beside: impl IntoIterator<Item = PathBuf>) -> Self {
        let location = path.display().to_string();
        Self { what, location, files: std::iter::once(path).chain(beside).collect() }
    }

    /// The current size of its files in bytes, including those in folders. `None` for a service. Reads the file system.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        (!self.files.is_empty()).then(|| self.files.iter().map(size).sum())
    }
}

/// The size of a file, or of all files below a folder. Unreadable files count as 0 bytes.
fn size(path: &PathBuf) -> u64 {
    let Ok(metadata) = fs::metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path())).sum()
}

/// The usage of a service that charges for requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ServiceUsage {
    /// The units that the service charges for, as reported by it.
    pub request_units: f64,
    /// The number of requests, including repeated ones.
    pub requests: u64,
    /// The number of requests that the service rejected because they came too fast.
    pub throttled_requests: u64,
}
