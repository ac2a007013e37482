//! Keeps the sessions of AI agents and finds them again: the library to depend on.
