//! Room on the disk for the write-ahead log.
//!
//! Emptying the log writes its pages to the database, which may have to grow for them. If another transaction has used the
//! last space by then, the log can't be emptied any more, and nothing can be deleted: a deletion needs room in the log as
//! well. So a transaction that would leave too little space fails, and what a failed transaction left in the log is cut
//! off.

use std::{fs, path::Path};

use amplifier_session_sql::file;
use amplifier_session_sqlite_reader::committed_length;
use rusqlite::Connection;

/// Space that a transaction leaves for the log of a deletion.
const LEFT_FREE: u64 = 256 << 10;

/// The sizes of a database and its disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskSpace {
    /// The size of the file.
    file: u64,
    /// The size that the file has after the log is emptied.
    database: u64,
    free: u64,
}

impl DiskSpace {
    /// As `connection` sees it, also during a transaction. `None` if the space is unknown.
    pub(crate) fn of(path: &Path, connection: &Connection) -> Option<Self> {
        let number =
            |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).ok();
        let pages = number("page_count")?.unsigned_abs();
        let database = pages.saturating_mul(number("page_size")?.unsigned_abs());
        Some(Self { file: fs::metadata(path).ok()?.len(), database, free: file::free_space(path)? })
    }

    /// What emptying the log adds to the file.
    fn growth(self) -> u64 {
        self.database.saturating_sub(self.file)
    }

    /// Whether the log can be emptied. An attempt that fails would only use up the space.
    pub(crate) fn can_empty_log(self) -> bool {
        self.free >= self.growth()
    }

    /// Whether the log can still be emptied after some more is written.
    pub(crate) fn is_enough(self) -> bool {
        self.free >= 2 * self.growth() + LEFT_FREE
    }

    /// Whether a transaction may be committed. `before` is the state when it began. Some of the pages that it added may
    /// not be in the log yet.
    pub(crate) fn allows_commit(self, before: Self) -> bool {
        let added = self.database.saturating_sub(before.database);
        added == 0 || self.free >= self.growth() + added + LEFT_FREE
    }
}

/// Cuts off what a failed transaction left at the end of the log. SQLite would overwrite it later, but until then, it
/// takes the space that emptying the log needs.
pub(crate) fn cut_log(connection: &Connection, log: &Path) {
    let cut = || -> Result<(), Box<dyn std::error::Error>> {
        // No other connection writes meanwhile.
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let cut = committed_length(log).filter(|end| fs::metadata(log).is_ok_and(|log| log.len() > *end));
        let cut = cut.map_or(Ok(()), |end| fs::File::options().write(true).open(log)?.set_len(end));
        connection.execute_batch("ROLLBACK")?;
        Ok(cut?)
    };
    if let Err(error) = cut() {
        tracing::debug!(%error, "the end of the write-ahead log could not be cut off");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_leaves_the_room_that_emptying_the_log_needs() {
        let mega = |bytes: u64| bytes << 20;
        let room = |database, free| DiskSpace { file: mega(9), database: mega(database), free: mega(free) };
        let before = room(9, 20);
        assert!(before.is_enough() && before.allows_commit(before));
        // The file grows by 5 MB, and up to 5 MB are still to be written to the log.
        assert!(room(14, 11).allows_commit(before));
        assert!(!room(14, 10).allows_commit(before));
        // A deletion adds no pages.
        assert!(room(9, 0).allows_commit(before));
        assert!(room(14, 11).is_enough() && !room(14, 10).is_enough());
        assert!(room(14, 5).can_empty_log() && !room(14, 4).can_empty_log());
    }
}
