//! Metrics for Prometheus: numbers of requests and of what is going on, without names of users and sessions.

use std::time::Duration;

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{problem::HttpProblem, state::ServerState};

/// The content type of the text: that of OpenMetrics, which Prometheus reads too.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The bounds of the times of answers, in seconds. The last ones are limits of requests.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 60.0];

type RouteLabel = [(&'static str, &'static str); 1];
type StatusLabel = [(&'static str, u16); 1];

/// Counts what a server does.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    registry: Registry,
    requests: Family<(RouteLabel, StatusLabel), Counter>,
    seconds: Family<RouteLabel, Histogram, fn() -> Histogram>,
    waiting_searches: Gauge,
    body_bytes: Gauge,
    readers: Gauge,
    store_up: Gauge,
    vectors_pending: Gauge,
}

impl ServerMetrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("amplifier_sessions_server");
        let requests = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        registry.register("requests", "Requests by route and status", requests.clone());
        registry.register("request_seconds", "The time until the answer, by route", seconds.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        Self {
            waiting_searches: gauge("searches_waiting", "Searches that wait for others"),
            body_bytes: gauge("body_bytes", "Memory that bodies of requests may use now, in bytes"),
            readers: gauge("readers", "WebSockets, and requests that wait for changes"),
            store_up: gauge("store_up", "Whether the store answers"),
            vectors_pending: gauge("vectors_pending", "Messages whose vectors are not made yet"),
            registry,
            requests,
            seconds,
        }
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, route: &'static str, status: u16, time: Duration) {
        self.requests.get_or_create(&([("route", route)], [("status", status)])).inc();
        self.seconds.get_or_create(&[("route", route)]).observe(time.as_secs_f64());
    }

    /// The metrics as text.
    pub(crate) async fn text(&self, state: &ServerState) -> Result<String, HttpProblem> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.waiting_searches.set(number(state.limits.waiting_searches()));
        self.body_bytes.set(number(state.limits.body_bytes()));
        self.readers.set(number(state.limits.readers()));
        let is_up = state.store().answers().await;
        self.store_up.set(i64::from(is_up));
        if is_up && let Some(pending) = state.store().pending_vectors().await {
            self.vectors_pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).map_err(|error| HttpProblem::internal(error.to_string()))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let metrics = ServerMetrics::new();
        for status in [200, 200, 404] {
            metrics.answered("session", status, Duration::from_millis(3));
        }
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        for line in [
            r#"amplifier_sessions_server_requests_total{route="session",status="200"} 2"#,
            r#"amplifier_sessions_server_requests_total{route="session",status="404"} 1"#,
            r#"amplifier_sessions_server_request_seconds_bucket{le="0.005",route="session"} 3"#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
