//! The index against a naive search of the same rows: with an index, with a tail, with both, and with damage.

mod concurrency;
mod damage;
mod filters;
mod model;
mod random;
mod removal;
mod store;
mod text;
mod vectors;
