//! URLs of stores.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};

/// Where a store is.
///
/// `sqlite:PATH` or `duckdb:PATH`, where a `~/` at the beginning of the path stands for the home folder. `sqlite://PATH` is taken for
/// the same. DuckDB is there with the feature `duckdb` or `duckdb-system`.
///
/// ```
/// use std::path::Path;
/// use amplifier_session_storage::StoreUrl;
///
/// let url = StoreUrl::parse("sqlite:~/sessions.sqlite", Some(Path::new("/home/ana")))?;
/// assert_eq!(url.file(), Some(Path::new("/home/ana/sessions.sqlite")));
/// # Ok::<(), amplifier_session_storage::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A DuckDB file.
    DuckDb(PathBuf),
}

impl StoreUrl {
    /// The schemes of the backends that there are.
    pub const SCHEMES: [&str; 2] = ["sqlite", "duckdb"];

    /// Schemes of backends that are still to come.
    const NOT_BUILT_IN: [&str; 2] = ["postgres", "cosmos"];

    /// Reads a URL. `home` is what `~` stands for.
    ///
    /// # Errors
    ///
    /// `Validation` when `url` has no or an unknown scheme or no path, or begins with a `~` that stands for nothing
    /// known; `Unsupported` when its scheme is that of a backend that is not built in.
    pub fn parse(url: &str, home: Option<&Path>) -> Result<Self> {
        let known = || Self::SCHEMES.map(|scheme| format!("{scheme}:")).join(", ");
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(invalid(url, format!("a store's URL begins with its scheme; known are {}", known())));
        };
        if Self::NOT_BUILT_IN.contains(&scheme) {
            let message = format!("the backend {scheme:?} is not built in yet; known are {}", known());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if !Self::SCHEMES.contains(&scheme) {
            return Err(invalid(url, format!("no such kind of store: {scheme:?}; known are {}", known())));
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path.is_empty() {
            return Err(invalid(url, "the URL names no file".to_owned()));
        }
        let path =
            expanded(path, home).ok_or_else(|| invalid(url, "the home folder is unknown".to_owned()))?;
        match scheme {
            "duckdb" if cfg!(feature = "duckdb-system") => Ok(Self::DuckDb(path)),
            "duckdb" => Err(Self::duckdb_not_built_in()),
            _ => Ok(Self::Sqlite(path)),
        }
    }

    pub(crate) fn duckdb_not_built_in() -> Error {
        let message = "this build has no DuckDB; it is there with the cargo feature `duckdb`, or with \
            `duckdb-system` and the library in DUCKDB_LIB_DIR";
        Error::new(ErrorKind::Unsupported, message)
    }

    /// The database file of an embedded store.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) | Self::DuckDb(path) => Some(path),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::DuckDb(path) => write!(f, "duckdb:{}", path.display()),
        }
    }
}

fn invalid(url: &str, message: String) -> Error {
    Error::validation("store", message).with("url", format_args!("{url:?}"))
}

/// `path` with a leading `~` replaced; `None` when there is nothing to replace it with.
fn expanded(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        Some("") => home.map(Path::to_owned),
        Some(rest) if rest.starts_with(['/', std::path::MAIN_SEPARATOR]) => {
            home.map(|home| home.join(rest.trim_start_matches(['/', std::path::MAIN_SEPARATOR])))
        }
        _ => Some(PathBuf::from(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(url: &str) -> String {
        let url = StoreUrl::parse(url, Some(Path::new("/home/ana"))).unwrap();
        url.file().unwrap().to_str().unwrap().replace('\\', "/")
    }

    #[test]
    fn paths_are_taken_as_they_are_but_for_the_home_folder() {
        assert_eq!(file("sqlite:sessions.sqlite"), "sessions.sqlite");
        assert_eq!(file("sqlite:/var/lib/s.db"), "/var/lib/s.db");
        assert_eq!(file("sqlite:///var/lib/s.db"), "/var/lib/s.db");
        assert_eq!(file("sqlite:~/.amplifier/s.db"), "/home/ana/.amplifier/s.db");
        assert_eq!(file("sqlite:~ana/s.db"), "~ana/s.db");
        assert_eq!(file("sqlite:a:b?c"), "a:b?c");
    }

    #[test]
    fn other_urls_are_refused() {
        for (url, kind, says) in [
            ("sessions.sqlite", ErrorKind::Validation, "known are sqlite:"),
            ("mysql:x", ErrorKind::Validation, "known are sqlite:"),
            ("sqlite:", ErrorKind::Validation, "names no file"),
            ("sqlite:~/x", ErrorKind::Validation, "home folder"),
            ("postgres://h/db", ErrorKind::Unsupported, "not built in yet"),
            ("cosmos:x", ErrorKind::Unsupported, "not built in yet"),
        ] {
            let error = StoreUrl::parse(url, None).unwrap_err();
            assert_eq!(error.kind(), kind, "{url}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn duckdb_is_there_with_its_feature() {
        let parsed = StoreUrl::parse("duckdb:x.duckdb", None);
        if cfg!(feature = "duckdb-system") {
            assert_eq!(parsed.unwrap(), StoreUrl::DuckDb(PathBuf::from("x.duckdb")));
        } else {
            let error = parsed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("feature `duckdb`"), "{error}");
        }
    }
}
