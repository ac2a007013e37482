//! Looks up rows one by one: SQLite finds each through an index, with a statement that stays prepared.

use amplifier_session_core::{
    Result, Scope,
    backend::CountedEvents,
    model::{ContentType, Message, MessageRef, SessionId, SessionKey, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_sql::{
    Columns, Query, Reader, Value,
    backend::Lookups,
    number,
    rows::{self, MESSAGES, VECTOR},
    unless_damaged,
};

use crate::{connection::SqliteReader, event_counts};

impl Lookups for SqliteReader<'_> {
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let sql = format!("{MESSAGES} WHERE t.user_id = ?1 AND t.session_id = ?2 AND t.sequence = ?3");
        let message =
            |message_ref| Query::new("messages_at", sql.clone(), of_message(message_ref), rows::message);
        let messages = message_refs.iter().map(|message_ref| self.first(&message(message_ref)));
        messages.filter_map(Result::transpose).collect()
    }

    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let sql = "SELECT session_id, sequence FROM events WHERE user_id = ?1 AND event_id = ?2";
        let event = |row: &dyn Columns| Ok((SessionId::new(row.text(0)?)?, number(row, 1)?));
        let mut found = Vec::new();
        for id in event_ids {
            let values = [user.as_str().into(), id.as_str().into()];
            if let Some((session, sequence)) = self.first(&Query::new("find_events", sql, values, event))? {
                found.push((id.clone(), MessageRef::new(SessionKey::new(user.clone(), session), sequence)));
            }
        }
        Ok(found)
    }

    fn count_events(&self, scope: &Scope, filter: &EventFilter) -> Result<CountedEvents> {
        event_counts::count(self, scope, filter)
    }

    fn vectors_of(
        &self,
        generation: u32,
        texts: &[(MessageRef, ContentType)],
    ) -> Result<Vec<(MessageRef, VectorRecord)>> {
        let sql = format!(
            "SELECT {VECTOR} FROM transcript_vectors
             WHERE user_id = ?1 AND session_id = ?2 AND sequence = ?3 AND generation = ?4 AND content_type = ?5
             ORDER BY chunk_index"
        );
        let mut found = Vec::new();
        for (message_ref, content_type) in texts {
            let of_text = [generation.into(), content_type.as_str().into()];
            let values = of_message(message_ref).into_iter().chain(of_text);
            let record = |row: &dyn Columns| unless_damaged(rows::record(row));
            let records = self.rows(&Query::new("vectors_of", sql.clone(), values, record))?;
            found.extend(records.into_iter().flatten().map(|record| (message_ref.clone(), record)));
        }
        Ok(found)
    }
}

fn of_message(message_ref: &MessageRef) -> [Value; 3] {
    let SessionKey { user_id, session_id } = &message_ref.session;
    [user_id.as_str().into(), session_id.as_str().into(), message_ref.sequence.into()]
}
