//! Time zones of requests, and orders of sessions.

use std::sync::Arc;

use amplifier_session_api::{
    ApiError, InvalidRequest,
    filter::RequestFilter,
    operations::{
        delete::DeletePreviewRequest, events::EventsRequest, projects::ProjectsRequest,
        prune::PrunePreviewRequest, recent::RecentRequest, sessions::SessionsRequest,
        statistics::StatisticsRequest, timeline::TimelineRequest,
    },
};
use amplifier_session_testkit::{lines, prelude::*};
use serde_json::from_value;

use super::{ana_asks, api, assert_written_and_read, by_words, now, storage};

fn in_zone(tz: &str) -> RequestFilter {
    RequestFilter { tz: Some(tz.to_owned()), ..RequestFilter::default() }
}

#[tokio::test]
async fn days_are_those_of_the_zone_of_the_request() {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let late = lines::user("a late deadlock").at("2026-03-01T23:30:00Z");
    let target = target_of("ana", "shop", "s");
    storage.ingestion().sync_transcript_lines(&target, whole(vec![late])).await.unwrap();
    let (caller, now) = (ana_asks(), now());
    let api = api(&storage, &caller, &now);
    for (tz, name, day) in [
        (Some("UTC"), "UTC", "2026-03-01"),
        (Some("Asia/Kathmandu"), "Asia/Kathmandu", "2026-03-02"),
        (Some("america/new_york"), "America/New_York", "2026-03-01"),
        // That of the caller.
        (None, "Europe/Zurich", "2026-03-02"),
    ] {
        let filter = RequestFilter { tz: tz.map(str::to_owned), ..RequestFilter::default() };
        let request = StatisticsRequest { filter: filter.clone(), ..StatisticsRequest::default() };
        let counted = api.statistics(&request).await.unwrap().response;
        let of_day = |day: &&DayStatistics| day.messages > 0;
        let found = counted.statistics.days.iter().find(of_day).unwrap();
        assert_eq!((counted.tz.as_str(), found.day.as_str()), (name, day));
        let mut query = by_words("deadlock").query;
        query.filter = filter;
        let request = TimelineRequest { query, by: None };
        assert_written_and_read(&request);
        let timeline = api.timeline(&request).await.unwrap().response;
        assert_eq!((timeline.tz.as_str(), timeline.timeline.periods[0].start.as_str()), (name, day));
        // The day of the query is of the same zone.
        let mut search = by_words(&format!("deadlock after:{day}"));
        search.query.filter.tz = tz.map(str::to_owned);
        assert_eq!(api.search(&search).await.unwrap().response.results.len(), 1, "{name}");
        search.query.query = format!("deadlock before:{day}");
        assert_eq!(api.search(&search).await.unwrap().response.results.len(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_zone_that_is_not_known_is_refused_by_name() {
    let now = now();
    let filter = || in_zone("Europe/Atlantis");
    let mut query = by_words("deadlock after:2026-03-01");
    query.query.filter = filter();
    let tz = Some("Europe/Atlantis".to_owned());
    let refused = [
        query.check(&now),
        TimelineRequest { query: query.query.clone(), by: None }.check(&now),
        StatisticsRequest { filter: filter(), ..StatisticsRequest::default() }.check(&now),
        SessionsRequest { filter: filter(), ..SessionsRequest::default() }.check(&now),
        RecentRequest { filter: filter(), ..RecentRequest::default() }.check(&now),
        ProjectsRequest { filter: filter(), ..ProjectsRequest::default() }.check(&now),
        EventsRequest { filter: filter(), ..EventsRequest::default() }.check(&now),
        DeletePreviewRequest {
            older_than: Some("90d".to_owned()),
            tz: tz.clone(),
            ..DeletePreviewRequest::default()
        }
        .check(&now),
        PrunePreviewRequest { tz, ..PrunePreviewRequest::default() }.check(&now),
    ];
    for (n, refused) in refused.into_iter().enumerate() {
        assert!(
            matches!(&refused, Err(ApiError::Invalid(InvalidRequest::UnknownTimeZone { tz })) if tz == "Europe/Atlantis"),
            "{n}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn sessions_and_projects_are_sorted_as_requested() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let call = |cost: &str| {
        let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": cost}});
        lines::logger_event("llm:response").data(data).at("2026-03-01T12:00:00Z")
    };
    for (project, session, costs) in
        [("shop", "first-1", vec!["0.25"]), ("bakery", "third-1", vec!["2", "1"])]
    {
        let lines = whole(costs.into_iter().map(call).collect());
        let target = target_of("ana", project, session);
        storage.ingestion().sync_event_lines(&target, lines).await.unwrap();
    }
    let request: SessionsRequest = from_value(json!({"sort": "cost", "limit": 2})).unwrap();
    assert_written_and_read(&request);
    let listed = api.sessions(&request).await.unwrap().response;
    assert_written_and_read(&listed);
    let costs: Vec<(String, Option<String>)> = listed
        .sessions
        .iter()
        .map(|one| {
            let cost = one.usage.unwrap().known_cost();
            (one.session.session.session_id.to_string(), cost.map(|cost| cost.to_string()))
        })
        .collect();
    let expected = [("third-1", "3"), ("first-1", "0.25")];
    assert_eq!(costs, expected.map(|(id, cost)| (id.to_owned(), Some(cost.to_owned()))));
    assert!(listed.has_more && listed.sort == SessionOrder::Cost);
    let all = SessionsRequest { limit: 3, ..request };
    let listed = api.sessions(&all).await.unwrap().response;
    assert!(!listed.has_more && listed.sessions[2].usage.unwrap().known_cost().is_none());

    let filter = RequestFilter { since: Some("2020-01-01".to_owned()), ..RequestFilter::default() };
    let recent = RecentRequest { filter, sort: SessionOrder::Cost, ..RecentRequest::default() };
    assert_written_and_read(&recent);
    let active = api.recent(&recent).await.unwrap().response;
    let projects: Vec<(&str, String)> =
        active.projects.iter().map(|of| (of.project.as_str(), of.usage.unwrap().cost.to_string())).collect();
    assert_eq!(projects, [("bakery", "3".to_owned()), ("shop", "0.25".to_owned())]);
    let by_messages = RecentRequest { sort: SessionOrder::Messages, ..recent };
    let active = api.recent(&by_messages).await.unwrap().response;
    assert_eq!(active.projects[0].project.as_str(), "shop");
    assert!(active.projects[0].usage.is_none());
}
