//! Reads session folders into a store.
//!
//! [`discover`] lists the session folders below a root, [`sync`] takes them in. A sync compares content, not counts:
//! what is stored already is left alone, what was rewound on disk is rewound in the store, and a session whose files
//! look as they did costs no more than asking for their size and time.
//!
//! What is read of a folder `projects/<project>/sessions/<session>`:
//!
//! | file | how |
//! | --- | --- |
//! | `metadata.json`, `context-intelligence/metadata.json` | the first wins, the second fills gaps; a broken or vanished one keeps what is stored of it |
//! | `transcript.jsonl` | as a whole whenever it changed: writers replace it |
//! | `transcript.jsonl.backup` | instead of the transcript while `transcript.jsonl.append-pending` is there |
//! | `events.jsonl` | behind the last line that was read, if that line is still where it was; else as a whole |
//! | `context-intelligence/events.jsonl` | the same, where the session has no `events.jsonl`; a session stays with the log that was read first |
//!
//! Nothing is ever written to a session folder, and a file or folder that vanished takes nothing out of the store. Nor
//! does a file that is damaged: see [`SyncReport::kept`].

mod discover;
mod embedding;
mod files;
mod last;
mod lines;
mod options;
mod plan;
mod progress;
mod refresh;
mod report;
mod run;
mod session;
mod state;
mod writer;

pub use discover::{Discovery, Rejected, RejectedBecause, SessionFolder, discover};
pub use options::SyncOptions;
pub use progress::{NoProgress, Progress, SessionOutcome, Stage};
pub use refresh::{RefreshLimits, Refreshed, refresh};
pub use report::{EventCounts, Failure, Kept, MessageCounts, SessionCounts, Skipped, SyncReport};
pub use run::sync;
pub use state::source_folder;
