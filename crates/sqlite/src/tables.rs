//! Tables, indexes and views.

use amplifier_session_sql::{
    removals,
    rows::{is_pending, is_turn_pending},
    turns,
    views::{VIEWS, View, ViewDialect},
};

/// The oldest layout that is upgraded.
pub(crate) const OLDEST_LAYOUT: usize = 10;

/// The layout that this library writes, in the header of the file (`PRAGMA user_version`). No number is used twice.
///
/// Within a schema version, it only changes in ways that let a process with an earlier layout continue to write.
pub(crate) const LAYOUT: usize = OLDEST_LAYOUT + UPGRADES.len();

/// The tables of schema version 4.
///
/// Times are ISO 8601 in UTC with six decimals, so that text order is time order. The content of raw lines is not
/// stored again; [`views`] extract it. `key` is the number of the row in the search index. Every transaction takes the
/// next revision. Rows carry the revision that last changed them, and `removed` lists removed rows for the index.
///
/// `transcripts.vectors` is the state of the message's vectors in the current generation; `transcripts.generation` is
/// the generation that a rebuild last made its vectors for.
pub(crate) const TABLES: &str = "
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
    edited TEXT NOT NULL DEFAULT '[]',
    source TEXT NOT NULL DEFAULT 'amplifier',
    moved_to TEXT,
    settled TEXT,
    rewound_messages INTEGER,
    rewound_events INTEGER,
    repository TEXT,
    UNIQUE (user_id, session_id)
);

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
    generation INTEGER NOT NULL DEFAULT 0,
    ts_source TEXT NOT NULL DEFAULT 'file',
    UNIQUE (user_id, session_id, sequence)
);

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
    generation INTEGER NOT NULL,
    vector BLOB NOT NULL,
    CHECK (chunk_index >= 0 AND chunk_index < total_chunks),
    UNIQUE (user_id, session_id, sequence, generation, content_type, chunk_index)
);

CREATE TABLE vector_failures (
    user_id TEXT NOT NULL, session_id TEXT NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (user_id, session_id, sequence, generation)
) WITHOUT ROWID;

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
    synced_at TEXT,
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
";

/// The indexes in addition to those of `UNIQUE` constraints, with the reads that use them.
///
/// `UNIQUE` constraints provide: `sessions (user_id, session_id)` one session, ids by prefix, sync states in order;
/// `transcripts (user_id, session_id, sequence)` and `events (…)` the rows of a session in order, from any position;
/// `transcript_vectors (user_id, session_id, sequence, generation, …)` the vectors of a user, a session, a message, a
/// text; `events (user_id, event_id)` one event by its id, in one session or in all.
///
/// Each index slows down every write. Columns that mostly have the same value or none have partial indexes.
const INDEXES: &str = "
-- Sessions of a project, and of a time; the sessions of a project that a search looks at.
CREATE INDEX IF NOT EXISTS sessions_by_project ON sessions (user_id, project_slug, created);
CREATE INDEX IF NOT EXISTS sessions_by_date ON sessions (user_id, created);
-- Lists, newest first: of a user, of a project, of a repository, of a bundle, of everyone or of what a viewer may see.
CREATE INDEX IF NOT EXISTS sessions_by_activity ON sessions (user_id, updated);
CREATE INDEX IF NOT EXISTS sessions_by_project_activity ON sessions (user_id, project_slug, updated);
CREATE INDEX IF NOT EXISTS sessions_by_repository ON sessions (user_id, repository, updated);
CREATE INDEX IF NOT EXISTS sessions_by_bundle ON sessions (user_id, bundle, updated);
CREATE INDEX IF NOT EXISTS sessions_of_all_by_activity ON sessions (updated);
-- Changes in order.
CREATE INDEX IF NOT EXISTS sessions_by_revision ON sessions (revision);
CREATE INDEX IF NOT EXISTS session_removals_by_revision ON session_removals (revision, key);
-- The sessions that were spawned or forked from one.
CREATE INDEX IF NOT EXISTS sessions_by_parent ON sessions (parent_id, user_id) WHERE parent_id IS NOT NULL;
-- A session by its id, or by how it begins, whosever it is.
CREATE INDEX IF NOT EXISTS sessions_by_id ON sessions (session_id);
-- What others share with a viewer.
CREATE INDEX IF NOT EXISTS sessions_by_visibility ON sessions (visibility, org_id);

-- The messages of a turn.
CREATE INDEX IF NOT EXISTS transcripts_by_turn ON transcripts (user_id, session_id, turn) WHERE turn IS NOT NULL;
-- The messages of a role; counting by time and role, which needs nothing else.
CREATE INDEX IF NOT EXISTS transcripts_by_role ON transcripts (user_id, session_id, role, ts);
-- What the search index does not hold yet.
CREATE INDEX IF NOT EXISTS transcripts_by_revision ON transcripts (revision);
CREATE INDEX IF NOT EXISTS transcript_vectors_by_revision ON transcript_vectors (revision);
-- Messages whose vectors are still to be made, and those of which only the vector of the turn is.
CREATE INDEX IF NOT EXISTS transcripts_owing_vectors ON transcripts (user_id, session_id, sequence)
    WHERE {pending};
CREATE INDEX IF NOT EXISTS transcripts_owing_turns ON transcripts (user_id, session_id, sequence)
    WHERE {turn_pending};

-- The events of a session by time; counting those of some sessions.
CREATE INDEX IF NOT EXISTS events_by_session_time ON events (user_id, session_id, ts);
-- The events of a session of one type; counting those of a type or a category.
CREATE INDEX IF NOT EXISTS events_by_session_type ON events (user_id, session_id, event_type);
-- The newest of a user of one type, about one tool, of one level. Nearly all have the level `INFO`: those are found
-- by time.
CREATE INDEX IF NOT EXISTS events_by_type ON events (user_id, event_type, ts);
CREATE INDEX IF NOT EXISTS events_by_tool ON events (user_id, tool_name, ts) WHERE tool_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_by_level ON events (user_id, level, ts) WHERE level <> 'INFO';
-- The newest of anyone, and of a user where nothing else narrows: the owner is compared in the index.
CREATE INDEX IF NOT EXISTS events_by_time ON events (ts, user_id);

-- The superseded lines of a session in order; those of a user.
CREATE INDEX IF NOT EXISTS superseded_lines_by_session ON superseded_lines (user_id, session_id, id);

-- The vectors of turns: one for each user's message and model; those of an assistant's message, of a session or a user in
-- order, and of a model; what the search index does not hold yet.
CREATE UNIQUE INDEX IF NOT EXISTS message_embeddings_by_id ON message_embeddings (id);
CREATE UNIQUE INDEX IF NOT EXISTS message_embeddings_by_message
    ON message_embeddings (user_id, user_message_id, provider, model);
CREATE INDEX IF NOT EXISTS message_embeddings_by_assistant_message
    ON message_embeddings (user_id, assistant_message_id);
CREATE INDEX IF NOT EXISTS message_embeddings_by_session ON message_embeddings (user_id, session_id, sequence);
CREATE INDEX IF NOT EXISTS message_embeddings_by_model ON message_embeddings (provider, model);
CREATE INDEX IF NOT EXISTS message_embeddings_by_revision ON message_embeddings (revision);
-- The summaries of turns of a session or a user.
CREATE UNIQUE INDEX IF NOT EXISTS turn_summaries_by_message ON turn_summaries (user_id, session_id, user_sequence);
";

/// The statements that create the indexes.
pub(crate) fn indexes() -> String {
    INDEXES
        .replace("{pending}", &is_pending("vectors"))
        .replace("{turn_pending}", &is_turn_pending("vectors"))
}

/// SQLite's SQL in the views.
///
/// Views are used instead of generated columns, because SQLite computes those for every row that is written, which
/// would parse each line twice more. Those of messages and vectors call functions of this program, because their lines
/// may be compressed. The view of events works in any SQLite program, and has `data` of uncompressed lines only.
const VIEW_DIALECT: &ViewDialect = &[
    ("content", "line_field(t.session_id, t.role, t.raw, 'content')"),
    ("metadata", "line_field(t.session_id, t.role, t.raw, 'metadata')"),
    ("summary", "e.summary"),
    (
        "data",
        "iif(e.encoding = {plain} AND json_valid(CAST(e.raw AS TEXT)), CAST(e.raw AS TEXT) -> '$.data', NULL)",
    ),
    (
        "current",
        "
WHERE v.generation = (SELECT coalesce(value ->> 'number', 0) FROM schema_meta WHERE key = 'embedding_space')",
    ),
];

/// The statements that create the views.
pub(crate) fn views() -> String {
    let create =
        |view: View| format!("CREATE VIEW IF NOT EXISTS {} AS\n{};\n", view.name, view.query(VIEW_DIALECT));
    VIEWS.into_iter().map(create).collect()
}

/// The sessions that left a scope.
pub(crate) fn removals() -> String {
    removals::TABLE.replace("{texts}", "TEXT")
}

/// The vectors of turns. Those of the earlier table are carried over.
#[must_use]
pub(crate) fn turn_tables() -> String {
    turns::tables("INTEGER PRIMARY KEY")
}

/// The steps from [`OLDEST_LAYOUT`] on, each to the next layout, after which [`indexes`] and [`views`] are created.
pub(crate) const UPGRADES: [fn() -> String; 4] = [
    // The program that wrote a session, and where the session went.
    || {
        "ALTER TABLE sessions ADD COLUMN source TEXT NOT NULL DEFAULT 'amplifier';
         ALTER TABLE sessions ADD COLUMN moved_to TEXT;"
            .to_owned()
    },
    // The settled rows, and the rows that a rewind left: before, they were parts of the sync state. The views call
    // functions of this program.
    || {
        "ALTER TABLE sessions ADD COLUMN settled TEXT;
         ALTER TABLE sessions ADD COLUMN rewound_messages INTEGER;
         ALTER TABLE sessions ADD COLUMN rewound_events INTEGER;
         DROP VIEW IF EXISTS transcripts_with_content;
         DROP VIEW IF EXISTS vectors_with_context;"
            .to_owned()
    },
    // The repository of a session.
    //
    // The vectors of turns are in generations and in the search index, and pending like those of messages. Whether one
    // is outdated was not recorded: it is compared with its turn.
    || {
        let carry_over = turns::CARRY_OVER
            .replace("{before}", "earlier_embeddings")
            .replace("{space}", "m.value")
            .replace("{revision}", "(SELECT coalesce(max(revision), 0) FROM revisions)")
            .replace("{key}", "NULL");
        let (tables, mark) = (turn_tables(), turns::MARK_ALL);
        format!(
            "ALTER TABLE message_embeddings RENAME TO earlier_embeddings;
             {tables}
             {carry_over}
             DROP TABLE earlier_embeddings;
             ALTER TABLE sessions ADD COLUMN repository TEXT;
             UPDATE {mark};
             DELETE FROM schema_meta WHERE key LIKE 'unfinished_turns/%';"
        )
    },
    // The sessions that left a scope, for the feed of changes.
    removals,
];
