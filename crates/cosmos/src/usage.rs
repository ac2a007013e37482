//! The usage of the service by a store.

use std::sync::{Mutex, PoisonError};

use amplifier_session_core::backend::ServiceUsage;
use azure_core::http::{Context, StatusCode};
use azure_data_cosmos::{
    CosmosStatus,
    diagnostics::{DiagnosticsContext, DiagnosticsHandler},
};

/// Counters of a store. The SDK reports each completed operation with all requests that it made.
#[derive(Debug, Default)]
pub(crate) struct UsageCounter(Mutex<ServiceUsage>);

impl UsageCounter {
    pub(crate) fn total(&self) -> ServiceUsage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiagnosticsHandler for UsageCounter {
    fn handle(&self, diagnostics: &DiagnosticsContext, _: &Context<'_>) {
        let is_throttled = |status: &CosmosStatus| status.status_code() == StatusCode::TooManyRequests;
        let throttled =
            diagnostics.requests().iter().filter(|request| is_throttled(request.status())).count();
        {
            let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            total.request_units += diagnostics.total_request_charge().value().max(0.0);
            total.requests += diagnostics.request_count() as u64;
            total.throttled_requests += throttled as u64;
        }
        if throttled == 0 {
            return;
        }
        let waited_ms = diagnostics.duration().as_millis() as u64;
        let operation = diagnostics.operation_name().unwrap_or("a request");
        if diagnostics.effective_status().is_some_and(|status| is_throttled(&status)) {
            tracing::warn!(operation, throttled, waited_ms, "Cosmos DB kept throttling a request; giving up");
        } else {
            tracing::info!(operation, throttled, waited_ms, "Cosmos DB throttled a request; it was repeated");
        }
    }
}
