//! The database: opening it, and what PostgreSQL does in its own way.

use amplifier_session_core::{
    Result,
    backend::{StoreInfo, StorePlace},
    blocking,
};
use amplifier_session_sql::{
    backend::{Connections as _, Database, SqlBackend},
    file, quote,
};

use crate::{
    PostgresConfig,
    connection::Write,
    error::OPEN,
    pool::{Lock, Pool},
    schema,
    vector_support::VectorSupport,
};

/// Sessions in a PostgreSQL database. Cheap to clone; clones share connections.
pub type PostgresBackend = SqlBackend<Postgres>;

/// A schema of a PostgreSQL database with the tables of a store.
#[derive(Debug)]
pub struct Postgres {
    pool: Pool,
    schema: String,
    place: String,
    read_only: Option<String>,
    vectors: VectorSupport,
}

impl Postgres {
    /// Opens the store that `config` describes. Unless it must exist, creates its tables, and the schema if it is missing.
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the server cannot be reached or refuses the connection, if the store must exist and does
    /// not, or if it has an unknown version.
    pub async fn open(config: PostgresConfig) -> Result<PostgresBackend> {
        blocking(move || Self::open_now(&config)).await?
    }

    fn open_now(config: &PostgresConfig) -> Result<PostgresBackend> {
        let pool = Pool::new(config)?;
        let (read_only, vectors) = pool.read(|reader| {
            let standby =
                "SELECT 1 WHERE pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";
            if reader.query(OPEN, standby, &[])?.is_empty() {
                return Ok((None, schema::prepare(reader, &config.schema, config.must_exist)?));
            }
            let reason = "the server is a standby, or the role may only read".to_owned();
            Ok((Some(reason), schema::check(reader, &config.schema)?))
        })?;
        Ok(SqlBackend::new(Self {
            pool,
            schema: config.schema.clone(),
            place: config.place(),
            read_only,
            vectors,
        }))
    }

    /// Removes the schema with everything in it.
    ///
    /// # Errors
    ///
    /// `StorageIo` if the role does not own it.
    pub fn drop_schema(&self) -> Result<()> {
        let sql = format!("DROP SCHEMA {} CASCADE", quote::name(&self.schema));
        self.pool.read(|reader| reader.batch("drop_schema", &sql))
    }

    /// Whether the database can compare vectors.
    #[must_use]
    pub fn vector_support(&self) -> &VectorSupport {
        &self.vectors
    }
}

impl Database for Postgres {
    type Connections = Pool;
    type Writer<'a> = Write<'a>;

    fn connections(&self) -> &Pool {
        &self.pool
    }

    fn info(&self) -> StoreInfo {
        StoreInfo::new("postgres")
            .with_read_only(self.read_only.clone())
            .with_places(vec![StorePlace::remote("store", self.place.clone())])
    }

    fn check_writable(&self) -> Result<()> {
        self.read_only.as_deref().map_or(Ok(()), |reason| Err(file::refuses_writes(reason)))
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let lock = if EXCLUSIVE.contains(&operation) { Lock::All } else { Lock::Shared };
        self.pool.transaction(operation, lock, write)
    }
}

/// What changes rows of many sessions, and would be wrong if others wrote some of them meanwhile.
const EXCLUSIVE: [&str; 2] = ["rename_user", "complete_generation"];
