//! The conformance suite on PostgreSQL. Each test has a schema of its own, and a second handle its own connections.

use amplifier_session_testkit::conformance_suite;

use crate::support::Schema;

conformance_suite!(Schema::new(), ignore = "needs a PostgreSQL server");
