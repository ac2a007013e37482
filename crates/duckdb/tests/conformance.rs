//! The conformance suite on DuckDB. A second handle shares the database, as all handles of a process do.

use std::path::PathBuf;

use amplifier_session_duckdb::{Access, DuckDb};
use amplifier_session_testkit::{InFolder, conformance_suite};

conformance_suite!(InFolder::new(|path: PathBuf| DuckDb::open(path, Access::ReadWrite)));
