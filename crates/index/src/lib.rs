//! The derived search index of the embedded backends: text and quantised vectors.
