//! A feed of changed sessions.
//!
//! A reader takes a cursor, lists the sessions that it wants to know, and then asks for the changes after its cursor, again
//! and again. A session that changes while it lists is reported afterwards, so nothing is missed.

use std::{collections::BTreeSet, fmt, future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{Mutex, broadcast},
    time::sleep,
};

use super::Version;
use crate::{
    Result, Scope,
    model::{Session, SessionKey, UserId},
};

/// Reports which sessions changed.
#[async_trait]
pub trait Changes: Send + Sync {
    /// Sessions of `scope` that changed after `after`, at most `limit`, with their current state. An empty page means that
    /// there are no more changes now.
    ///
    /// - Every change that is committed after a page was read is in a later page, also if transactions are committed in
    ///   another order than they began in. A change may be reported more than once.
    /// - A change is a write of a session, with or without rows, or its deletion. Vectors, summaries, and pruning
    ///   superseded lines change no session.
    /// - Of several changes of one session, only the last state may be reported. An older state is never reported after
    ///   a newer one.
    /// - Messages and events before [`ChangedFrom`] are those of the time of `after`.
    /// - A session that is no longer in the scope is reported as [`Removed`](SessionChanged::Removed) if it was in it
    ///   before: because it was deleted, given to another user, or is shared with fewer readers. A session that never
    ///   was in the scope is not reported.
    /// - Without `after`, the page is empty, and its cursor is that of now.
    /// - A cursor of another store, of another scope, or of a state of the store that an older copy has replaced, is
    ///   answered with [`reset`](ChangePage::reset).
    async fn changes(&self, scope: &Scope, after: Option<&ChangeCursor>, limit: usize) -> Result<ChangePage>;

    /// When to look for changes again.
    fn change_hints(&self) -> ChangeHints;
}

/// Changed sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePage {
    /// The changes, those of a session in order.
    pub changes: Vec<SessionChanged>,
    /// The cursor for the next page.
    pub cursor: ChangeCursor,
    /// Whether the changes since the given cursor are unknown, so that all sessions must be listed again. The page is empty
    /// then, and its cursor is that of now.
    pub reset: bool,
}

impl ChangePage {
    /// An empty page of a reader that begins at `cursor`.
    #[must_use]
    pub fn beginning(cursor: ChangeCursor) -> Self {
        Self { changes: Vec::new(), cursor, reset: false }
    }

    /// The answer to an unknown cursor.
    #[must_use]
    pub fn reset(cursor: ChangeCursor) -> Self {
        Self { reset: true, ..Self::beginning(cursor) }
    }
}

/// A changed session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChanged {
    /// The session was written. This is its current state.
    Written {
        /// The session, with the numbers of its messages and events.
        session: Box<Session>,
        /// Its version.
        version: Version,
        /// The rows that may have changed.
        from: ChangedFrom,
    },
    /// The session is not in the scope any more. Nothing else is known about it.
    Removed(SessionKey),
}

/// The first rows of a changed session that may differ from those before: all rows before them are the same. At most the
/// number of rows that there are now. A backend that does not know them says 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangedFrom {
    /// The first message.
    pub messages: u32,
    /// The first event.
    pub events: u32,
}

impl SessionChanged {
    /// The key of the session.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        match self {
            Self::Written { session, .. } => session.key(),
            Self::Removed(key) => key.clone(),
        }
    }
}

/// A place in the feed of one store and one scope. Its content is private to the backend.
///
/// It is no secret and carries no rights: a feed applies its scope to every page. As text, it has letters, digits, `-` and
/// `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangeCursor {
    store: Short,
    scope: Short,
    position: Vec<u8>,
}

/// A short digest.
type Short = [u8; 8];

/// The length of the digest that tells a cursor from another text.
const CHECK: usize = 4;

impl ChangeCursor {
    /// The maximum length of its text. A backend keeps its positions shorter.
    pub const MAX_LENGTH: usize = 16 << 10;

    /// A cursor of `scope` in the store with the id `store`, at a position of the backend.
    pub fn new(store: &str, scope: &Scope, position: &impl Serialize) -> Self {
        // A position that can't be written is one that can't be read, which is answered by a reset.
        let position = rmp_serde::to_vec(position).unwrap_or_default();
        Self { store: short(store.as_bytes()), scope: digest_of(scope), position }
    }

    /// The position, if this is a cursor of the store with the id `store`, and of `scope`.
    #[must_use]
    pub fn position<P: DeserializeOwned>(&self, store: &str, scope: &Scope) -> Option<P> {
        let is_known = self.store == short(store.as_bytes()) && self.scope == digest_of(scope);
        is_known.then(|| rmp_serde::from_slice(&self.position).ok()).flatten()
    }

    /// Reads the text of a cursor. `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > Self::MAX_LENGTH {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK)?)?;
        let (store, rest) = content.split_first_chunk()?;
        let (scope, position) = rest.split_first_chunk()?;
        let is_ours = short(content).starts_with(check);
        is_ours.then(|| Self { store: *store, scope: *scope, position: position.to_vec() })
    }
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [&self.store, &self.scope, self.position.as_slice()].concat();
        let [check @ .., _, _, _, _] = short(&bytes);
        bytes.extend_from_slice(&check);
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn short(bytes: &[u8]) -> Short {
    let mut short = Short::default();
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut short);
    short
}

/// A reader whose teams changed has another scope, so its cursor is unknown, and it lists again what it may see.
fn digest_of(scope: &Scope) -> Short {
    let parts = match scope {
        Scope::User(user) => rmp_serde::to_vec(&("user", user.as_str())),
        Scope::Visible(viewer) => {
            let teams: BTreeSet<&String> = viewer.team_ids.iter().collect();
            let owner = viewer.owner.as_ref().map(|owner| owner.as_str());
            rmp_serde::to_vec(&("visible", viewer.user_id.as_str(), &viewer.org_id, teams, owner))
        }
        Scope::Everyone => rmp_serde::to_vec("everyone"),
    };
    short(&parts.unwrap_or_default())
}

/// The writes that a reader may fall behind before it looks for all of them at once.
const WRITES_BEHIND: usize = 256;

/// Tells the readers of a handle that it has written. Clones are the same signal.
#[derive(Debug, Clone)]
pub struct ChangeSignal {
    /// The user whose sessions were written; `None` if it is not known whose.
    writes: broadcast::Sender<Option<UserId>>,
    /// Held by the reader whose turn it is to look for writes of others.
    turn: Arc<Mutex<()>>,
}

impl Default for ChangeSignal {
    fn default() -> Self {
        Self { writes: broadcast::Sender::new(WRITES_BEHIND), turn: Arc::default() }
    }
}

impl ChangeSignal {
    /// Wakes the readers that may see sessions of these users.
    pub fn send<'a>(&self, users: impl IntoIterator<Item = &'a UserId>) {
        for user in users.into_iter().collect::<BTreeSet<_>>() {
            self.wake(Some(user.clone()));
        }
    }

    fn wake(&self, written: Option<UserId>) {
        // An error means that nobody waits.
        let _ = self.writes.send(written);
    }

    /// Hints by this signal, and `every` so often because others may have written. `None` if nobody else writes.
    #[must_use]
    pub fn hints(&self, every: Option<Duration>) -> ChangeHints {
        ChangeHints { signal: self.clone(), writes: self.writes.subscribe(), every, is_awaited: false }
    }
}

/// When to look for changes again: after a write of this handle at once, after writes of others within a fixed time.
///
/// However many readers of a handle wait, only one of them at a time looks for writes of others, and tells the rest.
#[derive(Debug)]
pub struct ChangeHints {
    signal: ChangeSignal,
    writes: broadcast::Receiver<Option<UserId>>,
    every: Option<Duration>,
    /// Whether there was a write in the scope of the reader. It may be visible only after older transactions have ended,
    /// which are those of other users, so after it every write counts.
    is_awaited: bool,
}

impl ChangeHints {
    /// Waits until there may be changes in `scope`, but at most for `patience`. Writes of the handle since the last call, or
    /// since the hints were made, count. Returns whether it is this reader's turn to look for writes of others.
    pub(super) async fn wait(&mut self, scope: &Scope, patience: Duration) -> bool {
        let Self { signal, writes, every, is_awaited } = self;
        let turn = async {
            let Some(every) = every else { return pending().await };
            let _turn = signal.turn.lock().await;
            sleep(*every).await;
        };
        let is_turn = tokio::select! {
            () = next_write(writes, scope, *is_awaited) => {
                *is_awaited = true;
                false
            }
            () = turn => true,
            () = sleep(patience) => false,
        };
        // The reader looks after this, so it needs no other hint of earlier writes.
        *writes = writes.resubscribe();
        is_turn
    }

    /// Wakes the other readers.
    pub(super) fn wake_others(&self) {
        self.signal.wake(None);
    }
}

/// Waits for a write that the reader has to know.
async fn next_write(writes: &mut broadcast::Receiver<Option<UserId>>, scope: &Scope, any: bool) {
    loop {
        match writes.recv().await {
            Ok(Some(user)) if !any && is_of_another(scope, &user) => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            // The handle has the other end.
            Err(broadcast::error::RecvError::Closed) => return pending().await,
        }
    }
}

/// Whether a scope has no session of a user.
fn is_of_another(scope: &Scope, user: &UserId) -> bool {
    matches!(scope, Scope::User(own) if own != user)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::Instant;

    use super::*;
    use crate::Viewer;

    fn viewer() -> Viewer {
        Viewer::new(UserId::new("ana").unwrap())
    }

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Whether a write wakes a reader before a minute is over.
    async fn is_woken(hints: &mut ChangeHints, scope: &Scope) -> bool {
        let begun = Instant::now();
        hints.wait(scope, LONG).await;
        begun.elapsed() < LONG
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_wakes_those_who_may_see_it() {
        let signal = ChangeSignal::default();
        for (scope, expected) in
            [(Scope::User(user("ana")), false), (Scope::Visible(viewer()), true), (Scope::Everyone, true)]
        {
            let mut hints = signal.hints(None);
            signal.send([&user("eve")]);
            assert_eq!(is_woken(&mut hints, &scope).await, expected, "{scope:?}");
            signal.send([&user("eve"), &user("ana")]);
            assert!(is_woken(&mut hints, &scope).await, "{scope:?}");
        }
    }

    /// In PostgreSQL, a write is visible when all older transactions have ended.
    #[tokio::test(start_paused = true)]
    async fn after_an_own_write_every_write_counts() {
        let (signal, scope) = (ChangeSignal::default(), Scope::User(user("ana")));
        let mut hints = signal.hints(None);
        signal.send([&user("ana")]);
        assert!(is_woken(&mut hints, &scope).await);
        signal.send([&user("eve")]);
        assert!(is_woken(&mut hints, &scope).await);
    }

    #[tokio::test(start_paused = true)]
    async fn many_writes_are_one_hint() {
        let (signal, scope) = (ChangeSignal::default(), Scope::Everyone);
        let mut hints = signal.hints(None);
        for _ in 0..2 * WRITES_BEHIND {
            signal.send([&user("ana")]);
        }
        assert!(is_woken(&mut hints, &scope).await);
        assert!(!is_woken(&mut hints, &scope).await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_reader_looks_for_writes_of_others() {
        let (signal, scope) = (ChangeSignal::default(), Scope::User(user("ana")));
        let every = Some(Duration::from_millis(100));
        let (mut first, mut second) = (signal.hints(every), signal.hints(every));
        assert!(first.wait(&scope, LONG).await);
        first.wake_others();
        assert!(!second.wait(&scope, LONG).await);
    }

    #[test]
    fn a_cursor_comes_back_from_its_text() {
        let scope = Scope::Everyone;
        let cursor = ChangeCursor::new("store", &scope, &(7_i64, "x"));
        let read = ChangeCursor::parse(&cursor.to_string()).unwrap();
        assert_eq!(read, cursor);
        assert_eq!(read.position::<(i64, String)>("store", &scope), Some((7, "x".to_owned())));
        assert_eq!(read.position::<(i64, String)>("other", &scope), None);
        assert_eq!(read.position::<String>("store", &scope), None);
    }

    #[test]
    fn a_cursor_belongs_to_one_scope() {
        let scopes = [
            Scope::Everyone,
            Scope::User(UserId::new("ana").unwrap()),
            Scope::Visible(viewer()),
            Scope::Visible(viewer().with_teams(["red"])),
            Scope::Visible(viewer().with_org(Some("red".to_owned()))),
        ];
        for (at, scope) in scopes.iter().enumerate() {
            let cursor = ChangeCursor::new("store", scope, &7);
            for (other_at, other) in scopes.iter().enumerate() {
                assert_eq!(cursor.position::<i64>("store", other).is_some(), at == other_at);
            }
        }
        let of = |teams: [&str; 2]| ChangeCursor::new("s", &Scope::Visible(viewer().with_teams(teams)), &7);
        assert_eq!(of(["red", "blue"]), of(["blue", "red"]));
    }

    #[test]
    fn a_changed_text_is_no_cursor() {
        let text = ChangeCursor::new("store", &Scope::Everyone, &7).to_string();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(ChangeCursor::parse(&String::from_utf8(changed).unwrap()), None, "{at}");
        }
        assert_eq!(ChangeCursor::parse(&text[..text.len() - 1]), None);
        assert_eq!(ChangeCursor::parse(&"A".repeat(ChangeCursor::MAX_LENGTH + 1)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,80}|[A-Za-z0-9_-]{0,80}") {
            prop_assert_eq!(ChangeCursor::parse(&text), None);
        }
    }
}
