//! Reads session folders into a store.
