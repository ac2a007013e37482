//! Incomplete files and folders. A process that is told to end removes its own, and the next run removes those of
//! killed processes.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, Once, PoisonError},
};

use tempfile::TempDir;

use crate::environment::Environment;

/// The incomplete files and folders of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An incomplete file or folder. It is removed if the process is told to end, unless this value was dropped before.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    /// Locks it, so that other processes don't mistake it for the leftover of a killed process.
    _lock: Option<File>,
}

impl Unfinished {
    /// Creates it with `create`, which returns its path.
    pub(crate) fn create<T>(create: impl Fn() -> io::Result<(PathBuf, T)>) -> io::Result<(Self, T)> {
        catch_signals();
        let mut attempts = 3;
        loop {
            // Nothing is created while a signal is handled.
            let mut all = unfinished();
            let (path, created) = create()?;
            let lock = lock(&path);
            attempts -= 1;
            // Another process may have removed it before it was locked.
            if path.exists() || attempts == 0 {
                all.push(path.clone());
                return Ok((Self { path, _lock: lock }, created));
            }
        }
    }

    /// A file or folder that something else created and locks.
    pub(crate) fn existing(path: &Path) -> Self {
        catch_signals();
        unfinished().push(path.to_owned());
        Self { path: path.to_owned(), _lock: None }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.path);
    }
}

/// A folder for temporary files that only its owner may enter. It is removed when it is dropped, or when the process is
/// told to end.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    _unfinished: Unfinished,
}

impl TemporaryFolder {
    /// Creates it in the system's folder for temporary files, and removes those that killed processes left there.
    pub(crate) fn create() -> io::Result<Self> {
        Self::within(&Environment::current().temporary_folder(), ".amplifier-sessions.unfinished-")
    }

    /// [`TemporaryFolder::create`] in `parent`, with a name that begins with `prefix`.
    pub(crate) fn within(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_left(parent, prefix);
        let (unfinished, folder) = Unfinished::create(|| {
            let mut builder = tempfile::Builder::new();
            builder.prefix(prefix);
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            let folder = builder.tempdir_in(parent)?;
            Ok((folder.path().to_owned(), folder))
        })?;
        Ok(Self { folder, _unfinished: unfinished })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what killed processes left in `folder`: files and folders whose names begin with `prefix`, and which no
/// process has locked. What can't be locked is kept.
pub(crate) fn remove_left(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() || kind.is_file() => {
                if let Some(_lock) = lock(&path) {
                    remove(&path);
                }
            }
            _ => {}
        }
    }
}

/// Locks a file or a folder; `None` if another process has locked it. On Windows, a lock would keep this process from
/// writing, too.
fn lock(path: &Path) -> Option<File> {
    if cfg!(not(unix)) {
        return None;
    }
    let file = File::open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// Removes a file or folder, to which this process may still be writing.
fn remove(path: &Path) {
    for _ in 0..100 {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        if path.symlink_metadata().is_err() {
            return;
        }
    }
}

/// Waits for signals that end the process, on a separate thread: the others may be busy or wait for a pipe.
pub(crate) fn catch_signals() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        // Signals must be caught before anything is created.
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let code = runtime.block_on(async {
                let signals = signals::Signals::new();
                let _ = ready.send(());
                signals.wait().await
            });
            // Never released, so that nothing more is created.
            let all = unfinished();
            all.iter().for_each(|path| remove(path));
            std::process::exit(code);
        });
        let _ = is_ready.recv();
    });
}

/// Waits for a signal that ends the process, and returns the exit code for it.
pub(crate) async fn told_to_end() -> u8 {
    u8::try_from(signals::Signals::new().wait().await).unwrap_or(1)
}

#[cfg(unix)]
mod signals {
    use std::{future::poll_fn, task::Poll};

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use crate::terminal_programs::terminal_is_lent;

    pub(super) struct Signals(Vec<(Signal, i32)>);

    impl Signals {
        pub(super) fn new() -> Self {
            let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()];
            let caught = kinds.into_iter().filter(|kind| !is_ignored(kind.as_raw_value()));
            Self(caught.filter_map(|kind| Some((signal(kind).ok()?, kind.as_raw_value()))).collect())
        }

        /// Waits for one of the signals, and returns the exit code for it.
        pub(super) async fn wait(mut self) -> i32 {
            let number = poll_fn(|context| {
                for (signal, number) in &mut self.0 {
                    while signal.poll_recv(context).is_ready() {
                        if !is_for_another(*number) {
                            return Poll::Ready(*number);
                        }
                    }
                }
                Poll::Pending
            });
            128 + number.await
        }
    }

    /// Whether a signal is meant for the program that uses the terminal: both get that of Ctrl-C.
    fn is_for_another(signal: i32) -> bool {
        signal == SignalKind::interrupt().as_raw_value() && terminal_is_lent()
    }

    /// Whether the process was told to ignore a signal, as by `nohup`.
    #[cfg(target_os = "linux")]
    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask & (1 << (signal - 1)) != 0
    }

    /// That is unknown on this system. Surviving a hangup matters more than a file that the next run removes.
    #[cfg(not(target_os = "linux"))]
    fn is_ignored(signal: i32) -> bool {
        signal == SignalKind::hangup().as_raw_value()
    }
}

#[cfg(not(unix))]
mod signals {
    pub(super) struct Signals;

    impl Signals {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) async fn wait(self) -> i32 {
            loop {
                if tokio::signal::ctrl_c().await.is_err() {
                    std::future::pending::<()>().await;
                }
                // Ctrl-C is meant for the program that uses the terminal.
                if !crate::terminal_programs::terminal_is_lent() {
                    return 130;
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_process_uses_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let create = |name: &str| {
            let path = path(name);
            Unfinished::create(|| File::create(&path).map(|file| (path.clone(), file))).unwrap()
        };
        let _used = create(".a.jsonl.unfinished-1");
        drop(create(".a.jsonl.unfinished-2"));
        drop(create(".b.jsonl.unfinished-3"));
        fs::create_dir(path(".a.jsonl.unfinished-4")).unwrap();
        remove_left(folder.path(), ".a.jsonl.unfinished-");
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, [".a.jsonl.unfinished-1", ".b.jsonl.unfinished-3"]);
    }
}
