//! Sessions that another store sends and takes, row by row.

use amplifier_session_api::operations::{
    read_rows::ReadRowsRequest,
    row_extents::RowExtentsRequest,
    write_rows::{RowWriting, WriteRowsRequest, WriteRowsResponse},
};
use amplifier_session_core::{
    model::{Digest, Timestamp},
    storage::{RowChain, RowChains, SentSuperseded},
};

use super::reading::JSON_LINES;
use crate::{
    answer::HttpAnswer, body_stream::BodyStream, call::HttpCall, problem::HttpProblem, routes::Answering,
    stream,
};

/// The size of a line from which on only one body may have such a line in memory.
const LONG_LINE: usize = 2 << 20;

/// The bytes of a body after which the quota is checked again.
const CHECKED: usize = 16 << 20;

/// GET /v1/rows/extents
pub(crate) fn extents(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        call.set_default("store", "");
        let request: RowExtentsRequest = call.request()?;
        call.answer(call.api().row_extents(&request).await)
    })
}

/// GET /v1/rows/{id}
pub(crate) fn read(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let permit = call.begin_export()?;
        let request = rows_to_read(&mut call)?;
        let patience = call.meter().patience();
        let write = async move |out: &mut stream::PieceWriter| -> Result<(), HttpProblem> {
            let _permit = permit;
            call.api().read_rows(&request, out).await.map(drop).map_err(|error| call.problem(error))
        };
        let body = stream::written(patience, write).await?;
        Ok(HttpAnswer::Stream { body, content_type: JSON_LINES, file: "rows.jsonl" })
    })
}

fn rows_to_read(call: &mut HttpCall) -> Result<ReadRowsRequest, HttpProblem> {
    let mut count = |field| u32::try_from(call.take_count(field).unwrap_or_default()).unwrap_or(u32::MAX);
    let (messages, events, pieces) = (count("after_message"), count("after_event"), count("superseded"));
    let [of_messages, of_events] = digests(call.take_text("digest"))?;
    let until = match call.take_text("superseded_until") {
        Some(text) => Some(
            Timestamp::parse(&text)
                .map_err(|_| HttpProblem::of_parameter("superseded_until", "it is not a time"))?,
        ),
        None => None,
    };
    let max_bytes = call.take_count("max_bytes").map(|most| most as u64);
    let may_replace = call.take_flag("may_replace");
    Ok(ReadRowsRequest {
        before: RowChains {
            messages: RowChain { count: messages, digest: of_messages },
            events: RowChain { count: events, digest: of_events },
        },
        superseded: SentSuperseded { pieces, until },
        may_replace,
        max_bytes,
        ..ReadRowsRequest::new(call.take_text("session").unwrap_or_default())
    })
}

/// The digests of messages and events; zeros without any.
fn digests(text: Option<String>) -> Result<[Digest; 2], HttpProblem> {
    let Some(text) = text else { return Ok([Digest::default(); 2]) };
    let wrong = || HttpProblem::of_parameter("digest", "it must be 64 hexadecimal digits");
    let (messages, events) = text.split_at_checked(32).ok_or_else(wrong)?;
    let digest = |text: &str| Digest::try_from(text.to_owned()).map_err(|_| wrong());
    Ok([digest(messages)?, digest(events)?])
}

/// POST /v1/rows
pub(crate) fn write(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let body = call.take_stream().ok_or_else(|| HttpProblem::internal("the route has no stream"))?;
        let request: WriteRowsRequest = call.request()?;
        call.check_quota(false).await?;
        let writing = call.api().write_rows(&request).await.map_err(|error| call.problem(error))?;
        let taken = taken(&call, writing, body).await;
        // Also after a failure, because the sessions before it are stored.
        call.note_pending_vectors();
        let taken = taken?;
        let rows = taken.sessions.iter().map(|session| session.result.rows()).sum();
        Ok(HttpAnswer::json(&taken)?.with_rows(rows))
    })
}

/// Passes a body on, piece by piece, and waits while other bodies use the memory for it.
async fn taken(
    call: &HttpCall,
    mut writing: RowWriting,
    mut body: BodyStream,
) -> Result<WriteRowsResponse, HttpProblem> {
    let limits = &call.state().limits;
    let (mut memory, mut long_line) = (None, None);
    let mut unchecked = 0;
    loop {
        let piece = match checked(call, body.next().await, &mut unchecked).await {
            Ok(Some(piece)) => piece,
            Ok(None) => return writing.finish().await.map_err(|error| call.problem(error)),
            Err(problem) => {
                // The sessions before are complete. Storing them saves sending them again, and the problem is reported
                // also if that fails.
                drop(writing.finish().await);
                return Err(problem);
            }
        };
        if memory.is_none() {
            memory = Some(limits.streamed_body().await?);
        }
        writing.put(piece).await.map_err(|error| call.problem(error))?;
        if writing.pending_line() < LONG_LINE {
            long_line = None;
        } else if long_line.is_none() {
            long_line = Some(limits.long_line(call.signed_in().by()).await);
        }
    }
}

/// The piece, if the caller may still store more: a body may be larger than their quota, and last for long.
async fn checked(
    call: &HttpCall,
    piece: Result<Option<Vec<u8>>, HttpProblem>,
    unchecked: &mut usize,
) -> Result<Option<Vec<u8>>, HttpProblem> {
    let piece = piece?;
    call.again()?;
    *unchecked += piece.as_ref().map_or(0, Vec::len);
    if *unchecked > CHECKED {
        call.check_quota(false).await?;
        *unchecked = 0;
    }
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_messages_and_events() {
        let [one, two] = [b"a", b"b"].map(|line| Digest::of(line));
        assert_eq!(digests(Some(format!("{one:?}{two:?}"))).unwrap(), [one, two]);
        assert_eq!(digests(None).unwrap(), [Digest::default(); 2]);
        for wrong in ["", "x", &"0".repeat(63), &"é".repeat(32), &"x".repeat(64)] {
            assert_eq!(digests(Some(wrong.to_owned())).unwrap_err().field(), Some("digest"), "{wrong}");
        }
    }
}
