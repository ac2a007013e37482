//! Large payloads of events, for questions: `data` is there whatever its size.
//!
//! The file stores long lines compressed, and very long ones in pieces, which takes a function to read: so only connections
//! of this library show them.

use std::{error::Error, sync::Arc};

use amplifier_session_core::{Result, events::assemble, model::Payload};
use amplifier_session_sql::views::{EVENTS_WITH_DATA, TRANSCRIPTS_WITH_CONTENT, ViewDialect};
use duckdb::{
    Connection,
    arrow::{
        array::{Array, BinaryArray, RecordBatch, StringArray},
        datatypes::DataType,
    },
    vscalar::{ArrowFunctionSignature, VArrowScalar},
};

use crate::{error::storage, tables::VIEW_DIALECT};

/// The name of the function: `unpacked(BLOB)` is the text of a compressed line; `NULL` where it is damaged or not UTF-8.
const UNPACKED: &str = "unpacked";

/// The payload of an event, whatever its form. Pieces that follow each other are one compressed text.
const DATA: (&str, &str) = (
    "data",
    "json_extract(TRY_CAST(CASE e.encoding
        WHEN 1 THEN TRY(decode(e.raw))
        WHEN 2 THEN unpacked(e.raw)
        WHEN 3 THEN unpacked((
            SELECT list_reduce(list(c.chunk_data ORDER BY c.chunk_index), lambda a, b: a || b) FROM event_chunks c
            WHERE c.user_id = e.user_id AND c.session_id = e.session_id AND c.sequence = e.sequence
            HAVING count(*) = any_value(c.total_chunks)))
        END AS JSON), '$.data')",
);

struct Unpacked;

impl VArrowScalar for Unpacked {
    type State = ();

    fn invoke((): &(), input: RecordBatch) -> std::result::Result<Arc<dyn Array>, Box<dyn Error>> {
        let lines = input.column(0).as_any().downcast_ref::<BinaryArray>();
        let lines = lines.ok_or("unpacked takes a BLOB")?;
        let unpacked: StringArray = lines.iter().map(|line| text(line?)).collect();
        Ok(Arc::new(unpacked))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        vec![ArrowFunctionSignature::exact(vec![DataType::Binary], DataType::Utf8)]
    }
}

fn text(compressed: &[u8]) -> Option<String> {
    let line = assemble(Payload::Zstd(compressed.to_vec())).ok()??;
    String::from_utf8(line.into_bytes()).ok()
}

/// Makes the function known to a database.
pub(crate) fn register(connection: &Connection) -> duckdb::Result<()> {
    connection.register_scalar_function::<Unpacked>(UNPACKED)
}

/// Makes the view of events for a connection that is asked, and that of messages, which an older file has with fewer columns.
pub(super) fn show(connection: &Connection) -> Result<()> {
    let dialect: Vec<_> = std::iter::once(DATA).chain(VIEW_DIALECT.iter().copied()).collect();
    let dialect: &ViewDialect = &dialect;
    let views = [TRANSCRIPTS_WITH_CONTENT, EVENTS_WITH_DATA]
        .map(|view| format!("CREATE OR REPLACE TEMP VIEW {} AS {};", view.name, view.query(dialect)));
    connection.execute_batch(&views.concat()).map_err(storage("sql"))
}
