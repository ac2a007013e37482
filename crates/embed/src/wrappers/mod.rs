//! What is put around a provider: each wrapper is a provider itself, and usable alone.
//!
//! [`StackOptions::wrap`] puts all of them on, in this order, outermost first:
//!
//! 1. `Redacting` (feature `redact`) masks secrets. All others see masked texts only, the cache included.
//! 2. [`Caching`] answers for the texts whose vectors are known.
//! 3. [`Batching`] cuts what is left into calls that the service takes.
//! 4. [`Retrying`] makes a failed call again.
//! 5. [`CircuitBreaking`] stops calling a service that is down. It counts attempts, not calls, and its refusal ends
//!    the retrying at once.
//! 6. [`Limiting`] lets so many calls through at a time. Being innermost, a call that waits for its next attempt
//!    takes no one's place.
//!
//! Dropping the future of a call at any point leaves every wrapper as if the call had not been made, but for what the
//! service may have counted.
//!
//! ```
//! use std::sync::Arc;
//!
//! use amplifier_session_embed::{
//!     LocalEmbedding,
//!     wrappers::{BreakerState, RetryOptions, StackOptions},
//! };
//!
//! # fn main() -> amplifier_session_core::Result<()> {
//! let options = StackOptions::default().with_retry(RetryOptions::default().with_attempts(3));
//! let stack = options.wrap(Arc::new(LocalEmbedding::new()))?;
//! assert_eq!(stack.provider().space().dimensions, 256);
//! assert_eq!(stack.statistics().breaker, BreakerState::Closed);
//! # Ok(())
//! # }
//! ```

mod batching;
mod breaking;
mod caching;
mod limiting;
#[cfg(feature = "redact")]
mod redacting;
mod retrying;
mod stack;

use amplifier_session_core::{Error, ErrorKind, Result, embedding::is_no_vector, model::EmbeddingSpace};

pub use batching::Batching;
pub use breaking::{BreakerOptions, BreakerState, CircuitBreaking};
pub use caching::{CacheKey, CacheStatistics, Caching, MEMORY_ENTRIES, VectorCache};
pub use limiting::Limiting;
#[cfg(feature = "redact")]
pub use redacting::Redacting;
pub use retrying::{RetryOptions, Retrying};
pub use stack::{Stack, StackOptions, StackStatistics};

/// The methods that a wrapper hands on to the provider in its field `inner`.
macro_rules! forward {
    ($($method:ident),* $(,)?) => { $(crate::wrappers::forward_one!($method);)* };
}

macro_rules! forward_one {
    (space) => {
        fn space(&self) -> &amplifier_session_core::model::EmbeddingSpace {
            self.inner.space()
        }
    };
    (limits) => {
        fn limits(&self) -> amplifier_session_core::embedding::EmbeddingLimits {
            self.inner.limits()
        }
    };
    (strength) => {
        fn strength(&self) -> amplifier_session_core::embedding::ModelStrength {
            self.inner.strength()
        }
    };
    (is_local) => {
        fn is_local(&self) -> bool {
            self.inner.is_local()
        }
    };
    (address) => {
        fn address(&self) -> Option<String> {
            self.inner.address()
        }
    };
}

use {forward, forward_one};

/// An error unless there is one vector a text. One too few or too many would give texts the vectors of others.
fn check_count(texts: &[String], vectors: &[Vec<f32>]) -> Result<()> {
    if vectors.len() == texts.len() {
        return Ok(());
    }
    let what = format!("{} vectors came for {} texts", vectors.len(), texts.len());
    Err(Error::new(ErrorKind::Embedding, what))
}

/// An error unless every vector is one of the space, or stands for none.
fn check_vectors(space: &EmbeddingSpace, vectors: &[Vec<f32>]) -> Result<()> {
    for vector in vectors {
        if vector.len() != space.dimensions {
            let what =
                format!("a vector has {} dimensions, but the model {}", vector.len(), space.dimensions);
            return Err(Error::new(ErrorKind::Embedding, what).with("model", &space.model));
        }
        if !vector.iter().all(|x| x.is_finite()) && !is_no_vector(vector) {
            let what = "a vector holds what is no number";
            return Err(Error::new(ErrorKind::Embedding, what).with("model", &space.model));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
