//! Users of tests that share a store.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use amplifier_session_core::model::UserId;

/// Separates the name in a test from the number of the test. It occurs in no name.
const SEPARATOR: char = '~';

/// Gives each test of a shared store users of its own, although tests name users alike.
#[derive(Debug, Clone, Default)]
pub(crate) struct Users(Arc<AtomicU32>);

thread_local! {
    static USERS: RefCell<Users> = RefCell::default();
}

impl Users {
    /// From now on, [`user`] returns these on this thread.
    pub(crate) fn enter(&self) {
        USERS.set(self.clone());
    }

    /// From now on, names stand for other users.
    pub(crate) fn renew(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The user that a name stands for in this test.
pub fn user(name: &str) -> UserId {
    let number = USERS.with_borrow(|users| users.0.load(Ordering::Relaxed));
    let own = if number == 0 { name.to_owned() } else { format!("{name}{SEPARATOR}{number}") };
    UserId::new(own).unwrap()
}

/// The name that stands for this user in a test.
#[must_use]
pub fn name_of(user: &UserId) -> &str {
    user.as_str().split_once(SEPARATOR).map_or(user.as_str(), |(name, _)| name)
}
