-- Embeddings of turns, and their summaries: those that a person set, and those that lines state.

-- `vector` is little-endian 32-bit floats: turns are compared one by one.
CREATE TABLE message_embeddings (
    id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    user_sequence bigint NOT NULL,
    assistant_sequence bigint,
    user_message_id text COLLATE "C" NOT NULL,
    assistant_message_id text COLLATE "C",
    provider text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    dim bigint NOT NULL,
    content_used text NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    used_turn_summary boolean NOT NULL,
    vector bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, id),
    UNIQUE (user_id, user_message_id, provider, model)
);
ALTER TABLE message_embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE INDEX message_embeddings_by_assistant_message ON message_embeddings (user_id, assistant_message_id);
CREATE INDEX message_embeddings_by_session ON message_embeddings (user_id, session_id, user_sequence);
CREATE INDEX message_embeddings_by_model ON message_embeddings (provider, model);

CREATE TABLE turn_summaries (
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    user_sequence bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    turn_summary text NOT NULL,
    is_stated boolean NOT NULL,
    set_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, session_id, user_sequence)
);
