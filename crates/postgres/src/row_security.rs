//! Row level security: each role of the database reads and writes only rows of the user with the same name.
//!
//! Policies compare `user_id` with `current_user`. The owner of the tables is not restricted, and neither is a superuser.

use amplifier_session_core::{
    Error, ErrorField, Result,
    backend::meta::{STORE_ID, VERSION, WRITER},
    model::UserId,
};
use amplifier_session_sql::{Columns as _, quote};
use tokio_postgres::types::Type;

use crate::{columns::PgRow, connection::PgReader, entries::MIGRATION, error::OPEN as OPERATION};

/// The entries of `schema_meta` that every role can read. Each other entry belongs to a user.
const SHARED: [&str; 4] = [VERSION, WRITER, STORE_ID, MIGRATION];

/// PostgreSQL truncates longer names.
const LONGEST_NAME: usize = 63;

/// Restricts all roles except the owner, and gives every user with sessions the entries of the store. A transaction must
/// be open.
pub(crate) fn enable(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    if !is_enabled(reader)? {
        let shared = shared();
        let give = format!(
            "INSERT INTO meta_entries (user_id, key, value)
             SELECT u.user_id, m.key, CASE WHEN m.key = 'user_id' THEN u.user_id ELSE m.value END
             FROM (SELECT DISTINCT user_id FROM sessions) u, meta_entries m
             WHERE m.user_id = '' AND m.key NOT IN ({shared})
             ON CONFLICT DO NOTHING"
        );
        reader.batch(OPERATION, &give)?;
    }
    restrict(reader, schema)
}

/// Restricts roles on tables that a migration added, and gives them the same permissions on these tables as on
/// `sessions`. A transaction must be open.
pub(crate) fn restrict_new_tables(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    if !is_enabled(reader)? {
        return Ok(());
    }
    restrict(reader, schema)?;
    let schema = quote::name(schema);
    let sql = "SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
            string_agg(DISTINCT a.privilege_type, ', '), bool_or(a.privilege_type = 'INSERT')
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'sessions'::regclass AND a.grantee <> c.relowner
            AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        GROUP BY 1";
    for row in reader.query(OPERATION, sql, &[])? {
        let row = PgRow(&row);
        let (role, rights) = (row.text(0)?, row.text(1)?);
        reader.batch(OPERATION, &format!("GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {role}"))?;
        if row.flag(2)? {
            reader.batch(OPERATION, &format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"))?;
        }
    }
    Ok(())
}

/// The user whose rows this role is restricted to; `None` if it is not restricted.
pub(crate) fn only_user(reader: &PgReader<'_>) -> Result<Option<UserId>> {
    let sql = "SELECT current_user::text WHERE row_security_active('sessions'::regclass)";
    reader.query(OPERATION, sql, &[])?.first().map(|row| UserId::new(PgRow(row).text(0)?)).transpose()
}

/// The statements that create the role of a user.
pub(crate) fn role_of(user: &UserId, schema: &str) -> Result<String> {
    if user.as_str().len() > LONGEST_NAME {
        let message = format!("the name of a role must be at most {LONGEST_NAME} bytes long");
        return Err(Error::validation(ErrorField::Role, message));
    }
    let (role, schema) = (quote::name(user.as_str()), quote::name(schema));
    Ok(format!(
        "CREATE ROLE {role} LOGIN;\n\
         GRANT USAGE ON SCHEMA {schema} TO {role};\n\
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};\n\
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};"
    ))
}

fn is_enabled(reader: &PgReader<'_>) -> Result<bool> {
    let sql = "SELECT 1 FROM pg_class WHERE oid = 'meta_entries'::regclass AND relrowsecurity";
    Ok(!reader.query(OPERATION, sql, &[])?.is_empty())
}

/// Adds the policies to every table with a column `user_id`.
fn restrict(reader: &PgReader<'_>, schema: &str) -> Result<()> {
    // Also partitions, because a role may name them.
    let tables = "SELECT c.relname::text FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id'
        WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') ORDER BY 1";
    for row in reader.query(OPERATION, tables, &[(&schema, Type::TEXT)])? {
        let table = quote::name(&PgRow(&row).text(0)?);
        let is_own = "user_id = current_user::text COLLATE \"C\"";
        reader.batch(
            OPERATION,
            &format!(
                "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
                 DROP POLICY IF EXISTS own_rows ON {table};
                 CREATE POLICY own_rows ON {table} USING ({is_own}) WITH CHECK ({is_own})"
            ),
        )?;
    }
    let shared = shared();
    let entries = format!(
        "DROP POLICY IF EXISTS shared_entries ON meta_entries;
         CREATE POLICY shared_entries ON meta_entries FOR SELECT USING (user_id = '' AND key IN ({shared}))"
    );
    reader.batch(OPERATION, &entries)
}

fn shared() -> String {
    SHARED.map(|key| format!("'{key}'")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_roles_are_quoted() {
        let sql = role_of(&UserId::new("ana\"b@example.com").unwrap(), "s").unwrap();
        assert!(sql.starts_with("CREATE ROLE \"ana\"\"b@example.com\" LOGIN;\n"), "{sql}");
        role_of(&UserId::new("a".repeat(64)).unwrap(), "s").unwrap_err();
    }
}
