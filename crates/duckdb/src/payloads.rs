//! A SQL function that decodes compressed lines. Only connections of this program have it.

use std::{error::Error, sync::Arc};

use amplifier_session_core::{events::assemble, model::Payload};
use duckdb::{
    Connection,
    arrow::{
        array::{Array, BinaryArray, RecordBatch, StringArray},
        datatypes::DataType,
    },
    vscalar::{ArrowFunctionSignature, VArrowScalar},
};

/// The name of the function: `unpacked(BLOB)` is the text of a compressed line; `NULL` if it is damaged or not UTF-8.
const UNPACKED: &str = "unpacked";

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

/// Registers the function with a database.
pub(crate) fn register(connection: &Connection) -> duckdb::Result<()> {
    connection.register_scalar_function::<Unpacked>(UNPACKED)
}
