//! What filters ask of a row.

use std::sync::Arc;

use amplifier_session_core::model::{Role, Timestamp};

use crate::{
    filter::Filter,
    rows::{MessageRow, VectorRow},
};

/// The facts of a row in the tail.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    session: Arc<SessionFacts>,
    role: Role,
    ts: Timestamp,
}

#[derive(Debug)]
struct SessionFacts {
    user: Box<str>,
    project: Box<str>,
    session: Box<str>,
}

impl Facts {
    pub(crate) fn admitted_by(&self, filter: &Filter<'_>) -> bool {
        filter.admits_message(self.role, self.ts)
            && filter.admits_session(&self.session.user, &self.session.project, &self.session.session)
    }
}

/// Makes facts; those of rows of one session, which come one after the other, share its names.
#[derive(Debug, Default)]
pub(crate) struct FactKeeper {
    last: Option<Arc<SessionFacts>>,
}

impl FactKeeper {
    pub(crate) fn of_message(&mut self, row: &MessageRow<'_>) -> Facts {
        Facts { session: self.session(row.user, row.project, row.session), role: row.role, ts: row.ts }
    }

    pub(crate) fn of_vector(&mut self, row: &VectorRow<'_>) -> Facts {
        Facts { session: self.session(row.user, row.project, row.session), role: row.role, ts: row.ts }
    }

    fn session(&mut self, user: &str, project: &str, session: &str) -> Arc<SessionFacts> {
        if let Some(last) = &self.last
            && (&*last.user, &*last.project, &*last.session) == (user, project, session)
        {
            return Arc::clone(last);
        }
        let facts =
            Arc::new(SessionFacts { user: user.into(), project: project.into(), session: session.into() });
        self.last = Some(Arc::clone(&facts));
        facts
    }
}
