//! Limits of the service, which are checked before anything is sent.
//!
//! Source: <https://learn.microsoft.com/azure/cosmos-db/concepts-limits>.

use amplifier_session_core::{Error, ErrorField, Result};
use azure_data_cosmos::models::VectorIndexType;

/// The maximum size of a document and of a batch, in bytes. The limit of the service is 2 MB, including its own fields.
pub(crate) const BYTES: usize = 1_800_000;

/// The maximum number of operations in a batch.
pub(crate) const BATCH_OPERATIONS: usize = 100;

/// The maximum size of an id.
const ID_BYTES: usize = 1_023;

/// The maximum size of a partition key.
pub(crate) const PARTITION_BYTES: usize = 2_048;

/// The maximum size of a query with its parameters.
pub(crate) const QUERY_BYTES: usize = 512 * 1024;

/// The maximum number of dimensions of a vector in a `quantizedFlat` or `diskANN` index.
const VECTOR_DIMENSIONS: usize = 4_096;

/// The maximum number of dimensions of a vector in a `flat` index.
const FLAT_DIMENSIONS: usize = 505;

pub(crate) fn check_dimensions(dimensions: usize, index: &VectorIndexType) -> Result<()> {
    if dimensions == 0 {
        return Err(Error::validation(ErrorField::VectorDimensions, "must be at least 1"));
    }
    let most = if *index == VectorIndexType::Flat { FLAT_DIMENSIONS } else { VECTOR_DIMENSIONS };
    at_most(ErrorField::VectorDimensions, dimensions, most, "dimensions")
}

pub(crate) fn check_id(id: &str) -> Result<()> {
    if id.is_empty() || id.contains(['/', '\\', '?', '#']) {
        return Err(Error::validation(ErrorField::Id, "must not be empty or contain '/', '\\', '?' or '#'"));
    }
    at_most(ErrorField::Id, id.len(), ID_BYTES, "bytes")
}

/// Checks the size of something to be sent.
pub(crate) fn at_most(field: ErrorField, found: usize, most: usize, unit: &str) -> Result<()> {
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
        let field = |result: Result<()>| result.unwrap_err().field().unwrap();
        assert!(at_most(ErrorField::Document, BYTES, BYTES, "bytes").is_ok());
        assert_eq!(field(at_most(ErrorField::Document, BYTES + 1, BYTES, "bytes")), ErrorField::Document);
        assert!(check_id(&"x".repeat(ID_BYTES)).is_ok());
        assert_eq!(field(check_id(&"x".repeat(ID_BYTES + 1))), ErrorField::Id);
        assert!(check_dimensions(VECTOR_DIMENSIONS, &VectorIndexType::DiskANN).is_ok());
        assert_eq!(
            field(check_dimensions(VECTOR_DIMENSIONS + 1, &VectorIndexType::DiskANN)),
            ErrorField::VectorDimensions
        );
        assert_eq!(field(check_dimensions(0, &VectorIndexType::Flat)), ErrorField::VectorDimensions);
    }

    #[test]
    fn ids_contain_no_character_that_has_a_meaning_in_urls() {
        for id in ["", "a/b", "a\\b", "a?", "#"] {
            assert!(check_id(id).is_err(), "{id:?}");
        }
    }
}
