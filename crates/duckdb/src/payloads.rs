//! SQL functions that read stored lines. Only connections of this program have them.

use std::{error::Error, sync::Arc};

use amplifier_session_core::{events::assemble, model::Payload};
use amplifier_session_sql::views::{chunk_text, line_field};
use duckdb::{
    Connection,
    arrow::{
        array::{Array, BinaryArray, Int64Array, RecordBatch, StringArray},
        datatypes::DataType,
    },
    vscalar::{ArrowFunctionSignature, VArrowScalar},
};

type FunctionResult = Result<Arc<dyn Array>, Box<dyn Error>>;

/// `unpacked(BLOB)` is the text of a compressed line; `NULL` if it is damaged or not UTF-8.
struct Unpacked;

impl VArrowScalar for Unpacked {
    type State = ();

    fn invoke((): &(), input: RecordBatch) -> FunctionResult {
        let lines: &BinaryArray = column(&input, 0)?;
        Ok(Arc::new(lines.iter().map(|line| text(line?)).collect::<StringArray>()))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        vec![ArrowFunctionSignature::exact(vec![DataType::Binary], DataType::Utf8)]
    }
}

/// [`line_field`].
struct LineField;

impl VArrowScalar for LineField {
    type State = ();

    fn invoke((): &(), input: RecordBatch) -> FunctionResult {
        let (sessions, roles): (&StringArray, &StringArray) = (column(&input, 0)?, column(&input, 1)?);
        let (lines, names): (&BinaryArray, &StringArray) = (column(&input, 2)?, column(&input, 3)?);
        let rows = sessions.iter().zip(roles).zip(lines.iter().zip(names));
        let fields = rows.map(|((session, role), (line, name))| line_field(session?, role?, line?, name?));
        Ok(Arc::new(fields.collect::<StringArray>()))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        let arguments = vec![DataType::Utf8, DataType::Utf8, DataType::Binary, DataType::Utf8];
        vec![ArrowFunctionSignature::exact(arguments, DataType::Utf8)]
    }
}

/// [`chunk_text`].
struct ChunkText;

impl VArrowScalar for ChunkText {
    type State = ();

    fn invoke((): &(), input: RecordBatch) -> FunctionResult {
        let (sessions, roles): (&StringArray, &StringArray) = (column(&input, 0)?, column(&input, 1)?);
        let (lines, types): (&BinaryArray, &StringArray) = (column(&input, 2)?, column(&input, 3)?);
        let (starts, ends): (&Int64Array, &Int64Array) = (column(&input, 4)?, column(&input, 5)?);
        let rows = sessions.iter().zip(roles).zip(lines.iter().zip(types)).zip(starts.iter().zip(ends));
        let texts = rows.map(|(((session, role), (line, content_type)), (start, end))| {
            chunk_text(session?, role?, line?, content_type?, (start?, end?))
        });
        Ok(Arc::new(texts.collect::<StringArray>()))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        let (text, number) = (DataType::Utf8, DataType::Int64);
        let arguments =
            vec![text.clone(), text.clone(), DataType::Binary, text.clone(), number.clone(), number];
        vec![ArrowFunctionSignature::exact(arguments, text)]
    }
}

fn column<T: 'static>(input: &RecordBatch, index: usize) -> Result<&T, Box<dyn Error>> {
    let column = input.columns().get(index).and_then(|column| column.as_any().downcast_ref());
    column.ok_or_else(|| format!("argument {index} has another type").into())
}

fn text(compressed: &[u8]) -> Option<String> {
    let line = assemble(Payload::Zstd(compressed.to_vec())).ok()??;
    String::from_utf8(line.into_bytes()).ok()
}

/// Registers the functions with a database.
pub(crate) fn register(connection: &Connection) -> duckdb::Result<()> {
    connection.register_scalar_function::<Unpacked>("unpacked")?;
    connection.register_scalar_function::<LineField>("line_field")?;
    connection.register_scalar_function::<ChunkText>("chunk_text")
}
