//! The fields that errors are about.

use std::fmt;

/// The variants with their names. Those under `arguments` are what a caller chose, and those under `data` all others.
macro_rules! fields {
    (
        arguments { $($(#[$about_argument:meta])* $argument:ident: $argument_name:literal,)* }
        data { $($(#[$about:meta])* $data:ident: $name:literal,)* }
    ) => {
        /// The argument, the part of a line or row, or the setting that an error is about.
        ///
        /// Faces match it exhaustively, so that a new field gets its words in each of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorField {
            $($(#[$about_argument])* $argument,)*
            $($(#[$about])* $data,)*
        }

        impl ErrorField {
            /// The field with this name.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name {
                    $($argument_name => Some(Self::$argument),)*
                    $($name => Some(Self::$data),)*
                    _ => None,
                }
            }

            /// The name in messages and in machine-readable output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$argument => $argument_name,)*
                    $(Self::$data => $name,)*
                }
            }

            /// Whether it is something that the caller chose, for example a session, a limit or the store. The others
            /// are parts of lines, rows and files, and settings of services.
            #[must_use]
            pub const fn is_argument(self) -> bool {
                match self {
                    $(Self::$argument => true,)*
                    $(Self::$data => false,)*
                }
            }
        }
    };
}

fields! {
    arguments {
        /// The address of a message.
        Address: "address",
        /// The configuration: its file or one of its values.
        Config: "config",
        /// A type of content.
        ContentType: "content_type",
        /// The types of content to search.
        ContentTypes: "content_types",
        /// The description of a session.
        Description: "description",
        /// The embedding provider.
        Embedding: "embedding",
        /// A text to find as it is.
        Exact: "exact",
        /// A pattern of sessions to leave out.
        Exclude: "exclude",
        /// A maximum number of results.
        Limit: "limit",
        /// The least similarity of results.
        MinSimilarity: "min_similarity",
        /// The weight of relevance against diversity.
        MmrLambda: "mmr_lambda",
        /// The way to search.
        Mode: "mode",
        /// The name of a model.
        Model: "model",
        /// The name of a session.
        Name: "name",
        /// The organisation.
        OrgId: "org_id",
        /// The project.
        ProjectSlug: "project_slug",
        /// A query.
        Query: "query",
        /// The repository.
        Repository: "repository",
        /// Whose sessions a call reaches.
        Scope: "scope",
        /// The number of a message.
        Sequence: "sequence",
        /// The session.
        SessionId: "session_id",
        /// The store: its URL.
        Store: "store",
        /// The tags of a session.
        Tags: "tags",
        /// The teams.
        TeamIds: "team_ids",
        /// The number of a turn.
        Turn: "turn",
        /// The end of a period.
        Until: "until",
        /// The user.
        UserId: "user_id",
    }
    data {
        /// An archive.
        Archive: "archive",
        /// The base URL of a service.
        BaseUrl: "base_url",
        /// The number of a part of a text.
        ChunkIndex: "chunk_index",
        /// A container of a Cosmos DB store.
        Container: "container",
        /// The hash of a text.
        ContentHash: "content_hash",
        /// A copy of a store.
        Copy: "copy",
        /// The cost of an answer.
        Cost: "cost",
        /// The deployment of a model.
        Deployment: "deployment",
        /// A fingerprint of a line.
        Digest: "digest",
        /// The number of dimensions of a model.
        Dimensions: "dimensions",
        /// A document of a Cosmos DB store.
        Document: "document",
        /// The endpoint of a service.
        Endpoint: "endpoint",
        /// The address where one signs in to Microsoft Entra ID.
        Entra: "entra",
        /// The type of an event.
        Event: "event",
        /// A generation of vectors.
        Generation: "generation",
        /// The machine.
        HostId: "host_id",
        /// The address from which models are downloaded.
        Hub: "hub",
        /// The id of a document.
        Id: "id",
        /// The kind of a line.
        Kind: "kind",
        /// A line.
        Line: "line",
        /// The lines of a call.
        Lines: "lines",
        /// The id of a message.
        MessageId: "message_id",
        /// The key of a partition of a Cosmos DB store.
        Partition: "partition",
        /// The path of a file.
        Path: "path",
        /// The port of a PostgreSQL server.
        PostgresPort: "postgres.port",
        /// Why lines are superseded.
        Reason: "reason",
        /// The setting that removes secrets.
        Redact: "redact",
        /// The role of a message or in a database.
        Role: "role",
        /// A root folder of sessions.
        Root: "root",
        /// The setting for the secrets in stored lines.
        Secrets: "secrets",
        /// The program that wrote a session.
        Source: "source",
        /// The part of a text that has a vector.
        Span: "span",
        /// The end of the part of a text that has a vector.
        SpanEnd: "span_end",
        /// When files last changed.
        Seen: "seen",
        /// The number of the first line of a call.
        StartSequence: "start_sequence",
        /// A text to embed or to store.
        Text: "text",
        /// Texts to embed.
        Texts: "texts",
        /// The number of tokens of a text.
        TokenCount: "token_count",
        /// A time.
        Ts: "ts",
        /// The source of a time.
        TsSource: "ts_source",
        /// A vector.
        Vector: "vector",
        /// The number of dimensions of the vectors of a store.
        VectorDimensions: "vector_dimensions",
        /// The state of the vectors of a message.
        Vectors: "vectors",
        /// The visibility of a session.
        Visibility: "visibility",
    }
}

impl fmt::Display for ErrorField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
