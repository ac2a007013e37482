-- The index of texts, in blocks of messages: see src/index/text.

-- One row for each block. `texts` lists its texts with their lengths.
CREATE TABLE text_blocks (
    user_id text COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    first_key bigint NOT NULL,
    last_key bigint NOT NULL,
    message_count bigint NOT NULL,
    text_count bigint NOT NULL,
    token_count bigint NOT NULL,
    texts bytea NOT NULL,
    PRIMARY KEY (user_id, block)
);

-- For each term of a block, the texts that contain it.
CREATE TABLE postings (
    user_id text COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    text_count bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (user_id, block, term)
);
ALTER TABLE text_blocks ALTER COLUMN texts SET STORAGE EXTERNAL;
ALTER TABLE postings ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE SEQUENCE text_block_numbers;
