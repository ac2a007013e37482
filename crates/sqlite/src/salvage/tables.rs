//! Which table a row belongs to, and its columns.

use amplifier_session_core::model::{ContentType, Role};
use amplifier_session_sql::{superseded, turns};
use amplifier_session_sqlite_reader::{RowRecord, StoredValue, column_names};

use crate::tables::{TABLES, turn_tables};

/// A table with rows to save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SalvagedTable {
    Meta,
    Deleted,
    Sessions,
    MetadataFiles,
    Messages,
    Vectors,
    Events,
    Chunks,
    Superseded,
    Summaries,
    TurnVectors,
}

impl SalvagedTable {
    pub(super) const ALL: [Self; 11] = [
        Self::Meta,
        Self::Deleted,
        Self::Sessions,
        Self::MetadataFiles,
        Self::Messages,
        Self::Vectors,
        Self::Events,
        Self::Chunks,
        Self::Superseded,
        Self::Summaries,
        Self::TurnVectors,
    ];

    /// Its name in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Meta => "schema_meta",
            Self::Deleted => "deleted_sessions",
            Self::Sessions => "sessions",
            Self::MetadataFiles => "metadata_files",
            Self::Messages => "transcripts",
            Self::Vectors => "transcript_vectors",
            Self::Events => "events",
            Self::Chunks => "event_chunks",
            Self::Superseded => superseded::NAME,
            Self::Summaries => turns::SUMMARIES.name,
            Self::TurnVectors => turns::EMBEDDINGS.name,
        }
    }

    /// A description of its rows for people.
    pub(super) fn contents(self) -> &'static str {
        match self {
            Self::Meta => "settings of the store",
            Self::Deleted => "deleted sessions",
            Self::Sessions => "sessions",
            Self::MetadataFiles => "metadata files",
            Self::Messages => "messages",
            Self::Vectors => "vectors",
            Self::Events => "events",
            Self::Chunks => "long events",
            Self::Superseded => "superseded lines",
            Self::Summaries => "summaries of turns",
            Self::TurnVectors => "vectors of turns",
        }
    }

    /// Whether its rows have row ids.
    pub(super) fn has_row_ids(self) -> bool {
        !matches!(self, Self::Meta | Self::MetadataFiles)
    }

    /// The table to which a row belongs, according to its values. For pages that no readable page refers to.
    pub(super) fn of_row(has_row_ids: bool, row: &RowRecord) -> Option<Self> {
        let types: String = (0..row.len()).map(|index| letter(row.get(index))).collect();
        let table = match types.get(..2)? {
            "tt" if types == "tt" && !has_row_ids => Self::Meta,
            "tt" if types == "tt" => Self::Deleted,
            "tt" if types.starts_with("ttit") && types.len() == 7 => Self::Summaries,
            "tt" if types.starts_with("ttti") && types.len() == 18 => Self::TurnVectors,
            "tt" if types.starts_with("ttitt") && types.len() > 5 => Self::Events,
            // The last value may be on another page.
            "tt" if types.starts_with("ttiii") && types.len() == 6 => Self::Chunks,
            "tt" if types.starts_with("ttit") && types.len() == 5 => Self::MetadataFiles,
            "tt" if types.starts_with("tttti") && types.len() == 11 => Self::Superseded,
            "nt" if types.starts_with("ntttt") => Self::Sessions,
            "nt" if types.starts_with("nttit") => match row.text(4)? {
                role if Role::ALL.iter().any(|known| known.as_str() == role) => Self::Messages,
                text if text.parse::<ContentType>().is_ok() => Self::Vectors,
                _ => return None,
            },
            _ => return None,
        };
        (table.has_row_ids() == has_row_ids).then_some(table)
    }

    /// The stored columns, according to the statements with which this version creates tables.
    pub(super) fn columns(self) -> Vec<String> {
        let begin = format!(" {} (", self.name());
        let of_turns = turn_tables();
        let mut statements =
            [TABLES, superseded::TABLE, &of_turns].into_iter().flat_map(|text| text.split(';'));
        let statement = statements.find(|statement| {
            statement.trim_start().starts_with("CREATE TABLE")
                && statement.split_inclusive('(').next().is_some_and(|head| head.ends_with(&begin))
        });
        statement.map_or_else(Vec::new, column_names)
    }
}

fn letter(value: Option<StoredValue<'_>>) -> char {
    match value {
        Some(StoredValue::Null) => 'n',
        Some(StoredValue::Integer(_)) => 'i',
        Some(StoredValue::Real) => 'r',
        Some(StoredValue::Text(_)) => 't',
        Some(StoredValue::Blob(_)) => 'b',
        None => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_in_statements() {
        let columns = SalvagedTable::Messages.columns();
        assert_eq!(columns[..4], ["key", "user_id", "session_id", "sequence"]);
        assert_eq!((columns.len(), columns.last().unwrap().as_str()), (15, "ts_source"));
        assert_eq!(
            SalvagedTable::MetadataFiles.columns(),
            ["user_id", "session_id", "position", "name", "raw"]
        );
        assert_eq!(SalvagedTable::Sessions.columns().len(), 33);
        for table in SalvagedTable::ALL.into_iter().filter(|table| *table != SalvagedTable::Deleted) {
            assert!(!table.columns().is_empty(), "{table:?}");
        }
    }
}
