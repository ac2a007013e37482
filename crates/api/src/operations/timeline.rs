//! The times at which matching messages were written.

use amplifier_session_core::{
    model::DamagedRow,
    search::{MissingVectors, PeriodUnit, SearchMode, SearchOptions, SearchResults, Timeline},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, FoundKind, NearestMessage, Notice,
    incomplete::IncompleteReason,
    names::names,
    query::{QueryRequest, ReadQuery, ResolvedQuery},
    zone::zone_name,
};

/// The number of the best messages that are counted in a search by meaning.
pub const MOST_COUNTED: usize = 100;

/// A timeline of the messages that match a query.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TimelineRequest {
    /// The query and its filters.
    #[serde(flatten)]
    pub query: QueryRequest,
    /// The unit of the periods. By default, it depends on the time between the first message and the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PeriodUnit>,
}

impl TimelineRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`], or `Validation` for a value that is out of range.
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.read(now, &mut Vec::new()).map(|_| ())
    }

    fn read(
        &self,
        now: &Zoned,
        notices: &mut Vec<Notice>,
    ) -> Result<(ReadQuery<'_>, SearchOptions), ApiError> {
        let mut read = ReadQuery::read(&self.query, now)?;
        // One more message, to know whether there are more.
        let options = read.options(now, notices)?.with_limit(MOST_COUNTED + 1);
        options.validate()?;
        Ok((read, options))
    }
}

/// The number of messages that match in each period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelineResponse {
    /// The query.
    pub query: String,
    /// The mode of the search that was done.
    pub mode: SearchMode,
    /// Remarks in words. They are those of the notices that are about the search, so a face puts them in.
    pub notices: Vec<String>,
    /// The messages without vectors, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_vectors: Option<MissingVectors>,
    /// The time zone of the days: an IANA name such as `Europe/Berlin`, or `UTC`.
    pub tz: String,
    /// The counts.
    #[serde(flatten)]
    pub timeline: Timeline,
    /// Whether more messages match than are counted.
    pub has_more: bool,
    /// Messages that would be counted, but can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

impl Api<'_> {
    /// Counts the messages that match a query by day, week or month: all that have its words. In a search by meaning, or
    /// if no message has a word of the query, the best [`MOST_COUNTED`].
    ///
    /// # Errors
    ///
    /// As [`Api::search`].
    #[crate::compiled_here]
    pub async fn timeline(&self, request: &TimelineRequest) -> Result<ApiAnswer<TimelineResponse>, ApiError> {
        let mut notices = Vec::new();
        let now = request.query.filter.now(self.now)?;
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        let ResolvedQuery { scope, options, .. } = &query;
        let zone = now.time_zone();
        let counted = self.storage.search().all_matches(scope, options).await?;
        if let Some(all) = counted.filter(|all| !all.messages.is_empty()) {
            let all = all.without_copies();
            notices.extend(all.notices.iter().map(|text| Notice::Search { text: text.clone() }));
            notices.extend(all.not_together.map(|words| Notice::NotTogether { words }));
            notices.extend(self.damaged_sessions(scope));
            let response = TimelineResponse {
                query: request.query.query.clone(),
                mode: SearchMode::FullText,
                notices: Vec::new(),
                missing_vectors: None,
                tz: zone_name(&now),
                timeline: Timeline::of_messages(&all.messages, request.by, zone),
                has_more: false,
                damaged: Vec::new(),
                incomplete: IncompleteReason::of_damage(&self.damaged_within(scope)),
            };
            return Ok(ApiAnswer { response, notices });
        }
        let found = self.storage.search().search_transcripts(scope, options).await?;
        self.remark(scope, options, &found, &mut notices).await?;
        notices.extend(self.damaged_sessions(scope));
        let mut incomplete = IncompleteReason::of_results(options, &found);
        incomplete.extend(IncompleteReason::of_damage(&self.damaged_within(scope)));
        let SearchResults { mode, missing_vectors, results, nearest, damaged, .. } = found;
        let response = TimelineResponse {
            query: request.query.query.clone(),
            mode,
            notices: Vec::new(),
            missing_vectors,
            tz: zone_name(&now),
            timeline: Timeline::of_results(results.iter().take(MOST_COUNTED), request.by, zone),
            has_more: results.len() > MOST_COUNTED,
            damaged,
            incomplete,
        };
        if results.is_empty() && response.damaged.is_empty() {
            let names = names(self.storage, scope, &nearest).await?;
            let nearest = nearest.map(|nearest| NearestMessage::new(&nearest, names.address(&nearest)));
            self.found_nothing(&query, FoundKind::Message, nearest, &mut notices).await?;
        }
        Ok(ApiAnswer { response, notices })
    }
}
