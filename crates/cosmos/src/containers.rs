//! The containers of a store: partition keys, and the indexes that queries need.

use amplifier_session_core::{Error, ErrorField, Result};
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties, IndexingMode,
    IndexingPolicy, VectorDataType, VectorDistanceFunction, VectorEmbedding, VectorEmbeddingPolicy,
    VectorIndex, VectorIndexType,
};
use serde_json::json;

use crate::{
    config::{CosmosConfig, DEFAULT_DIMENSIONS},
    limits,
};

/// Sessions, the data stored beside their fields, and the schema.
pub(crate) const SESSIONS: &str = "sessions";
/// Messages, their texts and their vectors.
pub(crate) const MESSAGES: &str = "transcript_messages";
/// Events.
pub(crate) const EVENTS: &str = "events";
/// Pieces of large payloads of events.
pub(crate) const CHUNKS: &str = "event_chunks";

/// The properties that results can be ordered by. Ordering by several properties requires a composite index.
pub(crate) mod order {
    pub(crate) const SESSIONS: &str = "c.updated DESC, c.user_id ASC, c.session_id ASC";
    pub(crate) const MESSAGES: &str = "c.user_id ASC, c.session_id ASC, c.sequence ASC";
    pub(crate) const EVENTS: &str = "c.ts DESC, c.user_id DESC, c.session_id DESC, c.sequence DESC";
    pub(crate) const SESSION_ID: &str = "c.session_id ASC";
    pub(crate) const SEQUENCE: &str = "c.sequence ASC";
}

/// Indexed paths: only those that queries use, because every indexed path makes writes more expensive.
const SESSION_PATHS: &str = "user_id session_id type committed project_slug updated created bundle parent_id visibility \
    org_id team_ids/[] tags/[] repository sync_state";
const MESSAGE_PATHS: &str =
    "user_id_session_id user_id session_id type sequence vectors made/[] generation role ts terms";
const EVENT_PATHS: &str = "user_id session_id type sequence event_id ts event_type tool_name model provider level \
    error_type";

/// The path of vectors.
const VECTOR: &str = "/vector";

/// The containers as this library creates them: sessions, messages, events, chunks. `Validation` if no index supports vectors
/// of the configured length.
pub(crate) fn definitions(config: &CosmosConfig) -> Result<[ContainerProperties; 4]> {
    let sessions = index(SESSION_PATHS).with_composite_index(composite(order::SESSIONS));
    let messages = index(MESSAGE_PATHS).with_composite_index(composite(order::MESSAGES));
    let events = index(EVENT_PATHS).with_composite_index(composite(order::EVENTS));
    let messages = if config.enable_vector {
        let dimensions = config.vector_dimensions.unwrap_or(DEFAULT_DIMENSIONS);
        let kind = config.vector_index.clone().unwrap_or(VectorIndexType::QuantizedFlat);
        limits::check_dimensions(dimensions, &kind)?;
        let messages = messages.with_vector_index(VectorIndex::new(VECTOR, kind));
        container(MESSAGES, messages).with_vector_embedding_policy(vectors(dimensions))
    } else {
        container(MESSAGES, messages)
    };
    Ok([container(SESSIONS, sessions), messages, container(EVENTS, events), container(CHUNKS, index(""))])
}

fn container(name: &'static str, index: IndexingPolicy) -> ContainerProperties {
    let key = if name == SESSIONS { "/user_id" } else { "/user_id_session_id" };
    ContainerProperties::new(name, key.into()).with_indexing_policy(index)
}

/// An index of only these paths, which are separated by spaces.
fn index(paths: &str) -> IndexingPolicy {
    let mut policy = IndexingPolicy::default().with_indexing_mode(IndexingMode::Consistent);
    // The SDK's default indexes nothing automatically.
    policy.automatic = true;
    let paths = paths.split_whitespace().map(|path| format!("/{path}/?"));
    paths.fold(policy, IndexingPolicy::with_included_path).with_excluded_path("/*")
}

fn composite(order: &str) -> CompositeIndex {
    let mut index = CompositeIndex::default();
    for (property, direction) in order.split(", ").filter_map(|part| part.split_once(' ')) {
        let is_ascending = direction == "ASC";
        let order =
            if is_ascending { CompositeIndexOrder::Ascending } else { CompositeIndexOrder::Descending };
        index = index.with_property(CompositeIndexProperty::new(property.replacen("c.", "/", 1), order));
    }
    index
}

fn vectors(dimensions: usize) -> VectorEmbeddingPolicy {
    let dimensions = u32::try_from(dimensions).unwrap_or(u32::MAX);
    let embedding =
        VectorEmbedding::new(VECTOR, VectorDataType::Float32, dimensions, VectorDistanceFunction::Cosine);
    VectorEmbeddingPolicy::default().with_embedding(embedding)
}

/// Compares an existing container with the required settings. A `Validation` error names the difference. The owner of
/// the account decides how other fields are indexed.
pub(crate) fn compare(
    config: &CosmosConfig,
    expected: &ContainerProperties,
    found: &ContainerProperties,
) -> Result<()> {
    let name = &expected.id;
    let differs =
        |how: String| Err(Error::validation(ErrorField::Container, format!("the container {name} {how}")));
    let (wanted, present) = (key_paths(expected), key_paths(found));
    if wanted != present {
        return differs(format!("has the partition key {present} instead of {wanted}"));
    }
    let Some(wanted) = dimensions(expected) else { return Ok(()) };
    match dimensions(found) {
        None => {
            return differs(
                "is not configured for vectors; set AMPLIFIER_COSMOS_ENABLE_VECTOR=false".to_owned(),
            );
        }
        // Without a configured length, that of the container is used.
        Some(present) if present != wanted && config.vector_dimensions.is_some() => {
            return differs(format!(
                "is configured for vectors of {present} dimensions instead of {wanted}; set \
                 AMPLIFIER_COSMOS_VECTOR_DIMENSIONS={present} or AMPLIFIER_COSMOS_ENABLE_VECTOR=false"
            ));
        }
        _ => {}
    }
    match (&config.vector_index, index_of(found)) {
        (Some(wanted), Some(present)) if wanted != present => differs(format!(
            "has a {} index for its vectors instead of {}; unset AMPLIFIER_COSMOS_VECTOR_INDEX to use it",
            name_of(present),
            name_of(wanted)
        )),
        _ => Ok(()),
    }
}

fn key_paths(properties: &ContainerProperties) -> String {
    properties.partition_key.paths().join(", ")
}

/// The kind of index that a container has for its vectors.
fn index_of(properties: &ContainerProperties) -> Option<&VectorIndexType> {
    let indexes = &properties.indexing_policy.as_ref()?.vector_indexes;
    indexes.iter().find(|index| index.path == VECTOR).map(|index| &index.index_type)
}

/// The name of a kind of index in the service.
fn name_of(kind: &VectorIndexType) -> String {
    let name = json!(kind);
    debug_assert!(name.is_string(), "a kind of index is written as its name");
    name.as_str().unwrap_or_default().to_owned()
}

/// The length of the vectors for which a container was created.
pub(crate) fn dimensions(properties: &ContainerProperties) -> Option<u32> {
    let policy = properties.vector_embedding_policy.as_ref()?;
    policy.embeddings.iter().find(|embedding| embedding.path == VECTOR).map(|embedding| embedding.dimensions)
}

/// Whether a container has a full-text policy for the terms of texts. This library uses one but does not create it.
pub(crate) fn has_full_text(properties: &ContainerProperties) -> bool {
    let policy = properties.full_text_policy.as_ref();
    policy.is_some_and(|policy| policy.full_text_paths.iter().any(|path| path.path == "/terms"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn config() -> CosmosConfig {
        CosmosConfig::new("https://a.documents.azure.com/")
    }

    fn as_json(config: &CosmosConfig) -> Vec<Value> {
        definitions(config).unwrap().iter().map(|one| serde_json::to_value(one).unwrap()).collect()
    }

    #[test]
    fn partition_keys_are_those_of_the_schema() {
        let found = as_json(&config());
        let keys: Vec<_> = found
            .iter()
            .map(|one| (one["id"].as_str().unwrap(), one["partitionKey"]["paths"].clone()))
            .collect();
        let joined = json!(["/user_id_session_id"]);
        assert_eq!(
            keys,
            [
                (SESSIONS, json!(["/user_id"])),
                (MESSAGES, joined.clone()),
                (EVENTS, joined.clone()),
                (CHUNKS, joined)
            ]
        );
    }

    #[test]
    fn only_paths_that_queries_use_are_indexed() {
        for one in as_json(&config()) {
            let policy = &one["indexingPolicy"];
            assert_eq!(policy["automatic"], json!(true));
            assert_eq!(policy["excludedPaths"], json!([{"path": "/*"}]));
            let included = policy["includedPaths"].as_array().cloned().unwrap_or_default();
            for path in ["/vector/?", "/raw/?", "/payload/?", "/summary/?"] {
                assert!(!included.contains(&json!({"path": path})), "{path}");
            }
        }
    }

    #[test]
    fn vectors_are_indexed_if_they_are_enabled() {
        let messages = as_json(&config()).remove(1);
        assert_eq!(
            messages["vectorEmbeddingPolicy"]["vectorEmbeddings"],
            json!([{"path": "/vector", "dataType": "float32", "dimensions": 3072, "distanceFunction": "cosine"}])
        );
        assert_eq!(
            messages["indexingPolicy"]["vectorIndexes"],
            json!([{"path": "/vector", "type": "quantizedFlat"}])
        );
        let without = as_json(&CosmosConfig { enable_vector: false, ..config() }).remove(1);
        assert!(without.get("vectorEmbeddingPolicy").is_none());
        assert!(definitions(&sized(5_000)).is_err());
    }

    /// The configuration for vectors of this length.
    fn sized(dimensions: usize) -> CosmosConfig {
        CosmosConfig { vector_dimensions: Some(dimensions), ..config() }
    }

    fn with_index(config: &CosmosConfig, kind: VectorIndexType) -> CosmosConfig {
        CosmosConfig { vector_index: Some(kind), ..config.clone() }
    }

    #[test]
    fn the_kind_of_vector_index_can_be_chosen() {
        for (kind, name) in [
            (VectorIndexType::QuantizedFlat, "quantizedFlat"),
            (VectorIndexType::DiskANN, "diskANN"),
            (VectorIndexType::Flat, "flat"),
        ] {
            let chosen = with_index(&sized(256), kind);
            let messages = as_json(&chosen).remove(1);
            let index = &messages["indexingPolicy"]["vectorIndexes"];
            assert_eq!(*index, json!([{"path": "/vector", "type": name}]));
        }
        // A flat index supports at most 505 dimensions.
        let flat = |dimensions| definitions(&with_index(&sized(dimensions), VectorIndexType::Flat));
        assert!(flat(505).is_ok() && flat(506).is_err());
    }

    /// The paths that each container of the Bicep file mentions.
    fn paths_of_bicep() -> Vec<BTreeSet<String>> {
        let containers = include_str!("../../../docs/cosmos.bicep").split("sqlDatabases/containers@").skip(1);
        containers
            .map(|text| text.split('\'').filter(|word| word.starts_with('/')).map(str::to_owned).collect())
            .collect()
    }

    fn paths_of(value: &Value) -> BTreeSet<String> {
        match value {
            Value::String(text) if text.starts_with('/') => BTreeSet::from([text.clone()]),
            Value::Array(items) => items.iter().flat_map(paths_of).collect(),
            Value::Object(fields) => fields.values().flat_map(paths_of).collect(),
            _ => BTreeSet::new(),
        }
    }

    #[test]
    fn the_bicep_file_creates_the_same_containers() {
        let mut made: Vec<_> = as_json(&config()).iter().map(paths_of).collect();
        for paths in &mut made {
            // The file has this path as a variable.
            paths.remove("/*");
        }
        assert_eq!(paths_of_bicep(), made);
    }

    #[test]
    fn a_container_that_differs_is_rejected_with_the_reason() {
        let of = |dimensions| definitions(&sized(dimensions)).unwrap()[1].clone();
        let eight = sized(8);
        assert!(compare(&eight, &of(8), &of(8)).is_ok());
        // Without explicit dimensions, the existing container's are used.
        assert!(compare(&config(), &of(DEFAULT_DIMENSIONS), &of(9)).is_ok());
        let error = compare(&eight, &of(8), &of(9)).unwrap_err();
        assert!(error.to_string().contains("vectors of 9 dimensions instead of 8"), "{error}");
        let graph = with_index(&eight, VectorIndexType::DiskANN);
        let of_graph = definitions(&graph).unwrap()[1].clone();
        assert!(compare(&graph, &of_graph, &of_graph).is_ok() && compare(&eight, &of(8), &of_graph).is_ok());
        let error = compare(&graph, &of_graph, &of(8)).unwrap_err();
        assert!(
            error.to_string().contains("a quantizedFlat index for its vectors instead of diskANN"),
            "{error}"
        );
        let sessions = definitions(&config()).unwrap()[0].clone();
        let error = compare(&eight, &of(8), &sessions).unwrap_err();
        assert!(error.to_string().contains("has the partition key /user_id instead"), "{error}");
    }
}
