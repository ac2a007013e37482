//! Rows of `transcript_vectors` and `other_vectors`.

use std::{collections::HashMap, sync::Arc};

use amplifier_session_core::{
    Result,
    backend::MessageVectors,
    model::{ContentType, Place, SessionKey, Timestamp, VectorRecord},
};
use amplifier_session_sql::{
    number,
    rows::{self, VECTOR},
    unless_damaged,
};
use duckdb::{
    Connection,
    arrow::{
        array::{
            ArrayRef, FixedSizeListArray, Float32Array, Int64Array, ListArray, StringArray,
            TimestampMicrosecondArray, UInt32Array,
        },
        buffer::OffsetBuffer,
        datatypes::{DataType, Field, Schema},
        error::ArrowError,
        record_batch::RecordBatch,
    },
    params,
};

use crate::{
    columns::Cursor,
    error::storage,
    messages::{self, StoredLine},
    pool::Numbers,
    reader::is_one_of,
};

/// The tables with vectors: of the current generation, of all others.
pub(crate) const TABLES: [&str; 2] = ["transcript_vectors", "other_vectors"];

/// The generation that vectors are written to.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) generation: u32,
    pub(crate) model: &'a str,
    pub(crate) dimensions: usize,
    pub(crate) is_current: bool,
}

impl Target<'_> {
    fn table(&self) -> &'static str {
        if self.is_current { TABLES[0] } else { TABLES[1] }
    }
}

/// Stores the vectors of the messages whose lines are still those that they were made of; returns how many.
pub(crate) fn put(
    connection: &Connection,
    key: &SessionKey,
    of_messages: &[MessageVectors],
    target: &Target<'_>,
    revision: i64,
    numbers: &mut Numbers,
) -> Result<usize> {
    let lines = messages::stored_lines(connection, key, of_messages.iter().map(|of| of.sequence))?;
    let is_same = |of: &&MessageVectors| {
        lines.get(&of.sequence).is_some_and(|line: &StoredLine| line.digest == of.digest.0)
    };
    let fresh: Vec<&MessageVectors> = of_messages.iter().filter(is_same).collect();
    let fresh_lines = || fresh.iter().filter_map(|of| lines.get(&of.sequence));
    let mut write = || {
        if !target.is_current || fresh_lines().any(|line| line.may_have_vectors) {
            let which = is_one_of("sequence", fresh.iter().map(|of| i64::from(of.sequence)));
            let which = format!("{which} AND generation = {}", target.generation);
            remove(connection, key, &which, revision)?;
        }
        append(connection, key, &fresh, target, revision, numbers)?;
        put_failures(connection, key, &fresh, target.generation)?;
        messages::mark_made(connection, fresh_lines().map(|line| line.key), target)
    };
    write().map_err(storage("write_vectors"))?;
    Ok(fresh.iter().map(|of| of.records.len()).sum())
}

/// Removes what is known of the vectors of a session, and leaves word of it for the index. `which` is a condition on
/// `sequence` and `generation`.
pub(crate) fn remove(
    connection: &Connection,
    key: &SessionKey,
    which: &str,
    revision: i64,
) -> duckdb::Result<()> {
    let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
    let of_session = format!("WHERE user_id = ?1 AND session_id = ?2 AND {which}");
    for table in TABLES {
        let sql =
            format!("INSERT INTO removed (kind, revision, key) SELECT 1, ?3, key FROM {table} {of_session}");
        if connection.execute(&sql, params![user, session, revision])? > 0 {
            connection.execute(&format!("DELETE FROM {table} {of_session}"), [user, session])?;
        }
    }
    connection.execute(&format!("DELETE FROM vector_failures {of_session}"), [user, session])?;
    Ok(())
}

fn append(
    connection: &Connection,
    key: &SessionKey,
    of_messages: &[&MessageVectors],
    target: &Target<'_>,
    revision: i64,
    numbers: &mut Numbers,
) -> duckdb::Result<()> {
    let rows: Vec<Row<'_>> = of_messages
        .iter()
        .flat_map(|of| of.records.iter().map(|record| (of.sequence, of.created_at, record)))
        .map(|(sequence, created_at, record)| Row { key: numbers.next_key(), sequence, created_at, record })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let batch = batch(key, &rows, target, revision)
        .map_err(|error| duckdb::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut appender = connection.appender(target.table())?;
    appender.append_record_batch(batch)?;
    appender.flush()
}

fn put_failures(
    connection: &Connection,
    key: &SessionKey,
    of_messages: &[&MessageVectors],
    generation: u32,
) -> duckdb::Result<()> {
    let sql = "INSERT INTO vector_failures (user_id, session_id, sequence, generation, reason)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
    for of in of_messages {
        if let Some(reason) = &of.failure {
            connection.prepare_cached(sql)?.execute(params![
                user,
                session,
                of.sequence,
                generation,
                reason
            ])?;
        }
    }
    Ok(())
}

struct Row<'a> {
    key: i64,
    sequence: u32,
    created_at: Timestamp,
    record: &'a VectorRecord,
}

/// The rows as columns: only so can vectors be appended.
fn batch(
    key: &SessionKey,
    rows: &[Row<'_>],
    target: &Target<'_>,
    revision: i64,
) -> Result<RecordBatch, ArrowError> {
    let same =
        |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(|_| text))) };
    let number = |number: fn(&Row<'_>) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(number)))
    };
    let types = rows.iter().map(|row| row.record.content_type.as_str());
    let columns: [(&str, ArrayRef); 15] = [
        ("key", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.key)))),
        ("user_id", same(key.user_id.as_str())),
        ("session_id", same(key.session_id.as_str())),
        ("sequence", number(|row| row.sequence)),
        ("content_type", Arc::new(StringArray::from_iter_values(types))),
        ("chunk_index", number(|row| row.record.chunk_index)),
        ("total_chunks", number(|row| row.record.total_chunks)),
        ("span_start", number(|row| row.record.span_start)),
        ("span_end", number(|row| row.record.span_end)),
        ("token_count", number(|row| row.record.token_count)),
        ("embedding_model", same(target.model)),
        (
            "created_at",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                rows.iter().map(|row| row.created_at.as_micros()),
            )),
        ),
        ("revision", Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| revision)))),
        ("generation", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|_| target.generation)))),
        ("vector", lists(rows, target)?),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), false)).collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, column)| column).collect(),
    )
}

fn lists(rows: &[Row<'_>], target: &Target<'_>) -> Result<ArrayRef, ArrowError> {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let floats = rows.iter().flat_map(|row| row.record.vector.iter().copied());
    let floats = Arc::new(Float32Array::from_iter_values(floats));
    if target.is_current {
        // No model has so many dimensions that this would cut them.
        let length = target.dimensions as i32;
        return Ok(Arc::new(FixedSizeListArray::try_new(item, length, floats, None)?));
    }
    let lengths = rows.iter().map(|row| row.record.vector.len());
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), floats, None)?))
}

pub(crate) fn of(
    connection: &Connection,
    generation: u32,
    texts: &[(Place, ContentType)],
) -> Result<Vec<(Place, VectorRecord)>> {
    let mut of_sessions: HashMap<&SessionKey, Vec<i64>> = HashMap::new();
    for (place, _) in texts {
        of_sessions.entry(&place.session).or_default().push(place.sequence.into());
    }
    let mut stored: HashMap<(&SessionKey, u32, ContentType), Vec<VectorRecord>> = HashMap::new();
    for (key, sequences) in of_sessions {
        let sql = format!(
            "SELECT {VECTOR}, sequence FROM vectors_of_generations
             WHERE user_id = ?1 AND session_id = ?2 AND generation = {generation} AND {}
             ORDER BY sequence, content_type, chunk_index",
            is_one_of("sequence", sequences)
        );
        let mut statement = connection.prepare(&sql).map_err(storage("vectors_of"))?;
        let (user, session) = (key.user_id.as_str(), key.session_id.as_str());
        let mut found = statement.query([user, session]).map_err(storage("vectors_of"))?;
        while let Some(row) = found.next().map_err(storage("vectors_of"))? {
            let row = Cursor(row);
            let Some(record) = unless_damaged(rows::record(&row))? else { continue };
            let text = (key, number(&row, 7)?, record.content_type);
            stored.entry(text).or_default().push(record);
        }
    }
    let of_texts = texts.iter().flat_map(|(place, content_type)| {
        let records = stored.get(&(&place.session, place.sequence, *content_type));
        records.into_iter().flatten().map(|record| (place.clone(), record.clone()))
    });
    Ok(of_texts.collect())
}
