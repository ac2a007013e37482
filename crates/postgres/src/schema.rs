//! Creating and upgrading the tables.

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::meta::{SCHEMA_VERSION, STORE_ID, VERSION, WRITER, WRITER_NAME},
};
use amplifier_session_sql::{
    Columns as _, backend::Connections as _, damaged, quote, rows::is_pending, turns::MARK_ALL,
};
use tokio_postgres::types::Type;

use crate::{
    columns::PgRow,
    connection::PgReader,
    encoding,
    entries::{MIGRATION, get, set},
    error::{OPEN as OPERATION, grants},
    pool::PgPool,
    row_security,
    vector_support::VectorSupport,
};

/// The steps from an empty schema to the current tables. Published steps do not change.
const MIGRATIONS: [&str; 10] = [
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_text_index.sql"),
    include_str!("../migrations/0003_turns.sql"),
    include_str!("../migrations/0004_sources.sql"),
    include_str!("../migrations/0005_sync_states.sql"),
    include_str!("../migrations/0006_vectors_of_turns.sql"),
    include_str!("../migrations/0007_repositories.sql"),
    include_str!("../migrations/0008_places.sql"),
    include_str!("../migrations/0009_changes.sql"),
    include_str!("../migrations/0010_terms.sql"),
];

/// Creates `schema_meta`.
const ENTRIES: &str = include_str!("../migrations/entries.sql");

/// Only one client at a time creates or upgrades tables, regardless of the schema, because the extension belongs to the
/// database.
const ADVISORY_LOCK: i64 = 0x416d_5373;

/// Turns the schema into a store, or upgrades it, unless that was already done. Several clients may call this at once.
pub(crate) fn prepare(pool: &PgPool, schema: &str, must_exist: bool) -> Result<VectorSupport> {
    let (applied, ready) = pool.read(|reader| {
        let applied = applied(reader, schema)?;
        if applied != Some(MIGRATIONS.len()) {
            return Ok((applied, None));
        }
        check_version(reader, schema)?;
        Ok((applied, VectorSupport::ready(reader)?))
    })?;
    if must_exist && applied.is_none() {
        let message = format!("there is no store in the schema {schema:?}");
        return Err(Error::new(ErrorKind::StorageConnection, message).with_operation(OPERATION));
    }
    if let Some(ready) = ready {
        return Ok(ready);
    }
    pool.define(OPERATION, |reader| create(reader, schema))?;
    for (at, migration) in MIGRATIONS.iter().enumerate() {
        pool.define(OPERATION, |reader| migrate(reader, schema, at, migration))?;
    }
    pool.define(OPERATION, |reader| {
        lock(reader)?;
        if applied != Some(MIGRATIONS.len()) {
            row_security::restrict_new_tables(reader, schema)?;
        }
        VectorSupport::prepare(reader)
    })
}

fn lock(reader: &PgReader<'_>) -> Result<()> {
    let sql = "SELECT pg_advisory_xact_lock($1)";
    reader.query(OPERATION, sql, &[(&ADVISORY_LOCK, Type::INT8)]).map(drop)
}

/// Creates the schema and the table of entries, if they are missing.
fn create(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    lock(reader)?;
    if applied(reader, schema)?.is_none() {
        encoding::check(reader)?;
        create_schema(reader, schema)?;
        reader.batch(OPERATION, ENTRIES)?;
        for (key, value) in [
            (VERSION, SCHEMA_VERSION.to_string()),
            (WRITER, format!("{WRITER_NAME} {}", env!("CARGO_PKG_VERSION"))),
        ] {
            set(reader, key, &value)?;
        }
        let store_id = "INSERT INTO schema_meta VALUES ($1, replace(gen_random_uuid()::text, '-', ''))";
        reader.query(OPERATION, store_id, &[(&STORE_ID, Type::TEXT)])?;
    }
    check_version(reader, schema)
}

fn create_schema(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    if !reader.query(OPERATION, sql, &[(&schema, Type::TEXT)])?.is_empty() {
        return Ok(());
    }
    reader.batch(OPERATION, &format!("CREATE SCHEMA {}", quote::name(schema)))
}

/// Checks a store that cannot be written.
pub(crate) fn check(reader: &PgReader<'_>, schema: &str) -> Result<VectorSupport> {
    if applied(reader, schema)?.is_none_or(|applied| applied < MIGRATIONS.len()) {
        let message = format!(
            "the store in the schema {schema:?} is missing or not up to date, and it can't be written"
        );
        return Err(Error::new(ErrorKind::StorageConnection, message).with_operation(OPERATION));
    }
    check_version(reader, schema)?;
    VectorSupport::found(reader)
}

fn migrate(reader: &PgReader<'_>, schema: &str, at: usize, migration: &str) -> Result<()> {
    lock(reader)?;
    if applied(reader, schema)?.is_some_and(|applied| applied > at) {
        return Ok(());
    }
    let pending = is_pending("vectors");
    let states = pending.trim_start_matches("vectors IN (").trim_end_matches(')');
    reader.batch(OPERATION, &migration.replace("{pending}", states).replace("{mark}", MARK_ALL))?;
    set(reader, MIGRATION, &(at + 1).to_string())
}

/// The number of migrations that were applied; `None` if there is no store.
fn applied(reader: &PgReader<'_>, schema: &str) -> Result<Option<usize>> {
    // By its schema, because the search path contains another one, too.
    let sql = "SELECT has_schema_privilege(n.oid, 'USAGE'), current_user::text
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'schema_meta'";
    let rows = reader.query(OPERATION, sql, &[(&schema, Type::TEXT)])?;
    let Some(row) = rows.first().map(PgRow) else { return Ok(None) };
    if !row.flag(0)? {
        // The search path would leave out the schema, and names would mean tables of the other one.
        let message = format!("the role {:?} may not use the schema {schema:?}", row.text(1)?);
        return Err(Error::new(ErrorKind::StorageConnection, message)
            .with_operation(OPERATION)
            .with_hint(grants(&quote::name(schema), &quote::name(&row.text(1)?))));
    }
    let number = get(reader, MIGRATION)?.map(|number| number.parse().map_err(|_| damaged("migration")));
    Ok(Some(number.transpose()?.unwrap_or(0)))
}

fn check_version(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    let (version, migration) = (get(reader, VERSION)?, applied(reader, schema)?.unwrap_or_default());
    if version.as_deref() == Some(SCHEMA_VERSION.to_string().as_str()) && migration <= MIGRATIONS.len() {
        return Ok(());
    }
    let version = version.unwrap_or_else(|| "none".to_owned());
    let message = format!(
        "the store has schema version {version} with migration {migration}; this program supports {SCHEMA_VERSION} with {}",
        MIGRATIONS.len()
    );
    Err(Error::new(ErrorKind::StorageConnection, message).with_operation(OPERATION))
}
