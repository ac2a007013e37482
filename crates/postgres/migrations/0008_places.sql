-- Where texts have each term. Empty: an earlier version indexed them, so the texts are compared with phrases.

ALTER TABLE postings ADD COLUMN places bytea NOT NULL DEFAULT '';
ALTER TABLE postings ALTER COLUMN places SET STORAGE EXTERNAL;
