//! The operations whose answers are written piece by piece, or with progress.

use std::io::Write;

use amplifier_session_core::storage::ExportReport;

use super::AnyApi;
use crate::{
    ApiAnswer, ApiError,
    operations::{
        events::{EventReader, EventsRequest},
        export::ExportRequest,
        secrets::{OnSearched, SecretsRequest, SecretsResponse},
    },
};

impl AnyApi<'_> {
    /// [`Api::read_events`](crate::Api::read_events), here or there. Those of a server are listed [until all of them are
    /// there](Self::list).
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    #[crate::compiled_here]
    pub async fn read_events(&self, request: &EventsRequest) -> Result<ApiAnswer<EventReader>, ApiError> {
        match self {
            Self::Here(api) => api.read_events(request).await,
            Self::There(_) => {
                let ApiAnswer { response, notices } = self.list(request).await?;
                Ok(ApiAnswer { response: EventReader::of_answer(response), notices })
            }
        }
    }

    /// [`Api::secrets`](crate::Api::secrets), here or there. A server does not say how far it is.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    pub async fn secrets(
        &self,
        request: &SecretsRequest,
        on_searched: OnSearched<'_>,
    ) -> Result<ApiAnswer<SecretsResponse>, ApiError> {
        match self {
            Self::Here(api) => api.secrets(request, on_searched).await,
            Self::There(_) => self.list_secrets(request).await,
        }
    }

    /// [`Api::export`](crate::Api::export), here or there.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    #[crate::compiled_here]
    pub async fn export(
        &self,
        request: &ExportRequest,
        out: &mut (dyn Write + Send),
    ) -> Result<ApiAnswer<ExportReport>, ApiError> {
        match self {
            Self::Here(api) => api.export(request, out).await,
            Self::There(there) => {
                let call = there.written(request).await?;
                Ok(there.taken(there.server.export(&call, out).await?.exported))
            }
        }
    }
}
