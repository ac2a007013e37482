//! Connections, names, and requests that are not requests.

use std::time::Duration;

use amplifier_session_server::ServerSettings;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    Running,
    client::{Reply, Request},
    storage,
};

#[tokio::test]
async fn foreign_names_are_refused_on_every_route() {
    let server = Running::start().await;
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/v1/me", "/v1/sessions", "/nothing"] {
        let foreign = server.ana("GET", path).header("host", "evil.example.com").send().await;
        assert_eq!(foreign.problem(), (403, "foreign_host".to_owned()), "{path}");
        assert!(foreign.json()["detail"].as_str().unwrap().contains("--public-url"));
        let origin = server.ana("GET", path).header("origin", "http://evil.example.com").send().await;
        assert_eq!(origin.status, 403, "{path}");
    }
    let port = server.address.port();
    let own = server.ana("GET", "/v1/me").header("host", &format!("localhost:{port}"));
    let own = own.header("origin", &format!("http://localhost:{port}")).send().await;
    assert_eq!((own.status, own.header("access-control-allow-origin")), (200, None));
}

#[tokio::test]
async fn every_answer_has_safe_headers() {
    let server = Running::start().await;
    for path in ["/healthz", "/v1/me", "/nothing"] {
        let reply = server.get(path).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.header("content-security-policy").unwrap().contains("default-src 'none'"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("x-request-id").map(str::len), Some(12));
    }
    let problem = server.get("/v1/nothing").await;
    assert_eq!(problem.json()["instance"].as_str(), problem.header("x-request-id"));
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_headers_is_closed() {
    let short = |settings: &mut ServerSettings| settings.limits.headers = Duration::from_millis(200);
    let server = Running::with(storage().await, short).await;
    // At the first request, and at a later one on the same connection.
    for before in [&b""[..], &b"GET /healthz HTTP/1.1\r\nhost: HOST\r\n\r\n"[..]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let before = String::from_utf8_lossy(before).replace("HOST", &server.address.to_string());
        stream.write_all(before.as_bytes()).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
        let mut read = Vec::new();
        // Ends only if the server closes the connection.
        let _ = stream.read_to_end(&mut read).await;
        assert!(!String::from_utf8_lossy(&read).contains("200 OK") || !before.is_empty());
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let few = |settings: &mut ServerSettings| settings.limits.connections_of_peer = 2;
    let server = Running::with(storage().await, few).await;
    let health = || Request::new(server.address, "GET", "/healthz").bytes();
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The answer shows that the server has accepted it; `connection: close` is left out to keep it.
        let request = String::from_utf8(health()).unwrap().replace("connection: close\r\n", "");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_ne!(stream.read(&mut [0; 16]).await.unwrap(), 0);
        kept.push(stream);
    }
    let mut third = TcpStream::connect(server.address).await.unwrap();
    let _ = third.write_all(&health()).await;
    let mut read = Vec::new();
    let _ = third.read_to_end(&mut read).await;
    assert_eq!(read, b"");
}

#[tokio::test]
async fn large_requests_are_refused() {
    let small = |settings: &mut ServerSettings| {
        settings.limits.body = 1_000;
        settings.limits.stored_body = 2_000;
    };
    let server = Running::with(storage().await, small).await;
    let search = server.ana("POST", "/v1/search").body("application/json", vec![b' '; 1_001]).send().await;
    assert_eq!(search.problem(), (413, "too_large".to_owned()));
    let path = "/v1/sessions/first-1/transcript?from=2";
    let lines = server.ana("PUT", path).body("application/jsonl", vec![b' '; 2_001]).send().await;
    assert_eq!(lines.status, 413);
    let bomb = zstd::encode_all(&vec![b' '; 10_000_000][..], 3).unwrap();
    let bomb = server.ana("PUT", path).header("content-encoding", "zstd").body("application/jsonl", bomb);
    assert_eq!(bomb.send().await.problem(), (413, "too_large".to_owned()));
    let header = server.ana("GET", "/v1/me").header("x-long", &"x".repeat(100_000)).send().await;
    assert_eq!(header.status, 431);
}

/// Clients that write their whole body before they read the answer, as the hook of context intelligence does. If they saw
/// only a broken connection, they would send the same again for ever.
#[tokio::test]
async fn a_large_body_is_read_to_its_end_although_it_is_refused() {
    let small = |settings: &mut ServerSettings| settings.limits.event_body = 1_000;
    let server = Running::with(storage().await, small).await;
    // More than the buffers of a connection.
    let large = |request: Request| request.body("application/json", vec![b' '; 20_000_000]);
    for (request, status) in [
        (server.ana("POST", "/events"), 413),
        (server.ana("POST", "/nothing"), 404),
        (server.ana("POST", "/events").header("host", "evil.example.com"), 403),
        (Request::new(server.address, "POST", "/events"), 401),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&large(request).bytes()).await.unwrap();
        assert_eq!(Reply::read(&mut stream).await.problem().0, status);
    }
}

#[tokio::test]
async fn what_is_no_http_is_closed() {
    let server = Running::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"\r\n\r\n\r\nnonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        assert!(!read.windows(3).any(|window| window == b"200"), "{}", String::from_utf8_lossy(&read));
    }
    assert_eq!(server.get("/v1/me").await.status, 200);
}
