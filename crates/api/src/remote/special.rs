//! The operations whose answers are read piece by piece, or with progress.

use std::io::Write;

use amplifier_session_core::storage::ExportReport;

use super::AnyApi;
use crate::{
    ApiAnswer, ApiError,
    lines::LineRange,
    operations::{
        events::{EventReader, EventsEnd, EventsRequest},
        export::ExportRequest,
        messages::{MessagesRequest, MessagesResponse},
        secrets::{OnSearched, SecretsRequest, SecretsResponse},
        session_events::{SessionEventsRequest, SessionEventsResponse},
    },
};

impl AnyApi<'_> {
    /// [`Api::messages`](crate::Api::messages), here or there. A server limits its answers, so it is asked again until all
    /// messages are there.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    #[crate::compiled_here]
    pub async fn all_messages(
        &self,
        request: &MessagesRequest,
    ) -> Result<ApiAnswer<MessagesResponse>, ApiError> {
        if matches!(self, Self::Here(_)) {
            return self.messages(request).await;
        }
        let mut asked = request.clone();
        asked.lines.range = true;
        let mut all = self.messages(&asked).await?;
        while all.response.has_more_after
            && let Some(range) = all.response.range
            && let Some(lines) = asked.lines.after(range, &all.response.session.session.session_id)
        {
            let more = self.messages(&MessagesRequest { lines, ..asked.clone() }).await?.response;
            let Some(end) = more.range.filter(|end| end.count() > 0) else { break };
            all.response.messages.extend(more.messages);
            all.response.damaged.extend(more.damaged);
            all.response.has_more_after = more.has_more_after;
            all.response.range = Some(LineRange { next: end.next, ..range });
        }
        all.response.range = all.response.range.filter(|_| request.lines.range);
        Ok(all)
    }

    /// [`Api::session_events`](crate::Api::session_events), as [`Self::all_messages`].
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    pub async fn all_session_events(
        &self,
        request: &SessionEventsRequest,
    ) -> Result<ApiAnswer<SessionEventsResponse>, ApiError> {
        if matches!(self, Self::Here(_)) {
            return self.session_events(request).await;
        }
        let mut asked = request.clone();
        asked.lines.range = true;
        let mut all = self.session_events(&asked).await?;
        while all.response.has_more_after
            && let Some(range) = all.response.range
            && let Some(lines) = asked.lines.after(range, &all.response.session.session.session_id)
        {
            let more = self.session_events(&SessionEventsRequest { lines, ..asked.clone() }).await?.response;
            let Some(end) = more.range.filter(|end| end.count() > 0) else { break };
            all.response.events.extend(more.events);
            all.response.damaged.extend(more.damaged);
            all.response.has_more_after = more.has_more_after;
            all.response.range = Some(LineRange { next: end.next, ..range });
        }
        all.response.range = all.response.range.filter(|_| request.lines.range);
        Ok(all)
    }

    /// [`Api::read_events`](crate::Api::read_events), here or there. A server limits its answers, so it is asked again until
    /// all events are there.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    #[crate::compiled_here]
    pub async fn read_events(&self, request: &EventsRequest) -> Result<ApiAnswer<EventReader>, ApiError> {
        match self {
            Self::Here(api) => api.read_events(request).await,
            Self::There(_) => {
                let ApiAnswer { mut response, notices } = self.events(request).await?;
                while response.events.len() < request.limit && response.end.next.is_some() {
                    let limit = request.limit - response.events.len();
                    let after = response.end.next.clone();
                    let more =
                        self.events(&EventsRequest { limit, after, ..request.clone() }).await?.response;
                    if more.events.is_empty() {
                        break;
                    }
                    let damaged = std::mem::take(&mut response.end.damaged);
                    response.events.extend(more.events);
                    response.end = EventsEnd { damaged: [damaged, more.end.damaged].concat(), ..more.end };
                }
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
