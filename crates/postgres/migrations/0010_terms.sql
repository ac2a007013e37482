-- Counts the texts with a term without reading a row for each block.

CREATE INDEX postings_by_term ON postings (term) INCLUDE (text_count);
