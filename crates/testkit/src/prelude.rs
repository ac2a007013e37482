//! Common imports of the tests of a store.

pub use amplifier_session_core::{
    CHANGED_SINCE, Error, ErrorField, ErrorKind, ErrorOption, Result, Scope, SessionStorage, StorageSettings,
    Viewer,
    backend::{meta::Generations, *},
    embedding::{EmbeddingLimits, EmbeddingProvider},
    model::*,
    search::*,
    storage::*,
};
pub use serde_json::{Value, json};

pub use crate::{
    clock::TestClock,
    embedding::{Answer, FakeEmbedding},
    flaky::{FlakyBackend, Operation},
    lines::{self, Line},
    memory::MemoryBackend,
    other_store::{KeptBytes, OtherStore},
    random::Random,
    rounds::rounds,
    samples,
    store::*,
    users::{name_of, user},
};
