//! Looks up many rows at a time, because each statement waits for the server.

use std::{borrow::Cow, collections::HashMap};

use amplifier_session_core::{
    Result, Scope,
    backend::CountedEvents,
    model::{ContentType, Message, MessageRef, SessionId, SessionKey, UserId, VectorRecord},
    search::EventFilter,
};
use amplifier_session_sql::{
    Columns,
    backend::Lookups,
    number,
    rows::{self, MESSAGES, VECTOR},
    unless_damaged,
};
use tokio_postgres::types::Type;

use crate::{
    columns::PgRow,
    connection::{Parameter, PgReader},
    event_counts, text,
};

impl Lookups for PgReader<'_> {
    fn messages_at(&self, message_refs: &[MessageRef]) -> Result<Vec<Message>> {
        let wanted = MessageKeys::of(message_refs.iter());
        let sql = format!(
            "SELECT m.* FROM unnest($1, $2, $3) AS wanted (user_id, session_id, sequence), LATERAL (
                 {MESSAGES} WHERE t.user_id = wanted.user_id AND t.session_id = wanted.session_id
                     AND t.sequence = wanted.sequence {ONE_BY_ONE}) m"
        );
        self.query_decoded("messages_at", &sql, &wanted.parameters(), rows::message)
    }

    fn find_events(&self, user: &UserId, event_ids: &[String]) -> Result<Vec<(String, MessageRef)>> {
        let sql =
            "SELECT event_id, session_id, sequence FROM events WHERE user_id = $1 AND event_id = ANY($2)";
        let stored: Vec<String> = event_ids.iter().map(|id| text::stored(id).into_owned()).collect();
        let values: [Parameter<'_>; 2] = [(&user.as_str(), Type::TEXT), (&stored, Type::TEXT_ARRAY)];
        let mut found = HashMap::new();
        for row in self.query("find_events", sql, &values)? {
            let row = PgRow(&row);
            let session = SessionKey::new(user.clone(), SessionId::new(row.text(1)?)?);
            found.insert(row.text(0)?, MessageRef::new(session, number(&row, 2)?));
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
        let wanted = MessageKeys::of(texts.iter().map(|(message_ref, _)| message_ref));
        let content_types: Vec<&str> = texts.iter().map(|(_, content_type)| content_type.as_str()).collect();
        let sql = format!(
            "SELECT v.*, wanted.place
             FROM unnest($1, $2, $3, $4)
                 WITH ORDINALITY AS wanted (user_id, session_id, sequence, content_type, place), LATERAL (
                 SELECT {VECTOR} FROM transcript_vectors v
                 WHERE v.user_id = wanted.user_id AND v.session_id = wanted.session_id
                     AND v.sequence = wanted.sequence AND v.content_type = wanted.content_type
                     AND v.generation = {generation} {ONE_BY_ONE}) v
             ORDER BY wanted.place, v.chunk_index"
        );
        let parameters = wanted.parameters().into_iter().chain([(&content_types as _, Type::TEXT_ARRAY)]);
        let parameters: Vec<Parameter<'_>> = parameters.collect();
        let record = |row: &dyn Columns| Ok((number::<usize>(row, 7)?, unless_damaged(rows::record(row))?));
        let found = self.query_decoded("vectors_of", &sql, &parameters, record)?;
        let of_texts = found.into_iter().filter_map(|(place, record)| {
            let (message_ref, _) = texts.get(place.checked_sub(1)?)?;
            Some((message_ref.clone(), record?))
        });
        Ok(of_texts.collect())
    }
}

/// Ends a subquery that is run for each of the wanted rows. Without it, the planner may join the wanted rows with all rows
/// of the table, and fetch all of them if the table is on another server.
const ONE_BY_ONE: &str = "OFFSET 0";

/// Messages, as parameters of a statement.
struct MessageKeys<'a> {
    users: Vec<Cow<'a, str>>,
    sessions: Vec<Cow<'a, str>>,
    sequences: Vec<i64>,
}

impl<'a> MessageKeys<'a> {
    fn of(message_refs: impl Iterator<Item = &'a MessageRef> + Clone) -> Self {
        let keys = message_refs.clone().map(|message_ref| &message_ref.session);
        Self {
            users: keys.clone().map(|key| text::stored(key.user_id.as_str())).collect(),
            sessions: keys.map(|key| text::stored(key.session_id.as_str())).collect(),
            sequences: message_refs.map(|message_ref| message_ref.sequence.into()).collect(),
        }
    }

    fn parameters(&self) -> [Parameter<'_>; 3] {
        [
            (&self.users, Type::TEXT_ARRAY),
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.sequences, Type::INT8_ARRAY),
        ]
    }
}
