//! Makes missing vectors, rebuilds all vectors, and counts them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    embed::{Amount, EmbedReport, OnEmbedded, VectorsOf, amount_of, other_space},
    session_rows::SessionRows,
    store::{StoreUsers, StoredVectors},
};
use crate::{
    Error, ErrorField, ErrorKind, Result, Scope,
    backend::{
        GenerationCounts, IndexUpdate, MessagesToEmbed, PendingQuery, SessionQuery, StorageBackendExt,
        meta::{self, Generation, Generations},
    },
    embedding::EmbeddingProvider,
    model::{EmbeddingSpace, Session, SessionKey, UserId, VectorState},
};

/// Number of vectors of earlier generations to remove in one transaction.
const PRUNED_AT_ONCE: usize = 5_000;

/// An estimate of embedding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Estimate {
    /// The number of messages to embed.
    pub messages: u64,
    /// The number of texts: a message has one per content type, and long ones are split.
    pub texts: u64,
    /// The number of `cl100k_base` tokens of these texts.
    pub tokens: u64,
    /// The number of calls of the provider, if no text is in a cache.
    pub calls: u64,
}

/// The subject of an [`Estimate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EstimateOf {
    /// Pending vectors.
    Pending,
    /// All vectors.
    Everything,
}

/// The status of the vectors in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VectorStatus {
    /// Messages with something to embed.
    pub embeddable: u64,
    /// Messages with nothing to embed.
    pub nothing: u64,
    /// The vectors that searches use; `None` if the store never had any.
    pub current: Option<GenerationStatus>,
    /// The vectors that a rebuild is making.
    pub next: Option<GenerationStatus>,
    /// The number of vectors of earlier generations that are not removed yet.
    pub leftover_vectors: u64,
}

/// The status of the vectors of one generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct GenerationStatus {
    /// Model and dimensions.
    #[serde(flatten)]
    pub space: EmbeddingSpace,
    /// The number of messages with stored, pending or failed vectors.
    #[serde(flatten)]
    pub counts: GenerationCounts,
}

impl<'a> StoredVectors<'a> {
    /// Makes missing vectors: pending ones, and ones that failed before. With
    /// [`StorageSettings::turns`](super::StorageSettings::turns), also those of turns.
    ///
    /// # Errors
    ///
    /// `Unsupported` without an embedding provider; errors of the backend. If the provider fails, the report has the
    /// error.
    pub async fn backfill(self, of: &VectorsOf, on_embedded: OnEmbedded<'_>) -> Result<EmbedReport> {
        self.needed_provider()?;
        for key in self.session_keys(of).await? {
            self.store.backend.mark_pending(&key, MessagesToEmbed::Failed).await?;
        }
        let mut report = EmbedReport::default();
        self.embed_sessions(of, &mut report, on_embedded).await?;
        Ok(report)
    }

    /// Makes vectors again.
    ///
    /// If the store's vectors are of the same model, makes the vectors of `of` again, one message at a time. Searches
    /// use the old vector of a message until the new one is stored.
    ///
    /// Otherwise, makes vectors for all users beside the old ones. Searches use the old vectors until the new ones are
    /// complete. `of` must not have a project or session. Abandons a rebuild in progress with a third model.
    ///
    /// If it is interrupted, the next call continues. `report.failure` is set if it is not complete.
    ///
    /// # Errors
    ///
    /// `Unsupported` without an embedding provider; `Validation` for a part of the store with another model; errors of
    /// the backend.
    pub async fn rebuild(self, of: &VectorsOf, on_embedded: OnEmbedded<'_>) -> Result<EmbedReport> {
        let space = self.needed_provider()?.space().clone();
        let held = self.store.generations().await?;
        match &held.current {
            None => self.backfill(of, on_embedded).await,
            Some(current) if current.space == space => {
                self.rebuild_current(of, &held, &space, on_embedded).await
            }
            Some(_) if !self.has_vectors(&held).await? => self.backfill(of, on_embedded).await,
            Some(_) if of.is_everything() => self.rebuild_next(&held, &space, on_embedded).await,
            Some(_) => {
                let error = other_space(&held, &space);
                let message = format!("{}: rebuild all vectors, not only some of them", error.message());
                Err(Error::validation(ErrorField::Embedding, message))
            }
        }
    }

    async fn rebuild_current(
        self,
        of: &VectorsOf,
        held: &Generations,
        space: &EmbeddingSpace,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<EmbedReport> {
        // A rebuild with the current model abandons the one in progress.
        if held.next.is_some() && of.is_everything() {
            self.put_next(held, space).await?;
            self.prune().await?;
        }
        let keys = self.session_keys(of).await?;
        // Pending vectors were not reached by an earlier call.
        if !self.has_pending(of, held.current_number()).await? {
            for key in &keys {
                self.store.backend.mark_pending(key, MessagesToEmbed::All).await?;
            }
        }
        let mut report = EmbedReport::default();
        self.embed_sessions(of, &mut report, on_embedded).await?;
        Ok(report)
    }

    async fn rebuild_next(
        self,
        held: &Generations,
        space: &EmbeddingSpace,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<EmbedReport> {
        let generation = self.begin_next(held, space).await?;
        self.prune().await?;
        let mut report = EmbedReport::default();
        // Messages, also of new users, may be stored while others are embedded.
        while report.failure.is_none() && !self.store.backend.complete_generation(generation).await? {
            let before = (report.messages, report.refused);
            for user in StoreUsers::new(self.store).users_with_sessions().await? {
                let pending = PendingQuery {
                    user,
                    session: None,
                    generation,
                    turns: self.store.settings.turns,
                    after: None,
                    limit: 0,
                };
                self.embed_generation(pending, &mut report, on_embedded).await?;
                if report.failure.is_some() {
                    break;
                }
            }
            if before == (report.messages, report.refused) && report.failure.is_none() {
                let message = "vectors of some messages are pending, but the messages can't be read; the rebuild is not complete";
                report.failure = Some(Error::new(ErrorKind::StorageIo, message).retryable());
            }
        }
        if report.failure.is_none() {
            self.prune().await?;
            self.store.backend.update_index(IndexUpdate::Now).await?;
        }
        Ok(report)
    }

    /// The number of the generation that a rebuild with `space` makes: the one in progress, or a new one.
    async fn begin_next(self, held: &Generations, space: &EmbeddingSpace) -> Result<u32> {
        match &held.next {
            Some(next) if next.space == *space => Ok(next.number),
            _ => self.put_next(held, space).await,
        }
    }

    /// Makes a generation of `space` the next one. If it is the current space, there is no next one.
    async fn put_next(self, held: &Generations, space: &EmbeddingSpace) -> Result<u32> {
        let new = Generation { space: space.clone(), number: held.last_number + 1 };
        let value = new.to_value();
        let found = self.store.backend.put_meta_if_absent(meta::NEXT_EMBEDDING_SPACE, &value).await?;
        let is_known = Generation::parse(&found).is_none_or(|found| found.number <= held.last_number);
        let put = found == value
            || is_known
                && self.store.backend.replace_meta(meta::NEXT_EMBEDDING_SPACE, &found, &value).await?;
        let begun_elsewhere = "another rebuild started in the meantime";
        if put { Ok(new.number) } else { Err(Error::new(ErrorKind::Conflict, begun_elsewhere).retryable()) }
    }

    async fn prune(self) -> Result<()> {
        while self.store.backend.prune_vectors(PRUNED_AT_ONCE).await? > 0 {}
        Ok(())
    }

    /// Makes the vectors of `of`: all together, so that texts of several sessions share a call, or session by session.
    async fn embed_sessions(
        self,
        of: &VectorsOf,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let turns = self.store.settings.turns;
        if of.has_no_filter() {
            return self.embed_current(&of.user, of.session.as_ref(), turns, report, on_embedded).await;
        }
        for key in self.session_keys(of).await? {
            if report.failure.is_none() {
                self.embed_current(&of.user, Some(&key.session_id), turns, report, on_embedded).await?;
            }
        }
        Ok(())
    }

    async fn has_pending(self, of: &VectorsOf, generation: u32) -> Result<bool> {
        let pending = |session| PendingQuery {
            user: of.user.clone(),
            session,
            generation,
            turns: false,
            after: None,
            limit: 1,
        };
        if of.has_no_filter() {
            let pending = self.store.backend.messages_pending_vectors(&pending(of.session.clone())).await?;
            return Ok(!pending.is_empty());
        }
        for key in self.session_keys(of).await? {
            if !self.store.backend.messages_pending_vectors(&pending(Some(key.session_id))).await?.is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Estimates making vectors with this storage's provider. Nothing is written, and no text is sent anywhere.
    ///
    /// # Errors
    ///
    /// `Unsupported` without an embedding provider; errors of the backend.
    pub async fn estimate_embedding(self, of: &VectorsOf, what: EstimateOf) -> Result<Estimate> {
        let provider = self.needed_provider()?;
        let mut estimate = Estimate::default();
        for key in self.session_keys(of).await? {
            let mut messages = SessionRows::new(self.store, &key).messages(0);
            while let Some(mut page) = messages.next().await? {
                page.retain(|message| match what {
                    EstimateOf::Pending => message.vectors.is_pending(),
                    EstimateOf::Everything => message.vectors != VectorState::Nothing,
                });
                let messages = page.len() as u64;
                let amount = amount_of(page, &self.cutting_for(provider)).await?;
                estimate.add(messages, amount);
            }
        }
        estimate.calls = calls_of(&estimate, provider.as_ref());
        Ok(estimate)
    }

    /// The number of messages in `scope` with stored, pending or failed vectors.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn vector_status(self, scope: &Scope) -> Result<VectorStatus> {
        let held = self.store.generations().await?;
        let mut counts = self.store.backend.count_vectors(scope).await?;
        let mut status = |generation: Option<Generation>| {
            generation.map(|Generation { space, number }| GenerationStatus {
                space,
                counts: counts.generations.remove(&number).unwrap_or_default(),
            })
        };
        let current = status(held.current);
        let next = status(held.next);
        Ok(VectorStatus {
            embeddable: counts.embeddable,
            nothing: counts.nothing,
            current,
            next,
            leftover_vectors: counts.generations.values().map(|left| left.vectors).sum(),
        })
    }

    pub(super) fn needed_provider(self) -> Result<&'a std::sync::Arc<dyn EmbeddingProvider>> {
        let none = || Error::new(ErrorKind::Unsupported, "there is no embedding provider");
        self.store.embedding.as_ref().ok_or_else(none)
    }

    pub(super) async fn session_keys(self, of: &VectorsOf) -> Result<Vec<SessionKey>> {
        let filter = of.filter.clone().with_session(of.session.clone());
        let query = SessionQuery::new(Scope::from(of.user.clone())).with_filter(filter);
        Ok(self.store.all_sessions(query).await?.iter().map(Session::key).collect())
    }
}

impl StoreUsers<'_> {
    pub(super) async fn users_with_sessions(self) -> Result<BTreeSet<UserId>> {
        let sessions = self.store.all_sessions(SessionQuery::new(Scope::Everyone)).await?;
        Ok(sessions.into_iter().map(|session| session.user_id).collect())
    }
}

impl Estimate {
    fn add(&mut self, messages: u64, amount: Amount) {
        self.messages += messages;
        self.texts += amount.texts;
        self.tokens += amount.tokens;
    }
}

fn calls_of(estimate: &Estimate, provider: &dyn EmbeddingProvider) -> u64 {
    let limits = provider.limits();
    let by_texts = estimate.texts.div_ceil(limits.batch_texts.max(1) as u64);
    by_texts.max(estimate.tokens.div_ceil(limits.batch_tokens.max(1) as u64))
}
