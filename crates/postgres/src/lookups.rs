//! Looks up many rows at a time, because each statement waits for the server.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_core::{
    Result, Scope,
    backend::EventCount,
    model::{ContentType, Message, MessageRef, SessionId, SessionKey, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_sql::{
    Columns, Query, Reader as _,
    backend::Lookups,
    is_one_of, number,
    rows::{self, MESSAGES, VECTOR},
    unless_damaged,
};
use tokio_postgres::types::Type;

use crate::{columns::Fields, connection::Read, event_counts, text};

impl Lookups for Read<'_> {
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let mut messages = Vec::with_capacity(message_refs.len());
        for (key, sequences) in by_session(message_refs.iter()) {
            let which = is_one_of("t.sequence", sequences);
            let sql = format!("{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND {which}");
            messages.extend(self.rows(&Query::new("messages_at", sql, of(key), rows::message).once())?);
        }
        Ok(messages)
    }

    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let sql =
            "SELECT event_id, session_id, sequence FROM events WHERE user_id = $1 AND event_id = ANY($2)";
        let stored: Vec<String> = event_ids.iter().map(|id| text::stored(id).into_owned()).collect();
        let values: [crate::connection::Parameter<'_>; 2] =
            [(&user.as_str(), Type::TEXT), (&stored, Type::TEXT_ARRAY)];
        let mut found = HashMap::new();
        for row in self.query("find_events", sql, &values)? {
            let row = Fields(&row);
            let session = SessionKey::new(user.clone(), SessionId::new(row.text(1)?)?);
            found.insert(row.text(0)?, MessageRef::new(session, number(&row, 2)?));
        }
        // In the order of the arguments.
        Ok(event_ids.iter().filter_map(|id| Some((id.clone(), found.get(id)?.clone()))).collect())
    }

    fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<Vec<EventCount>> {
        event_counts::count(self, scope, filter)
    }

    fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let mut stored: HashMap<(MessageRef, ContentType), Vec<VectorRecord>> = HashMap::new();
        for (key, sequences) in by_session(texts.iter().map(|(message_ref, _)| message_ref)) {
            let sql = format!(
                "SELECT {VECTOR}, sequence FROM transcript_vectors
                 WHERE user_id = ?1 AND session_id = ?2 AND generation = {generation} AND {}
                 ORDER BY sequence, content_type, chunk_index",
                is_one_of("sequence", sequences)
            );
            let record = |row: &dyn Columns| {
                Ok(unless_damaged(rows::record(row))?.map(|record| (number::<u32>(row, 7), record)))
            };
            for (sequence, record) in
                self.rows(&Query::new("vectors_of", sql, of(key), record).once())?.into_iter().flatten()
            {
                let message_ref = MessageRef::new(key.clone(), sequence?);
                stored.entry((message_ref, record.content_type)).or_default().push(record);
            }
        }
        let of_texts = texts.iter().flat_map(|text| {
            let records = stored.get(text).into_iter().flatten();
            records.map(|record| (text.0.clone(), record.clone()))
        });
        Ok(of_texts.collect())
    }
}

/// The sequences of messages, by session.
fn by_session<'a>(message_refs: impl Iterator<Item = &'a MessageRef>) -> BTreeMap<&'a SessionKey, Vec<i64>> {
    let mut sessions: BTreeMap<&SessionKey, Vec<i64>> = BTreeMap::new();
    for message_ref in message_refs {
        sessions.entry(&message_ref.session).or_default().push(message_ref.sequence.into());
    }
    sessions
}

fn of(key: &SessionKey) -> [amplifier_session_sql::Value; 2] {
    [key.user_id.as_str().into(), key.session_id.as_str().into()]
}
