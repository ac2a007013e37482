//! The feed of changes: the change feed of the container of sessions.
//!
//! It has the documents of sessions in their latest version, in order within a user, and no deletions. So whenever a session
//! leaves a scope, a document is written with how it was shared before: see [`RemovalDocument`].

use std::{collections::BTreeMap, time::Duration};

use amplifier_session_core::{
    Result, Scope,
    backend::{ChangeCursor, ChangeHints, ChangePage, ChangedFrom, Changes, SessionChanged, Version},
    model::SessionKey,
};
use async_trait::async_trait;
use azure_data_cosmos::{
    CosmosError,
    feed::{ChangeFeedPageIterator, ContinuationToken, FeedScope},
    models::ChangeFeedItem,
    options::{ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint},
};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    documents::{RemovalDocument, SessionDocument, kind},
    error,
    store::{CosmosBackend, Store},
};

/// How often a reader that waits looks for changes. Each time costs a request for each physical partition.
const LOOKS_FOR_CHANGES: Duration = Duration::from_secs(5);

type Pages = ChangeFeedPageIterator<ChangeFeedItem<Value>>;

#[async_trait]
impl Changes for CosmosBackend {
    async fn changes(&self, scope: &Scope, after: Option<&ChangeCursor>, limit: usize) -> Result<ChangePage> {
        let feed = Feed { store: &self.0, scope, id: self.0.config.location() };
        let Some(after) = after else { return Ok(ChangePage::beginning(feed.now().await?)) };
        let page = match after.position::<String>(&feed.id, scope) {
            Some(token) => feed.after(token, limit.max(1)).await?,
            None => None,
        };
        match page {
            Some(page) => Ok(page),
            None => Ok(ChangePage::reset(feed.now().await?)),
        }
    }

    fn change_hints(&self) -> ChangeHints {
        self.0.signal.hints(Some(LOOKS_FOR_CHANGES))
    }
}

/// The feed of a store for one scope.
struct Feed<'a> {
    store: &'a Store,
    scope: &'a Scope,
    id: String,
}

impl Feed<'_> {
    /// The cursor of now.
    async fn now(&self) -> Result<ChangeCursor> {
        let mut pages = self.pages(ChangeFeedOptions::default()).await.map_err(failed)?;
        // A physical partition has a place only after it was asked. Each page is of another one.
        for _ in 0..self.partitions().await? {
            next(&mut pages).await.map_err(failed)?;
        }
        self.cursor(&pages)
    }

    /// The page after a position; `None` if the service does not know it.
    async fn after(&self, token: String, limit: usize) -> Result<Option<ChangePage>> {
        let options = ChangeFeedOptions::default()
            .with_continuation_token(ContinuationToken::from_string(token))
            .with_max_item_count(hint(limit));
        let mut pages = match self.pages(options).await {
            Err(error) if is_unknown(&error) => return Ok(None),
            pages => pages.map_err(failed)?,
        };
        let partitions = self.partitions().await?;
        let (mut found, mut empty) = (BTreeMap::new(), 0);
        while empty < partitions && found.is_empty() {
            let items = match next(&mut pages).await {
                Err(error) if is_unknown(&error) => return Ok(None),
                items => items.map_err(failed)?,
            };
            empty = if items.is_empty() { empty + 1 } else { 0 };
            for item in items {
                self.add(item, &mut found).await?;
            }
        }
        let cursor = self.cursor(&pages)?;
        Ok(Some(ChangePage { changes: found.into_values().collect(), cursor, reset: false }))
    }

    /// Adds what a document says.
    async fn add(&self, document: Value, found: &mut BTreeMap<SessionKey, SessionChanged>) -> Result<()> {
        match document.get("type").and_then(Value::as_str) {
            Some(kind::SESSION) => {
                let fields = read::<SessionDocument>(document)?.fields;
                if fields.committed && self.scope.allows(&fields.session) {
                    let (session, version) = (Box::new(fields.session), Version(fields.version));
                    found.insert(
                        session.key(),
                        SessionChanged::Written { session, version, from: ChangedFrom::default() },
                    );
                }
            }
            Some(kind::REMOVAL) => {
                let removal = read::<RemovalDocument>(document)?;
                let key = removal.key();
                if self.scope.covers(removal.readers()) && !self.has(&key).await? {
                    found.insert(key.clone(), SessionChanged::Removed(key));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a session is in the scope now. If it is, its last write is reported later.
    async fn has(&self, key: &SessionKey) -> Result<bool> {
        let found = self.store.session(key).await?;
        Ok(found.is_some_and(|document| document.committed && self.scope.allows(&document.session)))
    }

    fn cursor(&self, pages: &Pages) -> Result<ChangeCursor> {
        let token = pages.to_continuation_token().map_err(failed)?;
        Ok(ChangeCursor::new(&self.id, self.scope, &token.as_str()))
    }

    async fn pages(&self, options: ChangeFeedOptions) -> Result<Pages, CosmosError> {
        let sessions = &self.store.sessions.sdk;
        let from = ChangeFeedStartFrom::Now;
        sessions.query_change_feed(FeedScope::full_container(), from, Some(options)).await
    }

    async fn partitions(&self) -> Result<usize> {
        let ranges = self.store.sessions.sdk.read_feed_ranges(None).await.map_err(failed)?;
        Ok(ranges.len().max(1))
    }
}

/// The documents of the next page.
async fn next(pages: &mut Pages) -> Result<Vec<Value>, CosmosError> {
    let Some(page) = pages.next().await else { return Ok(Vec::new()) };
    Ok(page?.items().iter().filter_map(|item| item.current().cloned()).collect())
}

fn read<T: DeserializeOwned>(document: Value) -> Result<T> {
    serde_json::from_value(document).map_err(error::malformed)
}

fn hint(limit: usize) -> MaxItemCountHint {
    let limit = u32::try_from(limit).ok().and_then(std::num::NonZeroU32::new);
    limit.map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit)
}

fn failed(failure: CosmosError) -> amplifier_session_core::Error {
    error::of_sdk("reading the change feed", failure)
}

/// Whether a position is of another container, or older than the feed.
fn is_unknown(error: &CosmosError) -> bool {
    matches!(error::status(error), 400 | 404 | 410)
}
