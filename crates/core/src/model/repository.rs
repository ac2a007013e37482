//! The repository of a session, and the form of its address.

use std::collections::BTreeSet;

use super::Repository;

/// The kinds of repositories. Of two that describe the same one, the later kind says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RepositoryKind {
    /// A folder.
    Folder,
    /// The first commit of a repository without an address.
    FirstCommit,
    /// The address of a repository on a server.
    Address,
}

/// Precedes the first commit.
const COMMIT: &str = "commit:";
/// Labels before the name of a host that has several: `ssh.github.com`, `altssh.gitlab.com`, `www.gitlab.com`.
const LABELS: [&str; 3] = ["ssh.", "altssh.", "www."];

impl Repository {
    /// The repository at the address of a remote, as `HOST/PATH` in lower case, such as `github.com/acme/app`. The scheme,
    /// the user, the password, the port and `.git` are left out. `None` for a folder or a file, and for an address in an
    /// unknown form, whose path may contain a password.
    #[must_use]
    pub fn of_address(address: &str) -> Option<Self> {
        let address = address.trim().split(['?', '#', ';']).next()?;
        let (host, path) = match address.rsplit_once("://") {
            Some((scheme, _)) if scheme.ends_with("file") => return None,
            // The address of a proxy may contain the one that is meant, and keeps its password there.
            Some((_, rest)) => without_port(rest.split_once('/')?),
            None => of_ssh(address)?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_lowercase();
        let path = path.to_lowercase();
        let mut parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if let Some(last) = parts.last_mut() {
            *last = last.strip_suffix(".git").unwrap_or(last);
        }
        let is_plain = |part: &&str| !part.is_empty() && *part != ".." && !part.contains(['@', ':', '\\']);
        if !is_host(&host) || parts.is_empty() || !parts.iter().all(is_plain) {
            return None;
        }
        let named =
            LABELS.iter().find_map(|label| host.strip_prefix(label).filter(|host| host.contains('.')));
        let host = named.unwrap_or(&host);
        if host == "dev.azure.com" {
            parts = of_azure(parts);
        }
        Self::new(format!("{host}/{}", parts.join("/"))).ok()
    }

    /// The repository with this first commit, given as hexadecimal digits.
    #[must_use]
    pub fn of_first_commit(commit: &str) -> Option<Self> {
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Self::new(format!("{COMMIT}{}", commit.to_lowercase())).ok())?
    }

    /// A folder, given as an absolute path of any system. `None` for other paths and for `/`.
    #[must_use]
    pub fn of_folder(folder: &str) -> Option<Self> {
        let folder = folder.trim_end_matches(['/', '\\']);
        is_absolute(folder).then(|| Self::new(folder).ok())?
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> RepositoryKind {
        match self.as_str() {
            text if text.starts_with(COMMIT) => RepositoryKind::FirstCommit,
            text if is_absolute(text) => RepositoryKind::Folder,
            _ => RepositoryKind::Address,
        }
    }

    /// The one of several names of a repository that says most; an empty text if there are none.
    #[must_use]
    pub fn most_telling(names: &BTreeSet<Self>) -> &str {
        names.iter().max_by_key(|name| name.kind()).map_or("", Self::as_str)
    }

    /// Whether the last parts of the address or of the path are `name`, ignoring case: `app` or `acme/app`.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let (text, name) = (self.as_str().to_lowercase().replace('\\', "/"), name.to_lowercase());
        text.strip_suffix(&name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    }
}

/// Host and path of `[USER@]HOST:PATH`.
fn of_ssh(address: &str) -> Option<(&str, &str)> {
    let (host, path) = address.split_once(':')?;
    // A single letter is a drive.
    (host.len() > 1 && !host.contains('/')).then_some((host, path))
}

fn without_port<'a>((host, path): (&'a str, &'a str)) -> (&'a str, &'a str) {
    let port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    (port.map_or(host, |(host, _)| host), path)
}

/// Azure DevOps has `ORGANISATION/PROJECT/_git/REPOSITORY`, without the project if it has the same name, and for SSH
/// `v3/ORGANISATION/PROJECT/REPOSITORY`.
fn of_azure(parts: Vec<&str>) -> Vec<&str> {
    match parts.as_slice() {
        ["v3", parts @ ..] => parts.to_vec(),
        [organisation, "_git", name] => vec![organisation, name, name],
        [organisation, project, "_git", name] => vec![organisation, project, name],
        _ => parts,
    }
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

/// Whether a path is absolute on some system.
fn is_absolute(path: &str) -> bool {
    let is_drive = |path: &str| {
        let mut chars = path.chars();
        chars.next().is_some_and(|drive| drive.is_ascii_alphabetic()) && chars.next() == Some(':')
    };
    path.starts_with(['/', '\\']) || is_drive(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_password_is_kept(address in "\\PC*", user in "[^/?#;]*", password in "[^/?#;]*") {
            let stated = of(&format!("https://{user}:{password}@github.com/acme/app"));
            prop_assert_eq!(stated.as_deref(), Some("github.com/acme/app"));
            prop_assert!(of(&address).is_none_or(|of| !of.contains('@')));
        }
    }

    fn of(address: &str) -> Option<String> {
        Repository::of_address(address).map(String::from)
    }

    #[test]
    fn addresses_of_the_same_repository_have_one_form() {
        for address in [
            "git@github.com:acme/app.git",
            "git@github.com:/acme/app",
            "github.com:acme/app.git/",
            "https://github.com/acme/app",
            "https://github.com/Acme/App.git",
            "http://github.com:80/acme//app/",
            "git://github.com/acme/app.git",
            "ssh://git@github.com/acme/app.git",
            "ssh://git@ssh.github.com:443/acme/app.git",
            "git+ssh://git@www.github.com/./acme/app.git",
            "HTTPS://GitHub.com/acme/app?ref=main#readme",
            " https://github.com/acme/app \n",
        ] {
            assert_eq!(of(address).as_deref(), Some("github.com/acme/app"), "{address}");
        }
        for address in [
            "https://dev.azure.com/acme/shop/_git/app",
            "https://ana@dev.azure.com/acme/shop/_git/app",
            "git@ssh.dev.azure.com:v3/acme/shop/app",
        ] {
            assert_eq!(of(address).as_deref(), Some("dev.azure.com/acme/shop/app"), "{address}");
        }
        assert_eq!(of("https://dev.azure.com/acme/_git/app").as_deref(), Some("dev.azure.com/acme/app/app"));
        assert_eq!(of("git@gitlab.acme.org:a/b/c.git").as_deref(), Some("gitlab.acme.org/a/b/c"));
        assert_eq!(of("git@work:acme/app").as_deref(), Some("work/acme/app"));
    }

    #[test]
    fn passwords_are_left_out() {
        for address in [
            "https://token@github.com/acme/app.git",
            "https://user:token@github.com/acme/app.git",
            "https://user:to:k@en@github.com:443/acme/app",
            "https://user:@github.com/acme/app",
            "https://github.com/acme/app.git?private=token",
            "https://github.com/acme/app.git#token",
            "token@github.com:acme/app.git",
            "https://proxy.org/https://user:token@github.com/acme/app",
            "helper::https://user:token@github.com/acme/app",
        ] {
            assert_eq!(of(address).as_deref(), Some("github.com/acme/app"), "{address}");
        }
        for address in [
            "https://user:to/ken@github.com/acme/app",
            "https://user:to?ken@github.com/acme/app",
            "https://user:to#ken@github.com/acme/app",
            "user:token@github.com:acme/app",
            "user:token@github.com/acme/app",
            "https://proxy.org/user:token@github.com/acme/app",
            "https://user:token@",
            "https://user:token@/acme",
        ] {
            assert_eq!(of(address), None, "{address}");
        }
    }

    #[test]
    fn folders_and_files_are_no_addresses() {
        for address in [
            "",
            "app",
            "../app.git",
            "./a:b/app",
            "/srv/git/app.git",
            "~/git/app.git",
            "file:///srv/git/app.git",
            "C:\\git\\app",
            "C:/git/app",
            "\\\\server\\git\\app",
            "https://github.com",
            "https://github.com/",
            "https://github.com/.git",
            "https://github.com/../app",
            "ext::sh -c script",
            "ssh://git@[::1]:22/acme/app",
        ] {
            assert_eq!(of(address), None, "{address}");
        }
    }

    #[test]
    fn the_text_says_the_kind() {
        let id = "0123456789abcdef0123456789ABCDEF01234567";
        let commit = Repository::of_first_commit(id).unwrap();
        assert_eq!(commit.as_str(), "commit:0123456789abcdef0123456789abcdef01234567");
        assert_eq!(commit.kind(), RepositoryKind::FirstCommit);
        for other in ["", "0123", "g123456789abcdef0123456789abcdef01234567"] {
            assert_eq!(Repository::of_first_commit(other), None, "{other}");
        }
        for (folder, stored) in
            [("/home/ana/app/", "/home/ana/app"), ("C:\\app\\", "C:\\app"), ("C:/app", "C:/app")]
        {
            let folder = Repository::of_folder(folder).unwrap();
            assert_eq!((folder.as_str(), folder.kind()), (stored, RepositoryKind::Folder));
        }
        for other in ["", "/", "app", "./app", "~/app"] {
            assert_eq!(Repository::of_folder(other), None, "{other}");
        }
        let address = Repository::of_address("git@github.com:acme/app").unwrap();
        assert_eq!(address.kind(), RepositoryKind::Address);
        assert!(RepositoryKind::Folder < RepositoryKind::FirstCommit);
        assert!(RepositoryKind::FirstCommit < RepositoryKind::Address);
    }

    #[test]
    fn a_name_is_the_end_of_an_address() {
        let address = Repository::of_address("git@github.com:acme/app").unwrap();
        for name in ["app", "Acme/App", "github.com/acme/app"] {
            assert!(address.is_named(name), "{name}");
        }
        for name in ["pp", "acme", "me/app", "github.com"] {
            assert!(!address.is_named(name), "{name}");
        }
        assert!(Repository::of_folder("C:\\code\\app").unwrap().is_named("code/app"));
    }
}
