//! Metrics of `watch` for Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use amplifier_session_storage::{KnownPart, sync::watch::WatchEvent};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use crate::failure::Failure;

/// The maximum size of a request, and how long it may take.
const MAX_REQUEST: usize = 8 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts what a watcher does, by store.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<BTreeMap<String, StoreMetrics>>);

#[derive(Debug, Default)]
struct StoreMetrics {
    syncs: u64,
    sessions: u64,
    messages: u64,
    events: u64,
    failures: u64,
    vectors: u64,
    outages: u64,
    up: bool,
    last_sync: Option<f64>,
    backlog: Option<u64>,
}

impl Metrics {
    pub(super) fn add(&self, event: &WatchEvent<'_>) {
        match *event {
            WatchEvent::Synced { target, report, backlog, .. } => self.change(target, |counts| {
                counts.syncs += 1;
                counts.sessions += report.sessions.new + report.sessions.changed;
                counts.messages += report.messages.written;
                counts.events += report.events.written;
                counts.failures += report.sessions.failed;
                counts.backlog = backlog;
                counts.last_sync =
                    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64());
            }),
            WatchEvent::StoreDown { target, backlog, .. } => self.change(target, |counts| {
                counts.outages += u64::from(counts.up);
                (counts.up, counts.backlog) = (false, backlog);
            }),
            WatchEvent::StoreUp { target } => self.change(target, |counts| counts.up = true),
            WatchEvent::Embedded { target, report } => {
                self.change(target, |counts| counts.vectors += report.vectors.values().sum::<u64>());
            }
            _ => {}
        }
    }

    fn change(&self, target: &str, change: impl FnOnce(&mut StoreMetrics)) {
        change(self.lock().entry(target.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoreMetrics>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics in the text format of Prometheus. Unknown values are left out.
    fn text(&self) -> String {
        type Value = fn(&StoreMetrics) -> Option<f64>;
        let metrics: [(&str, &str, &str, Value); 10] = [
            ("syncs_total", "counter", "Syncs.", |c| Some(c.syncs as f64)),
            ("sessions_total", "counter", "New and changed sessions.", |c| Some(c.sessions as f64)),
            ("messages_total", "counter", "Messages that were written.", |c| Some(c.messages as f64)),
            ("events_total", "counter", "Events that were written.", |c| Some(c.events as f64)),
            ("vectors_total", "counter", "Vectors that were created.", |c| Some(c.vectors as f64)),
            ("failures_total", "counter", "Sessions that could not be read.", |c| Some(c.failures as f64)),
            ("outages_total", "counter", "How often the store went down.", |c| Some(c.outages as f64)),
            ("store_up", "gauge", "Whether the store can be used.", |c| Some(f64::from(u8::from(c.up)))),
            ("last_sync_timestamp_seconds", "gauge", "When the last sync ended.", |c| c.last_sync),
            ("backlog_sessions", "gauge", "Changed sessions that are waiting.", |c| {
                c.backlog.map(|n| n as f64)
            }),
        ];
        let counts = self.lock();
        let mut text = String::new();
        for (name, kind, help, value) in metrics {
            let name = format!("amplifier_sessions_watch_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (store, value) in counts.iter().filter_map(|(store, counts)| Some((store, value(counts)?))) {
                let store = store.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
                let _ = writeln!(text, "{name}{{store=\"{store}\"}} {value}");
            }
        }
        text
    }
}

/// Listens at an address.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::failed(
            format!("metrics can't be served at {address}: {error}"),
            "choose another port with --metrics",
        )
    })
}

/// Serves the metrics until the result is dropped.
pub(super) fn serve(listener: TcpListener, metrics: Arc<Metrics>) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move {
        loop {
            match listener.accept().await {
                // Requests are handled one after the other, because only a monitor sends them.
                Ok((stream, _)) => drop(timeout(PATIENCE, answer(stream, &metrics)).await),
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    });
    task
}

async fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await?;
        request.extend_from_slice(buffer.part(..read));
        if read == 0 || request.len() > MAX_REQUEST {
            return Ok(());
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", metrics.text())
    } else {
        ("404 Not Found", "see /metrics\n".to_owned())
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn metrics_are_served() {
        let metrics = Arc::new(Metrics::default());
        metrics.add(&WatchEvent::StoreUp { target: "sqlite:a\"b" });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = serve(listener, metrics);
        for (path, expected) in [
            ("/metrics", "amplifier_sessions_watch_store_up{store=\"sqlite:a\\\"b\"} 1\n"),
            ("/", "HTTP/1.1 404 Not Found\r\n"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.contains(expected), "{answer}");
        }
        drop(server);
    }
}
