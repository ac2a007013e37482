//! Changes as they happen, over a WebSocket.
//!
//! A socket has subscriptions. Each follows the [feed](amplifier_session_core::backend::Changes) of one scope with a cursor,
//! and reads its next page only after the frames of the page before were sent. So a client that reads slowly makes nothing
//! grow: what it has not got yet is a place in the feed, and the feed has only the last state of each session.
//!
//! `frames` has the frames, `subscription` what is read and said, `socket` the connection.

mod frames;
mod socket;
mod subscription;

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem, routes::Answering};

/// The name of the protocol of the frames, for clients that name those that they know.
const PROTOCOL: &str = "ams.v1";
/// The largest frame of a client in bytes.
const CLIENT_FRAME: usize = 16 << 10;
/// The bytes that wait for a client.
const WRITE_BUFFER: usize = 256 << 10;

/// GET /v1/live
pub(crate) fn live(mut call: HttpCall) -> Answering {
    Box::pin(async move {
        let place = call.begin_to_wait()?;
        let upgrade = call.take_upgrade().ok_or_else(|| HttpProblem::internal("the route has no socket"))?;
        let upgrade = upgrade
            .protocols([PROTOCOL])
            .read_buffer_size(CLIENT_FRAME)
            .max_message_size(CLIENT_FRAME)
            .max_frame_size(CLIENT_FRAME)
            .write_buffer_size(CLIENT_FRAME)
            .max_write_buffer_size(WRITE_BUFFER);
        let response = upgrade.on_upgrade(move |socket| async move {
            socket::LiveSocket::new(call, socket).run().await;
            drop(place);
        });
        Ok(HttpAnswer::Whole(response))
    })
}
