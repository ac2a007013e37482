//! `statistics`.

use amplifier_session_api::{
    ApiAnswer,
    budget::{Items, Portion},
    filter::RequestFilter,
    operations::statistics::{StatisticsRequest, StatisticsResponse},
    text::cost,
};
use amplifier_session_core::{
    backend::Usage,
    model::ProjectSlug,
    storage::{DayStatistics, PeriodStatistics, SessionGroup, Statistics},
    text::{counted, grouped},
};
use serde_json::{Value, json};

use super::{all_remarks, given, remark_lines};
use crate::{
    OpenedSessions,
    answer::{AnswerShape, ToolAnswer},
    failure::CallFailure,
    parameters::{ByParameter, StatisticsParameters},
    quoted,
};

/// Statistics that were asked for.
#[derive(Debug)]
pub(crate) struct StatisticsCall {
    shape: AnswerShape,
    request: StatisticsRequest,
    by: Vec<ByParameter>,
}

/// Reads the parameters.
pub(crate) fn request(parameters: StatisticsParameters) -> Result<StatisticsCall, CallFailure> {
    let request = StatisticsRequest {
        filter: RequestFilter {
            project: given(parameters.project),
            since: given(parameters.since),
            until: given(parameters.until),
            ..RequestFilter::default()
        },
        session: given(parameters.session),
        ..StatisticsRequest::default()
    };
    let by = parameters.by.map_or_else(|| vec![ByParameter::Model, ByParameter::Tool], |by| vec![by]);
    Ok(StatisticsCall { shape: AnswerShape::new(parameters.budget, parameters.format)?, request, by })
}

impl StatisticsCall {
    /// Answers the call.
    pub(crate) async fn answer(mut self, opened: &OpenedSessions) -> Result<ToolAnswer, CallFailure> {
        self.request.scope = opened.reach();
        let answer = opened.api().statistics(&self.request).await;
        let ApiAnswer { response, notices } =
            answer.map_err(|error| CallFailure::of_operation(error, "session"))?;
        let remarks = all_remarks(opened, &notices, &response.incomplete);
        let tables: Vec<StatisticsTable> =
            self.by.iter().map(|by| StatisticsTable::new(&response.statistics, *by)).collect();
        let items = Items {
            count: tables.iter().map(|table| table.rows.len()).max().unwrap_or(0),
            can_be_cut: false,
        };
        let text = |portion: Portion| {
            let tables: String = tables.iter().map(|table| table.text(portion.items)).collect();
            totals(&response) + &tables + &remark_lines(&remarks)
        };
        let json = |portion: Portion| {
            let tables = tables.iter().map(|table| (table.name.to_owned(), table.json(portion.items)));
            let statistics = &response.statistics;
            let mut value = json!({
                "totals": statistics.totals, "usage": statistics.usage, "left_out": statistics.left_out,
                "tz": response.tz, "notices": remarks, "incomplete": response.incomplete});
            if let Value::Object(fields) = &mut value {
                fields.extend(tables);
            }
            Ok(value)
        };
        self.shape.fit(items, text, json)
    }
}

fn totals(response: &StatisticsResponse) -> String {
    let Statistics { totals, usage, left_out, .. } = &response.statistics;
    let mut text = format!(
        "{}, {}, {}, {}\n",
        counted(totals.sessions, "session"),
        counted(totals.messages, "message"),
        counted(totals.turns, "turn"),
        counted(totals.events, "event")
    );
    text.push_str(&format!("{}\n", used(usage)));
    if left_out.sessions > 0 {
        let copies = counted(left_out.messages, "message");
        text.push_str(&format!("left out: {copies} that {} copied\n", counted(left_out.sessions, "session")));
    }
    text
}

fn used(usage: &Usage) -> String {
    let cost = Some(cost(usage.cost)).filter(|cost| !cost.is_empty());
    let covered =
        usage.has_partial_cost().then(|| format!(" for {} of the calls", grouped(usage.priced_calls)));
    format!(
        "{}, {} tokens in, {} out, {} read from cache{}{}",
        counted(usage.calls, "model call"),
        grouped(usage.input_tokens),
        grouped(usage.output_tokens),
        grouped(usage.cache_read_tokens),
        cost.map_or_else(String::new, |cost| format!(", {cost}")),
        covered.unwrap_or_default()
    )
}

/// A breakdown.
struct StatisticsTable {
    name: &'static str,
    /// The name of each row, and what it says as text and as JSON.
    rows: Vec<(String, String, Value)>,
    /// Whether the last rows matter most.
    is_by_time: bool,
}

impl StatisticsTable {
    fn new(statistics: &Statistics, by: ByParameter) -> Self {
        let by_time = |name, rows| Self { name, rows, is_by_time: true };
        let periods = |periods: &[PeriodStatistics]| {
            let said = |of: &PeriodStatistics| activity([of.sessions, of.messages, of.events], &of.usage);
            periods.iter().map(|period| row(&period.period, said(period), period)).collect()
        };
        let groups = |name, rows| Self { name, rows, is_by_time: false };
        match by {
            ByParameter::Day => {
                let said = |of: &DayStatistics| activity([of.sessions, of.messages, of.events], &of.usage);
                by_time("days", statistics.days.iter().map(|day| row(&day.day, said(day), day)).collect())
            }
            ByParameter::Week => by_time("weeks", periods(&statistics.weeks)),
            ByParameter::Month => by_time("months", periods(&statistics.months)),
            ByParameter::Project => {
                let projects = statistics.projects.iter();
                groups("projects", projects.map(|group| of_group(group, ProjectSlug::to_string)).collect())
            }
            ByParameter::Bundle => {
                let bundles = statistics.bundles.iter();
                let name = |of: &Option<String>| of.clone().unwrap_or_else(|| "none".to_owned());
                groups("bundles", bundles.map(|group| of_group(group, name)).collect())
            }
            ByParameter::Model => {
                let models = statistics.models.iter();
                groups("models", models.map(|model| row(&model.model, used(&model.usage), model)).collect())
            }
            ByParameter::Tool => {
                let tools = statistics.tools.iter();
                let said =
                    |uses, failures| format!("{}, {}", counted(uses, "use"), counted(failures, "failure"));
                groups(
                    "tools",
                    tools.map(|tool| row(&tool.tool, said(tool.uses, tool.failures), tool)).collect(),
                )
            }
            ByParameter::Event => {
                let types = statistics.event_types.iter();
                let said = |events, failures| {
                    format!("{}, {}", counted(events, "event"), counted(failures, "failure"))
                };
                groups(
                    "event_types",
                    types.map(|of| row(&of.event_type, said(of.events, of.failures), of)).collect(),
                )
            }
        }
    }

    fn shown(&self, most: usize) -> &[(String, String, Value)] {
        let count = most.min(self.rows.len());
        let range = if self.is_by_time { self.rows.len() - count..self.rows.len() } else { 0..count };
        self.rows.get(range).unwrap_or_default()
    }

    fn text(&self, most: usize) -> String {
        let mut text = format!("\n{}:\n", self.name);
        for (name, said, _) in self.shown(most) {
            text.push_str(&format!("{name}: {said}\n"));
        }
        let left_out = self.rows.len() - self.shown(most).len();
        if left_out > 0 {
            text.push_str(&format!(
                "left out: {left_out} more, which do not fit; a larger budget shows them\n"
            ));
        }
        text
    }

    fn json(&self, most: usize) -> Value {
        self.shown(most).iter().map(|(_, _, value)| value.clone()).collect()
    }
}

fn row(name: &str, said: String, value: &impl serde::Serialize) -> (String, String, Value) {
    (quoted::name(name), said, serde_json::to_value(value).unwrap_or_default())
}

fn of_group<T: serde::Serialize>(
    group: &SessionGroup<T>,
    name: impl Fn(&T) -> String,
) -> (String, String, Value) {
    let counts = &group.counts;
    let said = [
        counted(counts.sessions, "session"),
        counted(counts.messages, "message"),
        counted(counts.turns, "turn"),
        counted(counts.events, "event"),
    ];
    row(&name(&group.of), said.join(", "), group)
}

/// What happened in a period: sessions that began, messages, events, and the usage of models.
fn activity([sessions, messages, events]: [u64; 3], usage: &Usage) -> String {
    let cost = Some(cost(usage.cost)).filter(|cost| !cost.is_empty());
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
    let (sessions, messages) = (counted(sessions, "new session"), counted(messages, "message"));
    let tokens = grouped(usage.input_tokens.saturating_add(usage.output_tokens));
    format!("{sessions}, {messages}, {}, {tokens} tokens{cost}", counted(events, "event"))
}
