//! The table `message_embeddings` of ADR-0003 (turn embeddings), which those of databases are compared with.

#![allow(clippy::panic, reason = "tests fail by panicking")]

/// Its columns, whether they need a value, and the ADR's type.
///
/// The message ids are those of the transcripts (`SESSION_msg_N`), which are texts.
pub const MESSAGE_EMBEDDINGS: [(&str, bool, &str); 11] = [
    ("id", true, "uuid"),
    ("user_message_id", true, "uuid"),
    ("assistant_message_id", false, "uuid"),
    ("provider", true, "text"),
    ("model", true, "text"),
    ("dim", true, "int"),
    ("content_used", true, "text"),
    ("content_hash", true, "text"),
    ("used_turn_summary", true, "bool"),
    ("vector", true, "vector"),
    ("created_at", true, "timestamptz"),
];

/// The columns of its unique constraint.
pub const UNIQUE: [&str; 3] = ["user_message_id", "provider", "model"];

/// The columns of its other indexes, except the vector index.
pub const INDEXES: [&[&str]; 2] = [&["assistant_message_id"], &["provider", "model"]];

/// A column of a table as a database describes it.
#[derive(Debug, Clone)]
pub struct DescribedColumn {
    /// Its name.
    pub name: String,
    /// Its type, in the words of the database.
    pub data_type: String,
    /// Whether it needs a value.
    pub is_required: bool,
}

/// An index as a database describes it.
#[derive(Debug, Clone)]
pub struct DescribedIndex {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Whether it is unique.
    pub is_unique: bool,
}

/// Checks the columns of a database. `types` are the types of the database for those of the ADR.
///
/// # Panics
///
/// If a column is missing, or of another type.
pub fn check_columns(found: &[DescribedColumn], types: &[(&str, &str)]) {
    for (name, is_required, adr_type) in MESSAGE_EMBEDDINGS {
        let Some(column) = found.iter().find(|column| column.name == name) else {
            panic!("no column {name}: {found:?}")
        };
        assert_eq!(column.is_required, is_required, "{name}");
        let of_type = types.iter().find(|(of_adr, _)| *of_adr == adr_type).map(|(_, here)| *here);
        assert_eq!(Some(column.data_type.as_str()), of_type, "{name}");
    }
}

/// Checks the indexes of a database. Every index may begin with the owner, because every read has a scope.
///
/// # Panics
///
/// If an index is missing.
pub fn check_indexes(found: &[DescribedIndex]) {
    let has = |columns: &[&str], is_unique: bool| {
        found.iter().any(|index| {
            let within = index.columns.strip_prefix(&["user_id".to_owned()]).unwrap_or(&index.columns);
            within == columns && index.is_unique == is_unique
        })
    };
    assert!(has(&UNIQUE, true), "{found:?}");
    for columns in INDEXES {
        assert!(has(columns, false), "{columns:?}: {found:?}");
    }
}
