//! Recognises databases of the Python library `amplifier_session_storage` by their tables. Its first generation has no
//! version row, so the version alone is not sufficient.

use std::{collections::BTreeMap, fmt, path::Path};

use amplifier_session_core::{Error, backend::meta::WRITER_NAME};

use crate::file::refused;

/// The newest generation that the Python library wrote.
const NEWEST: u32 = 3;

/// Lists the columns of the tables in a SQLite database, for [`DatabaseTables`]. Leaves out views and virtual tables, whose
/// columns may be unknown without an extension.
pub const SQLITE_TABLES: &str = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

/// Lists the columns of the tables in a DuckDB database, for [`DatabaseTables`]. Leaves out views.
pub const DUCKDB_TABLES: &str = "SELECT table_name, column_name
    FROM information_schema.columns JOIN information_schema.tables USING (table_catalog, table_schema, table_name)
    WHERE table_catalog = current_database() AND table_schema = 'main' AND table_type = 'BASE TABLE'";

/// The tables of a database with the names of their columns. Collected from pairs of table and column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseTables(BTreeMap<String, Vec<String>>);

impl DatabaseTables {
    /// Whether there are no tables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a table with this name.
    #[must_use]
    pub fn has_table(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// Whether there is a table `table` with a column `column`.
    #[must_use]
    pub fn has(&self, table: &str, column: &str) -> bool {
        self.0.get(table).is_some_and(|columns| columns.iter().any(|name| name == column))
    }
}

impl FromIterator<(String, String)> for DatabaseTables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(columns: I) -> Self {
        let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
        columns.into_iter().for_each(|(table, column)| tables.entry(table).or_default().push(column));
        Self(tables)
    }
}

/// Where a database comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseOrigin {
    /// This library.
    Ours,
    /// The Python library.
    Python {
        /// The generation of its tables, from 1 to 3.
        generation: u32,
    },
    /// Apparently the Python library, in an unknown version.
    UnknownVersion(String),
    /// Another program.
    Foreign,
}

impl DatabaseOrigin {
    /// The origin of a database with `tables`. `writer` and `version` are the values of these keys in its table
    /// `schema_meta`.
    #[must_use]
    pub fn of(tables: &DatabaseTables, writer: Option<&str>, version: Option<&str>) -> Self {
        if writer.is_some_and(|writer| writer.starts_with(WRITER_NAME)) {
            return Self::Ours;
        }
        let has = |table: &str, columns: &[&str]| columns.iter().all(|column| tables.has(table, column));
        let is_python = has("sessions", &["user_id", "session_id"])
            && has("transcripts", &["user_id", "session_id", "sequence"])
            && (tables.has("transcripts", "content_json") || tables.has("transcripts", "content"));
        if !is_python {
            return Self::Foreign;
        }
        match version.map(|version| (version, version.trim().parse())) {
            Some((_, Ok(generation @ 1..=NEWEST))) => Self::Python { generation },
            Some((version, _)) => Self::UnknownVersion(version.to_owned()),
            None if tables.has("transcripts", "has_vectors") => Self::Python { generation: 3 },
            None if tables.has_table("transcript_vectors") => Self::Python { generation: 2 },
            None => Self::Python { generation: 1 },
        }
    }

    /// The error of opening such a file as a store.
    #[must_use]
    pub fn refusal(&self, path: &Path) -> Error {
        match self {
            Self::Python { generation } => {
                let source = PythonDatabase { generation: *generation };
                refused(path, &format!("was {source}, generation {generation}")).with_source(source)
            }
            Self::UnknownVersion(version) => {
                let message = format!(
                    "has schema version {version} of the Python library amplifier_session_storage, which this program \
                     does not support (it supports 1 to {NEWEST})"
                );
                refused(path, &message)
            }
            Self::Ours | Self::Foreign => refused(path, "is a database of another program"),
        }
    }
}

/// The cause of the error if a file of the Python library is opened as a store. An upgrade resolves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonDatabase {
    /// The generation of its tables, from 1 to 3.
    pub generation: u32,
}

impl PythonDatabase {
    /// The database, if it is the cause of `error`.
    #[must_use]
    pub fn cause_of(error: &Error) -> Option<Self> {
        std::error::Error::source(error)?.downcast_ref().copied()
    }
}

impl fmt::Display for PythonDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("written by the Python library amplifier_session_storage")
    }
}

impl std::error::Error for PythonDatabase {}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: [&str; 4] = ["user_id", "session_id", "sequence", "content_json"];

    fn of(transcripts: &[&str], has_vectors: bool, version: Option<&str>) -> DatabaseOrigin {
        let sessions = ["user_id", "session_id"].map(|column| ("sessions", column));
        let transcripts = transcripts.iter().map(|column| ("transcripts", *column));
        let vectors = has_vectors.then_some(("transcript_vectors", "id"));
        let columns = sessions.into_iter().chain(transcripts).chain(vectors);
        let tables = columns.map(|(table, column)| (table.to_owned(), column.to_owned())).collect();
        DatabaseOrigin::of(&tables, None, version)
    }

    #[test]
    fn generations_are_recognised_by_columns_and_version() {
        let inline = [&CONTENT[..], &["user_query_vector_json"]].concat();
        let third = [&CONTENT[..], &["has_vectors"]].concat();
        let python = |generation| DatabaseOrigin::Python { generation };
        assert_eq!(of(&inline, false, None), python(1));
        assert_eq!(of(&CONTENT, false, None), python(1));
        assert_eq!(of(&inline, true, Some("1")), python(1));
        assert_eq!(of(&CONTENT, true, None), python(2));
        assert_eq!(of(&CONTENT, true, Some("2")), python(2));
        assert_eq!(of(&third, true, None), python(3));
        assert_eq!(of(&third, true, Some("3")), python(3));
    }

    #[test]
    fn newer_versions_and_other_databases_are_not_of_a_known_generation() {
        for version in ["4", "9", "0", "new", ""] {
            assert_eq!(of(&CONTENT, true, Some(version)), DatabaseOrigin::UnknownVersion(version.to_owned()));
        }
        assert_eq!(of(&["user_id", "session_id"], false, None), DatabaseOrigin::Foreign);
        assert_eq!(DatabaseOrigin::of(&DatabaseTables::default(), None, Some("2")), DatabaseOrigin::Foreign);
        let writer = format!("{WRITER_NAME} 0.1.0");
        assert_eq!(
            DatabaseOrigin::of(&DatabaseTables::default(), Some(&writer), Some("4")),
            DatabaseOrigin::Ours
        );
    }

    #[test]
    fn the_cause_of_a_refusal_names_the_generation() {
        let error = DatabaseOrigin::Python { generation: 2 }.refusal(Path::new("a.sqlite"));
        assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation: 2 }));
        assert_eq!(
            error.to_string(),
            "a.sqlite was written by the Python library amplifier_session_storage, generation 2; nothing was changed"
        );
        assert_eq!(PythonDatabase::cause_of(&DatabaseOrigin::Foreign.refusal(Path::new("a"))), None);
    }
}
