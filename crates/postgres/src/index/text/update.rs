//! Taking removed messages from blocks, merging blocks, and making all anew.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_core::{
    Result,
    content::MessageLine,
    model::{RawJson, SessionKey, SessionSource},
};
use amplifier_session_sql::{
    Columns, Query, Reader as _, Statement, backend::Writer as _, damaged, is_one_of, rows::removed::MESSAGE,
};
use tokio_postgres::types::Type;

use super::{
    block::{Posting, TextKey, decode_postings, decode_texts},
    new::{block_numbers, block_rows, posting_rows, put_block, put_postings},
    removed::{RemovedKeys, TouchedBlock},
};
use crate::{
    columns::PgRow,
    connection::{Parameter, PgReader, PgWriter},
};

const OPERATION: &str = "update_index";

/// So many blocks of about the same size are merged to one.
const MERGED: u32 = 8;

/// Blocks with so many messages are not merged.
const LARGE: i64 = 32_768;

/// How many messages are read at once to make the index anew.
const READ: i64 = 512;

/// Takes the texts of removed messages from the blocks, and merges small blocks. The transaction has the lock of the index.
pub(crate) fn update(writer: &PgWriter<'_>) -> Result<()> {
    let reader = writer.reader();
    let removed = RemovedKeys::read(reader, OPERATION)?;
    for block in removed.blocks(reader, OPERATION)? {
        take_removed(reader, &block, &removed)?;
    }
    if !removed.keys.is_empty() {
        let keys: Vec<i64> = removed.keys.into_iter().collect();
        let sql = "DELETE FROM removed WHERE kind = $1 AND key = ANY($2)";
        reader.query(OPERATION, sql, &[(&MESSAGE, Type::INT8), (&keys, Type::INT8_ARRAY)])?;
    }
    for (user, blocks) in to_merge(reader)? {
        merge(reader, &user, &blocks)?;
    }
    Ok(())
}

/// Removes the texts of removed messages from a block. Rows of other terms stay as they are.
fn take_removed(reader: &PgReader<'_>, block: &TouchedBlock, removed: &RemovedKeys) -> Result<()> {
    let TouchedBlock { user, number, texts } = block;
    let sql = "SELECT term, data, places FROM postings WHERE user_id = $1 AND block = $2";
    let of_block: [Parameter<'_>; 2] = [(user, Type::TEXT), (number, Type::INT8)];
    let (mut changed, mut rows) = (Vec::new(), posting_rows());
    for row in reader.query(OPERATION, sql, &of_block)? {
        let mut postings = decode_postings(PgRow(&row).bytes_ref(1)?, PgRow(&row).bytes_ref(2)?)?;
        let before = postings.len();
        postings.retain(|posting| !removed.have(posting.text));
        if postings.len() < before {
            let term = PgRow(&row).text(0)?;
            if !postings.is_empty() {
                put_postings(&mut rows, user, *number, &term, &postings);
            }
            changed.push(term);
        }
    }
    // `COPY` only inserts, so the old rows of the changed terms are deleted first.
    let sql = "DELETE FROM postings WHERE user_id = $1 AND block = $2 AND term = ANY($3)";
    let of_terms: [Parameter<'_>; 3] =
        [(user, Type::TEXT), (number, Type::INT8), (&changed, Type::TEXT_ARRAY)];
    reader.query(OPERATION, sql, &of_terms)?;
    reader.copy(OPERATION, rows)?;

    let sql = "DELETE FROM text_blocks WHERE user_id = $1 AND block = $2";
    reader.query(OPERATION, sql, &of_block)?;
    let texts: Vec<(TextKey, u32)> = texts.iter().copied().filter(|(text, _)| !removed.have(*text)).collect();
    if texts.is_empty() {
        return Ok(());
    }
    let mut rows = block_rows();
    put_block(&mut rows, user, *number, &keys_of(&texts), &texts);
    reader.copy(OPERATION, rows)
}

/// The messages of texts, which are in order.
fn keys_of(texts: &[(TextKey, u32)]) -> Vec<i64> {
    let mut keys: Vec<i64> = texts.iter().map(|(text, _)| text.key()).collect();
    keys.dedup();
    keys
}

/// The blocks of each user that become one.
fn to_merge(reader: &PgReader<'_>) -> Result<Vec<(String, Vec<i64>)>> {
    let sql = "SELECT user_id, block, message_count FROM text_blocks WHERE message_count < $1 ORDER BY user_id, block";
    let mut sizes: BTreeMap<(String, u32), Vec<i64>> = BTreeMap::new();
    for row in reader.query(OPERATION, sql, &[(&LARGE, Type::INT8)])? {
        let row = PgRow(&row);
        let size = row.integer(2)?.unsigned_abs().max(1).ilog(MERGED.into());
        sizes.entry((row.text(0)?, size)).or_default().push(row.integer(1)?);
    }
    let many = sizes.into_iter().filter(|(_, blocks)| blocks.len() >= MERGED as usize);
    Ok(many.map(|((user, _), blocks)| (user, blocks)).collect())
}

/// Makes one block of several.
fn merge(reader: &PgReader<'_>, user: &String, blocks: &Vec<i64>) -> Result<()> {
    let of_blocks: [Parameter<'_>; 2] = [(user, Type::TEXT), (blocks, Type::INT8_ARRAY)];
    let sql = "SELECT texts FROM text_blocks WHERE user_id = $1 AND block = ANY($2)";
    let mut texts: Vec<(TextKey, u32)> = Vec::new();
    for row in reader.query(OPERATION, sql, &of_blocks)? {
        texts.extend(decode_texts(PgRow(&row).bytes_ref(0)?)?);
    }
    // Stored texts and postings contain differences, so they must be in order.
    texts.sort_unstable();
    let sql = "SELECT term, data, places FROM postings WHERE user_id = $1 AND block = ANY($2)";
    let mut terms: BTreeMap<String, Vec<Posting>> = BTreeMap::new();
    for row in reader.query(OPERATION, sql, &of_blocks)? {
        let postings = decode_postings(PgRow(&row).bytes_ref(1)?, PgRow(&row).bytes_ref(2)?)?;
        terms.entry(PgRow(&row).text(0)?).or_default().extend(postings);
    }
    for table in ["text_blocks", "postings"] {
        let sql = format!("DELETE FROM {table} WHERE user_id = $1 AND block = ANY($2)");
        reader.query(OPERATION, &sql, &of_blocks)?;
    }
    if texts.is_empty() {
        return Ok(());
    }
    let numbers = block_numbers(reader, OPERATION, 1)?;
    let number = *numbers.first().ok_or_else(|| damaged("block number"))?;
    let (mut block_row, mut rows) = (block_rows(), posting_rows());
    put_block(&mut block_row, user, number, &keys_of(&texts), &texts);
    for (term, mut postings) in terms {
        postings.sort_unstable();
        put_postings(&mut rows, user, number, &term, &postings);
    }
    reader.copy(OPERATION, block_row)?;
    reader.copy(OPERATION, rows)
}

/// Makes the index anew. No other transaction writes meanwhile.
pub(crate) fn rebuild(writer: &mut PgWriter<'_>) -> Result<()> {
    for sql in ["DELETE FROM postings", "DELETE FROM text_blocks", "DELETE FROM removed"] {
        writer.execute(&Statement::new(OPERATION, sql, []))?;
    }
    let mut last = 0;
    loop {
        let messages = stored_messages(writer.reader(), last)?;
        let Some(message) = messages.last() else { return writer.flush(OPERATION) };
        last = message.key;
        messages.iter().for_each(|message| writer.index(message));
        if writer.indexed_messages() as i64 >= LARGE / i64::from(MERGED) {
            writer.flush(OPERATION)?;
        }
    }
}

/// What the index needs of a message.
#[derive(Debug)]
pub(crate) struct IndexedMessage {
    pub(crate) key: i64,
    pub(crate) user: String,
    pub(crate) line: MessageLine,
}

impl IndexedMessage {
    pub(super) const COLUMNS: &'static str = "key, user_id, role, raw, session_id";

    pub(super) fn read(row: &dyn Columns) -> Result<Self> {
        let (raw, session) = (RawJson::new(row.bytes(3)?), row.text(4)?);
        let line = MessageLine::stored(&raw, row.text(2)?.parse()?, SessionSource::split(&session).0);
        Ok(Self { key: row.integer(0)?, user: row.text(1)?, line })
    }
}

fn stored_messages(reader: &PgReader<'_>, after: i64) -> Result<Vec<IndexedMessage>> {
    let columns = IndexedMessage::COLUMNS;
    let sql = format!("SELECT {columns} FROM transcripts WHERE key > ?1 ORDER BY key LIMIT {READ}");
    reader.rows(&Query::new(OPERATION, sql, [after.into()], IndexedMessage::read))
}

/// Indexes the texts of messages again: they get new keys, and their old ones are removed from the index later.
pub(crate) fn reindex(writer: &mut PgWriter<'_>, key: &SessionKey, sequences: &[u32]) -> Result<()> {
    let which = is_one_of("sequence", sequences.iter().copied().map(i64::from));
    let of_session = [key.user_id.as_str().into(), key.session_id.as_str().into()];
    let columns = IndexedMessage::COLUMNS;
    let mine = format!("user_id = ?1 AND session_id = ?2 AND {which}");
    let note = format!(
        "INSERT INTO removed (user_id, kind, revision, key)
         SELECT user_id, {MESSAGE}, nextval('revisions'), key FROM transcripts WHERE {mine}"
    );
    let give = format!("UPDATE transcripts SET key = nextval('message_keys') WHERE {mine}");
    for sql in [note, give] {
        writer.execute(&Statement::once("reindex_texts", sql, of_session.clone()))?;
    }
    let sql = format!("SELECT {columns} FROM transcripts WHERE {mine}");
    let messages = writer.rows(&Query::new("reindex_texts", sql, of_session, IndexedMessage::read).once())?;
    messages.iter().for_each(|message| writer.index(message));
    Ok(())
}

/// The messages of these keys, as the rows are.
pub(super) fn messages_of(reader: &PgReader<'_>, keys: &[i64]) -> Result<HashMap<i64, IndexedMessage>> {
    let which = is_one_of("key", keys.iter().copied());
    let sql = format!("SELECT {} FROM transcripts WHERE {which}", IndexedMessage::COLUMNS);
    let found = reader.rows(&Query::new("check_index", sql, [], IndexedMessage::read).once())?;
    Ok(found.into_iter().map(|message| (message.key, message)).collect())
}
