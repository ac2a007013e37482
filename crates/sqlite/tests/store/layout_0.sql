-- The tables as the first builds of schema version 4 made them.
CREATE TABLE schema_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE revisions (revision INTEGER PRIMARY KEY AUTOINCREMENT, nonce INTEGER NOT NULL);
CREATE TABLE removed (
    kind INTEGER NOT NULL, revision INTEGER NOT NULL, key INTEGER NOT NULL,
    PRIMARY KEY (kind, revision, key)
) WITHOUT ROWID;

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    project_slug TEXT NOT NULL DEFAULT 'default',
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    name TEXT,
    description TEXT,
    bundle TEXT,
    model TEXT,
    turn_count INTEGER NOT NULL DEFAULT 0,
    message_count INTEGER NOT NULL DEFAULT 0,
    event_count INTEGER NOT NULL DEFAULT 0,
    parent_id TEXT,
    forked_from_turn INTEGER,
    tags TEXT NOT NULL DEFAULT '[]',
    visibility TEXT NOT NULL DEFAULT 'private' CHECK (visibility IN ('private', 'team', 'org', 'public')),
    org_id TEXT,
    team_ids TEXT NOT NULL DEFAULT '[]',
    shared_at TEXT,
    working_dir TEXT,
    first_prompt TEXT,
    skipped_lines TEXT NOT NULL DEFAULT '[]',
    sync_state TEXT,
    revision INTEGER NOT NULL,
    UNIQUE (user_id, session_id)
);
CREATE INDEX sessions_by_project ON sessions (user_id, project_slug, created);
CREATE INDEX sessions_by_date ON sessions (user_id, created);
CREATE INDEX sessions_by_activity ON sessions (user_id, updated);
CREATE INDEX sessions_by_bundle ON sessions (user_id, bundle);

CREATE TABLE metadata_files (
    user_id TEXT NOT NULL, session_id TEXT NOT NULL, position INTEGER NOT NULL,
    name TEXT NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (user_id, session_id, position)
) WITHOUT ROWID;

CREATE TABLE transcripts (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system', 'developer')),
    turn INTEGER CHECK (turn >= 1),
    ts TEXT NOT NULL,
    ts_estimated INTEGER NOT NULL,
    synced_at TEXT NOT NULL,
    vectors INTEGER NOT NULL,
    digest BLOB NOT NULL,
    revision INTEGER NOT NULL,
    raw TEXT NOT NULL,
    id TEXT GENERATED ALWAYS AS (session_id || '_msg_' || sequence) VIRTUAL,
    content TEXT GENERATED ALWAYS AS (iif(typeof(raw) = 'text' AND json_valid(raw), raw -> '$.content', NULL)) VIRTUAL,
    metadata TEXT GENERATED ALWAYS AS (iif(typeof(raw) = 'text' AND json_valid(raw), raw -> '$.metadata', NULL)) VIRTUAL,
    has_vectors INTEGER GENERATED ALWAYS AS (vectors = 1) VIRTUAL,
    UNIQUE (user_id, session_id, sequence)
);
CREATE INDEX transcripts_by_revision ON transcripts (revision);
CREATE INDEX transcripts_owing_vectors ON transcripts (user_id, session_id, sequence) WHERE vectors = 0;

CREATE TABLE transcript_vectors (
    key INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    content_type TEXT NOT NULL
        CHECK (content_type IN ('user_query', 'assistant_response', 'assistant_thinking', 'tool_output')),
    chunk_index INTEGER NOT NULL,
    total_chunks INTEGER NOT NULL,
    span_start INTEGER NOT NULL,
    span_end INTEGER NOT NULL,
    token_count INTEGER NOT NULL CHECK (token_count > 0),
    embedding_model TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revision INTEGER NOT NULL,
    vector BLOB NOT NULL,
    parent_id TEXT GENERATED ALWAYS AS (session_id || '_msg_' || sequence) VIRTUAL,
    id TEXT GENERATED ALWAYS AS
        (session_id || '_msg_' || sequence || '_' || content_type || '_' || chunk_index) VIRTUAL,
    CHECK (chunk_index >= 0 AND chunk_index < total_chunks),
    UNIQUE (user_id, session_id, sequence, content_type, chunk_index)
);
CREATE INDEX transcript_vectors_by_revision ON transcript_vectors (revision);

CREATE TABLE events (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    ts TEXT NOT NULL,
    ts_estimated INTEGER NOT NULL,
    turn INTEGER CHECK (turn >= 1),
    level TEXT NOT NULL CHECK (level IN ('DEBUG', 'INFO', 'WARN', 'ERROR')),
    tool_name TEXT,
    error_type TEXT,
    model TEXT,
    provider TEXT,
    summary TEXT NOT NULL DEFAULT '{}',
    is_chunked INTEGER NOT NULL DEFAULT 0,
    chunk_count INTEGER,
    data_size_bytes INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL,
    encoding INTEGER NOT NULL,
    raw BLOB,
    data TEXT GENERATED ALWAYS AS
        (iif(encoding = 1 AND json_valid(CAST(raw AS TEXT)), CAST(raw AS TEXT) -> '$.data', NULL)) VIRTUAL,
    UNIQUE (user_id, session_id, sequence),
    UNIQUE (user_id, event_id)
);

CREATE TABLE event_chunks (
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    total_chunks INTEGER NOT NULL,
    chunk_data BLOB NOT NULL,
    UNIQUE (user_id, session_id, sequence, chunk_index)
);
