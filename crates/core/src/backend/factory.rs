//! How a kind of store is registered and opened.

use std::{fmt, path::PathBuf, sync::Arc};

use futures_util::future::BoxFuture;

use super::{SalvageSource, StorageBackend};
use crate::{
    Result,
    config::{Setting, Settings, Variables},
    model::UserId,
};

/// A kind of store: the form of its URLs, its settings, and how it is opened.
///
/// A backend crate has one, `pub static FACTORY`, and the facade lists it. Messages, `--help` and `config show` are
/// made from it.
#[derive(Debug)]
pub struct BackendFactory {
    /// Its name in messages, for example `DuckDB`.
    pub name: &'static str,
    /// The schemes of its URLs. The first one is shown.
    pub schemes: &'static [&'static str],
    /// The form of its URLs, for example `duckdb:[PATH]`.
    pub form: &'static str,
    /// Its purpose: a phrase without a full stop.
    pub help: &'static str,
    /// Whether a store can be opened read-only. If not, asking for it is an error before `open` is called.
    pub read_only: bool,
    /// Whether people can query a store with SQL, through a reader of the backend.
    pub sql: bool,
    /// The settings that only this backend has. A setting `cosmos.database` is `database` in a URL:
    /// `cosmos://host?database=name`.
    pub settings: &'static [Setting],
    /// Opens a store.
    pub open: Open,
    /// Copies a store in a file while other processes use it, if the backend can do that.
    pub backup: Option<BackupFile>,
    /// Reads the rest of a damaged store in a file, if the backend can do more than open it.
    pub salvage: Option<SalvageFile>,
    /// Restricts roles of the database to the rows of one user, if the backend can do that.
    pub restrict_roles: Option<RestrictRoles>,
}

impl BackendFactory {
    /// The scheme that is shown, the first one.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        debug_assert!(!self.schemes.is_empty(), "{} has no scheme", self.name);
        self.schemes.first().copied().unwrap_or_default()
    }
}

/// The form of the part of a store URL after the scheme, and the function that opens the store.
#[derive(Clone, Copy)]
pub enum Open {
    /// The path of a file, with a leading `~` replaced.
    File {
        /// The path if the URL has none. `None` makes that an error.
        default: Option<&'static str>,
        /// Opens the file.
        open: OpenFile,
    },
    /// The address of a service, which the function reads: `//host/database`.
    Service(OpenService),
}

/// Opens the store in a file.
pub type OpenFile = fn(PathBuf, OpenRequest) -> Opening;

/// Opens the store at the part of the URL after `SCHEME:`, without the parameters.
pub type OpenService = fn(String, OpenRequest) -> Opening;

/// Copies the store in the first file to the second one, which is empty or does not exist. The copy has one consistent
/// state, even while other processes read and write the store.
pub type BackupFile = fn(PathBuf, PathBuf) -> BoxFuture<'static, Result<()>>;

/// Finds what is left of the damaged store in a file, which is not changed. No other process may write to it meanwhile.
pub type SalvageFile = fn(PathBuf) -> BoxFuture<'static, Result<Box<dyn SalvageSource>>>;

/// Opens the store at the part of the URL after `SCHEME:`, creates it if it is missing, and restricts every role of the
/// database to the rows of the user with the same name. For each of the users, returns the statements that create its
/// role.
pub type RestrictRoles = fn(String, OpenRequest, Vec<UserId>) -> BoxFuture<'static, Result<Vec<String>>>;

/// A pending call that opens a store.
pub type Opening = BoxFuture<'static, Result<Arc<dyn StorageBackend>>>;

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File { .. } => "File",
            Self::Service(_) => "Service",
        })
    }
}

/// A request to open a store.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenRequest {
    /// Whether it is opened read-only: writes then fail with `Unsupported`.
    pub read_only: bool,
    /// Whether it must exist. Otherwise it is created if it is missing. The caller has checked that files exist.
    pub must_exist: bool,
    /// The length of the embedding provider's vectors, if there is a provider.
    pub dimensions: Option<usize>,
    /// The values of [`BackendFactory::settings`].
    pub settings: Settings,
    /// The environment, for values that are not settings of this project, such as `AZURE_TENANT_ID`.
    pub environment: Variables,
}

impl OpenRequest {
    setters! {
        /// Sets whether the store is opened read-only.
        with_read_only(read_only: bool);
        /// Sets whether the store must exist.
        with_must_exist(must_exist: bool);
        /// Sets the length of the vectors.
        with_dimensions(dimensions: Option<usize>);
        /// Sets the values of the backend's settings.
        with_settings(settings: Settings);
        /// Sets the environment.
        with_environment(environment: Variables);
    }
}
