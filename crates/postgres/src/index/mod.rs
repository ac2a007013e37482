//! The indexes that searches use: of texts and of vectors.

mod derived;
pub(crate) mod text;
pub(crate) mod vectors;
