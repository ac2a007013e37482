-- The settled rows of a session, and the rows that a rewind left: before, they were parts of the sync state.

ALTER TABLE sessions ADD COLUMN settled text;
ALTER TABLE sessions ADD COLUMN rewound_messages bigint;
ALTER TABLE sessions ADD COLUMN rewound_events bigint;
