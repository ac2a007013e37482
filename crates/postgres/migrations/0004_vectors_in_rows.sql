-- Comparing vectors that are stored outside of their rows takes three to four times as long. Existing rows stay as they
-- are until their vectors are made again. The column exists if the server has pgvector.
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = 'transcript_vectors'::regclass AND attname = 'half' AND NOT attisdropped
    ) THEN
        ALTER TABLE transcript_vectors ALTER COLUMN half SET STORAGE MAIN;
    END IF;
END $$;
