//! The HTTP server.

use std::{io, sync::Arc};

use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Incoming};
use tokio::net::TcpListener;

use super::{
    Fault, Shared, answer,
    request::{self, Recorded},
};
use crate::loopback::{self, Piece};

/// Serves until it is dropped, which closes all connections.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loopback::serve(listener, move |request| respond(Arc::clone(&shared), request)).await;
}

/// Responds to a call. An error closes the connection without a response.
async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Response<Piece>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = Recorded::new(&parts, &body);
    let (number, fault) = {
        let mut state = shared.state();
        state.recorded.push(call.clone());
        (state.recorded.len(), state.script.fault(&call.texts))
    };
    let _in_flight = shared.enter();
    if !shared.options.latency.is_zero() {
        tokio::time::sleep(shared.options.latency).await;
    }
    // The sender lives as long as `shared`.
    let _ = shared.answered.subscribe().wait_for(|answered| number <= *answered).await;
    let order = match request::check(&shared.options, &parts, &call) {
        Ok(order) => order,
        Err((status, body)) => return refuse(status, &[], body.to_string()),
    };
    match &fault {
        Fault::Refuse { status, headers, body } => refuse(*status, headers, body.clone()),
        Fault::CutBefore => Err(io::Error::other("connection closed as scripted")),
        Fault::Garbage => json(200).body(Piece::new("{\"data\": [garbage", false)).map_err(io::Error::other),
        fault => {
            let body = answer::body(&order, &call.texts, &shared.options, fault);
            let cut = *fault == Fault::CutInside;
            if !cut {
                shared.state().texts += call.texts.len();
            }
            json(200).body(Piece::new(body, cut)).map_err(io::Error::other)
        }
    }
}

fn refuse(status: u16, headers: &[(String, String)], body: String) -> io::Result<Response<Piece>> {
    let mut response = json(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Piece::new(body, false)).map_err(io::Error::other)
}

fn json(status: u16) -> hyper::http::response::Builder {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("x-request-id", "req_mock")
}
