//! Roots: the folders with sessions that commands read.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use amplifier_session_storage::{config::SettingOrigin, sync::is_root};

use crate::{
    app::App,
    failure::{Failure, say},
};

/// The named roots without repetitions. By default, the configured ones; or else those of Amplifier and its agent that
/// exist, or that of Amplifier if neither does.
pub(crate) fn roots(app: &App, named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut roots = match named {
        [] => app.config.roots(),
        named => named.iter().map(std::path::absolute).collect::<io::Result<_>>()?,
    };
    if named.is_empty() && *app.config.origin("root") == SettingOrigin::Default {
        let first = roots.first().cloned();
        roots.retain(|root| is_root(root) || Some(root) == first.as_ref());
        if roots.len() > 1 {
            roots.retain(|root| is_root(root));
        }
    }
    let mut seen = HashSet::new();
    roots.retain(|root| seen.insert(root.clone()));
    if roots.is_empty() {
        Err(Failure::failed("the home folder is unknown", "pass the folder with --root DIR"))
    } else {
        Ok(roots)
    }
}

/// As [`roots`], without those that do not exist. A configured root that is missing is a note, unless all are.
///
/// # Errors
///
/// If a named root, or every configured one, is missing.
pub(crate) fn existing(app: &App, named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let (found, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        roots(app, named)?.into_iter().partition(|root| is_root(root));
    match missing.first() {
        Some(missing) if !named.is_empty() => {
            Err(Failure::failed(no_root(missing), "pass the folder that contains projects/"))
        }
        Some(missing) if found.is_empty() => {
            let hint = format!(
                "pass another folder with --root DIR, or try the samples with `{} quickstart`",
                app.program()
            );
            Err(Failure::failed(no_root(missing), hint))
        }
        _ => {
            missing.iter().for_each(|root| say("note", &format!("{}: it is left out", no_root(root))));
            Ok(found)
        }
    }
}

/// That a folder is no root.
pub(crate) fn no_root(folder: &Path) -> String {
    format!("no folder `projects` in {}", folder.display())
}
