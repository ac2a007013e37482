//! The embedded default backend: rows in SQLite, search through the derived index.
