//! The table of operations that a server answers.

use amplifier_session_core::storage::VectorStatus;
use serde_json::Value;

use super::{
    AnyApi,
    call::{OperationAnswer, json, read_request},
};
use crate::{
    AccessRight, Api, ApiAnswer, ApiError,
    operations::{
        context::{ContextRequest, ContextResponse},
        delete::{DeletePreviewRequest, DeleteRequest, DeleteResponse},
        edit::EditRequest,
        events::{EventsRequest, EventsResponse},
        files::{FilesRequest, FilesResponse},
        gaps::{GapsRequest, GapsResponse},
        ignore_secrets::{IgnoreSecretsRequest, IgnoreSecretsResponse},
        messages::{MessagesRequest, MessagesResponse},
        projects::{ProjectsRequest, ProjectsResponse},
        prune::{PrunePreviewRequest, PruneRequest, PruneResponse},
        purge_secrets::{PurgePreview, PurgePreviewRequest, PurgeSecretsRequest, PurgeSecretsResponse},
        recent::{RecentRequest, RecentResponse},
        rewind::{RewindPreviewRequest, RewindRequest, RewindResponse},
        search::{SearchRequest, SearchResponse},
        search_superseded::SupersededResponse,
        search_turns::TurnsResponse,
        secrets::{SecretsRequest, SecretsResponse},
        session::{SessionRequest, SessionResponse},
        session_events::{SessionEventsRequest, SessionEventsResponse},
        sessions::{SessionsRequest, SessionsResponse},
        share::ShareRequest,
        statistics::{StatisticsRequest, StatisticsResponse},
        summaries::{SummariesRequest, SummariesResponse},
        superseded_events::{SupersededEventsRequest, SupersededEventsResponse},
        superseded_messages::{SupersededMessagesRequest, SupersededMessagesResponse},
        superseded_sessions::{SupersededSessionsRequest, SupersededSessionsResponse},
        tag::TagRequest,
        tags::{TagsRequest, TagsResponse},
        timeline::{TimelineRequest, TimelineResponse},
        turn::{TurnRequest, TurnResponse},
        users::{RenameUserRequest, RenameUserResponse, UsersRequest, UsersResponse},
        vectors::{SessionVectorsRequest, SessionVectorsResponse, VectorStatusRequest},
    },
    views::ChangedView,
};

/// Makes the operations and their methods: `name(Variant, right): request => response`.
macro_rules! operations {
    ($($name:ident($operation:ident, $right:ident): $request:ty => $response:ty;)*) => {
        /// An operation that a server answers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ApiOperation {
            $(
                #[doc = concat!("[`Api::", stringify!($name), "`].")]
                $operation,
            )*
        }

        impl ApiOperation {
            /// All operations.
            pub const ALL: &'static [Self] = &[$(Self::$operation,)*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => stringify!($name),)*
                }
            }

            /// The name with that of the group, as logs have it.
            #[must_use]
            pub const fn route(self) -> &'static str {
                match self {
                    $(Self::$operation => concat!("operations.", stringify!($name)),)*
                }
            }

            /// The path on a server.
            #[must_use]
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$operation => concat!("/v1/operations/", stringify!($name)),)*
                }
            }

            /// The right that a caller needs. The operation itself may need more.
            #[must_use]
            pub const fn right(self) -> AccessRight {
                match self {
                    $(Self::$operation => AccessRight::$right,)*
                }
            }

            /// The answer to a request, both as JSON.
            ///
            /// # Errors
            ///
            /// [`InvalidRequest::Unreadable`](crate::InvalidRequest::Unreadable); errors of the operation.
            #[crate::compiled_here]
            pub async fn answer(self, api: &Api<'_>, request: &Value) -> Result<Vec<u8>, ApiError> {
                match self {
                    $(Self::$operation => {
                        let asked: $request = read_request(request)?;
                        let answer = api.$name(&asked).await?;
                        json(&OperationAnswer::new(api, request, answer))
                    })*
                }
            }
        }

        impl AnyApi<'_> {
            $(
                #[doc = concat!("[`Api::", stringify!($name), "`], here or there.")]
                ///
                /// # Errors
                ///
                /// Those of the operation; errors of the connection.
                #[crate::compiled_here]
                pub async fn $name(&self, request: &$request) -> Result<ApiAnswer<$response>, ApiError> {
                    match self {
                        Self::Here(api) => api.$name(request).await,
                        Self::There(there) => there.ask(ApiOperation::$operation, request).await,
                    }
                }
            )*
        }
    };
}

operations! {
    context(Context, Read): ContextRequest => ContextResponse;
    delete(Delete, Delete): DeleteRequest => DeleteResponse;
    delete_preview(DeletePreview, Delete): DeletePreviewRequest => DeleteResponse;
    edit(Edit, Write): EditRequest => ChangedView;
    events(Events, Read): EventsRequest => EventsResponse;
    files(Files, Read): FilesRequest => FilesResponse;
    gaps(Gaps, Read): GapsRequest => GapsResponse;
    ignore_secrets(IgnoreSecrets, Write): IgnoreSecretsRequest => IgnoreSecretsResponse;
    list_secrets(ListSecrets, Read): SecretsRequest => SecretsResponse;
    messages(Messages, Read): MessagesRequest => MessagesResponse;
    projects(Projects, Read): ProjectsRequest => ProjectsResponse;
    prune(Prune, Delete): PruneRequest => PruneResponse;
    prune_preview(PrunePreview, Delete): PrunePreviewRequest => PruneResponse;
    purge_secrets(PurgeSecrets, Write): PurgeSecretsRequest => PurgeSecretsResponse;
    purge_secrets_preview(PurgeSecretsPreview, Write): PurgePreviewRequest => PurgePreview;
    recent(Recent, Read): RecentRequest => RecentResponse;
    rename_user(RenameUser, Admin): RenameUserRequest => RenameUserResponse;
    rewind(Rewind, Delete): RewindRequest => RewindResponse;
    rewind_preview(RewindPreview, Delete): RewindPreviewRequest => RewindResponse;
    search(Search, Read): SearchRequest => SearchResponse;
    search_superseded(SearchSuperseded, Read): SearchRequest => SupersededResponse;
    search_turns(SearchTurns, Read): SearchRequest => TurnsResponse;
    session(Session, Read): SessionRequest => SessionResponse;
    session_events(SessionEvents, Read): SessionEventsRequest => SessionEventsResponse;
    session_vectors(SessionVectors, Read): SessionVectorsRequest => SessionVectorsResponse;
    sessions(Sessions, Read): SessionsRequest => SessionsResponse;
    share(Share, Write): ShareRequest => ChangedView;
    statistics(Statistics, Read): StatisticsRequest => StatisticsResponse;
    summaries(Summaries, Write): SummariesRequest => SummariesResponse;
    superseded_events(SupersededEvents, Read): SupersededEventsRequest => SupersededEventsResponse;
    superseded_messages(SupersededMessages, Read): SupersededMessagesRequest => SupersededMessagesResponse;
    superseded_sessions(SupersededSessions, Read): SupersededSessionsRequest => SupersededSessionsResponse;
    tag(Tag, Write): TagRequest => ChangedView;
    tags(Tags, Read): TagsRequest => TagsResponse;
    timeline(Timeline, Read): TimelineRequest => TimelineResponse;
    turn(Turn, Read): TurnRequest => TurnResponse;
    users(Users, Read): UsersRequest => UsersResponse;
    vector_status(VectorStatus, Read): VectorStatusRequest => VectorStatus;
}
