//! What a store has asked of the service, and what that cost.

use std::sync::atomic::{AtomicU64, Ordering};

use azure_core::http::Context;
use azure_data_cosmos::diagnostics::{DiagnosticsContext, DiagnosticsHandler};

/// Too many requests: the service wants the request later.
const THROTTLED: u16 = 429;

/// Counters of a store. The SDK tells of each operation when it is over, with every request that it took.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Request units in thousandths: a charge has two decimals.
    thousandths: AtomicU64,
    requests: AtomicU64,
    throttled: AtomicU64,
}

impl Usage {
    pub(crate) fn request_units(&self) -> f64 {
        self.thousandths.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }
}

impl DiagnosticsHandler for Usage {
    fn handle(&self, diagnostics: &DiagnosticsContext, _: &Context<'_>) {
        let thousandths = (diagnostics.total_request_charge().value().max(0.0) * 1_000.0).round() as u64;
        self.thousandths.fetch_add(thousandths, Ordering::Relaxed);
        self.requests.fetch_add(diagnostics.request_count() as u64, Ordering::Relaxed);
        let requests = diagnostics.requests();
        let is_throttled = |status: u16| status == THROTTLED;
        let throttled =
            requests.iter().filter(|request| is_throttled(request.status().status_code().into())).count();
        if throttled == 0 {
            return;
        }
        self.throttled.fetch_add(throttled as u64, Ordering::Relaxed);
        let is_lost =
            diagnostics.effective_status().is_some_and(|status| is_throttled(status.status_code().into()));
        let waited_ms = diagnostics.duration().as_millis() as u64;
        let operation = diagnostics.operation_name().unwrap_or("a request");
        if is_lost {
            tracing::warn!(
                operation,
                throttled,
                waited_ms,
                "Cosmos DB throttled a request until patience was over"
            );
        } else {
            tracing::info!(operation, throttled, waited_ms, "Cosmos DB throttled a request; it was repeated");
        }
    }
}
