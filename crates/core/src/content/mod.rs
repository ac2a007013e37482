//! From a transcript line to the texts that are searched and embedded.
