//! Vectors of several generations side by side.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_core::{
    Error, Result, Scope,
    backend::{
        VectorCounts,
        meta::{EMBEDDING_SPACE, Generations, NEXT_EMBEDDING_SPACE},
    },
    model::VectorState,
    search::SessionFilter,
};
use serde::Deserialize;

use crate::{
    client::{Operation, Query, Within},
    documents::{GenerationState, MessageDocument, vector_state},
    error, ids, lease, queries, schema, sessions,
    store::Store,
};

/// Makes the next generation the current one, unless a message owes vectors of it.
pub(crate) async fn complete(store: &Store, generation: u32) -> Result<bool> {
    let entries = schema::entries(store).await?;
    let held = Generations::of(&entries);
    if held.current_number() == generation {
        return Ok(true);
    }
    let rule = || Error::validation("generation", format!("generation {generation} is not the next one"));
    if !held.is_next(generation) {
        return Err(rule());
    }
    if is_owed(store, generation, &held).await? {
        return Ok(false);
    }
    // The states first: when this breaks off, the next generation is still the next one, and the call is repeated.
    change_messages(store, queries::owed(), usize::MAX, |document| {
        // One that came since owes vectors of this generation too.
        if document.made.contains(&generation) {
            document.vectors = VectorState::Stored.code();
        }
    })
    .await?;
    let (Some(current), Some(next)) = (entries.get(EMBEDDING_SPACE), entries.get(NEXT_EMBEDDING_SPACE))
    else {
        return Err(rule());
    };
    Ok(schema::swap(store, EMBEDDING_SPACE, Some(current), next).await?.as_deref() == Some(next))
}

#[derive(Debug, Deserialize)]
struct Owing {
    user_id_session_id: String,
}

/// Whether a message owes vectors of a generation. Those of a first write that did not come to its end owe nothing.
async fn is_owed(store: &Store, generation: u32, held: &Generations) -> Result<bool> {
    let Some(query) = queries::owing_partitions(generation, held) else { return Ok(false) };
    let mut pages = store.messages.query::<Owing>(Within::All, query).await?;
    let mut known = HashSet::new();
    while let Some(page) = pages.next().await? {
        for Owing { user_id_session_id: partition } in page {
            let key = ids::session_of(&partition)?;
            if known.insert(partition) && lease::is_there(store, &key).await? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes what is of generations that nobody needs any more; returns how much it was.
pub(crate) async fn prune(store: &Store, limit: usize) -> Result<usize> {
    let kept: Vec<u32> = schema::generations(store).await?.numbers().collect();
    let stale: Vec<StaleVector> =
        store.messages.all(Within::All, queries::stale_vectors(&kept, limit)).await?;
    let mut pruned = stale.len();
    let mut partitions: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for vector in stale {
        let delete = Operation::Delete { id: vector.id, etag: None };
        partitions.entry(vector.user_id_session_id).or_default().push(delete);
    }
    for (partition, operations) in partitions {
        // Refused where a writer removed one first: the rest is met again by the next call.
        store.messages.write_many(&partition, operations).await?;
    }
    if pruned == 0 {
        pruned = change_messages(store, queries::messages_with_generations(), limit, |document| {
            document.forget_generations(|number| !kept.contains(&number));
        })
        .await?;
    }
    Ok(pruned)
}

#[derive(Debug, Deserialize)]
struct StaleVector {
    id: String,
    user_id_session_id: String,
}

/// Changes the messages of a query, a page at a time, until about `most` became other ones; returns how many.
async fn change_messages(
    store: &Store,
    query: Query,
    most: usize,
    change: impl Fn(&mut MessageDocument),
) -> Result<usize> {
    let mut pages = store.messages.query::<MessageDocument>(Within::All, query).await?;
    let mut changed = 0;
    while changed < most
        && let Some(page) = pages.next().await?
    {
        let mut partitions: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
        for mut document in page {
            let before = (document.vectors, document.made.clone());
            change(&mut document);
            if (document.vectors, &document.made) == (before.0, &before.1) {
                continue;
            }
            changed += 1;
            let replace = Operation::replace(document.id.clone(), &document, &document.etag)?;
            partitions.entry(document.user_id_session_id).or_default().push(replace);
        }
        for (partition, operations) in partitions {
            if !store.messages.write_many(&partition, operations).await? {
                return Err(error::conflict());
            }
        }
    }
    Ok(changed)
}

#[derive(Debug, Deserialize)]
struct State {
    user_id_session_id: String,
    vectors: u8,
    generations: Vec<GenerationState>,
    made: Vec<u32>,
}

pub(crate) async fn count(store: &Store, scope: &Scope) -> Result<VectorCounts> {
    let held = schema::generations(store).await?;
    let within = sessions::within(store, scope, &SessionFilter::default()).await?;
    let mut counts = VectorCounts::default();
    let mut pages = store.messages.query::<State>(Within::All, queries::message_states(scope)).await?;
    while let Some(page) = pages.next().await? {
        for state in page.into_iter().filter(|state| within.contains_key(&state.user_id_session_id)) {
            add(&mut counts, &state, &held)?;
        }
    }
    Ok(counts)
}

fn add(counts: &mut VectorCounts, state: &State, held: &Generations) -> Result<()> {
    let vectors = vector_state(state.vectors)?;
    if vectors == VectorState::Nothing {
        counts.nothing += 1;
        return Ok(());
    }
    counts.embeddable += 1;
    for generation in held.numbers() {
        let is_current = generation == held.current_number();
        let owes = if is_current { vectors.is_owed() } else { !state.made.contains(&generation) };
        if owes {
            counts.generations.entry(generation).or_default().owing += 1;
        }
    }
    for of in &state.generations {
        let count = counts.generations.entry(of.number).or_default();
        count.vectors += u64::from(of.vectors);
        count.messages += u64::from(of.vectors > 0);
        if let Some(reason) = &of.failure {
            *count.failed.entry(reason.clone()).or_default() += 1;
        }
    }
    Ok(())
}
