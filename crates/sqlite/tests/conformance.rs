//! The conformance suite on SQLite. A second handle has its own connections to the file.

use std::path::PathBuf;

use amplifier_session_sqlite::Sqlite;
use amplifier_session_testkit::{InFolder, conformance_suite};

conformance_suite!(InFolder::new(|path: PathBuf| Sqlite::open(path)));
