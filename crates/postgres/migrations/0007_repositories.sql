-- The repository of a session.

ALTER TABLE sessions ADD COLUMN repository text COLLATE "C";
CREATE INDEX sessions_by_repository ON sessions (user_id, repository, updated);
