//! Checks of the machine: files, disk, clock, watcher and the folder with sessions.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use amplifier_session_storage::{
    backend::StorePlace, config::SettingOrigin, model::Timestamp, sync::is_root,
};

use super::Check;
use crate::{
    app::App,
    render::text::{duration, size},
    roots::roots,
};

/// With less free space than this, a store can't be used.
const LEAST_FREE: u64 = 64_000_000;
/// Clocks of machines that share a store may differ by this much.
const TOLERANCE: Duration = Duration::from_secs(600);

/// Permissions and free space of the files at `places`, and permissions of the configuration.
pub(super) fn check_files(app: &App, places: &[StorePlace], checks: &mut Vec<Check>) {
    let has_keys = app
        .config
        .entries()
        .iter()
        .any(|entry| entry.setting.is_secret() && matches!(entry.origin, SettingOrigin::File { .. }));
    let config = app.config.file().filter(|_| has_keys).map(Path::to_owned);
    let files: Vec<PathBuf> =
        places.iter().flat_map(|place| place.files.iter().cloned()).chain(config).collect();
    if cfg!(unix) && !files.is_empty() {
        checks.push(permissions(&files));
    }
    let store = places.iter().find(|place| place.what == "store");
    if let Some((place, file)) = store.and_then(|place| Some((place, place.files.first()?))) {
        checks.extend(disk(file, place.bytes().unwrap_or(0)));
    }
}

/// Whether only their owner can read the files.
fn permissions(files: &[PathBuf]) -> Check {
    let open: Vec<&PathBuf> = files.iter().filter(|file| is_open_to_others(file)).collect();
    let Some(first) = open.first() else { return Check::ok("permissions", "only you can read the files") };
    let others = match open.len() {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let names: Vec<String> =
        open.iter().map(|file| crate::args::quoted(&file.display().to_string())).collect();
    Check::failed(
        "permissions",
        format!("others can read {}{others}", first.display()),
        format!("`chmod -R go= {}`", names.join(" ")),
    )
}

#[cfg(unix)]
fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

/// The free space beside a store of this size.
fn disk(store: &Path, bytes: u64) -> Option<Check> {
    let free = free_bytes(store)?;
    let text = format!("{} free", size(free));
    Some(if free < LEAST_FREE {
        Check::failed("disk", text, "free some space: nothing can be stored on a full disk")
    } else if free < bytes.saturating_add(LEAST_FREE) {
        let hint = "free some space: to erase what it deletes, `delete` needs as much as the store uses";
        Check::warning("disk", format!("{text}, less than the size of the store"), hint)
    } else {
        Check::ok("disk", text)
    })
}

#[cfg(unix)]
fn free_bytes(file: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(file).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Whether the time of this machine is plausible, given when the store was last written. Times in sessions come from
/// other machines and from files, so they say nothing about it.
pub(super) fn clock(app: &App, places: &[StorePlace]) -> Check {
    let now = SystemTime::now();
    let written = places
        .iter()
        .flat_map(|place| &place.files)
        .filter_map(|file| fs::metadata(file).ok()?.modified().ok());
    let ahead = |time: SystemTime| time.duration_since(now).ok().filter(|ahead| *ahead > TOLERANCE);
    let time = crate::dates::second(Timestamp::from_micros(app.now.timestamp().as_microsecond()), &app.now);
    match written.filter_map(ahead).max() {
        Some(ahead) => Check::failed(
            "clock",
            format!("{time}; the store was written {} later", duration(ahead.as_secs_f64() * 1e3)),
            "set the clock of this machine: times determine what is new, and what --since and --until find",
        ),
        None => Check::ok("clock", time),
    }
}

/// The folders with Amplifier's sessions, and that with captures.
pub(super) fn check_roots(app: &App, checks: &mut Vec<Check>) {
    const NAME: &str = "root";
    // With a server, all sessions may be those of other machines.
    let is_needed =
        !app.has_server().unwrap_or_default() || *app.config.origin("root") != SettingOrigin::Default;
    match roots(app, &[]) {
        Ok(roots) => {
            let checked = roots.iter().filter(|root| is_needed || is_root(root));
            checks.extend(checked.map(|root| check_root(NAME, root)));
        }
        Err(failure) => checks.push(Check::of(NAME, app, &failure)),
    }
    let captures = app.config.captures().filter(|captures| !captures.is_dir());
    checks.extend(captures.map(|captures| {
        let origin = app.config.origin("captures");
        let hint = format!("without it, events and times of sessions are missing; {origin} names it");
        Check::warning("captures", format!("there is no folder {}", captures.display()), hint)
    }));
}

fn check_root(name: &'static str, root: &Path) -> Check {
    let hint = "set `root` in the configuration to the folder that contains `projects`";
    if is_root(root) && !root.join("projects").exists() {
        return Check::ok(name, root.display().to_string());
    }
    let projects = root.join("projects");
    match fs::read_dir(&projects) {
        Ok(_) => Check::ok(name, root.display().to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::failed(name, format!("there is no folder {}", projects.display()), hint)
        }
        Err(error) => Check::failed(name, format!("{} can't be read: {error}", projects.display()), hint),
    }
}

/// Whether `watch` runs, if it is installed.
#[cfg(feature = "watch")]
pub(super) async fn watch(
    app: &App,
    storage: &amplifier_session_storage::SessionStorage,
    checks: &mut Vec<Check>,
) {
    use amplifier_session_storage::sync::{SyncOptions, WatcherState, watchers};

    const NAME: &str = "watch";
    let (Ok(roots), Ok((identity, host))) = (roots(app, &[]), app.who()) else { return };
    let follows_any = |watcher: &WatcherState| {
        let of = |root| SyncOptions::new(root, identity.user_id.clone(), host.clone());
        roots.iter().any(|root| watcher.follows(&of(root)))
    };
    let watcher = match watchers(storage).await {
        Ok(watchers) => watchers.into_iter().find(follows_any),
        Err(error) => return checks.push(Check::of(NAME, app, &crate::failure::Failure::from(error))),
    };
    let is_installed = crate::commands::service::is_installed(app);
    let runs = watcher.filter(|watcher| watcher.is_running_here(storage.now()));
    checks.push(match runs {
        Some(watcher) if watcher.failures.is_empty() => {
            Check::ok(NAME, format!("running as process {}", watcher.process))
        }
        Some(watcher) => Check::warning(
            NAME,
            format!("running as process {}, but could not read all sessions", watcher.process),
            format!("`{} watch status` lists them", app.program()),
        ),
        None if is_installed => Check::failed(
            NAME,
            "installed as a service, but not running",
            format!("`{} watch service status` shows where its messages are", app.program()),
        ),
        None => Check::ok(NAME, "not running, and not installed as a service"),
    });
}
