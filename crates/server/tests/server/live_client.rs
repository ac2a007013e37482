//! A client of `/v1/live`.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use crate::Running;

/// A WebSocket.
pub(crate) struct LiveClient(WebSocketStream<TcpStream>);

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server said why, with this code.
    Closed(u16),
    /// The connection broke.
    Broken,
}

impl LiveClient {
    /// Connects with a token. The error is the status of the answer.
    pub(crate) async fn connect(server: &Running, token: &str) -> Result<Self, u16> {
        let mut request = format!("ws://{}/v1/live", server.address).into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        headers.insert("sec-websocket-protocol", "ams.v1".parse().unwrap());
        let stream = TcpStream::connect(server.address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, response)) => {
                assert_eq!(response.headers()["sec-websocket-protocol"], "ams.v1");
                Ok(Self(socket))
            }
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_message(Message::text(frame.to_string())).await.unwrap();
    }

    pub(crate) async fn send_message(&mut self, message: Message) -> Result<(), tungstenite::Error> {
        self.0.send(message).await
    }

    /// The next frame, or how the connection ended.
    pub(crate) async fn next_or_end(&mut self) -> Result<Value, Ended> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(Some(frame)))) => return Err(Ended::Closed(frame.code.into())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) | None => return Err(Ended::Broken),
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.next_or_end().await.unwrap()
    }

    /// How the connection ends, after any frames.
    pub(crate) async fn end(&mut self) -> Ended {
        loop {
            if let Err(ended) = self.next_or_end().await {
                return ended;
            }
        }
    }

    /// Subscribes, and returns the first frame.
    pub(crate) async fn subscribe(&mut self, mut asked: Value) -> Value {
        asked["type"] = "subscribe".into();
        self.send(&asked).await;
        self.next().await
    }
}
