//! Filters that several requests share.

use amplifier_session_core::{
    Error, ErrorField, Scope,
    backend::SessionQuery,
    model::{Session, SessionSource},
    search::SessionFilter,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{Api, ApiError, InvalidRequest, Notice, Reach, dates::DatePeriod, zone::in_zone};

/// Which sessions, and which period. The default is everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestFilter {
    /// Only this project: its slug, a part of it or a pattern, which may select several, or its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Further projects: sessions of any of them, or of `project`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Only this repository: its address, the end of the address, or a folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Only from this date on, as [`crate::dates::parse`] reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only until this date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The time zone of dates, and of the days in the response: an IANA name such as `Europe/Berlin`, `UTC`, or an offset
    /// such as `+05:45`. Default: the time zone of [`Api::now`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// Only sessions that ran with this bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// Only sessions that this program wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SessionSource>,
    /// Only sessions with all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Only sessions with at least this many turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_turns: Option<u32>,
    /// Only sessions with at most this many turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
}

impl RequestFilter {
    /// Whether it names a project.
    pub(crate) fn names_project(&self) -> bool {
        self.project.is_some() || !self.projects.is_empty()
    }

    /// The time in the time zone of the request.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::UnknownTimeZone`].
    pub fn now(&self, now: &Zoned) -> Result<Zoned, ApiError> {
        in_zone(now, self.tz.as_deref())
    }

    /// The period.
    ///
    /// # Errors
    ///
    /// As [`DatePeriod::parse`]; [`InvalidRequest::UnknownTimeZone`].
    pub fn period(&self, now: &Zoned, notices: &mut Vec<Notice>) -> Result<DatePeriod, ApiError> {
        DatePeriod::parse(self.since.as_deref(), self.until.as_deref(), &self.now(now)?, notices)
    }

    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// As [`Self::period`] and [`Self::sessions`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.period(now, &mut Vec::new())?;
        self.sessions().map(|_| ())
    }

    /// The filter for sessions, without the project, the repository and the period.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NoTurns`]; `Validation` if there are more than 100 tags.
    pub fn sessions(&self) -> Result<SessionFilter, ApiError> {
        if let (Some(min_turns), Some(max_turns)) = (self.min_turns, self.max_turns)
            && max_turns < min_turns
        {
            return Err(InvalidRequest::NoTurns { min_turns, max_turns }.into());
        }
        check_tags(self.tags.len())?;
        Ok(SessionFilter::default()
            .with_bundle(self.bundle.clone())
            .with_source(self.source)
            .with_tags(self.tags.iter().map(|tag| tag.trim()))
            .with_min_turns(self.min_turns)
            .with_max_turns(self.max_turns))
    }
}

/// Refuses a request with too many tags: each adds a condition to the SQL, and databases limit its depth.
pub(crate) fn check_tags(count: usize) -> Result<(), ApiError> {
    const MAX_TAGS: usize = 100;
    if count <= MAX_TAGS {
        return Ok(());
    }
    let detail = format!("a request can name {MAX_TAGS} tags, not {count}");
    Err(Error::validation(ErrorField::Tags, detail).into())
}

impl Api<'_> {
    /// The sessions of a request with this filter.
    pub(crate) async fn filtered(
        &self,
        scope: &Scope,
        filter: &RequestFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<SessionFilter, ApiError> {
        let sessions = filter.sessions()?;
        Ok(sessions.within(&self.named_sessions(scope, filter, notices).await?))
    }

    /// Likely reasons why a request with this filter finds nothing. `sessions` is the filter with the project found.
    pub(crate) async fn why_nothing(
        &self,
        scope: &Scope,
        filter: &RequestFilter,
        sessions: &SessionFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<(), ApiError> {
        if let Some(bundle) = filter.bundle.as_ref().filter(|bundle| !bundle.contains(':')) {
            notices.push(Notice::IncompleteBundle { bundle: bundle.clone() });
        }
        self.remark_unknown(scope, sessions, notices).await
    }

    /// A notice that names a user with sessions if the caller has none. Only callers who may read everyone's sessions
    /// learn of others.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    #[crate::compiled_here]
    pub async fn only_others(&self, scope: &Scope) -> Result<Option<Notice>, ApiError> {
        let (Scope::User(user), Ok(everyone)) = (scope, self.caller.scope(Reach::All)) else {
            return Ok(None);
        };
        let sessions = self.storage.sessions();
        let one = |scope: Scope| SessionQuery::new(scope).with_limit(1);
        if !sessions.search_sessions(&one(scope.clone())).await?.is_empty() {
            return Ok(None);
        }
        let others = sessions.search_sessions(&one(everyone)).await?;
        let notice = |other: &Session| Notice::OnlyOthersHaveSessions {
            user: user.clone(),
            other: other.user_id.clone(),
        };
        Ok(others.first().map(notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_can_be_written_and_read() {
        let filter = RequestFilter {
            since: Some("7d".to_owned()),
            source: Some(SessionSource::Amplifier),
            tags: vec!["incident".to_owned()],
            ..RequestFilter::default()
        };
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(json, r#"{"since":"7d","source":"amplifier","tags":["incident"]}"#);
        assert_eq!(serde_json::from_str::<RequestFilter>(&json).unwrap(), filter);
    }

    #[test]
    fn tags_are_limited() {
        let of = |count: usize| RequestFilter {
            tags: (0..count).map(|n| n.to_string()).collect(),
            ..RequestFilter::default()
        };
        assert_eq!(of(100).sessions().unwrap().tags.len(), 100);
        assert!(of(101).sessions().is_err());
    }

    #[test]
    fn dates_are_in_the_time_zone_of_the_request() {
        let now: Zoned = "2026-03-30T00:30:00+02:00[Europe/Berlin]".parse().unwrap();
        let yesterday = |tz: &str| {
            let filter = RequestFilter {
                since: Some("yesterday".to_owned()),
                until: Some("yesterday".to_owned()),
                tz: Some(tz.to_owned()),
                ..RequestFilter::default()
            };
            let period = filter.period(&now, &mut Vec::new()).unwrap();
            [period.since, period.until].map(|time| time.unwrap().to_string()[..16].to_owned())
        };
        // A Sunday of 23 hours.
        assert_eq!(yesterday("Europe/Berlin"), ["2026-03-28T23:00", "2026-03-29T22:00"]);
        // It is still Sunday there.
        assert_eq!(yesterday("UTC"), ["2026-03-28T00:00", "2026-03-29T00:00"]);
        assert_eq!(yesterday("America/New_York"), ["2026-03-28T04:00", "2026-03-29T04:00"]);
        assert_eq!(yesterday("Asia/Kathmandu"), ["2026-03-28T18:15", "2026-03-29T18:15"]);
        let unknown = RequestFilter { tz: Some("Europe/Atlantis".to_owned()), ..RequestFilter::default() };
        assert!(matches!(
            unknown.check(&now),
            Err(ApiError::Invalid(InvalidRequest::UnknownTimeZone { tz })) if tz == "Europe/Atlantis"
        ));
    }

    #[test]
    fn no_session_has_at_most_fewer_turns_than_at_least() {
        let turns = |min_turns, max_turns| RequestFilter {
            min_turns: Some(min_turns),
            max_turns: Some(max_turns),
            ..RequestFilter::default()
        };
        assert!(turns(2, 2).sessions().is_ok());
        assert!(matches!(
            turns(3, 2).sessions(),
            Err(ApiError::Invalid(InvalidRequest::NoTurns { min_turns: 3, max_turns: 2 }))
        ));
    }
}
