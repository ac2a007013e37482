//! Wrappers around a provider. Each is a provider itself and can be used alone.
//!
//! [`StackOptions::wrap`] applies all of them, in this order, outermost first:
//!
//! 1. `Redacting` (feature `redact`) masks secrets. The other wrappers, including the cache, see only masked texts.
//! 2. [`Caching`] returns vectors that are already known.
//! 3. [`Batching`] splits the remaining texts into calls that the service accepts.
//! 4. [`Retrying`] repeats failed calls.
//! 5. [`CircuitBreaking`] stops calls to a service that is down. It counts attempts, not calls, and its error is not
//!    retried.
//! 6. [`Limiting`] limits the number of concurrent calls. It is innermost, so a call that waits for its next attempt
//!    does not count.
//!
//! Dropping the future of a call at any point leaves every wrapper as if the call had not been made, although the
//! service itself may have counted it.
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

use amplifier_session_core::{
    Error, ErrorKind, Result, embedding::is_no_vector, model::EmbeddingSpace, text::counted,
};

pub use batching::Batching;
pub use breaking::{BreakerOptions, BreakerState, CircuitBreaking};
pub use caching::{CacheKey, CacheStatistics, Caching, MEMORY_ENTRIES, VectorCache};
pub use limiting::Limiting;
#[cfg(feature = "redact")]
pub use redacting::Redacting;
pub use retrying::{RetryOptions, Retrying};
pub use stack::{Stack, StackOptions, StackStatistics};

/// Implements methods of a provider by calling the methods of the same name of one of its fields.
macro_rules! forward {
    ($field:ident: $($method:ident),*) => { $(crate::wrappers::forward_one!($field, $method);)* };
}

macro_rules! forward_one {
    ($field:ident, space) => {
        fn space(&self) -> &amplifier_session_core::model::EmbeddingSpace {
            self.$field.space()
        }
    };
    ($field:ident, limits) => {
        fn limits(&self) -> amplifier_session_core::embedding::EmbeddingLimits {
            self.$field.limits()
        }
    };
    ($field:ident, strength) => {
        fn strength(&self) -> amplifier_session_core::embedding::ModelStrength {
            self.$field.strength()
        }
    };
    ($field:ident, is_local) => {
        fn is_local(&self) -> bool {
            self.$field.is_local()
        }
    };
    ($field:ident, address) => {
        fn address(&self) -> Option<String> {
            self.$field.address()
        }
    };
}

pub(crate) use {forward, forward_one};

/// Checks that there is one vector per text. Otherwise, texts would get the vectors of other texts.
fn check_count(texts: &[String], vectors: &[Vec<f32>]) -> Result<()> {
    if vectors.len() == texts.len() {
        return Ok(());
    }
    let (vectors, texts) = (counted(vectors.len() as u64, "vector"), counted(texts.len() as u64, "text"));
    let what = format!("the provider returned {vectors} for {texts}");
    Err(Error::new(ErrorKind::Embedding, what))
}

/// Checks that every vector belongs to the space or is [`NO_VECTOR`](amplifier_session_core::embedding::NO_VECTOR).
fn check_vectors(space: &EmbeddingSpace, vectors: &[Vec<f32>]) -> Result<()> {
    for vector in vectors {
        if vector.len() != space.dimensions {
            let what =
                format!("a vector has {} dimensions, but the model has {}", vector.len(), space.dimensions);
            return Err(Error::new(ErrorKind::Embedding, what).with("model", &space.model));
        }
        if !vector.iter().all(|x| x.is_finite()) && !is_no_vector(vector) {
            let what = "a vector contains NaN or infinity";
            return Err(Error::new(ErrorKind::Embedding, what).with("model", &space.model));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
