//! The conformance suite on PostgreSQL. Each test has a schema of its own, and a second handle its own connections.

mod support;

use amplifier_session_testkit::conformance_suite;

conformance_suite!(support::Schema::new(), ignore = "needs a PostgreSQL server: .ci/with-postgres");
