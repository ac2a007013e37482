//! Scheduling: nothing to do, because the users of an account do not share a machine.

use amplifier_session_core::backend::Scheduling;

use crate::store::CosmosBackend;

impl Scheduling for CosmosBackend {}
