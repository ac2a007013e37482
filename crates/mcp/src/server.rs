//! The server: the protocol's requests, and the tools.

use std::{borrow::Cow, sync::Arc};

use amplifier_session_api::Reach;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::{
    OpenedSessions, SessionAccess, StoreUse,
    answer::ToolAnswer,
    failure::CallFailure,
    parameters,
    tools::{self, ToolName},
    words,
};

/// The most calls that are answered at the same time. Others wait: each opens the store and may read much.
const CALLS_AT_ONCE: usize = 4;

/// Answers the requests of clients. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct ToolServer {
    access: Arc<dyn SessionAccess>,
    current_session: Option<String>,
    reach: Reach,
    is_elsewhere: bool,
    calls: Arc<Semaphore>,
}

impl ToolServer {
    /// A server for the sessions that `access` opens.
    #[must_use]
    pub fn new(access: Arc<dyn SessionAccess>) -> Self {
        let calls = Arc::new(Semaphore::new(CALLS_AT_ONCE));
        Self { access, current_session: None, reach: Reach::Own, is_elsewhere: false, calls }
    }

    /// Sets the id of the session in which the client works: searches leave it out, and its parent.
    #[must_use]
    pub fn with_current_session(mut self, session: Option<String>) -> Self {
        self.current_session = session;
        self
    }

    /// Sets how far the caller reaches. Default: their own sessions. If it is farther, the tools have the parameter
    /// `scope`, whose default is what `access` opens.
    #[must_use]
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The client is on another machine, whose time zone is not known, so it is told that dates are in UTC.
    #[must_use]
    pub fn for_elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }

    async fn call(
        &self,
        tool: ToolName,
        mut arguments: Map<String, Value>,
    ) -> Result<ToolAnswer, CallFailure> {
        // The semaphore is never closed.
        let _permit = self.calls.acquire().await.map_err(|error| CallFailure::new(error.to_string()))?;
        let scope = parameters::take_scope(&mut arguments, self.reach)?;
        let open = async |searches: bool, embeds: bool| -> Result<OpenedSessions, CallFailure> {
            let opened = self.access.open(StoreUse { searches, embeds }).await?;
            Ok(match scope {
                Some(scope) => opened.with_reach(scope),
                None => opened,
            })
        };
        match tool {
            ToolName::Search => {
                let request =
                    tools::search::request(parameters::read(arguments)?, self.current_session.as_deref())?;
                let opened = open(true, request.embeds()).await?;
                request.answer(&opened).await
            }
            ToolName::Read => {
                let request = tools::read::request(parameters::read(arguments)?)?;
                request.answer(&open(false, false).await?).await
            }
            ToolName::List => {
                let request = tools::list::request(parameters::read(arguments)?)?;
                request.answer(&open(false, false).await?).await
            }
            ToolName::Events => {
                let request = tools::events::request(parameters::read(arguments)?)?;
                request.answer(&open(true, false).await?).await
            }
            ToolName::Statistics => {
                let request = tools::statistics::request(parameters::read(arguments)?)?;
                request.answer(&open(false, false).await?).await
            }
        }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info.server_info = Implementation::new("amplifier-sessions", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(words::instructions(self.is_elsewhere));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(ToolName::ALL.map(|tool| tool.definition(self.reach)).to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::named(&request.name) else {
            let names = ToolName::ALL.map(ToolName::as_str).join(", ");
            let message = format!("there is no tool {:?}; tools are {names}", request.name);
            return Err(ErrorData::invalid_params(Cow::Owned(message), None));
        };
        let answer = tokio::select! {
            answer = self.call(tool, request.arguments.unwrap_or_default()) => answer,
            // Nobody waits for the answer.
            () = context.ct.cancelled() => Err(CallFailure::new("the call was cancelled")),
        };
        Ok(result(answer).into())
    }
}

fn result(answer: Result<ToolAnswer, CallFailure>) -> CallToolResult {
    match answer {
        Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.text())]),
        Ok(ToolAnswer { text, is_json }) => {
            // Clients that know structured content pass on only that, so it is the same as the text.
            let structured = is_json.then(|| serde_json::from_str(&text).ok()).flatten();
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = structured;
            result
        }
    }
}
