//! Absolute paths for the service, which does not start in the folder where it was installed.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::absolute;

/// Options and variables with the URL of a store.
const STORES: [&str; 3] = ["--store", "--also-store", "AMPLIFIER_SESSIONS_STORE"];
/// Options with a path.
const OPTIONS: [&str; 2] = ["--root", "--config"];
/// Variables with a path, or with several as in `PATH`. A `~` at the beginning stands for the home folder.
const VARIABLES: [&str; 6] = [
    "AMPLIFIER_SESSIONS_CONFIG",
    "AMPLIFIER_SESSIONS_ROOT",
    "AMPLIFIER_SESSIONS_CACHE_DIRECTORY",
    "AMPLIFIER_SESSIONS_EXTENSION_DIRECTORY",
    "AMPLIFIER_HOME",
    "AMPLIFIER_AGENT_HOME",
];

/// A command line with absolute paths. Relative ones are in `folder`.
pub(super) fn arguments(command: Vec<String>, folder: &Path) -> Vec<String> {
    let mut before = String::new();
    let absolute = |argument: String| {
        let value = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                format!("{option}={}", self::value(option, value, folder))
            }
            _ => self::value(&before, &argument, folder),
        };
        before = argument;
        value
    };
    command.into_iter().map(absolute).collect()
}

/// The value of an option or a variable, with absolute paths.
pub(super) fn value(name: &str, value: &str, folder: &Path) -> String {
    let absolute = |path: &Path| folder.join(path).display().to_string();
    if STORES.contains(&name) {
        return absolute::store_url(value, folder);
    }
    if OPTIONS.contains(&name) {
        return absolute(Path::new(value));
    }
    if !VARIABLES.contains(&name) || value.trim().is_empty() {
        return value.to_owned();
    }
    let whole = |path: PathBuf| if path.starts_with("~") { path } else { folder.join(path) };
    let paths = env::join_paths(env::split_paths(value).map(whole));
    paths.map_or_else(|_| value.to_owned(), |paths| paths.to_string_lossy().into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_become_absolute() {
        let folder = Path::new("/home/ana/work");
        let command = [
            "/opt/program",
            "--store",
            "sqlite:a b.sqlite?",
            "watch",
            "--root",
            "logs",
            "--root=/there",
            "--root=../up",
            "--also-store=sqlite:~/b.sqlite",
            "--config",
            "c.toml",
            "--exclude",
            "shop/*",
            "--poll",
            "5",
        ];
        let expected = [
            "/opt/program",
            "--store",
            "sqlite:/home/ana/work/a b.sqlite?",
            "watch",
            "--root",
            "/home/ana/work/logs",
            "--root=/there",
            "--root=/home/ana/work/../up",
            "--also-store=sqlite:~/b.sqlite",
            "--config",
            "/home/ana/work/c.toml",
            "--exclude",
            "shop/*",
            "--poll",
            "5",
        ];
        assert_eq!(arguments(command.map(str::to_owned).to_vec(), folder), expected);
        let value = |name, value| self::value(name, value, folder);
        assert_eq!(value("AMPLIFIER_SESSIONS_STORE", "sqlite:x.sqlite"), "sqlite:/home/ana/work/x.sqlite");
        assert_eq!(value("AMPLIFIER_SESSIONS_ROOT", "a:~/b:/c"), "/home/ana/work/a:~/b:/c");
        assert_eq!(value("AMPLIFIER_SESSIONS_USER", "ana"), "ana");
    }
}
