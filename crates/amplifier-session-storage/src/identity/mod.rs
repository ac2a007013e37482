//! The user and the host.
//!
//! | | the first of these that is known |
//! | --- | --- |
//! | user | the configured user; the account of the Azure CLI; the user of the system |
//! | host | the machine id of the operating system, hashed; the name of the host |
//!
//! [`Sources::from_env`] reads the environment of the process, [`Sources::new`] a given one. Everything after that is a
//! function of the [`Sources`], so tests and other programs can look elsewhere.

mod azure;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorField, Result,
    model::{Digest, HostId, UserId},
};

/// Where to look for an identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sources {
    /// The configured user.
    pub configured_user: Option<String>,
    /// The Azure CLI's profile file.
    pub azure_profile: Option<PathBuf>,
    /// The system's names for the user, best source first.
    pub system_users: Vec<String>,
    /// Files with the machine's id, best first.
    pub machine_id_files: Vec<PathBuf>,
    /// The host's name.
    pub host_name: Option<String>,
}

/// A user, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserIdentity {
    /// The user.
    pub user_id: UserId,
    /// Where the id comes from.
    pub source: UserSource,
}

/// Where a user id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserSource {
    /// The configuration.
    Configuration,
    /// The account of the Azure CLI.
    AzureCli,
    /// The operating system.
    System,
}

impl fmt::Display for UserSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configuration => "the configuration",
            Self::AzureCli => "the Azure CLI",
            Self::System => "the system",
        })
    }
}

impl Sources {
    /// The sources of this process: its environment, and the usual files.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(std::env::home_dir().as_deref(), |name| std::env::var(name).ok())
    }

    /// The sources of this machine, with this home folder and these environment variables.
    #[must_use]
    pub fn new(home: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.trim().is_empty());
        let azure_folder = variable("AZURE_CONFIG_DIR").map(PathBuf::from);
        let azure_folder = azure_folder.or_else(|| Some(home?.join(".azure")));
        let system_users = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(variable);
        Self {
            configured_user: None,
            azure_profile: azure_folder.map(|folder| folder.join("azureProfile.json")),
            system_users: system_users.chain(whoami::username().ok()).collect(),
            machine_id_files: MACHINE_ID_FILES.map(PathBuf::from).to_vec(),
            host_name: whoami::hostname().ok(),
        }
    }

    /// Sets the configured user.
    #[must_use]
    pub fn with_configured_user(mut self, user: Option<String>) -> Self {
        self.configured_user = user;
        self
    }

    /// The user. An invalid name in the configuration is an error; in other sources it is ignored.
    ///
    /// # Errors
    ///
    /// `Validation` when the configured name is not a user id, or no source has one.
    pub fn user(&self) -> Result<UserIdentity> {
        if let Some(name) = &self.configured_user {
            return Ok(UserIdentity {
                user_id: UserId::new(name.trim())?,
                source: UserSource::Configuration,
            });
        }
        let azure = self.azure_profile.as_deref().and_then(azure::signed_in_user);
        if let Some(user_id) = azure.and_then(|name| UserId::new(name).ok()) {
            return Ok(UserIdentity { user_id, source: UserSource::AzureCli });
        }
        let user_id = self.system_users.iter().find_map(|name| UserId::new(name.trim()).ok());
        let user_id = user_id.ok_or_else(|| Error::validation(ErrorField::UserId, "the user is unknown"))?;
        Ok(UserIdentity { user_id, source: UserSource::System })
    }

    /// The machine. The id is the same in every process of an installation, also after a restart.
    ///
    /// The machine id itself is confidential according to `machine-id(5)`, so only a hash of it leaves the machine.
    ///
    /// # Errors
    ///
    /// `Validation` when no source has one.
    pub fn host_id(&self) -> Result<HostId> {
        let id = self.machine_id_files.iter().find_map(|file| machine_id(file));
        if let Some(id) = id {
            return HostId::new(hashed(&id));
        }
        let name = self.host_name.as_deref().map(str::trim).and_then(|name| HostId::new(name).ok());
        name.ok_or_else(|| {
            Error::validation(ErrorField::HostId, "the id and the name of this machine are unknown")
        })
    }
}

/// Where Linux keeps the machine's id. Other systems have no such file.
const MACHINE_ID_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// The id in `file`: 32 hexadecimal digits according to `machine-id(5)`. Images may leave it empty or `uninitialized`.
fn machine_id(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

/// A hash of `id` that is specific to this library, so that it can't be matched with the id elsewhere.
fn hashed(id: &str) -> String {
    let Digest(hash) = Digest::of(format!("amplifier-session-storage host {id}").as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sources of every kind, with their files in `folder`.
    fn sources(folder: &Path) -> Sources {
        let (profile, machine) = (folder.join("azureProfile.json"), folder.join("machine-id"));
        let subscription = r#"{"isDefault":true,"user":{"name":"ana@example.com","type":"user"}}"#;
        std::fs::write(&profile, format!("\u{feff}{{\"subscriptions\":[{subscription}]}}")).unwrap();
        std::fs::write(&machine, "0123456789abcdef0123456789abcdef\n").unwrap();
        Sources {
            configured_user: None,
            azure_profile: Some(profile),
            system_users: vec!["ana".to_owned()],
            machine_id_files: vec![machine],
            host_name: Some("laptop".to_owned()),
        }
    }

    #[test]
    fn the_configuration_wins_over_azure_and_azure_over_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let all = sources(folder.path()).with_configured_user(Some("bob".to_owned()));
        let user =
            |sources: &Sources| sources.user().map(|found| (found.user_id.as_str().to_owned(), found.source));
        assert_eq!(user(&all).unwrap(), ("bob".to_owned(), UserSource::Configuration));
        let all = all.with_configured_user(None);
        assert_eq!(user(&all).unwrap(), ("ana@example.com".to_owned(), UserSource::AzureCli));
        let all = Sources { azure_profile: Some(folder.path().join("missing.json")), ..all };
        assert_eq!(user(&all).unwrap(), ("ana".to_owned(), UserSource::System));
        let all = Sources { system_users: vec!["".to_owned(), "second".to_owned()], ..all };
        assert_eq!(user(&all).unwrap(), ("second".to_owned(), UserSource::System));
        assert_eq!(user(&Sources::default()).unwrap_err().field(), Some(ErrorField::UserId));
    }

    #[test]
    fn an_invalid_configured_user_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = sources(folder.path()).with_configured_user(Some(" ".to_owned())).user().unwrap_err();
        assert_eq!(error.field(), Some(ErrorField::UserId));
    }

    #[test]
    fn the_machine_id_is_hashed_and_stable() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(folder.path());
        let id = sources.host_id().unwrap();
        assert_eq!(id, sources.host_id().unwrap());
        assert_eq!(id.as_str().len(), 32);
        assert!(!id.as_str().contains("0123456789abcdef"));
    }

    #[test]
    fn without_a_machine_id_the_host_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let machine_id_files = vec![folder.path().join("missing"), folder.path().join("machine-id")];
        let sources = Sources { machine_id_files, ..sources(folder.path()) };
        std::fs::write(folder.path().join("machine-id"), "uninitialized\n").unwrap();
        assert_eq!(sources.host_id().unwrap().as_str(), "laptop");
        assert!(Sources { host_name: None, ..sources }.host_id().is_err());
    }
}
