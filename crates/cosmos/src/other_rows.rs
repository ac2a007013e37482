//! Rows of a session other than messages, events and vectors: superseded lines and summaries, which are in the container
//! of events, in the partition of their session, and failures, which are part of their messages.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Result,
    backend::{Deletion, OtherRow, OtherRowQuery, OtherRows, SupersededQuery},
    model::{SessionKey, SupersededPiece, SupersededRef, TurnSummary},
};
use async_trait::async_trait;

use crate::{
    batch::Operation,
    documents::{GenerationState, PIECE_FIELDS, SupersededDocument, kind},
    error, ids,
    query::{Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
    turns,
};

/// A page with lines contains at most this many pieces, each of which has up to about a megabyte.
const PAGE: usize = 16;

#[async_trait]
impl OtherRows for CosmosBackend {
    async fn list_other_rows(&self, query: &OtherRowQuery) -> Result<Vec<OtherRow>> {
        match query {
            OtherRowQuery::Superseded(query) => {
                Ok(pieces(&self.0, query).await?.into_iter().map(OtherRow::Superseded).collect())
            }
            OtherRowQuery::Summaries(query) => {
                Ok(turns::summaries(&self.0, query).await?.into_iter().map(OtherRow::Summary).collect())
            }
            OtherRowQuery::Failures { session, generation } => failures(&self.0, session, *generation).await,
        }
    }

    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize> {
        turns::write_summaries(&self.0, key, &summaries).await
    }

    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
        let mut sessions: BTreeMap<&SessionKey, Vec<&str>> = BTreeMap::new();
        for SupersededRef { session, id } in pieces {
            sessions.entry(session).or_default().push(id);
        }
        let mut removed: BTreeMap<&SessionKey, Result<BTreeSet<String>>> = BTreeMap::new();
        for (key, ids) in &sessions {
            removed.insert(key, remove(&self.0, key, ids).await);
        }
        let existed = |SupersededRef { session, id }: &SupersededRef| match removed.get_mut(session) {
            Some(Ok(ids)) => Ok(ids.remove(id)),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(false),
        };
        Deletion::complete(pieces.iter().map(existed).collect())
    }
}

/// A page of pieces. Reads all pieces of the scope without their lines, because they are few, and then the lines of the
/// page.
async fn pieces(store: &Store, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
    let select = Select::of(kind::SUPERSEDED)
        .of_user(&query.scope)
        .with_some("c.session_id = @", query.filter.session.as_ref());
    let documents: Vec<SupersededDocument> = store.events.all(select.fields(PIECE_FIELDS)).await?;
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = scope::sessions(store, &query.scope, &query.filter).await?;
    let shown = documents.into_iter().filter(|of| sessions.contains_key(&of.user_id_session_id));
    let mut pieces = shown.map(SupersededDocument::into_piece).collect::<Result<Vec<_>>>()?;
    pieces.retain(|piece| query.admits_piece(piece));
    pieces.sort_by_key(SupersededPiece::piece_ref);
    pieces.truncate(query.limit);
    if query.with_data {
        pieces.truncate(PAGE);
        return with_data(store, pieces).await;
    }
    Ok(pieces)
}

/// Why texts of messages of a session have no vectors of a generation.
async fn failures(store: &Store, key: &SessionKey, generation: u32) -> Result<Vec<OtherRow>> {
    let select = Select::rows(kind::MESSAGE, &ids::partition(key)).and("ARRAY_LENGTH(c.generations) > 0");
    let query = select.fields("VALUE [c.sequence, c.generations]");
    let mut states: Vec<(u32, Vec<GenerationState>)> = store.rows(&store.messages, key, query).await?;
    states.sort_unstable_by_key(|(sequence, _)| *sequence);
    let of_message = |(sequence, states): (u32, Vec<GenerationState>)| {
        let state = states.into_iter().find(|state| state.number == generation)?;
        Some(OtherRow::Failure { sequence, reason: state.failure? })
    };
    Ok(states.into_iter().filter_map(of_message).collect())
}

/// The pieces with their lines. Leaves out pieces that were removed in the meantime.
async fn with_data(store: &Store, pieces: Vec<SupersededPiece>) -> Result<Vec<SupersededPiece>> {
    let mut found = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let partition = ids::partition(&piece.session);
        let document: Option<SupersededDocument> = store.events.read(&partition, &piece.id).await?;
        found.extend(document.map(SupersededDocument::into_piece).transpose()?);
    }
    Ok(found)
}

/// Adds the pieces that are not stored yet, before the rows with the original lines are removed.
pub(crate) async fn write_superseded(
    store: &Store,
    partition: &str,
    pieces: &[SupersededPiece],
) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    let mut stored = stored_ids(store, partition).await?;
    let new = pieces.iter().filter(|piece| stored.insert(piece.id.clone()));
    let operations = new.map(|piece| Operation::upsert(&SupersededDocument::new(piece)));
    error::check(store.events.write_many(partition, operations.collect::<Result<_>>()?).await?)
}

async fn stored_ids(store: &Store, partition: &str) -> Result<BTreeSet<String>> {
    let select = Select::rows(kind::SUPERSEDED, partition);
    let ids: Vec<String> = store.events.all(select.fields("VALUE c.id")).await?;
    Ok(ids.into_iter().collect())
}

/// Removes the existing ones of the pieces, and returns their ids.
async fn remove(store: &Store, key: &SessionKey, ids: &[&str]) -> Result<BTreeSet<String>> {
    let partition = ids::partition(key);
    let _lock = store.locks.lock(key).await;
    let stored = stored_ids(store, &partition).await?;
    let ids: BTreeSet<String> =
        ids.iter().filter(|id| stored.contains(**id)).map(|id| (*id).to_owned()).collect();
    delete(store, &partition, ids.iter().cloned().collect()).await?;
    Ok(ids)
}

/// Removes all pieces of a partition.
pub(crate) async fn delete_superseded(store: &Store, partition: &str) -> Result<()> {
    let ids = stored_ids(store, partition).await?;
    delete(store, partition, ids.into_iter().collect()).await
}

async fn delete(store: &Store, partition: &str, ids: Vec<String>) -> Result<()> {
    for ids in ids.chunks(VALUES) {
        let operations = ids.iter().cloned().map(Operation::delete).collect();
        // Rejected if another process deletes them at the same time.
        error::check(store.events.write_many(partition, operations).await?)?;
    }
    Ok(())
}
