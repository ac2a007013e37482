-- The entries of a store. They exist before every other table, because they have the number of the last migration.
--
-- Entries that all roles use are those of the user ''. A role that row level security restricts has entries of its own:
-- what they say of rows is true of its own rows only.
CREATE TABLE meta_entries (
    user_id text COLLATE "C" NOT NULL DEFAULT '', key text COLLATE "C" NOT NULL, value text NOT NULL,
    PRIMARY KEY (user_id, key)
);
ALTER TABLE meta_entries ALTER COLUMN user_id
    SET DEFAULT CASE WHEN row_security_active('meta_entries'::regclass) THEN current_user::text ELSE '' END;
CREATE VIEW schema_meta WITH (security_invoker = true) AS
    SELECT key, value FROM meta_entries
    WHERE user_id = '' OR row_security_active('meta_entries'::regclass);
