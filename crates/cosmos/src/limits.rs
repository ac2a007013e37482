//! Limits of the service, which are checked before anything is sent.
//!
//! Source: <https://learn.microsoft.com/azure/cosmos-db/concepts-limits>.

use amplifier_session_core::{Error, Result};

use crate::config::VectorIndexKind;

/// The most bytes of a document: less than the service's 2 MB, which include the fields that it adds.
pub(crate) const ITEM_BYTES: usize = 1_800_000;

/// The most operations of a batch.
pub(crate) const BATCH_OPERATIONS: usize = 100;

/// The most bytes of a batch: less than the service's 2 MB, which include what surrounds the documents.
pub(crate) const BATCH_BYTES: usize = 1_800_000;

/// The most bytes of an id.
const ID_BYTES: usize = 1_023;

/// The most bytes of a partition key.
const PARTITION_BYTES: usize = 2_048;

/// The most bytes of a query with its parameters.
const QUERY_BYTES: usize = 512 * 1024;

/// The most dimensions of a vector in a `quantizedFlat` or `diskANN` index.
const VECTOR_DIMENSIONS: usize = 4_096;

/// The most dimensions of a vector in a `flat` index.
const FLAT_DIMENSIONS: usize = 505;

pub(crate) fn check_item(bytes: usize) -> Result<()> {
    at_most("document", bytes, ITEM_BYTES, "bytes")
}

pub(crate) fn check_query(bytes: usize) -> Result<()> {
    at_most("query", bytes, QUERY_BYTES, "bytes")
}

pub(crate) fn check_partition(key: &str) -> Result<()> {
    at_most("partition", key.len(), PARTITION_BYTES, "bytes")
}

pub(crate) fn check_dimensions(dimensions: usize, index: VectorIndexKind) -> Result<()> {
    if dimensions == 0 {
        return Err(Error::validation("vector_dimensions", "must be at least 1"));
    }
    let most = if index == VectorIndexKind::Flat { FLAT_DIMENSIONS } else { VECTOR_DIMENSIONS };
    at_most("vector_dimensions", dimensions, most, "dimensions")
}

pub(crate) fn check_id(id: &str) -> Result<()> {
    if id.is_empty() || id.contains(['/', '\\', '?', '#']) {
        return Err(Error::validation("id", "must not be empty or contain '/', '\\', '?' or '#'"));
    }
    at_most("id", id.len(), ID_BYTES, "bytes")
}

fn at_most(field: &'static str, found: usize, most: usize, unit: &str) -> Result<()> {
    if found > most {
        let message = format!("has {found} {unit}; Cosmos DB accepts at most {most}");
        return Err(Error::validation(field, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_up_to_each_limit_are_accepted() {
        let field = |result: Result<()>| result.unwrap_err().context("field").unwrap().to_owned();
        assert!(check_item(ITEM_BYTES).is_ok());
        assert_eq!(field(check_item(ITEM_BYTES + 1)), "document");
        assert!(check_query(QUERY_BYTES).is_ok());
        assert_eq!(field(check_query(QUERY_BYTES + 1)), "query");
        assert!(check_partition(&"x".repeat(PARTITION_BYTES)).is_ok());
        assert_eq!(field(check_partition(&"x".repeat(PARTITION_BYTES + 1))), "partition");
        assert!(check_id(&"x".repeat(ID_BYTES)).is_ok());
        assert_eq!(field(check_id(&"x".repeat(ID_BYTES + 1))), "id");
        assert!(check_dimensions(VECTOR_DIMENSIONS, VectorIndexKind::DiskAnn).is_ok());
        assert_eq!(
            field(check_dimensions(VECTOR_DIMENSIONS + 1, VectorIndexKind::DiskAnn)),
            "vector_dimensions"
        );
        assert_eq!(field(check_dimensions(0, VectorIndexKind::Flat)), "vector_dimensions");
    }

    #[test]
    fn ids_contain_no_character_that_has_a_meaning_in_urls() {
        for id in ["", "a/b", "a\\b", "a?", "#"] {
            assert!(check_id(id).is_err(), "{id:?}");
        }
    }
}
