//! All rows of an old database, session by session.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{MessageVectors, RowChange, SessionChange, StorageBackend, Version},
    model::{EmbeddingSpace, Session, SessionKey, StoredEvent, Timestamp, UserId},
};
use tokio::runtime::Handle;

use crate::{
    Cell, Counts, OldDatabase, OnProgress, Outcome, Progress, Relation, Upgrade, events, ids, messages,
    sessions::{self, OldSession},
    tables::Table,
    vectors::{self, LeftOut, OldVector},
};

/// How many rows are read and written at a time.
const BATCH: usize = 256;
/// A write is made when so many bytes of lines are waiting.
const FLUSH_BYTES: usize = 16 * 1024 * 1024;

/// Where rows go.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    backend: Arc<dyn StorageBackend>,
    runtime: Handle,
}

impl Target {
    pub(crate) fn new(backend: Arc<dyn StorageBackend>, runtime: Handle) -> Self {
        Self { backend, runtime }
    }

    pub(crate) fn backend(&self) -> &dyn StorageBackend {
        self.backend.as_ref()
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// The rows of a session, by their numbers.
#[derive(Debug, Default)]
struct Rows {
    own: Option<i64>,
    messages: Vec<i64>,
    events: Vec<i64>,
}

/// Brings all rows over, or only counts what would come of them.
pub(crate) struct Transfer<'a> {
    database: &'a dyn OldDatabase,
    target: Option<Target>,
    now: Timestamp,
    progress: OnProgress,
    sessions: Table,
    messages: Table,
    events: Option<Table>,
    vectors: Option<Table>,
    has_inline: bool,
    /// Of each vector in a row of its own the message and the row, in order.
    vector_rows: Vec<(i64, i64)>,
    space: Option<EmbeddingSpace>,
    taken_ids: events::TakenIds,
    done: Progress,
    counts: Counts,
    owing: u64,
    unknown_roles: u64,
    left_out: LeftOut,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(
        database: &'a dyn OldDatabase,
        target: Option<Target>,
        now: Timestamp,
        progress: OnProgress,
    ) -> Result<Self> {
        let relations: Vec<Relation> = database.relations()?;
        let inline = vectors::INLINE.iter().flat_map(|(_, column, json)| [*column, *json]);
        let wanted: Vec<&'static str> =
            messages::COLUMNS.into_iter().chain(inline.clone()).chain(["embedding_model"]).collect();
        let missing = || Error::new(ErrorKind::StorageIo, "the old database has lost a table");
        let messages = Table::of(&relations, "transcripts", &wanted).ok_or_else(missing)?;
        Ok(Self {
            database,
            target,
            now,
            progress,
            sessions: Table::of(&relations, "sessions", &sessions::COLUMNS).ok_or_else(missing)?,
            has_inline: inline.into_iter().any(|column| messages.has(column)),
            messages,
            events: Table::of(&relations, "events", &events::COLUMNS),
            vectors: Table::of(&relations, "transcript_vectors", &vectors::COLUMNS),
            vector_rows: Vec::new(),
            space: None,
            taken_ids: events::TakenIds::default(),
            done: Progress::default(),
            counts: Counts::default(),
            owing: 0,
            unknown_roles: 0,
            left_out: LeftOut::new(),
        })
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        let sessions = self.find_rows()?;
        let rows = |rows: &Rows| rows.messages.len() as u64 + rows.events.len() as u64;
        self.done.total = sessions.values().map(rows).sum();
        (self.progress)(self.done);
        self.find_vectors()?;
        self.choose_space(&sessions)?;
        if let (Some(target), Some(space)) = (&self.target, &self.space) {
            target.claim(space)?;
        }
        let mut users = BTreeSet::new();
        for (names, rows) in &sessions {
            let key = SessionKey::new(ids::user(&names[0])?, ids::session(&names[1])?);
            users.insert(key.user_id.clone());
            self.session(key, rows)?;
        }
        self.pin_user(&users)
    }

    /// What is told of it when it has run.
    pub(crate) fn told(&self, file: &Path, generation: u32, outcome: Outcome) -> Upgrade {
        let mut upgrade = Upgrade::nothing(file);
        upgrade.outcome = outcome;
        upgrade.generation = Some(generation);
        upgrade.counts = self.counts;
        upgrade.space = self.space.clone();
        upgrade.owing = self.owing;
        upgrade.left_out = self.left_out.clone();
        upgrade.unknown_roles = self.unknown_roles;
        upgrade
    }

    /// The numbers of all rows, by user and session. Messages and events without a session get one.
    fn find_rows(&self) -> Result<BTreeMap<[String; 2], Rows>> {
        const KEY: [&str; 2] = ["user_id", "session_id"];
        let mut sessions: BTreeMap<[String; 2], Rows> = BTreeMap::new();
        self.sessions.places(self.database, KEY, None, &mut |number, key| {
            sessions.entry(key).or_default().own = Some(number);
        })?;
        self.messages.places(self.database, KEY, Some("sequence"), &mut |number, key| {
            sessions.entry(key).or_default().messages.push(number);
        })?;
        if let Some(events) = &self.events {
            events.places(self.database, KEY, Some("sequence"), &mut |number, key| {
                sessions.entry(key).or_default().events.push(number);
            })?;
        }
        Ok(sessions)
    }

    /// Which vectors belong to which messages; those of none are counted.
    fn find_vectors(&mut self) -> Result<()> {
        let Some(vectors) = &self.vectors else { return Ok(()) };
        let parent =
            if vectors.has("parent_id") && self.messages.has("id") { "v.parent_id = t.id" } else { "false" };
        let sql = format!(
            "SELECT v.rowid, t.rowid FROM transcript_vectors v LEFT JOIN transcripts t ON {parent} ORDER BY v.rowid"
        );
        let (mut found, mut lost) = (Vec::new(), Vec::new());
        self.database.read(&sql, &mut |cells| {
            match cells.as_slice() {
                [Cell::Integer(vector), Cell::Integer(message)] => found.push((*message, *vector)),
                [Cell::Integer(vector), ..] => lost.push(*vector),
                _ => {}
            }
            Ok(())
        })?;
        found.sort_unstable();
        for numbers in lost.chunks(BATCH) {
            let rows = vectors.rows(self.database, numbers)?;
            let count = rows.iter().filter_map(|(_, row)| OldVector::of_row(row)).count();
            if count > 0 {
                *self.left_out.entry(vectors::OF_ANOTHER_MESSAGE.to_owned()).or_default() += count as u64;
            }
        }
        self.vector_rows = found;
        Ok(())
    }

    /// The space of most vectors: a store has one.
    fn choose_space(&mut self, sessions: &BTreeMap<[String; 2], Rows>) -> Result<()> {
        let mut spaces: HashMap<EmbeddingSpace, u64> = HashMap::new();
        let mut count = |vector: &OldVector| {
            if let Some(space) = vector.space() {
                *spaces.entry(space).or_default() += 1;
            }
        };
        if let Some(vectors) = &self.vectors {
            let numbers: Vec<i64> = self.vector_rows.iter().map(|(_, vector)| *vector).collect();
            for numbers in numbers.chunks(BATCH) {
                let rows = vectors.rows(self.database, numbers)?;
                rows.iter().filter_map(|(_, row)| OldVector::of_row(row)).for_each(|vector| count(&vector));
            }
        }
        if self.has_inline {
            for numbers in sessions.values().flat_map(|rows| rows.messages.chunks(BATCH)) {
                let rows = self.messages.rows(self.database, numbers)?;
                rows.iter().flat_map(|(_, row)| OldVector::inline(row)).for_each(|vector| count(&vector));
            }
        }
        let most = spaces.into_iter().max_by(|(a, of_a), (b, of_b)| {
            of_a.cmp(of_b).then_with(|| (&b.model, b.dimensions).cmp(&(&a.model, a.dimensions)))
        });
        self.space = most.map(|(space, _)| space);
        Ok(())
    }

    fn session(&mut self, key: SessionKey, rows: &Rows) -> Result<()> {
        let old = self.old_session(key, rows)?;
        let mut writing = Writing::new(old, self.now);
        for numbers in rows.messages.chunks(BATCH) {
            self.read_messages(numbers, &mut writing)?;
            self.flush(&mut writing)?;
            self.advance(numbers.len());
        }
        for numbers in rows.events.chunks(BATCH) {
            self.read_events(numbers, &mut writing)?;
            self.advance(numbers.len());
        }
        self.finish(writing)
    }

    fn old_session(&self, key: SessionKey, rows: &Rows) -> Result<OldSession> {
        let places = [
            (Some(&self.sessions), rows.own),
            (Some(&self.messages), rows.messages.first().copied()),
            (self.events.as_ref(), rows.events.first().copied()),
        ];
        let place = places.into_iter().find_map(|(table, number)| table.zip(number));
        let found = match place {
            Some((table, number)) => table.rows(self.database, &[number])?,
            None => Vec::new(),
        };
        OldSession::of(key, found.first().map(|(_, row)| row), rows.own.is_some(), self.now)
    }

    fn read_messages(&mut self, numbers: &[i64], writing: &mut Writing) -> Result<()> {
        let mut of_messages = self.vectors_of(numbers)?;
        for (number, row) in self.messages.rows(self.database, numbers)? {
            let (session, sequence) = (&writing.session, writing.messages);
            let old = messages::message(&row, session, sequence, writing.last_ts(), self.now);
            let mut found = of_messages.remove(&number).unwrap_or_default();
            // A migration that was broken off leaves them in both places.
            let is_new =
                |vector: &OldVector| !found.iter().any(|known| known.content_type() == vector.content_type());
            let inline: Vec<_> = OldVector::inline(&row).into_iter().filter(is_new).collect();
            found.extend(inline);
            let vectors = self.space.as_ref().and_then(|space| {
                vectors::of_message(&old.message, &old.texts, found, space, &mut self.left_out)
            });
            self.unknown_roles += u64::from(old.role_is_guessed);
            self.owing += u64::from(vectors.is_none() && old.message.vectors.is_owed());
            writing.message(old, vectors);
        }
        Ok(())
    }

    /// The vectors that stand in rows of their own, by message.
    fn vectors_of(&self, messages: &[i64]) -> Result<HashMap<i64, Vec<OldVector>>> {
        let Some(table) = &self.vectors else { return Ok(HashMap::new()) };
        let mut places: Vec<(i64, i64)> = Vec::new();
        for message in messages {
            let start = self.vector_rows.partition_point(|(of, _)| of < message);
            places.extend(self.vector_rows.iter().skip(start).take_while(|(of, _)| of == message));
        }
        let mut of_messages: HashMap<i64, Vec<OldVector>> = HashMap::new();
        for places in places.chunks(BATCH) {
            let numbers: Vec<i64> = places.iter().map(|(_, vector)| *vector).collect();
            let rows = table.rows(self.database, &numbers)?;
            for ((message, _), (_, row)) in places.iter().zip(&rows) {
                of_messages.entry(*message).or_default().extend(OldVector::of_row(row));
            }
        }
        Ok(of_messages)
    }

    fn read_events(&mut self, numbers: &[i64], writing: &mut Writing) -> Result<()> {
        let Some(table) = &self.events else { return Ok(()) };
        for (_, row) in table.rows(self.database, numbers)? {
            let (session, sequence) = (&writing.session, writing.events);
            let event = events::event(&row, session, sequence, writing.last_ts(), &mut self.taken_ids)?;
            writing.event(event);
            if writing.bytes >= FLUSH_BYTES {
                flush(self.target.as_ref(), writing)?;
            }
        }
        Ok(())
    }

    fn flush(&self, writing: &mut Writing) -> Result<()> {
        let is_full = writing.bytes >= FLUSH_BYTES || writing.change.messages.put.len() >= BATCH;
        if is_full { flush(self.target.as_ref(), writing) } else { Ok(()) }
    }

    fn finish(&mut self, mut writing: Writing) -> Result<()> {
        writing.describe();
        flush(self.target.as_ref(), &mut writing)?;
        if let Some(target) = &self.target {
            writing.check(target)?;
        }
        self.counts.sessions += 1;
        self.counts.messages += u64::from(writing.messages);
        self.counts.events += u64::from(writing.events);
        self.counts.vectors += writing.vectors;
        Ok(())
    }

    fn advance(&mut self, rows: usize) {
        self.done.done += rows as u64;
        (self.progress)(self.done);
    }

    /// A store of one person is that person's.
    fn pin_user(&self, users: &BTreeSet<UserId>) -> Result<()> {
        match (&self.target, users.first(), users.len()) {
            (Some(target), Some(user), 1) => target.pin(user),
            _ => Ok(()),
        }
    }
}

/// A session that is being written.
struct Writing {
    session: Session,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
    version: Option<Version>,
    change: SessionChange,
    pending_vectors: Vec<MessageVectors>,
    bytes: usize,
    messages: u32,
    events: u32,
    vectors: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// The time of the row before.
    before: Option<Timestamp>,
    turns: u32,
}

impl Writing {
    fn new(old: OldSession, now: Timestamp) -> Self {
        let mut session = old.session;
        session.created = old.created.unwrap_or(now);
        session.updated = old.updated.unwrap_or(session.created);
        let mut change = SessionChange::new(session.clone(), None);
        change.metadata_files = Some(old.files);
        Self {
            session,
            created: old.created,
            updated: old.updated,
            version: None,
            change,
            pending_vectors: Vec::new(),
            bytes: 0,
            messages: 0,
            events: 0,
            vectors: 0,
            first: None,
            last: None,
            before: None,
            turns: 0,
        }
    }

    /// The time of a row that says none.
    fn last_ts(&self) -> Timestamp {
        self.before.unwrap_or(self.session.created)
    }

    fn message(&mut self, old: messages::OldMessage, vectors: Option<MessageVectors>) {
        self.seen(old.message.ts, old.message.ts_estimated);
        self.turns = self.turns.max(old.message.turn.unwrap_or(0));
        if self.session.first_prompt.is_none() {
            self.session.first_prompt = old.first_prompt;
        }
        self.messages += 1;
        self.bytes += old.message.raw.as_bytes().len();
        self.bytes += vectors.as_ref().map_or(0, MessageVectors::vector_bytes);
        self.vectors += vectors.as_ref().map_or(0, |vectors| vectors.records.len() as u64);
        self.change.messages.put.push(old.message);
        self.pending_vectors.extend(vectors);
    }

    fn event(&mut self, event: StoredEvent) {
        self.seen(event.event.ts, event.event.ts_estimated);
        self.events += 1;
        self.bytes += usize::try_from(event.event.data_size_bytes).unwrap_or(usize::MAX / 2) + 512;
        self.change.events.put.push(event);
    }

    fn seen(&mut self, ts: Timestamp, estimated: bool) {
        self.before = Some(ts);
        if !estimated {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = self.last.max(Some(ts));
        }
    }

    /// Sets what is known when all rows are read.
    fn describe(&mut self) {
        let session = &mut self.session;
        session.created = self.created.or(self.first).unwrap_or(session.created);
        session.updated = self.updated.or(self.last).unwrap_or(session.created).max(session.created);
        (session.message_count, session.event_count) = (self.messages, self.events);
        if self.messages > 0 {
            session.turn_count = self.turns;
        }
    }

    /// Looks whether the store holds what was written.
    fn check(&self, target: &Target) -> Result<()> {
        let rows = target.wait(target.backend().session_rows(&self.session.key()))?;
        let expected = (u64::from(self.messages), u64::from(self.events), self.vectors);
        let found = (rows.messages.count, rows.events.count, rows.vectors);
        if found == expected {
            return Ok(());
        }
        let message =
            format!("the new store does not hold what was written: {found:?} and not {expected:?} rows");
        Err(Error::new(ErrorKind::StorageIo, message).with("session", &self.session.session_id))
    }
}

/// Writes what waits; forgets it where there is no target.
fn flush(target: Option<&Target>, writing: &mut Writing) -> Result<()> {
    let key = writing.session.key();
    let mut next = SessionChange::new(writing.session.clone(), None);
    std::mem::swap(&mut next, &mut writing.change);
    let vectors = std::mem::take(&mut writing.pending_vectors);
    writing.bytes = 0;
    let Some(target) = target else { return Ok(()) };
    let mut session = writing.session.clone();
    (session.message_count, session.event_count) = (writing.messages, writing.events);
    let SessionChange { metadata_files, messages, events, .. } = next;
    let RowChange { put, .. } = messages;
    let change = SessionChange {
        metadata_files,
        messages: RowChange { put, truncate: None },
        events,
        ..SessionChange::new(session, writing.version.take())
    };
    writing.version = Some(target.wait(target.backend().write(change))?);
    if !vectors.is_empty() {
        target.wait(target.backend().write_vectors(&key, 0, vectors))?;
        // Which may be a version of its own.
        let stored = target.wait(target.backend().get_session(&key))?;
        writing.version = stored.map(|stored| stored.version);
    }
    Ok(())
}
