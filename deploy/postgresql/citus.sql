-- Divides a store by user between the workers of a Citus cluster. This script has not been run: see docs/scaling.md.
--
-- Run it with psql on the coordinator, after `amplifier-sessions config init` there. Citus moves rows that exist already.
--
--   psql -h coordinator team -v schema=amplifier_sessions -f citus.sql

\set ON_ERROR_STOP on
\if :{?schema}
\else
    \set schema amplifier_sessions
\endif

BEGIN;
SET LOCAL search_path TO :"schema", public;

-- Entries of the store are read with rows of every user, and are few: each worker has all of them.
SELECT create_reference_table('meta_entries');

-- Rows of a user are on one worker, in all tables.
SELECT create_distributed_table('sessions', 'user_id');
SELECT create_distributed_table(divided::regclass, 'user_id', colocate_with => 'sessions')
FROM unnest(ARRAY[
    'metadata_files', 'transcripts', 'transcript_vectors', 'vector_failures', 'events', 'event_chunks',
    'deleted_sessions', 'superseded_lines', 'removed', 'text_blocks', 'postings',
    'message_embeddings', 'turn_summaries'
]) AS divided;
COMMIT;
