-- Divides an empty store by user between several servers: every table of rows becomes a partitioned table of this
-- server, the coordinator, and its partitions are the tables of stores on the other servers, the shards. All rows of a
-- user are on one shard.
--
-- Run it with psql as a superuser, after `amplifier-sessions config init` on the coordinator and on each shard, and after
-- creating a foreign server for each shard with the names shard_0, shard_1 and so on: see docs/scaling.md.
--
--   psql -h coordinator team -v schema=amplifier_sessions -f shards.sql
--
-- It can be run again, after an upgrade that has added tables. The number of shards cannot be changed.

\set ON_ERROR_STOP on
\if :{?schema}
\else
    \set schema amplifier_sessions
\endif

BEGIN;
SET LOCAL search_path TO :"schema", public;
-- Apart from the tables, because row level security does not restrict foreign tables: no role may use this schema.
SELECT :'schema' || '_shards' AS partitions \gset
CREATE SCHEMA IF NOT EXISTS :"partitions";
SELECT set_config('shards.schema', :'schema', TRUE), set_config('shards.partitions', :'partitions', TRUE) \g /dev/null

-- Without it, an update would leave the rows on the shard of the old user, where no search finds them.
CREATE OR REPLACE FUNCTION refuse_other_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows cannot move to another user in a store that is divided between servers'
        USING ERRCODE = 'feature_not_supported';
END $$;

DO $$
DECLARE
    shards text[] := (SELECT array_agg(srvname::text ORDER BY length(srvname), srvname) FROM pg_foreign_server
        WHERE srvname ~ '^shard_[0-9]+$');
    name text;
    texts text;
    has_rows boolean;
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_database WHERE datname = current_database()
            AND coalesce(datlocale, datcollate) IN ('C', 'POSIX', 'C.UTF-8') AND datlocprovider IN ('b', 'c')
    ) THEN
        RAISE EXCEPTION 'the database must be created with LOCALE ''C''';
    END IF;
    IF shards IS NULL THEN
        RAISE EXCEPTION 'there are no foreign servers shard_0, shard_1, ...';
    END IF;
    FOR name IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id'
        WHERE c.relnamespace = current_setting('shards.schema')::regnamespace
            AND c.relkind = 'r' AND c.relname <> 'meta_entries'
        ORDER BY 1
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO has_rows;
        IF has_rows THEN
            RAISE EXCEPTION 'the table % has rows: divide an empty store, then copy sessions to it', name;
        END IF;
        -- A partitioned table with foreign partitions has no unique index. Those of the shards have user_id, so they are
        -- unique among all servers.
        EXECUTE format('ALTER TABLE %I RENAME TO undivided', name);
        -- A condition is sent to the shards only if its column has the collation of the database, which is C as well.
        SELECT string_agg(format('ALTER COLUMN %I TYPE text COLLATE "default"', attname), ', ') INTO texts
            FROM pg_attribute WHERE attrelid = 'undivided'::regclass AND attcollation = '"C"'::regcollation;
        EXECUTE 'ALTER TABLE undivided ' || texts;
        EXECUTE format('CREATE TABLE %I (LIKE undivided INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED
            INCLUDING IDENTITY) PARTITION BY HASH (user_id)', name);
        DROP TABLE undivided;
        FOR at IN 1 .. array_length(shards, 1) LOOP
            EXECUTE format(
                'CREATE FOREIGN TABLE %I.%I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s) SERVER %I
                    OPTIONS (schema_name %L, table_name %L)',
                current_setting('shards.partitions'), name || '_' || at - 1, name, array_length(shards, 1), at - 1,
                shards[at], current_setting('shards.schema'), name
            );
        END LOOP;
        EXECUTE format('CREATE TRIGGER refuse_other_user BEFORE UPDATE OF user_id ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_other_user()', name);
    END LOOP;
END $$;
COMMIT;
