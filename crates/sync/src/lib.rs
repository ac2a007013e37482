//! Reads session folders into a store.
//!
//! [`discover`] lists the session folders in a root, and [`sync`] reads them. A sync compares content, not counts:
//! unchanged rows are not written, a rewind on disk is a rewind in the store, and for a session whose files are
//! unchanged, only their size and time are checked.
//!
//! A sync reads these files in a folder `projects/<project>/sessions/<session>`, or of Amplifier's agent in
//! `state/workspaces/<project>/sessions/<session>`:
//!
//! | file | how |
//! | --- | --- |
//! | `metadata.json`, `context-intelligence/metadata.json` | the first takes precedence, the second fills in missing fields; if one is broken or gone, its `.backup` is read, or the stored one is kept |
//! | `transfer-fence.json` | as long as it exists: where the session goes on |
//! | `transcript.jsonl` | completely whenever it changed, because writers replace it; one of more than 1 MiB that was only appended to, from the last position |
//! | `transcript.jsonl.backup` | instead of the transcript while `transcript.jsonl.append-pending` exists, unless a program that crashed left that file behind; also if the transcript is missing, empty or damaged |
//! | `events.jsonl` | from the last line that was read, if that line is unchanged; otherwise completely |
//! | `context-intelligence/events.jsonl` | the same; if a session has both logs, each event is stored once, with the text of the log that was read first |
//!
//! A sync never writes to a session folder. If a file or folder is gone or damaged, nothing is removed from the store:
//! see [`SyncReport::kept`].
//!
//! [`restore`] writes new session folders from a store, with the lines and metadata files that were synced.
//! [`verify()`] compares a store with the folders and with itself.
//! With the feature `watch`, [`mod@watch`] follows the folders and syncs what changes.

#[cfg(feature = "watch")]
mod changed;
mod discover;
mod embedding;
mod files;
mod head;
mod known_copy;
mod last;
mod lines;
mod options;
mod pending;
mod plan;
mod position;
mod progress;
mod refresh;
mod report;
mod repository;
mod restore;
mod roots;
mod run;
mod second_log;
mod session;
mod state;
mod status;
mod unchanged;
mod verify;
#[cfg(feature = "watch")]
pub mod watch;
mod watchers;
mod writer;

pub use discover::{Discovery, Rejected, RejectedBecause, SessionFolder, discover};
pub use options::SyncOptions;
pub use pending::{Pending, pending};
pub use progress::{NoProgress, Progress, SessionOutcome, Stage};
pub use refresh::{RefreshLimits, Refreshed, refresh};
pub use report::{EventCounts, FolderFailure, Kept, MessageCounts, SessionCounts, Skipped, SyncReport};
pub use repository::{RepositoryNames, WorkTrees};
pub use restore::{
    DifferingFile, DiffersBecause, NotRestored, RestoreOptions, RestoreProgress, RestoreReport, restore,
};
pub use roots::{is_root, root_of};
pub use run::sync;
pub use state::source_folder;
pub use status::{RootStatus, root_status};
pub use verify::{KnownDifferences, VerifyOptions, VerifyProgress, VerifyReport, verify};
pub use watchers::{WatchFailure, WatcherState, watchers};
