//! How much a user may store.

use axum::http::StatusCode;
use serde_json::json;

use crate::problem::HttpProblem;

/// How much a user may store. Who has as much can read and delete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageQuota {
    /// The number of sessions. Default: any.
    pub sessions: Option<u64>,
    /// The number of messages and events, also of superseded ones. Default: any.
    pub rows: Option<u64>,
}

/// What a user has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredAmount {
    pub(crate) sessions: u64,
    pub(crate) rows: u64,
}

impl StorageQuota {
    /// This quota, with the limits of `other` where it has none.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self { sessions: self.sessions.or(other.sessions), rows: self.rows.or(other.rows) }
    }

    /// Whether there is no limit.
    pub(crate) fn is_unlimited(self) -> bool {
        self == Self::default()
    }

    /// Checks that a user who has stored this much may store more, also another session if `is_new`.
    pub(crate) fn check(self, stored: StoredAmount, is_new: bool) -> Result<(), HttpProblem> {
        let StoredAmount { sessions, rows } = stored;
        let exceeded = match self {
            Self { sessions: Some(most), .. } if sessions > most || (is_new && sessions >= most) => {
                Some(("sessions", sessions, most))
            }
            Self { rows: Some(most), .. } if rows >= most => {
                Some(("messages and events, with superseded ones", rows, most))
            }
            _ => None,
        };
        let Some((what, used, most)) = exceeded else { return Ok(()) };
        let detail = format!(
            "you have stored {used} {what}, and may store {most}; delete sessions or superseded lines, or ask for a larger quota"
        );
        let problem = HttpProblem::new(StatusCode::FORBIDDEN, "quota_exceeded", detail);
        let problem = problem.with("quota", json!({"sessions": self.sessions, "rows": self.rows}));
        Err(problem.with("stored", json!({"sessions": sessions, "rows": rows})))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_as_much_as_they_may_stores_no_more() {
        let quota = StorageQuota { sessions: Some(2), rows: Some(10) };
        let may = |sessions, rows, is_new| quota.check(StoredAmount { sessions, rows }, is_new).is_ok();
        assert!(may(1, 9, true) && may(2, 9, false));
        // Lines of a session that is stored already are no further session.
        assert!(!may(2, 9, true) && !may(3, 9, false) && !may(1, 10, false));
        let problem = quota.check(StoredAmount { sessions: 2, rows: 0 }, true).unwrap_err().object();
        assert_eq!((&problem["kind"], &problem["status"]), (&json!("quota_exceeded"), &json!(403)));
        assert_eq!(problem["stored"], json!({"sessions": 2, "rows": 0}));
        assert!(StorageQuota::default().check(StoredAmount { sessions: 9, rows: 9 }, true).is_ok());
    }

    #[test]
    fn a_quota_of_a_token_comes_before_that_of_all() {
        let own = StorageQuota { sessions: Some(5), rows: None };
        let of_all = StorageQuota { sessions: Some(2), rows: Some(10) };
        assert_eq!(own.or(of_all), StorageQuota { sessions: Some(5), rows: Some(10) });
        assert!(StorageQuota::default().is_unlimited() && !own.is_unlimited());
    }
}
