//! URLs of stores.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};

/// Where a store is.
///
/// | URL | store | feature |
/// | --- | --- | --- |
/// | `sqlite:PATH` | a SQLite file | |
/// | `duckdb:PATH` | a DuckDB file; without PATH, `~/.amplifier/sessions.duckdb` | `duckdb` or `duckdb-system` |
/// | `cosmos://HOST[:PORT][/DATABASE]` | an account of Azure Cosmos DB | `cosmos` |
///
/// A `~/` at the beginning of a path stands for the home folder. `sqlite://PATH` is taken for the same as `sqlite:PATH`. What a URL of
/// Cosmos DB does not say, the variables `AMPLIFIER_COSMOS_*` do; `cosmos://` alone leaves it all to them.
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
    /// A database in an account of Azure Cosmos DB.
    Cosmos(CosmosAddress),
}

/// Where a database of Azure Cosmos DB is, as far as a URL says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosmosAddress {
    /// Host of the account, and perhaps a port.
    pub host: Option<String>,
    /// The database.
    pub database: Option<String>,
}

impl CosmosAddress {
    /// The address of the account. A server on this machine, for tests, speaks no TLS.
    #[must_use]
    pub fn endpoint(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let scheme = if ["localhost", "127.0.0.1", "[::1]"].contains(&name) { "http" } else { "https" };
        Some(format!("{scheme}://{host}/"))
    }

    pub(crate) fn parse(url: &str, rest: &str) -> Result<Self> {
        let wrong = || invalid(url, "a URL of Cosmos DB is cosmos://HOST[:PORT][/DATABASE]".to_owned());
        let rest = rest.strip_prefix("//").ok_or_else(wrong)?;
        let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain =
            |part: &str| !part.contains(['/', '\\', '?', '#', '@']) && !part.contains(char::is_whitespace);
        if !is_plain(host) || !is_plain(database) || (host.is_empty() && !database.is_empty()) {
            return Err(wrong());
        }
        let said = |part: &str| (!part.is_empty()).then(|| part.to_owned());
        Ok(Self { host: said(host), database: said(database) })
    }
}

impl StoreUrl {
    /// The schemes of the backends that there are.
    pub const SCHEMES: [&str; 3] = ["sqlite", "duckdb", "cosmos"];

    /// Schemes of backends that are still to come.
    const NOT_BUILT_IN: [&str; 2] = ["postgres", "postgresql"];

    /// The DuckDB file when none is named.
    const DUCKDB_FILE: &str = "~/.amplifier/sessions.duckdb";

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
            let message = format!("the backend for PostgreSQL is not built in yet; known are {}", known());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if !Self::SCHEMES.contains(&scheme) {
            return Err(invalid(url, format!("no such kind of store: {scheme:?}; known are {}", known())));
        }
        if scheme == "cosmos" {
            let address = CosmosAddress::parse(url, rest)?;
            return if cfg!(feature = "cosmos") {
                Ok(Self::Cosmos(address))
            } else {
                Err(Self::cosmos_not_built_in())
            };
        }
        let path = match rest.strip_prefix("//").unwrap_or(rest) {
            "" if scheme == "duckdb" => Self::DUCKDB_FILE,
            path => path,
        };
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

    pub(crate) fn cosmos_not_built_in() -> Error {
        let message = "this build has no Azure Cosmos DB; it is there with the cargo feature `cosmos`";
        Error::new(ErrorKind::Unsupported, message)
    }

    /// The database file of an embedded store.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) | Self::DuckDb(path) => Some(path),
            Self::Cosmos(_) => None,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::DuckDb(path) => write!(f, "duckdb:{}", path.display()),
            Self::Cosmos(CosmosAddress { host, database }) => {
                write!(f, "cosmos://{}", host.as_deref().unwrap_or_default())?;
                database.as_ref().map_or(Ok(()), |database| write!(f, "/{database}"))
            }
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
            ("postgres://h/db", ErrorKind::Unsupported, "PostgreSQL is not built in yet"),
            ("postgresql://h/db", ErrorKind::Unsupported, "PostgreSQL is not built in yet"),
            ("cosmos:x", ErrorKind::Validation, "cosmos://HOST"),
            ("cosmos://h/d/e", ErrorKind::Validation, "cosmos://HOST"),
            ("cosmos://ana:secret@h/d", ErrorKind::Validation, "cosmos://HOST"),
            ("cosmos:///d", ErrorKind::Validation, "cosmos://HOST"),
        ] {
            let error = StoreUrl::parse(url, None).unwrap_err();
            assert_eq!(error.kind(), kind, "{url}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_url_of_cosmos_db_says_what_it_likes() {
        let address = |rest: &str| CosmosAddress::parse("", rest).unwrap();
        let all = address("//team.documents.azure.com/db");
        assert_eq!(all.endpoint().unwrap(), "https://team.documents.azure.com/");
        assert_eq!(all.database.as_deref(), Some("db"));
        assert_eq!(address("//127.0.0.1:8081").endpoint().unwrap(), "http://127.0.0.1:8081/");
        assert_eq!(address("//"), CosmosAddress { host: None, database: None });
        for url in ["cosmos://", "cosmos://h", "cosmos://h:1/db"] {
            match StoreUrl::parse(url, None) {
                Ok(parsed) if cfg!(feature = "cosmos") => assert_eq!(parsed.to_string(), url),
                other => assert_eq!(other.unwrap_err().kind(), ErrorKind::Unsupported),
            }
        }
    }

    #[test]
    fn duckdb_is_there_with_its_feature() {
        let parsed = StoreUrl::parse("duckdb:x.duckdb", None);
        if cfg!(feature = "duckdb-system") {
            assert_eq!(parsed.unwrap(), StoreUrl::DuckDb(PathBuf::from("x.duckdb")));
            assert_eq!(file("duckdb:"), "/home/ana/.amplifier/sessions.duckdb");
            assert_eq!(file("duckdb:"), file("duckdb://"));
        } else {
            let error = parsed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("feature `duckdb`"), "{error}");
        }
    }
}
