//! The fields of a row that filters use.

use std::sync::Arc;

use amplifier_session_core::model::{Role, Timestamp};

use crate::{
    filter::Filter,
    rows::{MessageRow, SessionOfRow, VectorRow},
};

/// The filter fields of a row in the tail.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    session: Arc<SessionFacts>,
    role: Role,
    ts: Timestamp,
}

#[derive(Debug)]
struct SessionFacts {
    key: u64,
    user: Box<str>,
    project: Box<str>,
    session: Box<str>,
}

impl Facts {
    pub(crate) fn admitted_by(&self, filter: &Filter<'_>) -> bool {
        filter.admits_message(self.role, self.ts) && filter.admits_session(self.session.of_row())
    }
}

impl SessionFacts {
    fn of_row(&self) -> SessionOfRow<'_> {
        SessionOfRow { key: self.key, user: &self.user, project: &self.project, session: &self.session }
    }
}

/// Makes facts. Consecutive rows of a session share its names.
#[derive(Debug, Default)]
pub(crate) struct FactKeeper {
    last: Option<Arc<SessionFacts>>,
}

impl FactKeeper {
    pub(crate) fn of_message(&mut self, row: &MessageRow<'_>) -> Facts {
        Facts { session: self.session(row.of_session()), role: row.role, ts: row.ts }
    }

    pub(crate) fn of_vector(&mut self, row: &VectorRow<'_>) -> Facts {
        Facts { session: self.session(row.of_session()), role: row.role, ts: row.ts }
    }

    fn session(&mut self, row: SessionOfRow<'_>) -> Arc<SessionFacts> {
        if let Some(last) = self.last.as_ref().filter(|last| last.of_row() == row) {
            return Arc::clone(last);
        }
        let SessionOfRow { key, user, project, session } = row;
        let facts = SessionFacts { key, user: user.into(), project: project.into(), session: session.into() };
        let facts = Arc::new(facts);
        self.last = Some(Arc::clone(&facts));
        facts
    }
}
