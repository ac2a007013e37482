//! Tables and views.
//!
//! DuckDB is not asked for rows through indexes: it scans columns, and leaves out the stretches whose lowest and highest
//! value say that nothing is there. Rows lie in the order in which they were written, so this goes well for revisions,
//! sessions and times. Only `key` has an index that reads use: the search index asks for rows by it, one here and one
//! there. The primary keys keep rows unique and serve no read.

/// The layout that this library writes, in `schema_meta` under this key.
pub(crate) const LAYOUT_KEY: &str = "layout";

/// The value under [`LAYOUT_KEY`]. The first layout is 1.
pub(crate) const LAYOUT: usize = 1 + UPGRADES.len();

/// From each layout to the next, before the views are made anew. A step may be repeated: DuckDB does not let a table be
/// changed and its rows in one transaction.
pub(crate) const UPGRADES: [&str; 1] = [
    // Where the times of messages come from: most lines state none.
    "ALTER TABLE transcripts ADD COLUMN IF NOT EXISTS ts_source VARCHAR DEFAULT 'file';
     UPDATE transcripts SET ts_source = 'stated' WHERE NOT ts_estimated;",
];

/// The tables of schema version 4, but for [`vectors`].
///
/// Times are `TIMESTAMP`: UTC in microseconds, without a time zone, so that no setting of a session changes what is read.
/// Lines are bytes, as they came in; what stands in one is not stored again: [`VIEWS`] take it from there. No generated
/// columns, which rows can't be appended beside. `key` is the row's number in the search index; a message's is made of its
/// session's and of its place there. Every write takes the
/// next revision; rows carry the one that last changed them, and `removed` tells the index of those that are gone.
///
/// `transcripts.vectors` is the state of a message's vectors of the current generation; `transcripts.generation` is the
/// one that a rebuild last made its vectors of.
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

/// The table of the vectors of the current generation, and that of all others, with the views over them.
///
/// `FLOAT[N]` needs one `N` for the table, and while a rebuild makes vectors with another model there are vectors of two
/// lengths. So those that are searched lie in `transcript_vectors`, with the length of their model, and those of the next
/// generation, and of one that is not removed yet, in `other_vectors` as lists. When the next generation becomes the
/// current one the table is made anew for its length: see `generations.rs`. A store that never had vectors does not know
/// a length; its table has lists.
pub(crate) fn vectors(dimensions: Option<usize>) -> String {
    let vector = vector_type(dimensions);
    let current = vector_table("transcript_vectors", &vector);
    format!(
        "DROP VIEW IF EXISTS vectors_with_context;
         DROP VIEW IF EXISTS vectors_of_generations;
         DROP TABLE IF EXISTS transcript_vectors;
         {current}
         {VECTORS_OF_GENERATIONS}
         CREATE VIEW {with_context};",
        with_context = vectors_with_context(true)
    )
}

/// The table of vectors of generations other than the current one.
pub(crate) fn other_vectors() -> String {
    vector_table("other_vectors", &vector_type(None))
}

/// The type of the column of vectors.
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

/// The view of vectors of the current generation with what their messages say, with or without their numbers.
pub(crate) fn vectors_with_context(with_vectors: bool) -> String {
    let vector = if with_vectors { ", v.vector" } else { "" };
    format!(
        "vectors_with_context AS
SELECT v.session_id || '_msg_' || v.sequence || '_' || v.content_type || '_' || v.chunk_index AS id,
    v.session_id || '_msg_' || v.sequence AS parent_id, v.user_id, v.session_id, v.sequence, s.project_slug, m.role,
    m.turn, m.ts, v.content_type, v.chunk_index, v.total_chunks, v.span_start, v.span_end, v.token_count,
    v.embedding_model, v.created_at{vector}
FROM transcript_vectors v
JOIN transcripts m USING (user_id, session_id, sequence)
JOIN sessions s USING (user_id, session_id)"
    )
}

/// What is in the raw lines, and ids that are made of other columns: for people and their tools. What is no JSON shows as
/// nothing.
pub(crate) const VIEWS: &str = "
CREATE OR REPLACE VIEW transcripts_with_content AS
SELECT t.session_id || '_msg_' || t.sequence AS id, t.user_id, s.host_id, s.project_slug, t.session_id, t.sequence,
    t.role, t.turn, t.ts, t.ts_estimated, t.ts_source, t.synced_at, t.vectors IN (1, 3) AS has_vectors,
    json_extract(TRY_CAST(TRY(decode(t.raw)) AS JSON), '$.content') AS content,
    json_extract(TRY_CAST(TRY(decode(t.raw)) AS JSON), '$.metadata') AS metadata,
    t.raw
FROM transcripts t JOIN sessions s USING (user_id, session_id);

CREATE OR REPLACE VIEW events_with_data AS
SELECT e.user_id, s.host_id, s.project_slug, e.session_id, e.sequence, e.event_id, e.event_type, e.ts, e.ts_estimated,
    e.turn, e.level, e.tool_name, e.error_type, e.model, e.provider, CAST(e.summary AS JSON) AS summary,
    e.data_size_bytes, e.is_chunked, e.chunk_count,
    CASE WHEN e.encoding = 1 THEN json_extract(TRY_CAST(TRY(decode(e.raw)) AS JSON), '$.data') END AS data
FROM events e JOIN sessions s USING (user_id, session_id);
";
