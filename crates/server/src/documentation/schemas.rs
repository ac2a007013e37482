//! The JSON Schemas of the responses and of what bodies have, made from their types.

use amplifier_session_api::{
    Notice,
    operations::{
        changes::ChangesResponse,
        check_store::CheckStoreResponse,
        context::ContextResponse,
        delete::DeleteResponse,
        events::EventsResponse,
        files::FilesResponse,
        gaps::GapsResponse,
        ignore_secrets::IgnoreSecretsResponse,
        ingest::IngestResponse,
        messages::MessagesResponse,
        post_event::PostEventResponse,
        projects::ProjectsResponse,
        prune::PruneResponse,
        purge_secrets::{PurgePreview, PurgeSecretsResponse},
        recent::RecentResponse,
        rewind::{RemovedRows, RewindResponse},
        search::SearchResponse,
        search_superseded::SupersededResponse,
        search_turns::TurnsResponse,
        secrets::SecretsResponse,
        session::SessionResponse,
        session_events::SessionEventsResponse,
        sessions::SessionsResponse,
        statistics::StatisticsResponse,
        store_status::StoreStatusResponse,
        summaries::{SummariesResponse, SummaryOfTurn},
        superseded_events::SupersededEventsResponse,
        superseded_messages::SupersededMessagesResponse,
        superseded_sessions::SupersededSessionsResponse,
        tags::TagsResponse,
        timeline::TimelineResponse,
        turn::TurnResponse,
        users::{RenameUserResponse, UsersResponse},
        vectors::{EmbedResponse, SessionVectorsResponse},
        write_rows::WriteRowsResponse,
    },
    remote::OperationAnswer,
    views::ChangedView,
};
use amplifier_session_core::storage::{ExtentPage, ImportReport, VectorStatus};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::rest::about::{CallerView, VersionView};

/// The schemas of all types of the documentation, by name.
pub(super) fn response_schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let responses = add_responses(&mut generator);
    for add in [add::<OperationAnswer<Value>>, add::<Notice>, add::<RemovedRows>, add::<SummaryOfTurn>] {
        add(&mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    for name in responses {
        // Remarks are beside the fields of each response: see `HttpAnswer::of`.
        if let Some(Value::Object(properties)) =
            schemas.get_mut(&name).and_then(|schema| schema.get_mut("properties"))
        {
            let remark = json!({"$ref": "#/components/schemas/Notice"});
            properties.insert("remarks".to_owned(), json!({"type": "array", "items": remark}));
        }
    }
    schemas
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    generator.subschema_for::<T>();
    T::schema_name().into_owned()
}

/// Adds the types of all responses, and returns their names.
fn add_responses(generator: &mut SchemaGenerator) -> Vec<String> {
    [
        add::<CallerView<'static>>,
        add::<ChangedView>,
        add::<ChangesResponse>,
        add::<CheckStoreResponse>,
        add::<ContextResponse>,
        add::<DeleteResponse>,
        add::<EmbedResponse>,
        add::<EventsResponse>,
        add::<ExtentPage>,
        add::<FilesResponse>,
        add::<GapsResponse>,
        add::<IgnoreSecretsResponse>,
        add::<ImportReport>,
        add::<IngestResponse>,
        add::<MessagesResponse>,
        add::<PostEventResponse>,
        add::<ProjectsResponse>,
        add::<PruneResponse>,
        add::<PurgePreview>,
        add::<PurgeSecretsResponse>,
        add::<RecentResponse>,
        add::<RenameUserResponse>,
        add::<RewindResponse>,
        add::<SearchResponse>,
        add::<SecretsResponse>,
        add::<SessionEventsResponse>,
        add::<SessionResponse>,
        add::<SessionVectorsResponse>,
        add::<SessionsResponse>,
        add::<StatisticsResponse>,
        add::<StoreStatusResponse>,
        add::<SummariesResponse>,
        add::<SupersededEventsResponse>,
        add::<SupersededMessagesResponse>,
        add::<SupersededResponse>,
        add::<SupersededSessionsResponse>,
        add::<TagsResponse>,
        add::<TimelineResponse>,
        add::<TurnResponse>,
        add::<TurnsResponse>,
        add::<UsersResponse>,
        add::<VectorStatus>,
        add::<VersionView>,
        add::<WriteRowsResponse>,
    ]
    .map(|add| add(generator))
    .to_vec()
}
