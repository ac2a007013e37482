//! Looks up many rows at a time: for DuckDB, a statement costs far more than a row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use amplifier_session_core::{
    Result, Scope,
    backend::CountedEvents,
    model::{ContentType, Message, MessageRef, SessionId, SessionKey, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_sql::{
    Columns, Query, Reader, Value,
    backend::Lookups,
    is_one_of, number,
    rows::{self, MESSAGES, VECTOR},
    unless_damaged,
};

use crate::{
    connection::{DuckDbReader, message_key},
    event_counts,
};

/// The number of ids that one statement searches for.
const IDS: usize = 500;

impl Lookups for DuckDbReader<'_> {
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let sessions =
            self.session_keys(&message_refs.iter().map(|message_ref| &message_ref.session).collect())?;
        let key = |message_ref: &MessageRef| {
            Some(message_key(*sessions.get(&message_ref.session)?, message_ref.sequence))
        };
        let sql = format!("{MESSAGES} WHERE {}", is_one_of("t.key", message_refs.iter().filter_map(key)));
        self.rows(&Query::new("messages_at", sql, [], rows::message).once())
    }

    /// Searches for all ids in one scan, because an index on them would slow down every write.
    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let mut found: HashMap<String, MessageRef> = HashMap::new();
        for ids in event_ids.chunks(IDS) {
            let parameters = (2..2 + ids.len()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
            let sql = format!(
                "SELECT event_id, session_id, sequence FROM events WHERE user_id = ?1 AND event_id IN ({parameters})"
            );
            let values =
                std::iter::once(user.as_str()).chain(ids.iter().map(String::as_str)).map(Value::from);
            let event =
                |row: &dyn Columns| Ok((row.text(0)?, SessionId::new(row.text(1)?)?, number(row, 2)?));
            for (id, session, sequence) in self.rows(&Query::new("find_events", sql, values, event).once())? {
                found.insert(id, MessageRef::new(SessionKey::new(user.clone(), session), sequence));
            }
        }
        // In the order of the arguments.
        Ok(event_ids.iter().filter_map(|id| Some((id.clone(), found.get(id)?.clone()))).collect())
    }

    fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
        event_counts::count(self, scope, filter)
    }

    fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let keys = self.vector_keys(generation, texts)?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let which = is_one_of("key", keys.keys().copied());
        let sql =
            format!("SELECT {VECTOR}, key FROM vectors_of_generations WHERE {which} ORDER BY chunk_index");
        let record = |row: &dyn Columns| Ok((row.integer(7)?, unless_damaged(rows::record(row))?));
        let found = self.rows(&Query::new("vectors_of", sql, [], record).once())?;
        let placed = found.into_iter().filter_map(|(key, record)| Some((*keys.get(&key)?, record?)));
        let mut placed: Vec<(usize, VectorRecord)> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        let of_texts =
            placed.into_iter().filter_map(|(place, record)| Some((texts.get(place)?.0.clone(), record)));
        Ok(of_texts.collect())
    }
}

impl DuckDbReader<'_> {
    /// The keys of the vectors of these texts, with the places of the texts.
    ///
    /// Reads no vector, because it looks at more rows than it was asked for: DuckDB takes longer to compare sessions and
    /// sequences together.
    fn vector_keys(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<HashMap<i64, usize>> {
        let places = texts.iter().enumerate().map(|(place, text)| (text, place));
        let places: HashMap<&(MessageRef, ContentType), usize> = places.collect();
        let sessions: BTreeSet<&SessionId> =
            texts.iter().map(|(message_ref, _)| &message_ref.session.session_id).collect();
        if sessions.is_empty() {
            return Ok(HashMap::new());
        }
        let ids = vec!["?"; sessions.len()].join(", ");
        let sequences = texts.iter().map(|(message_ref, _)| message_ref.sequence.into());
        let sql = format!(
            "SELECT key, user_id, session_id, sequence, content_type FROM vectors_of_generations
             WHERE generation = {generation} AND session_id IN ({ids}) AND {}",
            is_one_of("sequence", sequences)
        );
        let text = |row: &dyn Columns| Ok((row.integer(0)?, unless_damaged(text_of_vector(row))?));
        let values = sessions.iter().map(|session| session.as_str().into());
        let found = self.rows(&Query::new("vectors_of", sql, values, text).once())?;
        Ok(found.into_iter().filter_map(|(key, text)| Some((key, *places.get(&text?)?))).collect())
    }

    /// The keys of the sessions that exist.
    fn session_keys(&self, sessions: &BTreeSet<&SessionKey>) -> Result<BTreeMap<SessionKey, i64>> {
        if sessions.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Users are not part of the condition: DuckDB takes longer for a list of pairs than for sessions of other users
        // with the same ids.
        let ids = vec!["?"; sessions.len()].join(", ");
        let sql = format!("SELECT user_id, session_id, key FROM sessions WHERE session_id IN ({ids})");
        let values = sessions.iter().map(|key| key.session_id.as_str().into());
        let key_of = |row: &dyn Columns| {
            let key = SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?);
            Ok((key, row.integer(2)?))
        };
        let found = self.rows(&Query::new("messages_at", sql, values, key_of))?;
        Ok(found.into_iter().filter(|(key, _)| sessions.contains(key)).collect())
    }
}

/// The text that a vector is of, in the columns after the first.
fn text_of_vector(row: &dyn Columns) -> Result<(MessageRef, ContentType)> {
    let session = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
    Ok((MessageRef::new(session, number(row, 3)?), row.text(4)?.parse()?))
}
