//! What a store has used of the service.

use std::sync::atomic::{AtomicU64, Ordering};

use amplifier_session_core::backend::ServiceUsage;
use azure_core::http::{Context, StatusCode};
use azure_data_cosmos::{
    CosmosStatus,
    diagnostics::{DiagnosticsContext, DiagnosticsHandler},
};

/// Counters of a store. The SDK reports each operation when it has ended, with every request that it took.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Request units in thousandths. A charge has two decimals.
    thousandths: AtomicU64,
    requests: AtomicU64,
    throttled: AtomicU64,
}

impl Usage {
    pub(crate) fn total(&self) -> ServiceUsage {
        ServiceUsage {
            request_units: self.thousandths.load(Ordering::Relaxed) as f64 / 1_000.0,
            requests: self.requests.load(Ordering::Relaxed),
            throttled_requests: self.throttled.load(Ordering::Relaxed),
        }
    }
}

impl DiagnosticsHandler for Usage {
    fn handle(&self, diagnostics: &DiagnosticsContext, _: &Context<'_>) {
        let thousandths = (diagnostics.total_request_charge().value().max(0.0) * 1_000.0).round() as u64;
        self.thousandths.fetch_add(thousandths, Ordering::Relaxed);
        self.requests.fetch_add(diagnostics.request_count() as u64, Ordering::Relaxed);
        let is_throttled = |status: &CosmosStatus| status.status_code() == StatusCode::TooManyRequests;
        let throttled =
            diagnostics.requests().iter().filter(|request| is_throttled(request.status())).count();
        if throttled == 0 {
            return;
        }
        self.throttled.fetch_add(throttled as u64, Ordering::Relaxed);
        let waited_ms = diagnostics.duration().as_millis() as u64;
        let operation = diagnostics.operation_name().unwrap_or("a request");
        if diagnostics.effective_status().is_some_and(|status| is_throttled(&status)) {
            tracing::warn!(operation, throttled, waited_ms, "Cosmos DB kept throttling a request; giving up");
        } else {
            tracing::info!(operation, throttled, waited_ms, "Cosmos DB throttled a request; it was repeated");
        }
    }
}
