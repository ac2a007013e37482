//! Checks of what the system allows. Only problems are reported.

use std::fs;

use amplifier_session_storage::backend::StorePlace;

use super::Check;
use crate::render::text::size;

/// A write-ahead log of this size is not emptied as it should be. SQLite's is usually emptied at 16 MB, and DuckDB's at
/// 256 MB.
const LARGE_LOG: [(&str, u64); 2] = [("-wal", 128_000_000), (".wal", 512_000_000)];

/// A sync of a few sessions needs about 30; the search index of a large store has more files.
const FEW_FILES: u64 = 256;

/// The write-ahead log of the store, if it is large.
pub(super) fn log(places: &[StorePlace]) -> Option<Check> {
    let mut files = places.iter().filter(|place| place.what == "store").flat_map(|place| &place.files);
    files.find_map(|file| {
        let name = file.file_name()?.to_str()?;
        let (_, large) = LARGE_LOG.iter().find(|(end, _)| name.ends_with(end))?;
        let bytes = fs::metadata(file).ok()?.len();
        (bytes >= *large).then(|| {
            let hint = "it is emptied by the next write while no other program reads: end programs that keep the store \
                        open for long, and run `sync`";
            Check::warning("log", format!("{} has {}", file.display(), size(bytes)), hint)
        })
    })
}

/// Whether this process may open enough files.
#[cfg(unix)]
pub(super) fn open_files() -> Option<Check> {
    use rustix::process::{Resource, getrlimit};

    let allowed = getrlimit(Resource::Nofile).current?;
    (allowed < FEW_FILES).then(|| {
        let hint =
            "`ulimit -n 1024` raises the limit in this shell, and `LimitNOFILE=1024` that of a systemd unit";
        Check::warning("open files", format!("a process may open only {allowed} files at once"), hint)
    })
}

#[cfg(not(unix))]
pub(super) fn open_files() -> Option<Check> {
    None
}

/// Whether `watch` could follow folders.
#[cfg(target_os = "linux")]
pub(super) fn notifications() -> Option<Check> {
    use rustix::{
        fs::inotify::{CreateFlags, init},
        io::Errno,
    };

    of_notifications(init(CreateFlags::CLOEXEC).err() == Some(Errno::MFILE))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn notifications() -> Option<Check> {
    of_notifications(false)
}

fn of_notifications(are_used_up: bool) -> Option<Check> {
    are_used_up.then(|| {
        Check::warning(
            "inotify",
            "programs of this user already use all inotify instances, so `watch` compares folders at intervals",
            "raise the limit: `sudo sysctl fs.inotify.max_user_instances=512`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inotify_instances_that_are_used_up_are_named() {
        assert!(of_notifications(false).is_none());
        let check = of_notifications(true).unwrap();
        assert!(check.hint.unwrap().contains("fs.inotify.max_user_instances"));
    }

    #[test]
    fn only_a_large_log_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("sessions.sqlite");
        let wal = folder.path().join("sessions.sqlite-wal");
        let places = [StorePlace::local("store", store, [wal.clone()])];
        assert!(log(&places).is_none());
        // A file without content takes no space.
        let file = fs::File::create(&wal).unwrap();
        file.set_len(127_999_999).unwrap();
        assert!(log(&places).is_none());
        file.set_len(128_000_000).unwrap();
        let check = log(&places).unwrap();
        assert!(check.text.ends_with("sessions.sqlite-wal has 128.0 MB"), "{}", check.text);
    }
}
