//! One turn in full.

use amplifier_session_core::storage::{Addressed, StoredTurnEmbedding, Turn};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, InvalidRequest, PlaceFields, Reach,
    addresses::named_message,
    ids::{address, address_beside, short},
};

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The address of the session, or of a message of the turn.
    pub session: String,
    /// The number of the turn, from 1, unless the address names a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Whether the response has the stored embedding of the turn.
    #[serde(default)]
    pub embedding: bool,
    /// Whether the response has the number of turns of the session.
    #[serde(default)]
    pub turn_count: bool,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnResponse {
    /// The address of the user's message.
    pub address: String,
    /// The title of the session.
    pub title: String,
    /// The turn.
    #[serde(flatten)]
    pub turn: Turn,
    /// The stored embedding of the turn for the current model, if there is one and it was requested.
    pub embedding: Option<StoredTurnEmbedding>,
    /// The number of turns of the session, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_count: Option<u32>,
}

impl Api<'_> {
    /// Reads one turn: the text of the user, the last answer, and the summary.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `SessionNotFound` if there is no such session;
    /// `Validation` if there are several, or if it has no such turn or message; errors of the store.
    #[crate::compiled_here]
    pub async fn turn(&self, request: &TurnRequest) -> Result<ApiAnswer<TurnResponse>, ApiError> {
        const FIELDS: PlaceFields = PlaceFields::Turn;
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, &request.session, &mut notices).await?;
        let (id, turns) = (&session.session_id, self.storage.turns());
        let number = match (named_message(&request.session, line, FIELDS)?, request.turn) {
            (None, Some(turn)) => turn,
            (Some(sequence), None) => turns.turn_of_message(&scope, id, sequence).await?,
            (None, None) => return Err(InvalidRequest::NoPlaceNamed { fields: FIELDS }.into()),
            (Some(_), Some(_)) => {
                let address = request.session.clone();
                return Err(InvalidRequest::PlaceNamedTwice { address, fields: FIELDS }.into());
            }
        };
        let turn = turns.get_turn(&session, number).await?;
        let short_ids = self.storage.sessions().short_ids(&scope, [id]).await?;
        let response = TurnResponse {
            address: address(short(&short_ids, id), turn.user.sequence),
            title: session.title().to_owned(),
            embedding: if request.embedding { turns.turn_embedding(&turn).await? } else { None },
            turn,
            turn_count: request.turn_count.then_some(session.turn_count),
        };
        Ok(ApiAnswer { response, notices })
    }
}

impl TurnResponse {
    /// The address of the message with this number, in the same session.
    #[must_use]
    pub fn address_of(&self, sequence: u32) -> String {
        address_beside(&self.address, sequence)
    }
}
