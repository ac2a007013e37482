//! URLs of stores.

use std::{
    fmt,
    path::{MAIN_SEPARATOR, Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorField, ErrorKind, Result,
    backend::{BackendFactory, Open, OpenFile, OpenRequest, OpenService, Opening},
    config::{Entry, Setting, SettingOrigin, has_password},
};
use percent_encoding::percent_decode_str;

use crate::backends::{BACKENDS, LEFT_OUT, forms};

/// The location of a store: `SCHEME:ADDRESS`, optionally with settings of its backend, `?NAME=VALUE&NAME=VALUE`.
///
/// | URL | store | feature |
/// | --- | --- | --- |
/// | `sqlite:PATH` | a SQLite file | |
/// | `duckdb:PATH` | a DuckDB file; without PATH, `~/.amplifier/sessions.duckdb` | `duckdb` or `duckdb-system` |
/// | `cosmos://HOST[:PORT][/DATABASE]` | a database in Azure Cosmos DB | `cosmos` |
/// | `postgres://[USER@][HOST[:PORT]][/DATABASE]` | a schema of a PostgreSQL database | `postgres` |
///
/// [`BACKENDS`](crate::BACKENDS) lists the schemes of this build with their settings. A `~/` at the beginning of a path
/// stands for the home folder; `sqlite://PATH` means the same as `sqlite:PATH`. In a value, `%26` stands for `&`, and
/// so on. A path may contain a `?`; if `NAME=VALUE` follows it, a `?` at the end of the URL marks it as part of the
/// path.
///
/// ```
/// use std::path::Path;
/// use amplifier_session_storage::StoreUrl;
///
/// let url = StoreUrl::parse("sqlite:~/sessions.sqlite", Some(Path::new("/home/ana")))?;
/// assert_eq!(url.file(), Some(Path::new("/home/ana/sessions.sqlite")));
/// # Ok::<(), amplifier_session_storage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StoreUrl {
    backend: &'static BackendFactory,
    target: StoreTarget,
    settings: Vec<Entry>,
}

/// A file or service address, with the function that opens it.
#[derive(Debug, Clone)]
enum StoreTarget {
    File(PathBuf, OpenFile),
    Service(String, OpenService),
}

impl StoreUrl {
    /// Parses a URL. `~` stands for `home`.
    ///
    /// # Errors
    ///
    /// `Validation` when `url` has no scheme, an unknown scheme or no path, sets something that is not a setting of its
    /// backend, or begins with a `~` while `home` is `None`; `Unsupported` when this build does not include its
    /// backend.
    pub fn parse(url: &str, home: Option<&Path>) -> Result<Self> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(invalid(
                url,
                format!("a store URL begins with a scheme; this build supports {}", forms()),
            ));
        };
        let backend = backend(url, scheme)?;
        if has_password(url) && matches!(backend.open, Open::Service(_)) {
            // Without the URL, because it contains the password.
            let message = "a password does not belong in a store URL, because store URLs are shown";
            return Err(Error::validation(ErrorField::Store, format!("{message}{}", instead(backend))));
        }
        let (address, parameters) = match backend.open {
            Open::File { .. } => split_file(rest),
            Open::Service(_) => rest.split_once('?').unwrap_or((rest, "")),
        };
        let target = match backend.open {
            Open::File { default, open } => StoreTarget::File(path(url, address, default, home)?, open),
            Open::Service(open) => StoreTarget::Service(address.to_owned(), open),
        };
        let parameters = parameters.split('&').filter(|parameter| !parameter.is_empty());
        let settings = parameters.map(|parameter| setting(url, backend, parameter)).collect::<Result<_>>()?;
        Ok(Self { backend, target, settings })
    }

    /// The kind of store.
    #[must_use]
    pub fn backend(&self) -> &'static BackendFactory {
        self.backend
    }

    /// The file, if the store is in a file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.target {
            StoreTarget::File(path, _) => Some(path),
            StoreTarget::Service(..) => None,
        }
    }

    /// The same kind of store with the same settings in another file. The URL of a service is returned unchanged.
    #[must_use]
    pub fn with_file(mut self, file: PathBuf) -> Self {
        if let StoreTarget::File(path, _) = &mut self.target {
            *path = file;
        }
        self
    }

    /// The settings in the URL.
    pub(crate) fn settings(&self) -> &[Entry] {
        &self.settings
    }

    /// Opens the store.
    pub(crate) fn open(&self, request: OpenRequest) -> Opening {
        match &self.target {
            StoreTarget::File(path, open) => open(path.clone(), request),
            StoreTarget::Service(address, open) => open(address.clone(), request),
        }
    }

    /// The part of the URL after the scheme. `None` for a store in a file.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.target {
            StoreTarget::File(..) => None,
            StoreTarget::Service(address, _) => Some(address),
        }
    }
}

/// Without the settings. Parsing it gives the same store.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.backend.scheme();
        match &self.target {
            StoreTarget::File(path, _) => {
                let path = path.to_string_lossy();
                let slashes = if path.starts_with("//") { "//" } else { "" };
                let end = if split_file(&path).0 == path { "" } else { "?" };
                write!(f, "{scheme}:{slashes}{path}{end}")
            }
            StoreTarget::Service(address, _) => write!(f, "{scheme}:{address}"),
        }
    }
}

/// The backend of a scheme.
fn backend(url: &str, scheme: &str) -> Result<&'static BackendFactory> {
    if let Some(backend) = BACKENDS.iter().find(|backend| backend.schemes.contains(&scheme)) {
        return Ok(backend);
    }
    let Some(left_out) = LEFT_OUT.iter().find(|left_out| left_out.schemes.contains(&scheme)) else {
        return Err(invalid(
            url,
            format!("unknown store scheme {scheme:?}; this build supports {}", forms()),
        ));
    };
    let message = match left_out.feature {
        Some(feature) => format!(
            "this build does not support {} stores; build it with `--features {feature}`, or use one of {}",
            left_out.name,
            forms()
        ),
        None => format!("{} stores are not supported yet; this build supports {}", left_out.name, forms()),
    };
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Splits the path of a file from its parameters. A path may contain a `?`: parameters are `NAME=VALUE` pairs after the
/// last `?`. A `?` at the end means that there are no parameters.
fn split_file(rest: &str) -> (&str, &str) {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let is_parameter = |text: &str| text.split_once('=').is_some_and(|(name, _)| is_name(name));
    match rest.rsplit_once('?') {
        Some((path, "")) => (path, ""),
        Some((path, parameters)) if parameters.split('&').all(is_parameter) => (path, parameters),
        _ => (rest, ""),
    }
}

/// The path of a file, with a leading `~` replaced.
fn path(url: &str, address: &str, default: Option<&str>, home: Option<&Path>) -> Result<PathBuf> {
    let address = match (address.strip_prefix("//").unwrap_or(address), default) {
        ("", Some(default)) => default,
        ("", None) => return Err(invalid(url, "the URL has no path".to_owned())),
        (address, _) => address,
    };
    expanded(address, home).ok_or_else(|| invalid(url, "the home folder, `~`, is unknown".to_owned()))
}

/// `path` with a leading `~` replaced; `None` if there is nothing to replace it with.
fn expanded(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        Some("") => home.map(Path::to_owned),
        Some(rest) if rest.starts_with(['/', MAIN_SEPARATOR]) => {
            home.map(|home| home.join(rest.trim_start_matches(['/', MAIN_SEPARATOR])))
        }
        _ => Some(PathBuf::from(path)),
    }
}

/// The setting that `NAME=VALUE` gives a value to.
fn setting(url: &str, backend: &'static BackendFactory, parameter: &str) -> Result<Entry> {
    let wrong = |message: String| Err(invalid(url, message));
    let Some((name, value)) = parameter.split_once('=') else {
        return wrong(format!("settings in a store URL have the form NAME=VALUE, not {parameter:?}"));
    };
    let Some(setting) = backend.settings.iter().find(|setting| setting.name() == name) else {
        return wrong(format!("{} stores have no setting {name:?}{}", backend.name, known(backend.settings)));
    };
    if setting.is_secret() {
        // Without the URL, because it contains the secret.
        let message = format!(
            "{name} does not belong in a store URL, because store URLs are shown; set {}",
            setting.variable
        );
        return Err(Error::validation(ErrorField::Store, message));
    }
    let value = percent_decode_str(value).decode_utf8_lossy();
    Ok(Entry::new(setting, SettingOrigin::StoreUrl, Some(&value)))
}

/// Ends a message with the variable that a secret of the backend belongs in.
fn instead(backend: &BackendFactory) -> String {
    let secret = backend.settings.iter().find(|setting| setting.is_secret());
    secret.map(|setting| format!("; set {}", setting.variable)).unwrap_or_default()
}

/// Ends a message with the settings that a URL can contain.
fn known(settings: &[Setting]) -> String {
    let names = settings.iter().filter(|setting| !setting.is_secret()).map(Setting::name);
    match names.collect::<Vec<_>>().join(", ") {
        names if names.is_empty() => String::new(),
        names => format!("; they have {names}"),
    }
}

fn invalid(url: &str, message: String) -> Error {
    Error::validation(ErrorField::Store, message).with("url", format_args!("{url:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<StoreUrl> {
        StoreUrl::parse(url, Some(Path::new("/home/ana")))
    }

    fn file(url: &str) -> String {
        parse(url).unwrap().file().unwrap().to_str().unwrap().replace('\\', "/")
    }

    #[track_caller]
    fn assert_refused(url: &str, kind: ErrorKind, says: &str) {
        let error = StoreUrl::parse(url, None).unwrap_err();
        assert_eq!(error.kind(), kind, "{url}");
        assert!(error.to_string().contains(says), "{error}");
    }

    #[test]
    fn only_the_home_folder_is_expanded_in_paths() {
        assert_eq!(file("sqlite:sessions.sqlite"), "sessions.sqlite");
        assert_eq!(file("sqlite:/var/lib/s.db"), "/var/lib/s.db");
        assert_eq!(file("sqlite:///var/lib/s.db"), "/var/lib/s.db");
        assert_eq!(file("sqlite:~/.amplifier/s.db"), "/home/ana/.amplifier/s.db");
        assert_eq!(file("sqlite:~ana/s.db"), "~ana/s.db");
        assert_eq!(file("sqlite:a:b?c"), "a:b?c");
        assert_eq!(file("sqlite:a?b=c?d"), "a?b=c?d");
        assert_eq!(parse("sqlite:a").unwrap().with_file("b".into()).to_string(), "sqlite:b");
    }

    #[test]
    fn a_printed_url_means_the_same_store() {
        for (url, path) in
            [("sqlite:a?b=c?", "a?b=c"), ("sqlite:a??", "a?"), ("sqlite:////a", "//a"), ("sqlite:a?b", "a?b")]
        {
            assert_eq!((file(url), parse(url).unwrap().to_string()), (path.to_owned(), url.to_owned()));
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for (url, says) in [
            ("sessions.sqlite", "begins with a scheme; this build supports sqlite:PATH"),
            ("mysql:x", "unknown store scheme \"mysql\"; this build supports sqlite:PATH"),
            ("sqlite:", "no path"),
            ("sqlite:~/x", "home folder"),
            ("sqlite:x?unknown=1", "SQLite stores have no setting \"unknown\""),
        ] {
            assert_refused(url, ErrorKind::Validation, says);
        }
    }

    #[test]
    #[cfg(not(feature = "postgres"))]
    fn builds_without_postgresql_do_not_list_it() {
        let says = "this build does not support PostgreSQL stores; build it with `--features postgres`";
        for url in ["postgres://h/db", "postgresql://h/db"] {
            assert_refused(url, ErrorKind::Unsupported, says);
        }
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn a_password_in_a_url_is_refused() {
        assert_eq!(parse("postgresql://ana@h:1/db?schema=s").unwrap().to_string(), "postgres://ana@h:1/db");
        let error = parse("postgres://ana:quondam@h/db").unwrap_err();
        assert!(error.to_string().contains("set PGPASSWORD"), "{error}");
        assert!(!format!("{error:?}").contains("quondam"));
    }

    #[test]
    #[cfg(not(feature = "duckdb-system"))]
    fn builds_without_duckdb_do_not_list_it() {
        let says = "this build does not support DuckDB stores; build it with `--features duckdb`";
        assert_refused("duckdb:x", ErrorKind::Unsupported, says);
    }

    #[test]
    #[cfg(feature = "duckdb-system")]
    fn settings_follow_a_question_mark() {
        assert_eq!(file("duckdb:x.duckdb?hnsw=true"), "x.duckdb");
        assert_eq!(file("duckdb:?hnsw=true"), file("duckdb://"));
        assert_eq!(file("duckdb:"), "/home/ana/.amplifier/sessions.duckdb");
        let url = parse("duckdb:x?hnsw=on&extension_directory=/a%26b").unwrap();
        let settings: Vec<_> =
            url.settings().iter().map(|entry| (entry.setting.key, entry.value())).collect();
        assert_eq!(settings, [("hnsw", Some("on")), ("extension_directory", Some("/a&b"))]);
        assert_eq!(url.to_string(), "duckdb:x");
        let says = "DuckDB stores have no setting \"hsnw\"; they have hnsw, extension_directory";
        assert_refused("duckdb:x?hsnw=true", ErrorKind::Validation, says);
    }

    #[test]
    #[cfg(feature = "cosmos")]
    fn a_secret_in_a_url_is_refused() {
        for url in ["cosmos://", "cosmos://h", "cosmos://h:1/db"] {
            assert_eq!(parse(&format!("{url}?vector_index=flat")).unwrap().to_string(), url);
        }
        let error = parse("cosmos://h/db?key=c2VjcmV0").unwrap_err();
        assert!(error.to_string().contains("set AMPLIFIER_COSMOS_KEY"), "{error}");
        assert!(!format!("{error:?}").contains("c2VjcmV0"));
        assert_refused("cosmos://h?auth", ErrorKind::Validation, "NAME=VALUE, not \"auth\"");
    }
}
