//! A subscription: what it reads from the feed, and the frames that it says.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use amplifier_session_api::operations::changes::{ChangeView, ChangesRequest, ChangesResponse};
use tokio::time::sleep;

use super::frames::{ChangeFrame, ServerFrame, SubscribeFrame, text};
use crate::{call::HttpCall, problem::HttpProblem};

/// The changes that are read at once. Their frames are less than 64 KB, so they are all that a client who does not read
/// keeps in memory.
const PAGE: usize = 50;
/// The changes after which a reader who has not caught up is told to list again: that is faster.
const MOST_BEHIND: usize = 1_000;
/// The time between two pages if there were no more changes. What changes meanwhile is read at once, and a session that
/// changes often is sent once.
const PAUSE: Duration = Duration::from_millis(100);
/// The time until an empty page. Only then, a subscription is asked whether its rights have changed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The next page of a feed.
pub(super) type NextPage = Pin<Box<dyn Future<Output = Result<ChangesResponse, HttpProblem>> + Send>>;

/// A subscription.
#[derive(Debug)]
pub(super) struct LiveSubscription {
    asked: SubscribeFrame,
    cursor: String,
    /// Whether there are more changes than were read.
    has_more: bool,
    /// The changes that were sent since the reader had all of them.
    behind: usize,
}

impl LiveSubscription {
    /// Begins a subscription, as far as the caller may.
    pub(super) async fn begin(asked: SubscribeFrame, call: &HttpCall) -> Result<Self, HttpProblem> {
        let request = ChangesRequest { scope: asked.scope, after: asked.after.clone(), limit: 1 };
        let checked = call.signed_in().caller().scope(asked.scope).map(drop).and_then(|()| request.check());
        checked.map_err(|error| call.problem(error))?;
        let cursor = match &asked.after {
            Some(after) => after.clone(),
            None => call.api().changes(&request).await.map_err(|error| call.problem(error))?.response.cursor,
        };
        // After a cursor, there may be changes already.
        let has_more = asked.after.is_some();
        Ok(Self { asked, cursor, has_more, behind: 0 })
    }

    /// The first frame.
    pub(super) fn ready(&self) -> Result<String, HttpProblem> {
        text(&ServerFrame::Ready { id: self.asked.id, cursor: &self.cursor })
    }

    /// Waits for the next page, for the caller.
    pub(super) fn next_page(&self, call: Arc<HttpCall>) -> NextPage {
        // Who lags behind goes on from now.
        let after = (!self.is_lagging()).then(|| self.cursor.clone());
        let request = ChangesRequest { scope: self.asked.scope, after, limit: PAGE };
        let pause = if self.has_more { Duration::ZERO } else { PAUSE };
        Box::pin(async move {
            sleep(pause).await;
            let answer = call.api().wait_for_changes(&request, PATIENCE).await;
            Ok(answer.map_err(|error| call.problem(error))?.response)
        })
    }

    fn is_lagging(&self) -> bool {
        self.behind >= MOST_BEHIND
    }

    /// The frames of a page.
    pub(super) fn frames(&mut self, page: &ChangesResponse) -> Result<Vec<String>, HttpProblem> {
        let id = self.asked.id;
        let frames = if page.reset {
            vec![text(&ServerFrame::Reset { id, cursor: &page.cursor })?]
        } else if self.is_lagging() {
            vec![text(&ServerFrame::Lagged { id, since: &self.cursor, cursor: &page.cursor })?]
        } else {
            self.changes(page)?
        };
        self.has_more = page.changes.len() >= PAGE;
        self.behind = if self.has_more { self.behind + frames.len() } else { 0 };
        self.cursor.clone_from(&page.cursor);
        Ok(frames)
    }

    /// The frames of the changes that the subscription is about. The cursor of the page belongs to the last one: after one
    /// of the others, the rest is still missing.
    fn changes(&self, page: &ChangesResponse) -> Result<Vec<String>, HttpProblem> {
        let about: Vec<&ChangeView> =
            page.changes.iter().filter(|change| is_about(&self.asked, change)).collect();
        let last = about.len().saturating_sub(1);
        let frame = |(number, change): (usize, &&ChangeView)| {
            let cursor = if number == last { &page.cursor } else { &self.cursor };
            text(&ServerFrame::Change(ChangeFrame::new(&self.asked, change, cursor)))
        };
        about.iter().enumerate().map(frame).collect()
    }
}

/// Whether a subscription is about a session. The project of one that is gone is not known.
fn is_about(asked: &SubscribeFrame, change: &ChangeView) -> bool {
    let is_session = asked.session.as_deref().is_none_or(|session| session == change.session_id.as_str());
    let of_project = |project: &String| {
        change.session.as_ref().is_none_or(|view| view.session.project_slug.as_str() == project)
    };
    is_session && asked.project.as_ref().is_none_or(of_project)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn subscription(asked: Value) -> LiveSubscription {
        let asked = serde_json::from_value(asked).unwrap();
        LiveSubscription { asked, cursor: "c0".to_owned(), has_more: false, behind: 0 }
    }

    fn removed(session: &str) -> Value {
        json!({"user_id": "ana", "session_id": session, "removed": true})
    }

    fn page(cursor: &str, changes: Vec<Value>) -> ChangesResponse {
        serde_json::from_value(json!({"changes": changes, "cursor": cursor, "reset": false})).unwrap()
    }

    fn frames(subscription: &mut LiveSubscription, page: &ChangesResponse) -> Vec<Value> {
        let frames = subscription.frames(page).unwrap();
        frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
    }

    #[test]
    fn only_the_last_frame_of_a_page_has_its_cursor() {
        let mut subscription = subscription(json!({"id": 1}));
        let frames = frames(&mut subscription, &page("c1", vec![removed("a"), removed("b")]));
        let cursors: Vec<&Value> = frames.iter().map(|frame| &frame["cursor"]).collect();
        assert_eq!(cursors, ["c0", "c1"]);
        let first = json!({
            "type": "change", "id": 1, "cursor": "c0", "removed": true,
            "session": {"user_id": "ana", "session_id": "a"},
        });
        assert_eq!(frames[0], first);
        assert_eq!(subscription.cursor, "c1");
    }

    #[test]
    fn other_sessions_are_left_out_and_the_cursor_moves() {
        let mut subscription = subscription(json!({"id": 1, "session": "b", "project": "shop"}));
        let found = frames(&mut subscription, &page("c1", vec![removed("a"), removed("b")]));
        assert_eq!((found.len(), &found[0]["session"]["session_id"]), (1, &json!("b")));
        assert!(frames(&mut subscription, &page("c2", vec![removed("a")])).is_empty());
        assert_eq!(subscription.cursor, "c2");
    }

    #[test]
    fn who_does_not_catch_up_is_told_to_list_again() {
        let mut subscription = subscription(json!({"id": 1}));
        for number in 0..MOST_BEHIND / PAGE {
            assert!(!subscription.is_lagging());
            let changes = (0..PAGE).map(|session| removed(&format!("s{session}"))).collect();
            frames(&mut subscription, &page(&format!("c{number}"), changes));
        }
        assert!(subscription.is_lagging());
        let lagged = frames(&mut subscription, &page("now", Vec::new()));
        assert_eq!(lagged, [json!({"type": "lagged", "id": 1, "since": "c19", "cursor": "now"})]);
        assert!(!subscription.is_lagging());
        // Who has all of them is not behind.
        let changes = (0..PAGE - 1).map(|session| removed(&format!("s{session}"))).collect();
        frames(&mut subscription, &page("c", changes));
        assert_eq!(subscription.behind, 0);
    }

    #[test]
    fn an_unknown_cursor_is_a_reset() {
        let mut subscription = subscription(json!({"id": 1}));
        let reset = ChangesResponse { changes: Vec::new(), cursor: "now".to_owned(), reset: true };
        assert_eq!(frames(&mut subscription, &reset), [json!({"type": "reset", "id": 1, "cursor": "now"})]);
    }
}
