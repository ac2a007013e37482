//! What the containers of a store are like: keys, and what is indexed for which query.

use amplifier_session_core::{Error, Result};
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties, IndexingMode,
    IndexingPolicy, VectorDataType, VectorDistanceFunction, VectorEmbedding, VectorEmbeddingPolicy,
    VectorIndex, VectorIndexType,
};

use crate::{
    config::{CosmosConfig, DEFAULT_DIMENSIONS, VectorIndexKind},
    limits,
};

/// Sessions, what is kept beside their fields, and the schema.
pub(crate) const SESSIONS: &str = "sessions";
/// Messages, their texts and their vectors.
pub(crate) const MESSAGES: &str = "transcript_messages";
/// Events.
pub(crate) const EVENTS: &str = "events";
/// Pieces of large payloads of events.
pub(crate) const CHUNKS: &str = "event_chunks";

/// The path of vectors.
const VECTOR: &str = "/vector";

/// The containers as this library makes them.
///
/// # Errors
///
/// `Validation` when there is no index for vectors of so many dimensions.
pub(crate) fn definitions(config: &CosmosConfig) -> Result<Vec<ContainerProperties>> {
    let joined = "/user_id_session_id";
    let kind = config.vector_index.unwrap_or_default();
    let messages = container(MESSAGES, joined, messages_index(config.enable_vector.then_some(kind)));
    let messages = if config.enable_vector {
        let dimensions = config.vector_dimensions.unwrap_or(DEFAULT_DIMENSIONS);
        limits::check_dimensions(dimensions, kind)?;
        messages.with_vector_embedding_policy(vectors(dimensions))
    } else {
        messages
    };
    Ok(vec![
        container(SESSIONS, "/user_id", sessions_index()),
        messages,
        container(EVENTS, joined, events_index()),
        container(CHUNKS, joined, index(&[])),
    ])
}

fn container(name: &'static str, key: &str, index: IndexingPolicy) -> ContainerProperties {
    ContainerProperties::new(name, key.to_owned().into()).with_indexing_policy(index)
}

/// Only what queries use is indexed: every indexed path is paid for with each write.
fn index(paths: &[&str]) -> IndexingPolicy {
    let mut policy = IndexingPolicy::default().with_indexing_mode(IndexingMode::Consistent);
    // The SDK's default says that nothing is indexed by itself.
    policy.automatic = true;
    for path in paths {
        policy = policy.with_included_path((*path).to_owned());
    }
    policy.with_excluded_path("/*")
}

fn sessions_index() -> IndexingPolicy {
    let paths = [
        "/user_id/?",
        "/session_id/?",
        "/type/?",
        "/committed/?",
        "/project_slug/?",
        "/updated/?",
        "/created/?",
        "/bundle/?",
        "/parent_id/?",
        "/visibility/?",
        "/org_id/?",
        "/team_ids/[]/?",
        "/tags/[]/?",
        "/sync_state/?",
    ];
    let newest_first = [("/updated", false), ("/user_id", true), ("/session_id", true)];
    index(&paths).with_composite_index(composite(&newest_first))
}

fn messages_index(vectors: Option<VectorIndexKind>) -> IndexingPolicy {
    let paths = [
        "/user_id_session_id/?",
        "/user_id/?",
        "/session_id/?",
        "/type/?",
        "/sequence/?",
        "/vectors/?",
        "/made/[]/?",
        "/generation/?",
        "/role/?",
        "/ts/?",
        "/terms/?",
    ];
    let in_order = [("/user_id", true), ("/session_id", true), ("/sequence", true)];
    let policy = index(&paths).with_composite_index(composite(&in_order));
    match vectors.map(index_type) {
        Some(kind) => policy.with_vector_index(VectorIndex::new(VECTOR, kind)),
        None => policy,
    }
}

fn index_type(kind: VectorIndexKind) -> VectorIndexType {
    match kind {
        VectorIndexKind::QuantizedFlat => VectorIndexType::QuantizedFlat,
        VectorIndexKind::DiskAnn => VectorIndexType::DiskANN,
        VectorIndexKind::Flat => VectorIndexType::Flat,
    }
}

/// The kind of index that a container has for its vectors.
fn index_of(properties: &ContainerProperties) -> Option<VectorIndexKind> {
    let indexes = &properties.indexing_policy.as_ref()?.vector_indexes;
    let found = indexes.iter().find(|index| index.path == VECTOR)?;
    VectorIndexKind::ALL.into_iter().find(|kind| index_type(*kind) == found.index_type)
}

fn events_index() -> IndexingPolicy {
    let paths = [
        "/user_id/?",
        "/session_id/?",
        "/type/?",
        "/sequence/?",
        "/event_id/?",
        "/ts/?",
        "/event_type/?",
        "/tool_name/?",
        "/model/?",
        "/provider/?",
        "/level/?",
        "/error_type/?",
    ];
    let newest_first = [("/ts", false), ("/user_id", false), ("/session_id", false), ("/sequence", false)];
    index(&paths).with_composite_index(composite(&newest_first))
}

/// An index for an `ORDER BY` of several properties; true stands for ascending.
fn composite(properties: &[(&str, bool)]) -> CompositeIndex {
    properties.iter().fold(CompositeIndex::default(), |index, (path, ascending)| {
        let order = if *ascending { CompositeIndexOrder::Ascending } else { CompositeIndexOrder::Descending };
        index.with_property(CompositeIndexProperty::new((*path).to_owned(), order))
    })
}

fn vectors(dimensions: usize) -> VectorEmbeddingPolicy {
    let dimensions = u32::try_from(dimensions).unwrap_or(u32::MAX);
    let embedding =
        VectorEmbedding::new(VECTOR, VectorDataType::Float32, dimensions, VectorDistanceFunction::Cosine);
    VectorEmbeddingPolicy::default().with_embedding(embedding)
}

/// Compares a container that is there with what is expected of it. How the rest of it is indexed is its owner's affair.
///
/// # Errors
///
/// `Validation` saying what differs.
pub(crate) fn compare(
    config: &CosmosConfig,
    expected: &ContainerProperties,
    found: &ContainerProperties,
) -> Result<()> {
    let name = &expected.id;
    let (wanted, there) = (key_paths(expected), key_paths(found));
    if wanted != there {
        let message = format!("the container {name} is parted by {there}, where {wanted} is expected");
        return Err(Error::validation("container", message));
    }
    match (dimensions(expected), dimensions(found), config.vector_dimensions) {
        (Some(_), None, _) => return Err(differs(name, "no vectors", "some")),
        (Some(wanted), Some(there), Some(_)) if wanted != there => {
            let there = format!("vectors of {there} dimensions");
            return Err(differs(name, &there, &format!("{wanted} dimensions")));
        }
        _ => {}
    }
    let (wanted, there) = (config.vector_index, index_of(found));
    match (wanted.filter(|_| dimensions(expected).is_some()), there) {
        (Some(wanted), Some(there)) if wanted != there => {
            let message = format!(
                "the container {name} has an index of the kind {} for its vectors, where {} is expected; leave \
                 AMPLIFIER_COSMOS_VECTOR_INDEX out to use what is there",
                there.as_str(),
                wanted.as_str()
            );
            Err(Error::validation("container", message))
        }
        _ => Ok(()),
    }
}

fn differs(container: &str, there: &str, wanted: &str) -> Error {
    let hint = "set AMPLIFIER_COSMOS_VECTOR_DIMENSIONS or AMPLIFIER_COSMOS_ENABLE_VECTOR=false";
    let message = format!("the container {container} has {there}, where {wanted} are expected; {hint}");
    Error::validation("container", message)
}

fn key_paths(properties: &ContainerProperties) -> String {
    properties.partition_key.paths().join(", ")
}

/// The length of the vectors that a container is made for.
pub(crate) fn dimensions(properties: &ContainerProperties) -> Option<u32> {
    let policy = properties.vector_embedding_policy.as_ref()?;
    policy.embeddings.iter().find(|embedding| embedding.path == VECTOR).map(|embedding| embedding.dimensions)
}

/// Whether the terms of texts have a full-text policy, which we don't make but use.
pub(crate) fn has_full_text(properties: &ContainerProperties) -> bool {
    let policy = properties.full_text_policy.as_ref();
    policy.is_some_and(|policy| policy.full_text_paths.iter().any(|path| path.path == "/terms"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config() -> CosmosConfig {
        CosmosConfig::new("https://a.documents.azure.com/")
    }

    fn as_json(config: &CosmosConfig) -> Vec<Value> {
        definitions(config).unwrap().iter().map(|one| serde_json::to_value(one).unwrap()).collect()
    }

    #[test]
    fn containers_are_parted_as_the_schema_says() {
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
    fn everything_that_no_query_uses_is_excluded() {
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
    fn vectors_are_indexed_where_they_are_enabled() {
        let messages = as_json(&config()).remove(1);
        assert_eq!(
            messages["vectorEmbeddingPolicy"]["vectorEmbeddings"],
            json!([{"path": "/vector", "dataType": "float32", "dimensions": 3072, "distanceFunction": "cosine"}])
        );
        assert_eq!(
            messages["indexingPolicy"]["vectorIndexes"],
            json!([{"path": "/vector", "type": "quantizedFlat"}])
        );
        let without = as_json(&config().with_vector(false)).remove(1);
        assert!(without.get("vectorEmbeddingPolicy").is_none());
        assert!(definitions(&config().with_vector_dimensions(5_000)).is_err());
    }

    #[test]
    fn the_index_of_vectors_is_of_the_kind_that_is_chosen() {
        for kind in VectorIndexKind::ALL {
            let chosen = config().with_vector_dimensions(256).with_vector_index(kind);
            let messages = as_json(&chosen).remove(1);
            let index = &messages["indexingPolicy"]["vectorIndexes"];
            assert_eq!(*index, json!([{"path": "/vector", "type": kind.as_str()}]));
        }
        // As they are they may have 505 dimensions.
        let flat = |dimensions| {
            definitions(&config().with_vector_index(VectorIndexKind::Flat).with_vector_dimensions(dimensions))
        };
        assert!(flat(505).is_ok() && flat(506).is_err());
    }

    /// What `path: '…'` and `paths: ['…']` say, of one container after the other, in order and once.
    fn paths_of_bicep() -> Vec<Vec<String>> {
        let containers = include_str!("../../../docs/cosmos.bicep").split("sqlDatabases/containers@").skip(1);
        containers
            .map(|text| {
                let mut paths: Vec<String> =
                    text.split('\'').filter(|word| word.starts_with('/')).map(str::to_owned).collect();
                paths.sort();
                paths.dedup();
                paths
            })
            .collect()
    }

    fn paths_of(value: &Value, paths: &mut Vec<String>) {
        match value {
            Value::String(text) if text.starts_with('/') => paths.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| paths_of(item, paths)),
            Value::Object(fields) => fields.values().for_each(|field| paths_of(field, paths)),
            _ => {}
        }
    }

    #[test]
    fn the_bicep_file_makes_the_same_containers() {
        let made: Vec<Vec<String>> = as_json(&config())
            .iter()
            .map(|one| {
                let mut paths = Vec::new();
                paths_of(one, &mut paths);
                // The file has it as a variable.
                paths.retain(|path| path != "/*");
                paths.sort();
                paths.dedup();
                paths
            })
            .collect();
        assert_eq!(paths_of_bicep(), made);
    }

    #[test]
    fn a_container_that_differs_is_refused_with_the_reason() {
        let of = |dimensions| definitions(&config().with_vector_dimensions(dimensions)).unwrap().remove(1);
        let eight = config().with_vector_dimensions(8);
        assert!(compare(&eight, &of(8), &of(8)).is_ok());
        // Who doesn't say takes what there is.
        assert!(compare(&config(), &of(DEFAULT_DIMENSIONS), &of(9)).is_ok());
        let error = compare(&eight, &of(8), &of(9)).unwrap_err();
        assert!(error.to_string().contains("vectors of 9 dimensions, where 8"), "{error}");
        let graph = eight.clone().with_vector_index(VectorIndexKind::DiskAnn);
        let of_graph = definitions(&graph).unwrap().remove(1);
        assert!(compare(&graph, &of_graph, &of_graph).is_ok() && compare(&eight, &of(8), &of_graph).is_ok());
        let error = compare(&graph, &of_graph, &of(8)).unwrap_err();
        assert!(error.to_string().contains("quantizedFlat for its vectors, where diskANN"), "{error}");
        let sessions = definitions(&config()).unwrap().remove(0);
        let error = compare(&eight, &of(8), &sessions).unwrap_err();
        assert!(error.to_string().contains("is parted by /user_id,"), "{error}");
    }
}
