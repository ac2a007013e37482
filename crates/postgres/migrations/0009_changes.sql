-- The feed of changes.
--
-- `changed` is the transaction that last wrote a session. Revisions are not committed in order, but transactions below
-- `pg_snapshot_xmin` have all ended. It is a `bigint`, as every number. Sessions from before have 0, which no reader asks
-- for.
--
-- `session_removals` has the sessions that left a scope: with how they were shared before.

ALTER TABLE sessions ADD COLUMN changed bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ALTER COLUMN changed SET DEFAULT (pg_current_xact_id()::text::bigint);
CREATE INDEX sessions_by_change ON sessions (changed, key);

CREATE TABLE session_removals (
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    revision bigint NOT NULL,
    visibility text NOT NULL,
    org_id text COLLATE "C",
    team_ids text[] NOT NULL,
    changed bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint)
);
CREATE INDEX session_removals_by_change ON session_removals (changed, key);
