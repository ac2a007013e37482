-- The program that wrote a session, and the machine that the session was moved to.

ALTER TABLE sessions ADD COLUMN source text COLLATE "C" NOT NULL DEFAULT 'amplifier';
ALTER TABLE sessions ADD COLUMN moved_to text;
