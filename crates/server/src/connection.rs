//! Connections: how many there may be, and what is checked before a request is routed.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, Ready, ready},
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Bytes, HttpBody},
    http::{HeaderValue, Request, header},
    response::Response,
};
use tower_service::Service;

use crate::{
    drained_body::drained,
    gate::Gate,
    random::random_text,
    slots::{Slots, TakenSlot},
};

/// The address at the other end of the connection of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The id of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

impl RequestId {
    /// A new id. Without random numbers, requests are not told apart in the log, which must not stop them.
    fn new() -> Self {
        Self(random_text(12).unwrap_or_default())
    }
}

/// Accepts connections.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedConnections {
    pub(crate) router: Router,
    pub(crate) gate: Arc<Gate>,
    pub(crate) slots: ConnectionSlots,
    /// The time for what is left of a body after the answer.
    pub(crate) patience: Duration,
}

impl Service<SocketAddr> for AcceptedConnections {
    type Response = Connection;
    type Error = TooManyConnections;
    type Future = Ready<Result<Connection, TooManyConnections>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: SocketAddr) -> Self::Future {
        let peer = address.ip().to_canonical();
        let slot = self.slots.take(peer).ok_or(TooManyConnections);
        let connection = |slot| Connection {
            router: self.router.clone(),
            gate: self.gate.clone(),
            peer,
            patience: self.patience,
            _slot: Arc::new(slot),
        };
        ready(slot.map(connection))
    }
}

/// The connection was closed, because there are too many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TooManyConnections;

impl fmt::Display for TooManyConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many connections")
    }
}

impl std::error::Error for TooManyConnections {}

/// A connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    router: Router,
    gate: Arc<Gate>,
    peer: IpAddr,
    patience: Duration,
    /// Freed when the connection ends.
    _slot: Arc<TakenSlot<IpAddr>>,
}

impl<B> Service<Request<B>> for Connection
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut request = request.map(|body| drained(body, self.patience));
        let id = RequestId::new();
        if let Err(problem) = self.gate.check(&request) {
            tracing::warn!(peer = %self.peer, request = id.0, "a request with foreign names was refused");
            let response = finished(problem.into_response(&id.0), &id);
            return Box::pin(ready(Ok(response)));
        }
        request.extensions_mut().insert(PeerAddress(self.peer));
        request.extensions_mut().insert(id.clone());
        let answer = self.router.call(request);
        Box::pin(async move { Ok(finished(answer.await?, &id)) })
    }
}

/// Adds the headers that all responses have.
fn finished(mut response: Response, id: &RequestId) -> Response {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(&id.0) {
        headers.insert("x-request-id", id);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "private, no-cache"),
        (header::VARY, "Authorization, Cookie, Accept"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    response
}

/// The connections that there may be.
#[derive(Clone)]
pub(crate) struct ConnectionSlots {
    slots: Slots<IpAddr>,
    most_of_peer: usize,
    is_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
}

impl ConnectionSlots {
    /// At most this many connections, and this many of an address for which `is_proxy` is false.
    pub(crate) fn new(
        most: usize,
        most_of_peer: usize,
        is_proxy: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { slots: Slots::new(most), most_of_peer, is_proxy: Arc::new(is_proxy) }
    }

    fn take(&self, peer: IpAddr) -> Option<TakenSlot<IpAddr>> {
        let most = if (self.is_proxy)(peer) { usize::MAX } else { self.most_of_peer };
        self.slots.take(peer, 1, most)
    }
}

impl fmt::Debug for ConnectionSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSlots").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_all_and_by_address() {
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let slots = ConnectionSlots::new(5, 2, move |peer| peer == proxy);
        let peer: IpAddr = "192.0.2.1".parse().unwrap();
        let of_peer = [slots.take(peer), slots.take(peer)];
        assert!(of_peer.iter().all(Option::is_some) && slots.take(peer).is_none());
        let of_proxy: Vec<_> = (0..3).map(|_| slots.take(proxy)).collect();
        assert!(of_proxy.iter().all(Option::is_some) && slots.take(proxy).is_none());
        drop(of_peer);
        assert!(slots.take(peer).is_some());
    }
}
