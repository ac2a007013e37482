//! The operations of a store behind a server.

use std::io::{self, Write};

use amplifier_session_api::{
    AccessRight, ApiError,
    remote::{ApiOperation, EXPORT_PATH, ExportEnd, OperationCall, OperationServer},
};
use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_http::read_body;
use async_trait::async_trait;

use crate::{HttpStore, http_store::CONNECTION};

/// The most bytes of an answer: its lines may be long.
const LARGEST_ANSWER: usize = 256 << 20;

#[async_trait]
impl OperationServer for HttpStore {
    async fn call(&self, operation: ApiOperation, call: &OperationCall) -> Result<Vec<u8>, ApiError> {
        let may_repeat = operation.right() == AccessRight::Read;
        let answer = self.requests.post_call(operation.path(), &written(call)?, may_repeat).await;
        let answer = answer.map_err(of_operation)?;
        let body = read_body(answer, LARGEST_ANSWER, CONNECTION).await;
        body.map_err(|error| self.requests.named(error).into())
    }

    async fn export(
        &self,
        call: &OperationCall,
        out: &mut (dyn Write + Send),
    ) -> Result<ExportEnd, ApiError> {
        let answer = self.requests.post_call(EXPORT_PATH, &written(call)?, true).await;
        let mut answer = answer.map_err(of_operation)?;
        let mut archive = ArchiveBefore { out, held: Vec::new() };
        while let Some(bytes) = answer.chunk().await.map_err(|error| self.requests.broken(error))? {
            archive.put(&bytes).map_err(not_written)?;
        }
        serde_json::from_slice(&archive.held).map_err(|error| {
            let broken = Error::new(CONNECTION, "the archive is not complete").with_source(error);
            self.requests.named(broken).into()
        })
    }
}

fn written(call: &OperationCall) -> Result<Vec<u8>> {
    serde_json::to_vec(call)
        .map_err(|error| Error::new(ErrorKind::StorageIo, "the request can't be written").with_source(error))
}

fn not_written(error: io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, "the archive can't be written").with_source(error)
}

/// The error of the operation, if that is the cause.
fn of_operation(error: Error) -> ApiError {
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<ApiError>());
    cause.cloned().unwrap_or(ApiError::Storage(error))
}

/// Writes the lines before the last one.
struct ArchiveBefore<'a> {
    out: &'a mut (dyn Write + Send),
    /// The last line, as far as it is known.
    held: Vec<u8>,
}

impl ArchiveBefore<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A break at the end may be that of the last line.
        let Some((_, inner)) = bytes.split_last() else { return Ok(()) };
        if self.held.ends_with(b"\n") {
            self.write_held()?;
        }
        match inner.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                let (lines, rest) = bytes.split_at(end + 1);
                self.write_held()?;
                self.out.write_all(lines)?;
                self.held.extend_from_slice(rest);
            }
            None => self.held.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn write_held(&mut self) -> io::Result<()> {
        self.out.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, and the last line.
    fn split(pieces: &[&str]) -> (String, String) {
        let mut out = Vec::new();
        let mut archive = ArchiveBefore { out: &mut out, held: Vec::new() };
        for piece in pieces {
            archive.put(piece.as_bytes()).unwrap();
        }
        let last = String::from_utf8(archive.held).unwrap();
        (String::from_utf8(out).unwrap(), last)
    }

    #[test]
    fn the_last_line_is_held_back_wherever_pieces_end() {
        let text = "one\ntwo\nlast\n";
        for size in 1..=text.len() {
            let pieces: Vec<&str> =
                text.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
            assert_eq!(split(&pieces), ("one\ntwo\n".to_owned(), "last\n".to_owned()), "{size}");
        }
        assert_eq!(split(&["only"]), (String::new(), "only".to_owned()));
        assert_eq!(split(&[]), (String::new(), String::new()));
    }
}
