//! Tables and views.
//!
//! DuckDB does not find rows through indexes: it scans columns and skips the blocks whose minimum and maximum exclude a
//! match. Rows are stored in the order in which they were written, so this is fast for revisions, sessions and times.
//! Only `key` has an index that reads use, because the search index looks up single rows by it. Primary keys keep rows
//! unique, and no read uses them.

use amplifier_session_sql::{
    removals, turns,
    views::{EVENTS_WITH_DATA, TRANSCRIPTS_WITH_CONTENT, View, ViewDialect},
};

/// The key in `schema_meta` of the layout.
pub(crate) const LAYOUT_KEY: &str = "layout";

/// The oldest layout that is upgraded.
pub(crate) const OLDEST_LAYOUT: usize = 3;

/// The layout that this library writes. No number is used twice.
pub(crate) const LAYOUT: usize = OLDEST_LAYOUT + UPGRADES.len();

/// The steps from [`OLDEST_LAYOUT`] on, each to the next layout, after which [`views`] are recreated. Each step can be
/// repeated: DuckDB does not allow changing a table and its rows in one transaction.
pub(crate) const UPGRADES: [fn() -> String; 4] = [
    // The program that wrote a session, and where the session went.
    || {
        "ALTER TABLE sessions ADD COLUMN IF NOT EXISTS source VARCHAR DEFAULT 'amplifier';
         ALTER TABLE sessions ADD COLUMN IF NOT EXISTS moved_to VARCHAR;"
            .to_owned()
    },
    // The settled rows, and the rows that a rewind left: before, they were parts of the sync state. Only queries
    // through this program have the view.
    || {
        "DROP VIEW IF EXISTS vectors_with_context;
         ALTER TABLE sessions ADD COLUMN IF NOT EXISTS settled VARCHAR;
         ALTER TABLE sessions ADD COLUMN IF NOT EXISTS rewound_messages UINTEGER;
         ALTER TABLE sessions ADD COLUMN IF NOT EXISTS rewound_events UINTEGER;"
            .to_owned()
    },
    // The repository of a session. Pending vectors of turns are states of messages: see [`carry_over_turns`].
    || {
        "ALTER TABLE sessions ADD COLUMN IF NOT EXISTS repository VARCHAR;
         DELETE FROM schema_meta WHERE key LIKE 'unfinished_turns/%';"
            .to_owned()
    },
    // The sessions that left a scope, for the feed of changes.
    removals,
];

/// The sessions that left a scope.
pub(crate) fn removals() -> String {
    removals::TABLE.replace("{texts}", "VARCHAR[]")
}

/// The tables of turns.
pub(crate) fn turn_tables() -> String {
    turns::tables("BIGINT")
}

/// Whether the vectors of turns are in the table of an earlier layout.
pub(crate) const HAS_EARLIER_TURNS: &str = "SELECT count(*) > 0 FROM duckdb_columns()
    WHERE database_name = current_database() AND table_name = 'message_embeddings'
        AND column_name = 'user_sequence'";

/// Carries the vectors of turns over from the table of an earlier layout, in one transaction. Whether one is outdated
/// was not recorded: it is pending, and compared with its turn.
pub(crate) fn carry_over_turns() -> String {
    let carry_over = turns::CARRY_OVER
        .replace("{before}", "earlier_embeddings")
        .replace("{space}", "CAST(m.value AS JSON)")
        .replace("{revision}", "(SELECT coalesce(max(revision), 0) FROM revisions)")
        .replace("{key}", "row_number() OVER ()");
    let (tables, mark) = (turn_tables(), turns::MARK_ALL);
    format!(
        "BEGIN;
         CREATE TEMP TABLE earlier_embeddings AS SELECT * FROM message_embeddings;
         DROP TABLE message_embeddings;
         {tables}
         {carry_over}
         UPDATE {mark};
         DROP TABLE earlier_embeddings;
         COMMIT;"
    )
}

/// The tables of schema version 4, except for [`vectors`].
///
/// Times are `TIMESTAMP`: UTC in microseconds, without a time zone, so that no setting of a connection changes them.
/// Lines are stored as bytes, unchanged; their content is not stored again, and [`views`] extract it. There are no
/// generated columns, because appenders do not support them. `key` is the number of the row in the search index; the
/// key of a message consists of the key of its session and its sequence. Every write takes the next revision. Rows
/// carry the revision that last changed them, and `removed` lists removed rows for the index.
///
/// `transcripts.vectors` is the state of the message's vectors in the current generation; `transcripts.generation` is
/// the generation that a rebuild last made its vectors for.
pub(crate) const TABLES: &str = "
CREATE TABLE schema_meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

CREATE TABLE revisions (revision BIGINT NOT NULL, nonce BIGINT NOT NULL);
CREATE TABLE removed (kind UTINYINT NOT NULL, revision BIGINT NOT NULL, key BIGINT NOT NULL);

CREATE TABLE sessions (
    key BIGINT NOT NULL,
    user_id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    host_id VARCHAR NOT NULL,
    project_slug VARCHAR NOT NULL DEFAULT 'default',
    created TIMESTAMP NOT NULL,
    updated TIMESTAMP NOT NULL,
    name VARCHAR,
    description VARCHAR,
    bundle VARCHAR,
    model VARCHAR,
    turn_count UINTEGER NOT NULL DEFAULT 0,
    message_count UINTEGER NOT NULL DEFAULT 0,
    event_count UINTEGER NOT NULL DEFAULT 0,
    parent_id VARCHAR,
    forked_from_turn UINTEGER,
    tags VARCHAR[] NOT NULL DEFAULT [],
    visibility VARCHAR NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'team', 'org', 'public')),
    org_id VARCHAR,
    team_ids VARCHAR[] NOT NULL DEFAULT [],
    shared_at TIMESTAMP,
    working_dir VARCHAR,
    first_prompt VARCHAR,
    edited VARCHAR NOT NULL DEFAULT '[]',
    revision BIGINT NOT NULL,
    skipped_lines VARCHAR NOT NULL DEFAULT '[]',
    sync_state VARCHAR,
    source VARCHAR DEFAULT 'amplifier',
    moved_to VARCHAR,
    settled VARCHAR,
    rewound_messages UINTEGER,
    rewound_events UINTEGER,
    repository VARCHAR,
    PRIMARY KEY (user_id, session_id)
);

CREATE TABLE metadata_files (
    user_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, position UINTEGER NOT NULL,
    name VARCHAR NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (user_id, session_id, position)
);

CREATE TABLE transcripts (
    key BIGINT NOT NULL UNIQUE,
    user_id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    sequence UINTEGER NOT NULL,
    role VARCHAR NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system', 'developer')),
    turn UINTEGER CHECK (turn >= 1),
    ts TIMESTAMP NOT NULL,
    ts_estimated BOOLEAN NOT NULL,
    synced_at TIMESTAMP NOT NULL,
    vectors UTINYINT NOT NULL,
    digest BLOB NOT NULL,
    revision BIGINT NOT NULL,
    raw BLOB NOT NULL,
    generation UINTEGER NOT NULL,
    ts_source VARCHAR DEFAULT 'file',
    PRIMARY KEY (user_id, session_id, sequence)
);

CREATE TABLE vector_failures (
    user_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL, sequence UINTEGER NOT NULL, generation UINTEGER NOT NULL,
    reason VARCHAR NOT NULL
);

CREATE TABLE events (
    user_id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    sequence UINTEGER NOT NULL,
    event_id VARCHAR NOT NULL,
    event_type VARCHAR NOT NULL,
    ts TIMESTAMP NOT NULL,
    ts_estimated BOOLEAN NOT NULL,
    turn UINTEGER CHECK (turn >= 1),
    level VARCHAR NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARN', 'ERROR')),
    tool_name VARCHAR,
    error_type VARCHAR,
    model VARCHAR,
    provider VARCHAR,
    summary VARCHAR NOT NULL,
    is_chunked BOOLEAN NOT NULL,
    chunk_count UINTEGER,
    data_size_bytes UBIGINT NOT NULL,
    digest BLOB NOT NULL,
    encoding UTINYINT NOT NULL,
    raw BLOB,
    synced_at TIMESTAMP,
    PRIMARY KEY (user_id, session_id, sequence),
    UNIQUE (user_id, event_id)
);

CREATE TABLE event_chunks (
    user_id VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    sequence UINTEGER NOT NULL,
    chunk_index UINTEGER NOT NULL,
    total_chunks UINTEGER NOT NULL,
    chunk_data BLOB NOT NULL,
    PRIMARY KEY (user_id, session_id, sequence, chunk_index)
);
";

/// The table of vectors of the current generation, the table of all others, and the view over them.
///
/// `FLOAT[N]` requires one `N` for the table, and while a rebuild makes vectors with another model, there are vectors
/// of two lengths. So the searched vectors are in `transcript_vectors`, with the length of their model, and those of
/// other generations in `other_vectors`, as lists. When the next generation becomes the current one, the table is
/// recreated for its length: see `vectors.rs`. A store that never had vectors has no known length yet, so its table has
/// lists.
pub(crate) fn vectors(dimensions: Option<usize>) -> String {
    let vector = vector_type(dimensions);
    let current = vector_table("transcript_vectors", &vector);
    format!(
        "DROP VIEW IF EXISTS vectors_of_generations;
         DROP TABLE IF EXISTS transcript_vectors;
         {current}
         {VECTORS_OF_GENERATIONS}"
    )
}

/// The table of vectors of generations other than the current one.
pub(crate) fn other_vectors() -> String {
    vector_table("other_vectors", &vector_type(None))
}

/// The type of the vector column.
pub(crate) fn vector_type(dimensions: Option<usize>) -> String {
    dimensions.map_or_else(|| "FLOAT[]".to_owned(), |dimensions| format!("FLOAT[{dimensions}]"))
}

fn vector_table(name: &str, vector: &str) -> String {
    format!(
        "CREATE TABLE {name} (
            key BIGINT NOT NULL UNIQUE,
            user_id VARCHAR NOT NULL,
            session_id VARCHAR NOT NULL,
            sequence UINTEGER NOT NULL,
            content_type VARCHAR NOT NULL
                CHECK (content_type IN ('user_query', 'assistant_response', 'assistant_thinking', 'tool_output')),
            chunk_index UINTEGER NOT NULL,
            total_chunks UINTEGER NOT NULL,
            span_start UINTEGER NOT NULL,
            span_end UINTEGER NOT NULL,
            token_count UINTEGER NOT NULL CHECK (token_count > 0),
            embedding_model VARCHAR NOT NULL,
            created_at TIMESTAMP NOT NULL,
            revision BIGINT NOT NULL,
            generation UINTEGER NOT NULL,
            vector {vector} NOT NULL,
            CHECK (chunk_index < total_chunks),
            PRIMARY KEY (user_id, session_id, sequence, generation, content_type, chunk_index)
        );"
    )
}

/// Vectors of all generations, as lists.
const VECTORS_OF_GENERATIONS: &str = "
CREATE VIEW vectors_of_generations AS
SELECT * REPLACE (CAST(vector AS FLOAT[]) AS vector) FROM transcript_vectors
UNION ALL SELECT * FROM other_vectors;
";

/// DuckDB's SQL in the views. A value that is not UTF-8 or not JSON is `NULL`.
///
/// The views in the file use no functions of this program, because any DuckDB program may read them. So `data` is
/// available only for uncompressed lines, and there is no view of vectors with their texts. SQL queries through this
/// program have views of their own with all of it.
pub(crate) const VIEW_DIALECT: &ViewDialect = &[
    ("content", "json_extract({line}, '$.content')"),
    ("metadata", "json_extract({line}, '$.metadata')"),
    ("line", "TRY_CAST(TRY(decode(t.raw)) AS JSON)"),
    ("summary", "TRY_CAST(e.summary AS JSON)"),
    (
        "data",
        "CASE WHEN e.encoding = {plain} THEN json_extract(TRY_CAST(TRY(decode(e.raw)) AS JSON), '$.data') END",
    ),
    // The table contains no other generation.
    ("current", ""),
];

/// The statement that creates a view.
fn create_view(view: View) -> String {
    format!("CREATE OR REPLACE VIEW {} AS\n{};\n", view.name, view.query(VIEW_DIALECT))
}

/// The statements that create the views of messages and events.
pub(crate) fn views() -> String {
    [TRANSCRIPTS_WITH_CONTENT, EVENTS_WITH_DATA].map(create_view).concat()
}
