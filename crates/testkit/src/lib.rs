//! Conformance suite, an in-memory backend, fakes and fault injection for tests.
