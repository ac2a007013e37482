//! The database: opening it, and PostgreSQL's way of doing things.

use std::time::Duration;

use amplifier_session_core::{
    Result,
    backend::{StoreInfo, StorePlace},
    blocking,
    model::UserId,
};
use amplifier_session_sql::{
    Columns as _,
    backend::{Connections as _, Database, SqlBackend},
    file, quote,
};

use crate::{
    PostgresConfig,
    columns::PgRow,
    connection::{PgReader, PgWriter},
    encoding,
    error::OPEN,
    pool::{Lock, PgPool},
    row_security, schema,
    vector_support::VectorSupport,
};

/// Sessions in a PostgreSQL database. Cheap to clone; clones share connections.
pub type PostgresBackend = SqlBackend<Postgres>;

/// A schema of a PostgreSQL database with the tables of a store.
#[derive(Debug)]
pub struct Postgres {
    pool: PgPool,
    schema: String,
    address: String,
    read_only: Option<String>,
    vectors: VectorSupport,
    only_user: Option<UserId>,
}

impl Postgres {
    /// Opens the store that `config` describes. Unless it must exist, creates missing tables and the missing schema.
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the server cannot be reached or rejects the connection, if the store must exist but does
    /// not, or if it has an unknown version.
    pub async fn open(config: PostgresConfig) -> Result<PostgresBackend> {
        blocking(move || Self::open_now(&config)).await?
    }

    fn open_now(config: &PostgresConfig) -> Result<PostgresBackend> {
        let pool = PgPool::new(config)?;
        let read_only = pool.define(OPEN, read_only)?;
        let vectors = match read_only {
            None => schema::prepare(&pool, &config.schema, config.must_exist)?,
            Some(_) => pool.read(|reader| schema::check(reader, &config.schema))?,
        };
        let only_user = pool.read(|reader| {
            encoding::warn(reader)?;
            row_security::only_user(reader)
        })?;
        Ok(SqlBackend::new(Self {
            pool: pool.with_restriction(only_user.is_some()),
            schema: config.schema.clone(),
            address: config.address(),
            read_only,
            vectors,
            only_user,
        }))
    }

    /// Restricts every role, except the owner of the tables and superusers, to the rows of the user with the same name.
    /// For each of `users`, returns the statements that create its role.
    ///
    /// # Errors
    ///
    /// `Validation` if a user id is too long for the name of a role; `StorageConnection` if this role does not own the
    /// tables.
    pub fn restrict_roles(&self, users: &[UserId]) -> Result<Vec<String>> {
        let roles =
            users.iter().map(|user| row_security::role_of(user, &self.schema)).collect::<Result<Vec<_>>>()?;
        self.check_writable()?;
        self.pool.define(OPEN, |reader| row_security::enable(reader, &self.schema))?;
        Ok(roles)
    }

    /// Removes the schema with everything in it.
    ///
    /// # Errors
    ///
    /// `StorageIo` if the role does not own it.
    pub fn drop_schema(&self) -> Result<()> {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", quote::name(&self.schema));
        self.pool.define("drop_schema", |reader| reader.batch("drop_schema", &sql))
    }

    /// Whether the database can compare vectors.
    #[must_use]
    pub fn vector_support(&self) -> &VectorSupport {
        &self.vectors
    }
}

/// Why the server does not let this role write.
fn read_only(reader: &PgReader<'_>) -> Result<Option<String>> {
    let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN 'the server is a standby'
        ELSE 'this role may only read' END WHERE current_setting('transaction_read_only') = 'on'";
    reader.query(OPEN, sql, &[])?.first().map(|row| PgRow(row).text(0)).transpose()
}

impl Database for Postgres {
    type Connections = PgPool;
    type Writer<'a> = PgWriter<'a>;

    /// A question to a server, which others use too.
    const LOOKS_FOR_CHANGES: Duration = Duration::from_millis(500);

    fn connections(&self) -> &PgPool {
        &self.pool
    }

    fn info(&self) -> StoreInfo {
        StoreInfo::new("postgres")
            .with_read_only(self.read_only.clone())
            .with_only_user(self.only_user.clone())
            .with_places(vec![StorePlace::remote("store", self.address.clone())])
    }

    fn check_writable(&self) -> Result<()> {
        self.read_only.as_deref().map_or(Ok(()), |reason| Err(file::refuses_writes(reason)))
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut PgWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let lock = if EXCLUSIVE.contains(&operation) { Lock::All } else { Lock::Shared };
        self.pool.transaction(operation, lock, write)
    }
}

/// Operations that change rows of many sessions, and would go wrong if other processes wrote some of them meanwhile.
const EXCLUSIVE: [&str; 2] = ["rename_user", "complete_generation"];
