//! A connection: reads the frames of its client, and sends those of its subscriptions, until one of both ends it.

use std::{collections::BTreeMap, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use amplifier_session_api::operations::changes::ChangesResponse;
use axum::{
    body::Bytes,
    extract::ws::{CloseFrame, Message, WebSocket},
};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::{
    frames::{ClientFrame, ServerFrame, SubscribeFrame, error_text, text},
    subscription::{LiveSubscription, NextPage},
};
use crate::{call::HttpCall, problem::HttpProblem, routes::RoutePace};

/// The time that the other side gets to read why the connection is closed.
const CLOSING: Duration = Duration::from_secs(2);
/// The pings without any sign of the client after which it counts as gone.
const MOST_UNANSWERED: u32 = 3;

/// Codes of the protocol (RFC 6455, section 7.4.1).
const GOING_AWAY: u16 = 1001;
const UNSUPPORTED: u16 = 1003;
const POLICY: u16 = 1008;
const TOO_LARGE: u16 = 1009;
const INTERNAL: u16 = 1011;
const TRY_AGAIN: u16 = 1013;
/// As 401 over HTTP.
const UNAUTHENTICATED: u16 = 4401;

/// Why a connection ends.
#[derive(Debug)]
enum SocketEnd {
    /// The client is gone.
    Gone,
    /// The client ends it, and waits for the answer.
    Left,
    /// The server ends it.
    Closed(u16, String),
}

impl SocketEnd {
    fn closed(code: u16, reason: &str) -> Self {
        Self::Closed(code, reason.to_owned())
    }
}

impl From<HttpProblem> for SocketEnd {
    fn from(problem: HttpProblem) -> Self {
        problem.log("");
        Self::closed(INTERNAL, "the server can't go on; its log has the reason")
    }
}

/// A subscription, and the page that it waits for.
struct FollowedFeed {
    subscription: LiveSubscription,
    page: NextPage,
}

/// What happens next.
enum SocketEvent {
    Received(Option<Result<Message, axum::Error>>),
    Page(u64, Result<ChangesResponse, HttpProblem>),
    /// The caller has other rights than before, or none.
    Rights,
    /// It is time to see whether the client is still there.
    Check,
}

/// A connection.
pub(super) struct LiveSocket {
    call: Arc<HttpCall>,
    socket: WebSocket,
    subscriptions: BTreeMap<u64, FollowedFeed>,
    checks: Interval,
    /// The pings since the client was last heard of.
    unanswered: u32,
}

impl LiveSocket {
    pub(super) fn new(call: HttpCall, socket: WebSocket) -> Self {
        let mut checks = interval(call.state().sizes.socket_check);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { call: Arc::new(call), socket, subscriptions: BTreeMap::new(), checks, unanswered: 0 }
    }

    /// Answers until one side ends the connection.
    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn().await {
                break end;
            }
        };
        tracing::info!(by = self.call.signed_in().by(), ?end, "a live connection ended");
        // Their pages are not read any more.
        self.subscriptions.clear();
        // The client may be one that does not read. Then, the connection breaks.
        let _ = timeout(CLOSING, self.close(end)).await;
    }

    /// Says why the connection is closed, and waits for the other side.
    async fn close(&mut self, end: SocketEnd) {
        match end {
            SocketEnd::Gone => return,
            SocketEnd::Left => {}
            SocketEnd::Closed(code, reason) => {
                let frame = CloseFrame { code, reason: reason.into() };
                if self.socket.send(Message::Close(Some(frame))).await.is_err() {
                    return;
                }
            }
        }
        // Reading also sends the answer to a client that closes.
        while let Some(Ok(_)) = self.socket.recv().await {}
    }

    async fn turn(&mut self) -> Result<(), SocketEnd> {
        let (state, call) = (self.call.state().clone(), self.call.clone());
        let event = tokio::select! {
            () = state.stopped() => return Err(SocketEnd::closed(GOING_AWAY, "the server stops")),
            received = self.socket.recv() => SocketEvent::Received(received),
            (id, page) = next_page(&mut self.subscriptions) => SocketEvent::Page(id, page),
            () = call.rights_change() => SocketEvent::Rights,
            _ = self.checks.tick() => SocketEvent::Check,
        };
        match event {
            SocketEvent::Received(received) => self.received(received).await,
            SocketEvent::Page(id, page) => self.deliver(id, page).await,
            SocketEvent::Rights => self.check_access().map(drop),
            SocketEvent::Check => self.check().await,
        }
    }

    /// Checks that the client is still there.
    async fn check(&mut self) -> Result<(), SocketEnd> {
        if self.unanswered >= MOST_UNANSWERED {
            return Err(SocketEnd::Gone);
        }
        self.unanswered += 1;
        self.send(Message::Ping(Bytes::new())).await
    }

    /// Ends the connection if its token was revoked. Returns whether the caller has other rights than before: then all
    /// subscriptions read their pages again.
    fn check_access(&mut self) -> Result<bool, SocketEnd> {
        let again = self.call.again();
        let again =
            again.map_err(|_| SocketEnd::closed(UNAUTHENTICATED, "the token is not valid any more"))?;
        let Some(call) = again else { return Ok(false) };
        self.call = Arc::new(call);
        for following in self.subscriptions.values_mut() {
            following.page = following.subscription.next_page(self.call.clone());
        }
        Ok(true)
    }

    /// Sends the frames of a page, and waits for the next one.
    async fn deliver(
        &mut self,
        id: u64,
        page: Result<ChangesResponse, HttpProblem>,
    ) -> Result<(), SocketEnd> {
        if self.check_access()? {
            return Ok(());
        }
        let Some(mut following) = self.subscriptions.remove(&id) else { return Ok(()) };
        let frames = match page {
            Ok(page) => following.subscription.frames(&page)?,
            Err(problem) => {
                problem.log("");
                return self.send_text(error_text(Some(id), &problem)).await;
            }
        };
        for frame in frames {
            self.send_text(frame).await?;
        }
        following.page = following.subscription.next_page(self.call.clone());
        self.subscriptions.insert(id, following);
        Ok(())
    }

    async fn received(&mut self, received: Option<Result<Message, axum::Error>>) -> Result<(), SocketEnd> {
        self.unanswered = 0;
        match received {
            Some(Ok(Message::Close(_))) => Err(SocketEnd::Left),
            Some(Err(error)) if is_too_large(&error) => {
                Err(SocketEnd::closed(TOO_LARGE, "the frame is too large"))
            }
            None | Some(Err(_)) => Err(SocketEnd::Gone),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Binary(_))) => Err(SocketEnd::closed(UNSUPPORTED, "frames are text with JSON")),
            Some(Ok(Message::Text(text))) => self.answer(&text).await,
        }
    }

    /// Answers a frame of the client. Frames are limited as requests are.
    async fn answer(&mut self, frame: &str) -> Result<(), SocketEnd> {
        if self.call.state().limits.request(self.call.signed_in().by(), RoutePace::Wait).is_err() {
            return Err(SocketEnd::closed(POLICY, "too many frames with this token"));
        }
        match serde_json::from_str(frame) {
            Ok(ClientFrame::Ping) => self.send_text(text(&ServerFrame::Pong)?).await,
            Ok(ClientFrame::Subscribe(asked)) => self.subscribe(asked).await,
            Ok(ClientFrame::Unsubscribe(ended)) => {
                let problem = HttpProblem::of_parameter("id", "there is no subscription with this id");
                let answer = match self.subscriptions.remove(&ended.id) {
                    Some(_) => text(&ServerFrame::Unsubscribed { id: ended.id })?,
                    None => error_text(Some(ended.id), &problem),
                };
                self.send_text(answer).await
            }
            Err(error) => {
                let problem = HttpProblem::of_parameter("frame", format!("it can't be read: {error}"));
                self.send_text(error_text(None, &problem)).await
            }
        }
    }

    async fn subscribe(&mut self, asked: SubscribeFrame) -> Result<(), SocketEnd> {
        self.check_access()?;
        let id = asked.id;
        let most = self.call.state().sizes.subscriptions;
        let begun = if self.subscriptions.contains_key(&id) {
            Err(HttpProblem::of_parameter("id", "there is a subscription with this id"))
        } else if self.subscriptions.len() >= most {
            Err(HttpProblem::too_many(&format!("a connection has at most {most} subscriptions"), 1))
        } else {
            LiveSubscription::begin(asked, &self.call).await
        };
        match begun {
            Ok(subscription) => {
                self.send_text(subscription.ready()?).await?;
                let page = subscription.next_page(self.call.clone());
                self.subscriptions.insert(id, FollowedFeed { subscription, page });
                Ok(())
            }
            Err(problem) => {
                problem.log("");
                self.send_text(error_text(Some(id), &problem)).await
            }
        }
    }

    async fn send_text(&mut self, text: String) -> Result<(), SocketEnd> {
        self.send(Message::Text(text.into())).await
    }

    /// Sends a message. While the client does not read, nothing else is done for it, so nothing waits in memory.
    async fn send(&mut self, message: Message) -> Result<(), SocketEnd> {
        let state = self.call.state().clone();
        tokio::select! {
            sent = timeout(state.sizes.stalled_reader, self.socket.send(message)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(SocketEnd::Gone),
                Err(_) => Err(SocketEnd::closed(TRY_AGAIN, "the client does not read")),
            },
            () = state.stopped() => Err(SocketEnd::closed(GOING_AWAY, "the server stops")),
        }
    }
}

/// The page that is there first. Waits for ever without subscriptions.
async fn next_page(
    subscriptions: &mut BTreeMap<u64, FollowedFeed>,
) -> (u64, Result<ChangesResponse, HttpProblem>) {
    poll_fn(|context| {
        for (id, following) in subscriptions.iter_mut() {
            if let Poll::Ready(page) = following.page.as_mut().poll(context) {
                return Poll::Ready((*id, page));
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether a frame was larger than it may be.
fn is_too_large(error: &axum::Error) -> bool {
    // The type of the error is that of a library below axum.
    error.to_string().contains("too long")
}
