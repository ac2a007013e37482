//! `read`.

use amplifier_session_api::{
    ApiAnswer, ApiError, Notice,
    budget::{AnswerLimits, Portion},
    dates,
    ids::{self, ShortIds},
    lines::LinesRequest,
    operations::{
        context::{ContextRequest, ContextResponse},
        messages::{MessagesRequest, MessagesResponse},
        session::SessionRequest,
    },
    views::{MessageView, SessionView},
};
use amplifier_session_core::text::{counted, grouped};
use serde_json::Value;

use super::{all_remarks, given, remark_lines};
use crate::{
    OpenedSessions,
    answer::{AnswerShape, ToolAnswer},
    failure::CallFailure,
    messages::{self, ShownMessages},
    parameters::{Count, ReadFrom, ReadParameters, Switch},
    quoted,
};

/// Messages on each side of a message by default.
const AROUND: u32 = 3;
/// The most messages of an answer.
const MOST: u32 = 500;
/// Messages of a page by default: as many as fit.
const PAGE: u32 = 200;
/// Titles are cut after this many characters.
const TITLE_CHARS: usize = 200;

/// Messages that were asked for.
#[derive(Debug)]
pub(crate) struct ReadCall {
    shape: AnswerShape,
    address: String,
    before: Option<u32>,
    after: Option<u32>,
    from: Option<ReadFrom>,
    turn: Option<u32>,
    thinking: bool,
    tools: bool,
}

/// Messages that were read.
#[derive(Debug)]
enum MessagesRead {
    /// A page, from its beginning.
    Page(MessagesResponse),
    /// Around a message or a turn, which comes first.
    Around(ContextResponse),
}

/// Reads the parameters.
pub(crate) fn request(parameters: ReadParameters) -> Result<ReadCall, CallFailure> {
    let Some(address) = given(parameters.address) else {
        let problem = "is required: an address such as 7f3c9a52#14, or a session";
        return Err(CallFailure::of_parameter("address", problem));
    };
    if parameters.from.is_some() && parameters.turn.is_some() {
        return Err(CallFailure::of_parameter("from", "can't be given together with turn"));
    }
    let most =
        |count: Option<Count>| count.map(|Count(count)| u32::try_from(count).unwrap_or(MOST).min(MOST));
    Ok(ReadCall {
        shape: AnswerShape::new(parameters.budget, parameters.format)?,
        address: address.trim().to_owned(),
        before: most(parameters.before),
        after: most(parameters.after),
        from: parameters.from,
        turn: parameters.turn.map(|Count(turn)| u32::try_from(turn).unwrap_or(u32::MAX)),
        thinking: parameters.thinking.is_some_and(|Switch(is_on)| is_on),
        tools: parameters.tools.is_none_or(|Switch(is_on)| is_on),
    })
}

impl ReadCall {
    /// Answers the call.
    pub(crate) async fn answer(self, opened: &OpenedSessions) -> Result<ToolAnswer, CallFailure> {
        let failed = |error: ApiError| CallFailure::of_operation(error, "address");
        let ApiAnswer { response: read, notices } = self.messages(opened).await.map_err(failed)?;
        let remarks = self.remarks(opened, &notices, &read);
        let shown = ShownMessages { thinking: self.thinking, tools: self.tools, requested: read.requested() };
        let text = |portion: Portion| self.text(opened, &read, (portion, shown), &remarks);
        let json = |portion: Portion| {
            let mut value = match &read {
                MessagesRead::Page(page) => {
                    serde_json::to_value(page.portion(portion, AnswerLimits::default()))
                }
                MessagesRead::Around(around) => {
                    serde_json::to_value(around.portion(portion, AnswerLimits::default()))
                }
            }?;
            if let Value::Object(fields) = &mut value {
                fields.insert("notices".to_owned(), remarks.clone().into());
            }
            Ok(value)
        };
        self.shape.fit(read.items(), text, json)
    }

    async fn messages(&self, opened: &OpenedSessions) -> Result<ApiAnswer<MessagesRead>, ApiError> {
        let api = opened.api();
        let session =
            SessionRequest { scope: opened.reach(), session: self.address.clone(), short_ids: false };
        let named = api.session(&session).await?.response;
        let (is_message, count) = (named.message.is_some(), named.session.session.message_count);
        let around = |turn: Option<u32>, message: Option<u32>, sides: (u32, u32)| ContextRequest {
            scope: opened.reach(),
            session: self.address.clone(),
            turn,
            message,
            before: Some(self.before.unwrap_or(sides.0)),
            after: Some(self.after.unwrap_or(sides.1)),
            short_ids: true,
        };
        let request = match (self.turn, self.from) {
            (Some(turn), _) => around(Some(turn), None, (0, 0)),
            (None, None | Some(ReadFrom::Start)) if is_message => around(None, None, (AROUND, AROUND)),
            (None, Some(ReadFrom::End)) if count > 0 => around(None, Some(count - 1), (PAGE, 0)),
            (None, from) => {
                let from = match from {
                    Some(ReadFrom::Message(sequence)) => sequence,
                    _ => 0,
                };
                return self.page(opened, from).await;
            }
        };
        let ApiAnswer { response, notices } = api.context(&request).await?;
        Ok(ApiAnswer { response: MessagesRead::Around(response), notices })
    }

    async fn page(&self, opened: &OpenedSessions, from: u32) -> Result<ApiAnswer<MessagesRead>, ApiError> {
        let from = from.saturating_sub(self.before.unwrap_or(0));
        let limit = self.after.map_or(PAGE, |after| after + 1 + self.before.unwrap_or(0)).min(MOST);
        let lines = LinesRequest {
            scope: opened.reach(),
            session: self.address.clone(),
            from: Some(from),
            limit: Some(limit as usize),
            range: true,
        };
        let request = MessagesRequest { lines, vectors: false, short_ids: true };
        let ApiAnswer { response, notices } = opened.api().messages(&request).await?;
        Ok(ApiAnswer { response: MessagesRead::Page(response), notices })
    }

    fn text(
        &self,
        opened: &OpenedSessions,
        read: &MessagesRead,
        (portion, shown): (Portion, ShownMessages),
        remarks: &[String],
    ) -> String {
        let messages = read.portion(portion);
        let mut text = head(read.session(), read.short_ids(), opened);
        for (view, chars) in &messages {
            if !messages::is_hidden(view, shown) {
                text.push('\n');
                text.push_str(&messages::message(view, shown, *chars, opened.now()));
            }
        }
        text.push('\n');
        text.push_str(&self.more(read, &messages));
        text.push_str(&remark_lines(remarks));
        text
    }

    /// Where the session goes on.
    fn more(&self, read: &MessagesRead, messages: &[(MessageView, Option<usize>)]) -> String {
        let (session, count) = (read.short_id(), read.session().session.message_count);
        let (Some((first, _)), Some((last, _))) = (messages.first(), messages.last()) else {
            return match count {
                0 => String::new(),
                _ => "left out: all messages, which do not fit; a larger budget shows them\n".to_owned(),
            };
        };
        let mut text = String::new();
        if first.sequence > 0 {
            let before = counted(u64::from(first.sequence), "message");
            text.push_str(&format!(
                "{before} before: read(address: \"{session}#{}\", before: 10)\n",
                first.sequence
            ));
        }
        let next = last.sequence + 1;
        if next < count {
            let after = counted(u64::from(count - next), "message");
            text.push_str(&format!("{after} after: read(address: \"{session}\", from: {next})\n"));
        }
        text
    }

    fn remarks(&self, opened: &OpenedSessions, notices: &[Notice], read: &MessagesRead) -> Vec<String> {
        let mut remarks = all_remarks(opened, notices, &[]);
        let damaged = read.damaged();
        if damaged > 0 {
            remarks.push(format!("left out: {}, which can't be read", counted(damaged as u64, "message")));
        }
        if !self.shape.is_json() {
            if !self.thinking {
                remarks.push("left out: thinking (thinking: true shows it)".to_owned());
            }
            if !self.tools {
                remarks.push("left out: tool calls and their output (tools: true shows them)".to_owned());
            }
        }
        remarks
    }
}

impl MessagesRead {
    fn items(&self) -> amplifier_session_api::budget::Items {
        match self {
            Self::Page(page) => page.items(),
            Self::Around(around) => around.items(),
        }
    }

    fn session(&self) -> &SessionView {
        match self {
            Self::Page(page) => &page.session,
            Self::Around(around) => &around.session,
        }
    }

    fn short_id(&self) -> &str {
        ids::short(self.short_ids(), &self.session().session.session_id)
    }

    fn short_ids(&self) -> &ShortIds {
        match self {
            Self::Page(page) => &page.short_ids,
            Self::Around(around) => &around.short_ids,
        }
    }

    fn requested(&self) -> Option<u32> {
        match self {
            Self::Page(_) => None,
            Self::Around(around) => around.sequence,
        }
    }

    fn damaged(&self) -> usize {
        match self {
            Self::Page(page) => page.damaged.len(),
            Self::Around(around) => around.damaged.len(),
        }
    }

    /// The messages of a portion, with the length in characters to which each is cut when it is shown.
    fn portion(&self, portion: Portion) -> Vec<(MessageView, Option<usize>)> {
        let whole = Portion { last_chars: None, ..portion };
        let with_chars = |messages: Vec<MessageView>, chars: &dyn Fn(usize) -> Option<usize>| {
            messages.into_iter().enumerate().map(|(at, message)| (message, chars(at))).collect()
        };
        match self {
            Self::Page(page) => {
                let shown = page.portion(whole, AnswerLimits::default());
                with_chars(shown.messages, &|at| portion.chars_of(at, None))
            }
            Self::Around(around) => {
                let shown = around.portion(whole, AnswerLimits::default());
                with_chars(shown.messages, &around.chars_of(portion, None))
            }
        }
    }
}

/// The session.
fn head(view: &SessionView, short_ids: &ShortIds, opened: &OpenedSessions) -> String {
    let session = &view.session;
    let is_estimated = view.is_estimated();
    let [from, to] =
        [session.created, session.updated].map(|ts| dates::about_minute(ts, is_estimated, opened.now()));
    let parent = session.parent_id.as_ref();
    let parent = parent.map(|parent| format!(" · sub-agent or fork of {}", ids::short(short_ids, parent)));
    let short_id = ids::short(short_ids, &session.session_id);
    format!(
        "{short_id} · {} · {from} to {to} · {} messages · {}{}\n",
        quoted::name(session.project_slug.as_str()),
        grouped(u64::from(session.message_count)),
        quoted::string(&view.title, TITLE_CHARS),
        parent.unwrap_or_default()
    )
}
