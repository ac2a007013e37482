//! What is asked of a database.

use std::{fmt::Debug, path::Path, sync::Arc};

use amplifier_session_core::{Error, Result, backend::StorageBackend, model::Timestamp};
use async_trait::async_trait;

use crate::Relation;

/// A database that the Python library wrote, opened to read.
pub trait OldDatabase {
    /// Its tables and views, without those of the database itself.
    ///
    /// # Errors
    ///
    /// Those of the driver.
    fn relations(&self) -> Result<Vec<Relation>>;

    /// Gives each row that a statement answers with.
    ///
    /// # Errors
    ///
    /// Those of the driver, and of `each`.
    fn read(&self, sql: &str, each: &mut dyn FnMut(Vec<Cell>) -> Result<()>) -> Result<()>;
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number, also yes (1) and no (0).
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text, also JSON.
    Text(String),
    /// A point in time; one without a time zone is in UTC.
    Time(Timestamp),
    /// A vector.
    Vector(Vec<f32>),
}

/// What an old file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To look at it: neither the file nor what lies beside it changes.
    Look,
    /// To take its place: nobody writes to it until it is closed, as far as that can be had.
    Replace,
}

/// What is found in a file.
#[derive(Debug)]
pub enum Found {
    /// A store of this library, or nothing yet.
    Ours,
    /// A database of the Python library, of this generation.
    Python {
        /// From 1 to 3.
        generation: u32,
    },
    /// Something else: the error says what.
    Other(Error),
}

/// How one kind of database file is read and written.
#[async_trait]
pub trait Driver: Debug + Send + Sync {
    /// What is behind the name of a database file in those of its logs, which hold rows that are not in the file yet.
    fn logs(&self) -> &'static [&'static str];

    /// Looks what is in a file that exists, without changing it.
    ///
    /// # Errors
    ///
    /// `StorageConnection` when the file can't be opened.
    fn look(&self, file: &Path) -> Result<Found>;

    /// Opens a file of the Python library.
    ///
    /// # Errors
    ///
    /// `StorageConnection` when that is not possible, or another process has it open.
    fn open_old(&self, file: &Path, purpose: Purpose) -> Result<Box<dyn OldDatabase>>;

    /// Opens a store, which is made. When the last handle is dropped all rows are in the file, and there are no logs.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    async fn open_new(&self, file: &Path) -> Result<Arc<dyn StorageBackend>>;
}
