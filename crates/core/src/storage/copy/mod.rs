//! Copies sessions from one store to another, of any kinds.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `mod.rs` | all sessions, one after the other |
//! | `report.rs` | options, progress and report |
//! | `store_data.rs` | what belongs to no session |
//! | `session.rs` | writes the rows of one session, in parts |
//! | `vectors.rs` | its vectors |
//! | `turns.rs` | the summaries of its turns |
//! | `outline.rs`, `digest.rs` | compares a session in both stores: quickly by stored digests, and completely |

mod digest;
mod outline;
mod report;
mod session;
mod store_data;
mod turns;
mod vectors;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub use report::{CopyOptions, CopyProgress, CopyReport, NotCopied, NotCopiedBecause, OnCopied};

use self::{
    digest::digest_of,
    outline::Outline,
    session::{Copying, is_unfinished},
    vectors::{CopiedGenerations, CopiedVectors, WrittenVectors},
};
use super::{
    deleted::DeletedSessions,
    front::SessionStorage,
    session_rows::{SessionRows, changing, missing},
    store::{StoreContext, StoreCopying},
};
use crate::{
    Error, ErrorField, ErrorKind, Result,
    backend::{SequenceRange, SessionCursor, SessionQuery, StorageBackend, StoredSession, meta},
    model::{DamagedRow, Session, SessionKey},
    text::counted,
};

/// Number of sessions listed at a time.
const SESSIONS: usize = 100;
/// Number of events whose ids are looked up at a time.
const IDS: usize = 500;
/// How often to try to copy a session that changes meanwhile.
const ATTEMPTS: usize = 3;

impl StoreCopying<'_> {
    /// Copies sessions to another store, of any kind: their messages, events with lines and chunks, superseded lines,
    /// metadata files, how far their files were read, fields that a user set, their vectors, and the embeddings and
    /// summaries of their turns. If all sessions of the scope are copied, `to` also remembers which ones were deleted.
    /// The source is not changed.
    ///
    /// - If `to` has a session with the same content, the session is not rewritten; only missing vectors, embeddings
    ///   and summaries are added. Of two summaries of a turn, the newer one that a user set is kept. A session with
    ///   other content is left alone and reported, unless [`CopyOptions::replace`] is set.
    /// - Sessions are written in parts of some megabytes. If the copy is interrupted, the next one continues where it
    ///   stopped.
    /// - After a session is written, it is read again from `to` and must have the same digest as in the source. Until
    ///   then, it counts as unfinished.
    /// - Vectors are copied if both stores have the same embedding space, or `to` has no vectors. Otherwise, they are
    ///   pending in `to`.
    /// - A session that can't be read completely is reported, and the others are copied.
    ///
    /// # Errors
    ///
    /// `Validation` if both are the same store; `Unsupported` if `to` masks secrets in lines and this store does not;
    /// errors of the backends, with the number of copied sessions in their context as `copied`.
    pub async fn copy_to(
        self,
        to: &SessionStorage,
        options: &CopyOptions,
        on_copied: OnCopied<'_>,
    ) -> Result<CopyReport> {
        let to = &to.store;
        if Arc::ptr_eq(&self.store.backend, &to.backend) {
            return Err(Error::validation(ErrorField::Copy, "the source and the target are the same store"));
        }
        let mut report = CopyReport::default();
        let generations = self.prepare_copy(to, &mut report).await?;
        let source_id = self.store.backend.meta().await?.remove(meta::STORE_ID).unwrap_or_default();
        let mut copy = Copy {
            from: self.store,
            to,
            options,
            on_copied,
            generations,
            source_id,
            report,
            deleted: DeletedSessions::default(),
            done: AtomicU64::new(0),
            total: 0,
        };
        match copy.run().await {
            Ok(()) => Ok(copy.report),
            Err(error) if copy.report.sessions == 0 => Err(error),
            Err(error) => Err(error.with("copied", counted(copy.report.sessions, "session"))),
        }
    }
}

/// A copy that is running.
struct Copy<'a> {
    from: &'a StoreContext,
    to: &'a StoreContext,
    options: &'a CopyOptions,
    on_copied: OnCopied<'a>,
    /// How vectors are copied; `None` if they are not.
    generations: Option<CopiedGenerations>,
    source_id: String,
    report: CopyReport,
    /// The sessions that were deleted from the target.
    deleted: DeletedSessions,
    /// The messages and events that are done.
    done: AtomicU64,
    total: u64,
}

impl Copy<'_> {
    async fn run(&mut self) -> Result<()> {
        let CopyOptions { scope, filter, since, .. } = self.options;
        let query = SessionQuery::new(scope.clone())
            .with_filter(filter.clone())
            .with_since(*since)
            .with_limit(SESSIONS);
        let mut seen = HashSet::new();
        // A session that changes while the pages of the list are read may be in it twice or not at all. So the list is
        // read again until it has no further sessions.
        loop {
            let mut new = self.list(query.clone()).await?;
            new.retain(|(key, _)| seen.insert(key.clone()));
            if new.is_empty() {
                break;
            }
            self.total += new.iter().map(|(_, rows)| rows).sum::<u64>();
            for (key, rows) in new {
                let before = self.done.load(Ordering::Relaxed);
                self.session(&key).await?;
                self.done.store(before + rows, Ordering::Relaxed);
                self.report_progress(0);
                self.from.backend.yield_to_searches().await;
            }
        }
        if self.options.is_everything() {
            self.report.deletions = StoreCopying::new(self.from).copy_deletions(self.to, scope).await?;
        }
        Ok(())
    }

    /// The sessions of the source, with the number of their rows.
    async fn list(&mut self, mut query: SessionQuery) -> Result<Vec<(SessionKey, u64)>> {
        let mut listed = Vec::new();
        loop {
            let mut damaged = Vec::new();
            let page = self.from.readable_sessions(&mut query, &mut damaged).await?;
            for DamagedRow { user_id, session_id, reason, .. } in damaged {
                let key = SessionKey::new(user_id, session_id);
                let row = NotCopied::new(&key, NotCopiedBecause::Damaged, reason);
                if !self.report.not_copied.contains(&row) {
                    self.report.not_copied.push(row);
                }
            }
            let rows = |session: &Session| u64::from(session.message_count) + u64::from(session.event_count);
            listed.extend(page.iter().map(|session| (session.key(), rows(session))));
            if page.len() < SESSIONS {
                return Ok(listed);
            }
            query.after = page.last().map(SessionCursor::from);
        }
    }

    fn report_progress(&self, rows: u64) {
        let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
        (self.on_copied)(CopyProgress { done: done.min(self.total), total: self.total });
    }

    /// Copies a session. If something is wrong with it, reports it.
    async fn session(&mut self, key: &SessionKey) -> Result<()> {
        for attempt in 1.. {
            match self.try_session(key).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => {}
                Err(error) => {
                    self.report.not_copied.push(NotCopied::of_error(key, error)?);
                    return Ok(());
                }
                Ok(()) => return Ok(()),
            }
        }
        Ok(())
    }

    async fn try_session(&mut self, key: &SessionKey) -> Result<()> {
        // It may have been deleted after it was listed.
        let Some(source) = self.from.backend.get_session(key).await? else { return Ok(()) };
        if is_unfinished(&source) {
            return Err(missing("it was only partly copied into the source"));
        }
        let held = self.to.backend.get_session(key).await?;
        let is_held = held.as_ref().is_some_and(|held| !is_unfinished(held));
        if let Some(held) = held.as_ref().filter(|_| is_held) {
            let ours = Outline::of(self.from, &source).await?;
            let theirs = Outline::of(self.to, held).await?;
            match ours.difference(&theirs) {
                None => return self.unchanged(key).await,
                Some(_) if self.options.replace => {}
                Some(parts) => {
                    self.left(key, NotCopiedBecause::Conflict, differs(&source, held, &parts));
                    return Ok(());
                }
            }
        }
        if held.is_none()
            && !self.options.include_deleted
            && self.deleted.contains(&*self.to.backend, key).await?
        {
            self.left(key, NotCopiedBecause::Deleted, "it was deleted from the target");
            return Ok(());
        }
        if let Some(reason) = self.taken_event(key).await? {
            self.left(key, NotCopiedBecause::Conflict, reason);
            return Ok(());
        }
        self.copy(&source, held.as_ref()).await?;
        self.report.replaced += u64::from(is_held && self.is_copied(key));
        Ok(())
    }

    /// Whether the session was copied: it is not among the sessions that were left out.
    fn is_copied(&self, key: &SessionKey) -> bool {
        let last = self.report.not_copied.last();
        last.is_none_or(|last| (&last.user_id, &last.session_id) != (&key.user_id, &key.session_id))
    }

    /// Copies the vectors that the target lacks of a session.
    async fn unchanged(&mut self, key: &SessionKey) -> Result<()> {
        let summaries = self.summaries(key).await?;
        self.report.summaries += summaries;
        if let Some(vectors) = self.vectors(key)
            && (summaries > 0 || !vectors.are_as_many().await?)
        {
            match vectors.copy().await? {
                Some(written) => self.report.add_vectors(written),
                None => {
                    self.left(key, NotCopiedBecause::Different, "its vectors differ after the copy");
                    return Ok(());
                }
            }
        }
        self.report.unchanged += 1;
        Ok(())
    }

    /// Writes a session, and compares it in both stores.
    async fn copy(&mut self, source: &StoredSession, held: Option<&StoredSession>) -> Result<()> {
        let key = source.session.key();
        let copying = Copying { from: self.from, to: self.to, source, source_id: &self.source_id };
        let written = copying.rows(held, |rows| self.report_progress(rows)).await?;
        if held.is_some() {
            copying.prune().await?;
        }
        let summaries = self.summaries(&key).await?;
        let vectors = match self.vectors(&key) {
            Some(vectors) => vectors.copy().await?,
            None => Some(WrittenVectors::default()),
        };
        let expected = match written.digest {
            Some(digest) => digest,
            None => digest_of(SessionRows::new(self.from, &key), source).await?,
        };
        // Vectors may have changed its version.
        let Some(stored) = self.to.backend.get_session(&key).await? else { return Err(changing(&key)) };
        let found = match digest_of(SessionRows::new(self.to, &key), &stored).await {
            Err(error) if error.kind() != ErrorKind::Damaged => return Err(error),
            found => found.ok(),
        };
        let (Some(vectors), true) = (vectors, found == Some(expected)) else {
            copying.discard(stored.version).await?;
            self.left(
                &key,
                NotCopiedBecause::Different,
                "its digest in the target does not match after the copy",
            );
            return Ok(());
        };
        copying.complete(stored.version).await?;
        let Session { message_count, event_count, .. } = source.session;
        self.report.sessions += 1;
        self.report.messages += u64::from(message_count);
        self.report.events += u64::from(event_count);
        self.report.superseded += written.superseded;
        self.report.summaries += summaries;
        self.report.add_vectors(vectors);
        Ok(())
    }

    fn vectors<'b>(&'b self, key: &'b SessionKey) -> Option<CopiedVectors<'b>> {
        let (from, to): (&dyn StorageBackend, &dyn StorageBackend) = (&*self.from.backend, &*self.to.backend);
        let now = self.to.now();
        self.generations.map(|generations| CopiedVectors { from, to, key, generations, now })
    }

    fn left(&mut self, key: &SessionKey, because: NotCopiedBecause, reason: impl Into<String>) {
        self.report.not_copied.push(NotCopied::new(key, because, reason));
    }

    /// Why the session can't be written, if another session of the user has an event with the same id.
    async fn taken_event(&self, key: &SessionKey) -> Result<Option<String>> {
        let mut range = SequenceRange { start: 0, limit: IDS };
        loop {
            let page = self.from.backend.read_events(key, range).await?;
            let Some(last) = page.last() else { return Ok(None) };
            range.start = last.sequence.saturating_add(1);
            let ids: Vec<String> = page.into_iter().map(|event| event.event_id).collect();
            let found = self.to.backend.find_events(&key.user_id, &ids).await?;
            let other = found.into_iter().find(|(_, event)| event.session.session_id != key.session_id);
            if let Some((id, event)) = other {
                let session = event.session.session_id;
                return Ok(Some(format!("its event {id:?} already belongs to session {session}")));
            }
        }
    }
}

/// How a session of the target differs.
fn differs(source: &StoredSession, held: &StoredSession, parts: &str) -> String {
    let (ours, theirs) = (&source.session, &held.session);
    let count = |one: u32, other: u32, what: &str| {
        (one != other).then(|| format!("; {what}: {other} in the target, {one} in the source"))
    };
    let counts = [
        count(ours.message_count, theirs.message_count, "messages"),
        count(ours.event_count, theirs.event_count, "events"),
    ];
    let counts: String = counts.into_iter().flatten().collect();
    format!("the target has a session with this id, but with different {parts}{counts}")
}
