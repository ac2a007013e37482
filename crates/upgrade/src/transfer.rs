//! Copies all rows of an old database, session by session.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{Session, SessionKey, Timestamp},
};

use crate::{
    database::{OldCell, OldDatabase},
    event_chunks::EventChunks,
    events, ids, messages,
    old::OldFile,
    report::{OnProgress, Upgrade, UpgradeProgress},
    sessions::{self, OldSession},
    spaces::Spaces,
    tables::{OldRow, OldTable},
    target::{Start, TargetStore},
    vectors::{self, OldVector},
    writing::SessionUpgrade,
};

/// How many rows are read and written at a time.
const BATCH: usize = 256;

/// The numbers of the rows of a session.
#[derive(Debug, Default)]
struct RowNumbers {
    own: Option<i64>,
    messages: Vec<i64>,
    events: Vec<i64>,
}

impl RowNumbers {
    /// How many messages and events it has.
    fn count(&self) -> u64 {
        self.messages.len() as u64 + self.events.len() as u64
    }
}

/// Copies all rows, or only counts what would be written.
pub(crate) struct Transfer<'a> {
    database: &'a dyn OldDatabase,
    target: Option<TargetStore>,
    now: Timestamp,
    progress: OnProgress,
    sessions: OldTable,
    messages: OldTable,
    events: Option<OldTable>,
    event_chunks: Option<EventChunks>,
    vectors: Option<OldTable>,
    has_inline: bool,
    rows: BTreeMap<[String; 2], RowNumbers>,
    /// The message and the row number of each vector that has its own row, in order.
    vector_rows: Vec<(i64, i64)>,
    spaces: Spaces,
    done: UpgradeProgress,
    /// The report.
    upgrade: &'a mut Upgrade,
}

impl<'a> Transfer<'a> {
    /// Determines what to copy. Adds everything that is copied or left out to `upgrade`.
    pub(crate) fn new(
        old: &'a OldFile,
        now: Timestamp,
        progress: OnProgress,
        upgrade: &'a mut Upgrade,
    ) -> Result<Self> {
        let inline = vectors::INLINE.iter().flat_map(|(_, column, json)| [*column, *json]);
        let wanted: Vec<&'static str> =
            messages::COLUMNS.into_iter().chain(inline.clone()).chain(["embedding_model"]).collect();
        let missing = || Error::new(ErrorKind::StorageIo, "a table of the old database is missing");
        let messages = OldTable::of(&old.tables, "transcripts", &wanted).ok_or_else(missing)?;
        let mut transfer = Self {
            database: old.database.as_ref(),
            target: None,
            now,
            progress,
            sessions: OldTable::of(&old.tables, "sessions", &sessions::COLUMNS).ok_or_else(missing)?,
            has_inline: inline.into_iter().any(|column| messages.has(column)),
            messages,
            events: OldTable::of(&old.tables, "events", &events::COLUMNS),
            event_chunks: EventChunks::find(old)?,
            vectors: OldTable::of(&old.tables, "transcript_vectors", &vectors::COLUMNS),
            rows: BTreeMap::new(),
            vector_rows: Vec::new(),
            spaces: Spaces::default(),
            done: UpgradeProgress::default(),
            upgrade,
        };
        transfer.find_rows()?;
        transfer.done.total = transfer.rows.values().map(RowNumbers::count).sum();
        (transfer.progress)(transfer.done);
        transfer.find_vectors()?;
        transfer.choose_space()?;
        Ok(transfer)
    }

    /// The length of the vectors that will be written, unless the store has vectors of another space.
    pub(crate) fn dimensions(&self) -> Option<usize> {
        self.spaces.chosen.as_ref().map(|space| space.dimensions)
    }

    /// Copies everything to `target`, and completes it. Without a target, only counts.
    pub(crate) fn run(mut self, target: Option<TargetStore>) -> Result<()> {
        self.target = target;
        if let (Some(target), Some(space)) = (&mut self.target, &self.spaces.chosen) {
            // The store may have vectors of another space.
            self.spaces.chosen = Some(target.claim(space)?);
        }
        self.upgrade.space = self.spaces.chosen.clone();
        let mut users = BTreeSet::new();
        for (names, rows) in std::mem::take(&mut self.rows) {
            let key = SessionKey::new(ids::user(&names[0])?, ids::session(&names[1])?);
            users.insert(key.user_id.clone());
            self.session(key, &rows)?;
        }
        let only_user = users.first().filter(|_| users.len() == 1);
        self.target.take().map_or(Ok(()), |target| target.finish(only_user))
    }

    /// Finds the numbers of all rows, by user and session. Creates sessions for messages and events without one.
    fn find_rows(&mut self) -> Result<()> {
        const KEY: [&str; 2] = ["user_id", "session_id"];
        let mut sessions: BTreeMap<[String; 2], RowNumbers> = BTreeMap::new();
        self.sessions.row_numbers(self.database, KEY, None, &mut |number, key| {
            sessions.entry(key).or_default().own = Some(number);
        })?;
        self.messages.row_numbers(self.database, KEY, Some("sequence"), &mut |number, key| {
            sessions.entry(key).or_default().messages.push(number);
        })?;
        if let Some(events) = &self.events {
            events.row_numbers(self.database, KEY, Some("sequence"), &mut |number, key| {
                sessions.entry(key).or_default().events.push(number);
            })?;
        }
        self.rows = sessions;
        Ok(())
    }

    /// Determines which vectors belong to which messages, and counts vectors of no message.
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
                [OldCell::Integer(vector), OldCell::Integer(message)] => found.push((*message, *vector)),
                [OldCell::Integer(vector), ..] => lost.push(*vector),
                _ => {}
            }
            Ok(())
        })?;
        found.sort_unstable();
        for numbers in lost.chunks(BATCH) {
            let rows = vectors.rows(self.database, numbers)?;
            let count = rows.iter().filter_map(|(_, row)| OldVector::of_row(row)).count();
            if count > 0 {
                let reason = vectors::OF_ANOTHER_MESSAGE.to_owned();
                *self.upgrade.left_out.entry(reason).or_default() += count as u64;
            }
        }
        self.vector_rows = found;
        Ok(())
    }

    fn choose_space(&mut self) -> Result<()> {
        let mut spaces = Spaces::default();
        let mut count = |vector: OldVector| {
            if let Some(dimensions) = vector.dimensions() {
                spaces.count(vector.model, dimensions);
            }
        };
        if let Some(vectors) = &self.vectors {
            let numbers: Vec<i64> = self.vector_rows.iter().map(|(_, vector)| *vector).collect();
            for numbers in numbers.chunks(BATCH) {
                let rows = vectors.rows(self.database, numbers)?;
                rows.iter().filter_map(|(_, row)| OldVector::of_row(row)).for_each(&mut count);
            }
        }
        if self.has_inline {
            for numbers in self.rows.values().flat_map(|rows| rows.messages.chunks(BATCH)) {
                let rows = self.messages.rows(self.database, numbers)?;
                rows.iter().flat_map(|(_, row)| OldVector::inline(row)).for_each(&mut count);
            }
        }
        spaces.choose();
        self.spaces = spaces;
        Ok(())
    }

    fn session(&mut self, key: SessionKey, rows: &RowNumbers) -> Result<()> {
        let start = self.target.as_mut().map_or(Ok(Start::New), |target| target.begin(&key))?;
        let replaced = match start {
            Start::New => None,
            Start::Again(stored) => Some(stored),
            Start::Skip => {
                self.upgrade.skipped += 1;
                self.advance(rows.messages.len() + rows.events.len());
                return Ok(());
            }
        };
        let old = self.old_session(key, rows)?;
        let mut writing = SessionUpgrade::new(old, self.target.as_ref(), replaced.as_deref(), self.now);
        for numbers in rows.messages.chunks(BATCH) {
            self.read_messages(numbers, &mut writing)?;
            writing.flush_when_full(self.target.as_ref())?;
            self.advance(numbers.len());
        }
        for numbers in rows.events.chunks(BATCH) {
            self.read_events(numbers, &mut writing)?;
            self.advance(numbers.len());
        }
        self.finish(writing)
    }

    fn old_session(&self, key: SessionKey, rows: &RowNumbers) -> Result<OldSession> {
        let rows_of_session = [
            (Some(&self.sessions), rows.own),
            (Some(&self.messages), rows.messages.first().copied()),
            (self.events.as_ref(), rows.events.first().copied()),
        ];
        let row = rows_of_session.into_iter().find_map(|(table, number)| table.zip(number));
        let found = match row {
            Some((table, number)) => table.rows(self.database, &[number])?,
            None => Vec::new(),
        };
        OldSession::of(key, found.first().map(|(_, row)| row), rows.own.is_some(), self.now)
    }

    fn read_messages(&mut self, numbers: &[i64], writing: &mut SessionUpgrade) -> Result<()> {
        let mut of_messages = self.vectors_of(numbers)?;
        for (number, row) in self.messages.rows(self.database, numbers)? {
            let (session, sequence) = (&writing.session, writing.messages);
            let old = messages::message(&row, session, sequence, writing.last_ts(), self.now);
            let mut found = of_messages.remove(&number).unwrap_or_default();
            // An interrupted migration leaves them in both places.
            let is_new =
                |vector: &OldVector| !found.iter().any(|known| known.content_type == vector.content_type);
            let inline: Vec<_> = OldVector::inline(&row).into_iter().filter(is_new).collect();
            found.extend(inline);
            let left_out = &mut self.upgrade.left_out;
            let vectors = vectors::of_message(&old.message, &old.texts, found, &self.spaces, left_out);
            self.upgrade.unknown_roles += u64::from(old.role_is_guessed);
            self.upgrade.pending += u64::from(vectors.is_none() && old.message.vectors.is_pending());
            writing.message(old, vectors);
        }
        Ok(())
    }

    /// The vectors that have their own rows, by message.
    fn vectors_of(&self, messages: &[i64]) -> Result<HashMap<i64, Vec<OldVector>>> {
        let Some(table) = &self.vectors else { return Ok(HashMap::new()) };
        let mut vectors: Vec<(i64, i64)> = Vec::new();
        for message in messages {
            let start = self.vector_rows.partition_point(|(of, _)| of < message);
            vectors.extend(self.vector_rows.iter().skip(start).take_while(|(of, _)| of == message));
        }
        let mut of_messages: HashMap<i64, Vec<OldVector>> = HashMap::new();
        for vectors in vectors.chunks(BATCH) {
            let numbers: Vec<i64> = vectors.iter().map(|(_, vector)| *vector).collect();
            let rows = table.rows(self.database, &numbers)?;
            for ((message, _), (_, row)) in vectors.iter().zip(&rows) {
                of_messages.entry(*message).or_default().extend(OldVector::of_row(row));
            }
        }
        Ok(of_messages)
    }

    fn read_events(&mut self, numbers: &[i64], writing: &mut SessionUpgrade) -> Result<()> {
        let Some(table) = &self.events else { return Ok(()) };
        let rows = table.rows(self.database, numbers)?;
        for (_, row) in rows {
            let (session, sequence) = (&writing.session, writing.events);
            let data = self.event_data(&row, session)?;
            let event = events::event(&row, data, session, sequence, writing.last_ts())?;
            writing.event(event);
            writing.flush_when_full(self.target.as_ref())?;
        }
        Ok(())
    }

    fn event_data(&self, row: &OldRow<'_>, session: &Session) -> Result<Option<String>> {
        let (data, id) = (row.text(&["data", "data_json"]), row.text(&["event_id", "id"]));
        match (data, &self.event_chunks, id) {
            (None, Some(chunks), Some(id)) => {
                // With the name that the session had in the old file.
                let of = row.text(&["session_id"]).unwrap_or_else(|| session.session_id.to_string());
                chunks.payload(self.database, &id, &of)
            }
            (data, ..) => Ok(data),
        }
    }

    fn finish(&mut self, mut writing: SessionUpgrade) -> Result<()> {
        writing.finish(self.target.as_ref())?;
        self.upgrade.counts.sessions += 1;
        self.upgrade.counts.messages += u64::from(writing.messages);
        self.upgrade.counts.events += u64::from(writing.events);
        self.upgrade.counts.vectors += writing.vectors;
        Ok(())
    }

    fn advance(&mut self, rows: usize) {
        self.done.done += rows as u64;
        (self.progress)(self.done);
    }
}
