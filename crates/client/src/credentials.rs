//! The tokens of servers.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use amplifier_session_core::{Error, ErrorKind, Result, Secret};
use serde::Deserialize;

use crate::ServerAddress;

/// The environment variable with the token of the only server that a command uses.
pub const TOKEN_VARIABLE: &str = "AMPLIFIER_SESSIONS_TOKEN";

/// The name of the file with tokens, in the folder of the configuration.
pub const CREDENTIALS_FILE: &str = "credentials.toml";

/// The tokens of servers. Each is sent only to the server that it belongs to.
#[derive(Debug, Clone, Default)]
pub struct ServerCredentials {
    variable: Option<Secret>,
    file: Option<PathBuf>,
}

/// The part of the file for one host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostCredentials {
    token: String,
}

impl ServerCredentials {
    /// The tokens in [`TOKEN_VARIABLE`], if it has this value, and in a file, which need not exist.
    #[must_use]
    pub fn new(variable: Option<&str>, file: Option<PathBuf>) -> Self {
        let variable = variable.map(Secret::new).filter(|token| !token.expose().is_empty());
        Self { variable, file }
    }

    /// The token of a server: that of the file, by its host, or else that of the variable. If a command uses several
    /// servers, which is `is_only` being false, the variable does not say to which of them its token belongs, so it
    /// counts for none.
    ///
    /// # Errors
    ///
    /// `Authentication` if there is none, or if others can read the file, or if it is not valid.
    pub fn token(&self, server: &ServerAddress, is_only: bool) -> Result<Secret> {
        let host = server.host();
        if let Some(token) = self.of_file(&host)? {
            return Ok(token);
        }
        let set = format!("set {TOKEN_VARIABLE}, or put it");
        match &self.variable {
            Some(token) if is_only => Ok(token.clone()),
            Some(_) => Err(self.missing(
                &host,
                &set,
                &format!("{TOKEN_VARIABLE} is the token of one server, and this command uses several"),
            )),
            None => Err(self.missing(&host, &set, &format!("there is no token for {host}"))),
        }
    }

    /// The token of a server in the file, for a program that may not get the variable.
    ///
    /// # Errors
    ///
    /// As [`Self::token`].
    pub fn token_in_file(&self, server: &ServerAddress) -> Result<Secret> {
        let host = server.host();
        let message = format!("no file has a token for {host}");
        self.of_file(&host)?.ok_or_else(|| self.missing(&host, "put it", &message))
    }

    fn of_file(&self, host: &str) -> Result<Option<Secret>> {
        let Some(path) = &self.file else { return Ok(None) };
        let wrong =
            |reason: &str| Error::new(ErrorKind::Authentication, format!("{}: {reason}", path.display()));
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong("the tokens can't be read").with_source(error)),
            Ok(text) => text,
        };
        if is_readable_by_others(path) {
            let hint = format!("run `chmod 600 {}`", path.display());
            return Err(wrong("other users can read the tokens").with_hint(hint));
        }
        // The error itself would show the line, with the token in it.
        let hosts: BTreeMap<String, HostCredentials> =
            toml::from_str(&text).map_err(|error| wrong(error.message()).with_hint(example(host)))?;
        let host = hosts.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(host));
        Ok(host.map(|(_, HostCredentials { token })| Secret::new(&token)))
    }

    /// `put` says what to do with a token, before the file.
    fn missing(&self, host: &str, put: &str, message: &str) -> Error {
        let file =
            self.file.as_ref().map_or_else(|| CREDENTIALS_FILE.into(), |path| path.display().to_string());
        let example = example(host);
        let hint = format!(
            "`token create` on the server makes one; {put} into {file}, which only you may read: {example}"
        );
        Error::new(ErrorKind::Authentication, message).with_hint(hint)
    }
}

fn example(host: &str) -> String {
    format!("[\"{host}\"] and below it token = \"ams_…\"")
}

#[cfg(unix)]
fn is_readable_by_others(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|there| there.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &std::path::Path) -> bool {
    // The folders of a user's configuration are theirs.
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ServerAddress {
        text.parse().unwrap()
    }

    #[cfg(unix)]
    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CREDENTIALS_FILE);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[cfg(unix)]
    #[test]
    fn a_token_belongs_to_its_host_and_port() {
        let text = "[\"example.com\"]\ntoken = \"one\"\n[\"localhost:7878\"]\ntoken = \"two\"\n";
        let (_folder, path) = file(text, 0o600);
        let credentials = ServerCredentials::new(None, Some(path.clone()));
        let token =
            |url: &str| credentials.token(&address(url), false).map(|token| token.expose().to_owned());
        assert_eq!(token("https://Example.com/x").unwrap(), "one");
        assert_eq!(token("http://localhost:7878").unwrap(), "two");
        for other in ["https://example.com:8443", "http://localhost", "https://sub.example.com"] {
            assert_eq!(token(other).unwrap_err().kind(), ErrorKind::Authentication, "{other}");
        }
        // The file is for this host, the variable for any.
        let both = ServerCredentials::new(Some("three"), Some(path));
        assert_eq!(both.token(&address("https://example.com"), true).unwrap().expose(), "one");
        assert_eq!(both.token(&address("https://example.org"), true).unwrap().expose(), "three");
    }

    #[test]
    fn the_variable_counts_for_a_single_server() {
        let credentials = ServerCredentials::new(Some(" ams_x\n"), None);
        assert_eq!(credentials.token(&address("https://a.example"), true).unwrap().expose(), "ams_x");
        let error = credentials.token(&address("https://a.example"), false).unwrap_err();
        assert!(error.to_string().contains("several") && !format!("{error:?}").contains("ams_x"), "{error}");
        let none = ServerCredentials::new(Some(" "), None).token(&address("https://a.example"), true);
        assert!(none.unwrap_err().hint().unwrap().contains(TOKEN_VARIABLE));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_or_that_is_not_valid_is_refused() {
        let refused = |text, mode| {
            let (_folder, path) = file(text, mode);
            let error = ServerCredentials::new(None, Some(path)).token(&address("https://x.example"), true);
            let error = error.unwrap_err();
            assert!(!format!("{error:?}{:?}", error.hint()).contains("hunter2"), "{error:?}");
            error.to_string()
        };
        assert!(refused("[\"x.example\"]\ntoken = \"hunter2\"\n", 0o644).contains("other users"));
        refused("[\"x.example\"]\ntoken = hunter2\n", 0o600);
        refused("[\"x.example\"]\ntoken = \"hunter2\"\nmore = 1\n", 0o600);
    }
}
