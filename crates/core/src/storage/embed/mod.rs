//! Makes pending vectors.

mod plan;
mod step;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use self::{
    plan::MessagePlan,
    step::{Step, StepOutcome},
};
pub(super) use self::{
    plan::is_made_of,
    step::{Amount, Cutting, with_address},
};
use super::store::{Rederivation, StoreUsers, StoredVectors};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{
        MessagesToEmbed, PendingQuery, StorageBackendExt,
        meta::{self, Generation, Generations},
    },
    embedding::EmbeddingProvider,
    model::{ContentType, EmbeddingSpace, Message, SessionId, Timestamp, UserId},
    search::SessionFilter,
};

/// Number of messages read, embedded and written at a time.
const MESSAGES_A_STEP: usize = 512;

/// The report of making vectors.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EmbedReport {
    /// The number of messages whose vectors were stored.
    pub messages: u64,
    /// The number of stored vectors, by content type.
    pub vectors: BTreeMap<ContentType, u64>,
    /// The number of messages with a text that the provider rejected. It has no vector, and is not tried again.
    pub refused: u64,
    /// The number of secrets that were masked before a text left this machine.
    pub secrets: u64,
    /// The number of turns whose vectors were stored.
    pub turns: u64,
    /// Why it ended early, if it did. The vectors of the remaining messages are still pending.
    #[serde(skip)]
    pub failure: Option<Error>,
}

/// A function that is called with the report so far after every step.
pub type OnEmbedded<'a> = &'a mut (dyn FnMut(&EmbedReport) + Send);

/// The messages whose vectors to make.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorsOf {
    /// The owner.
    pub user: UserId,
    /// Only sessions that match this filter.
    pub filter: SessionFilter,
    /// Only this session.
    pub session: Option<SessionId>,
}

impl VectorsOf {
    /// All messages of a user.
    #[must_use]
    pub fn user(user: UserId) -> Self {
        Self { user, filter: SessionFilter::default(), session: None }
    }

    setters! {
        /// Only sessions that match `filter`.
        with_filter(filter: SessionFilter);
        /// Only this session.
        with_session(session: Option<SessionId>);
    }

    pub(super) fn is_everything(&self) -> bool {
        self.has_no_filter() && self.session.is_none()
    }

    pub(super) fn has_no_filter(&self) -> bool {
        self.filter == SessionFilter::default()
    }
}

impl EmbedReport {
    /// Adds another report.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        for (content_type, count) in other.vectors {
            *self.vectors.entry(content_type).or_default() += count;
        }
        self.refused += other.refused;
        self.secrets += other.secrets;
        self.turns += other.turns;
        self.failure = self.failure.take().or(other.failure);
    }

    /// The total number of vectors.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.vectors.values().sum()
    }
}

impl StoredVectors<'_> {
    /// The space of the store's vectors; `None` if the store has no vectors.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn embedding_space(self) -> Result<Option<EmbeddingSpace>> {
        Ok(self.store.generations().await?.current.map(|current| current.space))
    }

    /// Makes the pending vectors of `user`, and only of `session` if given. Does nothing without an embedding provider.
    /// With [`StorageSettings::turns`](super::StorageSettings::turns), also those of turns.
    ///
    /// If the provider fails, the report has the error.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn embed_pending(self, user: &UserId, session: Option<&SessionId>) -> Result<EmbedReport> {
        let mut report = EmbedReport::default();
        self.embed_current(user, session, self.store.settings.turns, &mut report, &mut |_| {}).await?;
        Ok(report)
    }

    /// Whether vectors are pending; with `turns`, also if only that of a turn is.
    async fn has_pending_vectors(
        self,
        user: &UserId,
        session: Option<&SessionId>,
        turns: bool,
    ) -> Result<bool> {
        let generation = self.store.generations().await?.current_number();
        let (user, session) = (user.clone(), session.cloned());
        let query = PendingQuery { user, session, generation, turns, after: None, limit: 1 };
        Ok(!self.store.backend.messages_pending_vectors(&query).await?.is_empty())
    }

    /// Makes the pending vectors of the current generation; with `turns`, also those of turns.
    pub(super) async fn embed_current(
        self,
        user: &UserId,
        session: Option<&SessionId>,
        turns: bool,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let Some(provider) = &self.store.embedding else { return Ok(()) };
        Rederivation::new(self.store).rederive().await?;
        if !self.has_pending_vectors(user, session, turns).await? {
            return Ok(());
        }
        let held = self.store.generations().await?;
        let generation = held.current_number();
        // A store without vectors is claimed when the first vector is written: a model that fails must not exclude
        // others.
        let claimed = match held.current {
            None => Ok(generation),
            Some(_) => self.claim_space(provider.space()).await?,
        };
        match claimed {
            Ok(generation) => {
                let (user, session) = (user.clone(), session.cloned());
                let limit = MESSAGES_A_STEP;
                let pending = PendingQuery { user, session, generation, turns, after: None, limit };
                self.embed_generation(pending, report, on_embedded).await
            }
            Err(error) => {
                report.failure = Some(error);
                Ok(())
            }
        }
    }

    /// Makes the vectors that `pending` selects. The provider has the space of the generation.
    pub(super) async fn embed_generation(
        self,
        pending: PendingQuery,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let Some(provider) = &self.store.embedding else { return Ok(()) };
        let mut query = PendingQuery { limit: MESSAGES_A_STEP, ..pending };
        // The vectors of one step are made while those of the previous step are stored and the next messages are read.
        let mut running = RunningStep::default();
        loop {
            let pending = self.store.backend.messages_pending_vectors(&query).await?;
            query.after = pending.last().map(Message::message_ref).or(query.after);
            self.store.backend.yield_to_searches().await;
            let cutting = self.cutting_for(provider);
            let plans = self.plan(query.generation, pending, query.turns, &cutting).await?;
            let made = running.finish().await?;
            let failed = made.as_ref().is_some_and(|made| made.report.failure.is_some());
            if !plans.is_empty() && !failed {
                running.start(plans, cutting, self.store.now());
            }
            match made {
                Some(made) => {
                    if let Err(error) = self.claim_for(query.generation, provider.space(), &made).await? {
                        report.failure = Some(error);
                        return Ok(());
                    }
                    self.store_step(query.generation, made, report).await?;
                }
                None if running.is_idle() => return Ok(()),
                None => {}
            }
            on_embedded(report);
            if failed {
                return Ok(());
            }
        }
    }

    /// How texts are cut for `provider`.
    pub(super) fn cutting_for(self, provider: &Arc<dyn EmbeddingProvider>) -> Cutting {
        Cutting {
            provider: Arc::clone(provider),
            redactor: self.store.redactor_for(provider.as_ref()).cloned(),
            tool_chars: self.store.settings.tool_output_chars,
        }
    }

    /// Claims the store for `space` before the first vectors are written. Fails like [`Self::claim_space`].
    async fn claim_for(
        self,
        generation: u32,
        space: &EmbeddingSpace,
        step: &StepOutcome,
    ) -> Result<Result<()>> {
        if step.made.is_empty() || self.store.generations().await?.space(generation).is_ok() {
            return Ok(Ok(()));
        }
        Ok(self.claim_space(space).await?.map(|_| ()))
    }

    /// The number of the generation of `space`. A store without vectors is claimed for it. The outer error comes from
    /// the backend; the inner one says that the store has vectors of another space.
    ///
    /// A space that was claimed but has no vectors is replaced.
    pub(super) async fn claim_space(self, space: &EmbeddingSpace) -> Result<Result<u32>> {
        let first = Generation { space: space.clone(), number: 0 };
        let value = self.store.backend.put_meta_if_absent(meta::EMBEDDING_SPACE, &first.to_value()).await?;
        match Generation::parse(&value) {
            Some(held) if held.space == *space => Ok(Ok(held.number)),
            Some(_) => match self.take_over(&value, space).await? {
                Some(number) => Ok(Ok(number)),
                None => Ok(Err(other_space(&self.store.generations().await?, space))),
            },
            None => Ok(Err(Error::new(ErrorKind::StorageIo, "the store's embedding space can't be read"))),
        }
    }

    /// Replaces a space without vectors with `space`, if its entry is still `value`. Returns the number of the
    /// generation: a new one, so that vectors that are still being made with the other model are rejected.
    async fn take_over(self, value: &str, space: &EmbeddingSpace) -> Result<Option<u32>> {
        let held = self.store.generations().await?;
        if held.next.is_some() || self.has_vectors(&held).await? {
            return Ok(None);
        }
        // Texts that the other model rejected are tried again.
        for user in StoreUsers::new(self.store).users_with_sessions().await? {
            for key in self.session_keys(&VectorsOf::user(user)).await? {
                self.store.backend.mark_pending(&key, MessagesToEmbed::Failed).await?;
            }
        }
        let next = Generation { space: space.clone(), number: held.last_number + 1 };
        let replaced =
            self.store.backend.replace_meta(meta::EMBEDDING_SPACE, value, &next.to_value()).await?;
        Ok(replaced.then_some(next.number))
    }

    /// Whether there is a vector of the current generation, of any user.
    pub(super) async fn has_vectors(self, held: &Generations) -> Result<bool> {
        let counts = self.store.backend.count_vectors(&Scope::Everyone).await?;
        Ok(counts.generations.get(&held.current_number()).is_some_and(|counts| counts.vectors > 0))
    }

    /// Stores the vectors of a step.
    async fn store_step(self, generation: u32, step: StepOutcome, report: &mut EmbedReport) -> Result<()> {
        report.add(step.report);
        for (key, vectors) in step.made {
            for refused in vectors.iter().filter(|message| message.failure.is_some()) {
                let reason = refused.failure.as_deref().unwrap_or_default();
                tracing::warn!(session = %key.session_id, sequence = refused.sequence, reason, "a text could not be embedded");
            }
            self.store.backend.write_vectors(&key, generation, vectors).await?;
        }
        Ok(())
    }
}

/// The step whose vectors are being made, if there is one. It is cancelled when dropped.
#[derive(Default)]
struct RunningStep(JoinSet<StepOutcome>);

impl RunningStep {
    fn start(&mut self, messages: Vec<MessagePlan>, cutting: Cutting, now: Timestamp) {
        self.0.spawn(async move {
            match Step::new(messages, &cutting).await {
                Ok(step) => step.embed(cutting.provider.as_ref(), now).await,
                Err(error) => StepOutcome {
                    report: EmbedReport { failure: Some(error), ..EmbedReport::default() },
                    ..StepOutcome::default()
                },
            }
        });
    }

    /// Waits for the step, if there is one.
    async fn finish(&mut self) -> Result<Option<StepOutcome>> {
        let broken =
            |source| Error::new(ErrorKind::Embedding, "embedding was interrupted").with_source(source);
        self.0.join_next().await.transpose().map_err(broken)
    }

    fn is_idle(&self) -> bool {
        self.0.is_empty()
    }
}

/// The amount of embedding that the texts of some messages need.
pub(super) async fn amount_of(messages: Vec<Message>, cutting: &Cutting) -> Result<Amount> {
    let plans = messages.into_iter().map(MessagePlan::of_texts).collect();
    Ok(Step::new(plans, cutting).await?.amount())
}

/// The error if vectors of the space `asked` can't be used with a store.
pub(super) fn other_space(held: &Generations, asked: &EmbeddingSpace) -> Error {
    let of = |generation: &Option<Generation>| {
        generation.as_ref().map_or_else(String::new, |generation| generation.space.to_string())
    };
    let message = if held.next.as_ref().is_some_and(|next| next.space == *asked) {
        format!(
            "the rebuild with {asked} is not complete; the store still uses the vectors of {}",
            of(&held.current)
        )
    } else {
        let held = of(&held.current);
        format!(
            "the store has vectors of {held}, which can't be compared with those of {asked}; `embeddings rebuild` replaces them"
        )
    };
    Error::new(ErrorKind::Embedding, message)
}
