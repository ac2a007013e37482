//! What a database is, by its tables: version rows alone don't tell, since the first generation has none.

use std::{fmt, path::Path};

use amplifier_session_core::Error;
use amplifier_session_sql::file::refused;

/// The newest generation that the Python library wrote.
const NEWEST: u32 = 3;

/// A table or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its name.
    pub name: String,
    /// Whether it is a table.
    pub is_table: bool,
    /// The names of its columns.
    pub columns: Vec<String>,
}

impl Relation {
    /// Whether it has a column of this name.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

/// What a database is that is no store of this library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The Python library's, of this generation.
    Python {
        /// From 1 to 3.
        generation: u32,
    },
    /// The Python library's, as it seems, of a version that is not known here.
    UnknownVersion(String),
    /// Another program's.
    Foreign,
}

/// What the tables say; `version` is what stands under that key in `schema_meta`, where there is such a table.
#[must_use]
pub fn origin(relations: &[Relation], version: Option<&str>) -> Origin {
    let table = |name: &str| relations.iter().find(|relation| relation.is_table && relation.name == name);
    let (Some(sessions), Some(transcripts)) = (table("sessions"), table("transcripts")) else {
        return Origin::Foreign;
    };
    let is_python = ["user_id", "session_id"].iter().all(|name| sessions.has(name) && transcripts.has(name))
        && transcripts.has("sequence")
        && (transcripts.has("content_json") || transcripts.has("content"));
    if !is_python {
        return Origin::Foreign;
    }
    match version.map(|version| (version, version.trim().parse())) {
        Some((_, Ok(generation @ 1..=NEWEST))) => Origin::Python { generation },
        Some((version, _)) => Origin::UnknownVersion(version.to_owned()),
        None if transcripts.has("has_vectors") => Origin::Python { generation: 3 },
        None if table("transcript_vectors").is_some() => Origin::Python { generation: 2 },
        None => Origin::Python { generation: 1 },
    }
}

impl Origin {
    /// The error of whoever wanted to open such a file as a store.
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
                     does not know (it knows 1 to {NEWEST})"
                );
                refused(path, &message)
            }
            Self::Foreign => refused(path, "is a database of another program"),
        }
    }
}

/// The cause of an error that an upgrade helps against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonDatabase {
    /// From 1 to 3.
    pub generation: u32,
}

impl PythonDatabase {
    /// What `error` says of the file that could not be opened, if that is its cause.
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

    fn relation(name: &str, is_table: bool, columns: &[&str]) -> Relation {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Relation { name: name.to_owned(), is_table, columns }
    }

    fn of(transcripts: &[&str], vectors_is_table: Option<bool>, version: Option<&str>) -> Origin {
        let mut relations = vec![
            relation("sessions", true, &["user_id", "session_id"]),
            relation("transcripts", true, transcripts),
        ];
        relations.extend(vectors_is_table.map(|is_table| relation("transcript_vectors", is_table, &["id"])));
        origin(&relations, version)
    }

    #[test]
    fn generations_are_recognised_by_columns_and_version() {
        let columns = ["user_id", "session_id", "sequence", "content_json"];
        let inline = [&columns[..], &["user_query_vector_json"]].concat();
        let third = [&columns[..], &["has_vectors"]].concat();
        let python = |generation| Origin::Python { generation };
        assert_eq!(of(&inline, Some(false), None), python(1));
        assert_eq!(of(&columns, None, None), python(1));
        assert_eq!(of(&inline, Some(true), Some("1")), python(1));
        assert_eq!(of(&columns, Some(true), None), python(2));
        assert_eq!(of(&columns, Some(true), Some("2")), python(2));
        assert_eq!(of(&third, Some(true), None), python(3));
        assert_eq!(of(&third, Some(true), Some("3")), python(3));
    }

    #[test]
    fn what_is_newer_or_of_others_is_not_known() {
        let columns = ["user_id", "session_id", "sequence", "content"];
        for version in ["4", "9", "0", "new", ""] {
            assert_eq!(of(&columns, Some(true), Some(version)), Origin::UnknownVersion(version.to_owned()));
        }
        assert_eq!(of(&["user_id", "session_id"], None, None), Origin::Foreign);
        assert_eq!(origin(&[relation("birds", true, &["name"])], Some("2")), Origin::Foreign);
        let views = [
            relation("sessions", true, &["user_id", "session_id"]),
            relation("transcripts", false, &columns),
        ];
        assert_eq!(origin(&views, None), Origin::Foreign);
    }

    #[test]
    fn the_cause_of_a_refusal_says_what_helps() {
        let error = Origin::Python { generation: 2 }.refusal(Path::new("a.sqlite"));
        assert_eq!(PythonDatabase::cause_of(&error), Some(PythonDatabase { generation: 2 }));
        assert_eq!(
            error.to_string(),
            "a.sqlite was written by the Python library amplifier_session_storage, generation 2; nothing was changed"
        );
        assert_eq!(PythonDatabase::cause_of(&Origin::Foreign.refusal(Path::new("a"))), None);
    }
}
