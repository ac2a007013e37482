//! The proof of scope for readers who follow changes: while sessions are written, shared and deleted at random, each reader
//! learns only of sessions in its scope, and of those that leave it that they are gone.

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_testkit::{lines, prelude::*};

use crate::{
    live_client::LiveClient,
    world::{KnownSession, KnownToken, World},
};

const REACHES: [Reach; 3] = [Reach::Own, Reach::Visible, Reach::All];
const STEPS: usize = 40;

/// A reader of one scope.
struct ScopeReader {
    token: KnownToken,
    requested: Reach,
    scope: Scope,
    cursor: String,
}

impl ScopeReader {
    async fn page(&mut self, world: &World) -> Value {
        let after = if self.cursor.is_empty() { String::new() } else { format!("&after={}", self.cursor) };
        let path = format!("/v1/changes?scope={}{after}", self.requested.as_str());
        let page = world.request(&self.token, "GET", &path).send().await.ok();
        self.cursor = page["cursor"].as_str().unwrap().to_owned();
        page
    }
}

fn is_allowed(scope: &Scope, stored: &[Session], key: &SessionKey) -> bool {
    stored.iter().any(|session| session.key() == *key && scope.allows(session))
}

/// What a change says, and about which session.
fn read(change: &Value) -> (SessionKey, bool) {
    let of = |field: &str| {
        let value = change.get(field).or_else(|| change["session"].get(field));
        value.unwrap().as_str().unwrap().to_owned()
    };
    let key = SessionKey::new(UserId::new(of("user_id")).unwrap(), SessionId::new(of("session_id")).unwrap());
    (key, change["removed"].as_bool().unwrap())
}

/// Fails if a change says more than the caller may know.
fn check_words(known: &[KnownSession], scope: &Scope, token: &KnownToken, states: &[&[Session]], text: &str) {
    for KnownSession { key, word, secret, .. } in known {
        let is_allowed = states.iter().any(|stored| is_allowed(scope, stored, key));
        assert!(is_allowed || !text.contains(word.as_str()), "{word} leaks to {token:?}: {text}");
        let is_own = key.user_id == token.user;
        assert!(is_own || !text.contains(secret.as_str()), "{secret} leaks to {token:?}: {text}");
    }
}

/// Changes a session at random: whom it is shared with, what is in it, or whether it is there.
async fn change_at_random(world: &mut World) -> SessionKey {
    let key = world.sessions[world.random.below(world.sessions.len())].key.clone();
    let storage = world.server.storage.clone();
    let is_stored = world.stored().await.iter().any(|session| session.key() == key);
    match world.random.below(10) {
        0 if is_stored => {
            let deletion = storage.sessions().delete_sessions(std::slice::from_ref(&key)).await;
            assert!(matches!(deletion.deleted[..], [Ok(true)]), "{deletion:?}");
        }
        1..=5 if is_stored => world.share_at_random(&key).await,
        number if is_stored => {
            let edit = SessionEdit::default().add_tags([format!("tag-{number}-{}", world.random.bits())]);
            storage.sessions().update_session(&key, &edit).await.unwrap();
        }
        _ => {}
    }
    key
}

fn readers(world: &World) -> Vec<ScopeReader> {
    let reading = world.tokens.iter().filter(|token| token.rights.contains(&AccessRight::Read));
    let scopes = |token: &KnownToken| {
        let reader = |requested| {
            let scope = token.scope(requested)?;
            Some(ScopeReader { token: token.clone(), requested, scope, cursor: String::new() })
        };
        REACHES.into_iter().filter_map(reader).collect::<Vec<_>>()
    };
    reading.flat_map(scopes).collect()
}

#[tokio::test]
async fn readers_of_changes_learn_only_of_what_they_may_see() {
    for seed in 1..=rounds(1, 25) {
        let mut world = World::new(seed).await;
        let mut readers = readers(&world);
        for reader in &mut readers {
            assert_eq!(reader.page(&world).await["changes"], json!([]));
        }
        for _ in 0..STEPS {
            let before = world.stored().await;
            let key = change_at_random(&mut world).await;
            let after = world.stored().await;
            for reader in &mut readers {
                let page = reader.page(&world).await;
                assert_eq!(page["reset"], false, "{page}");
                let scope = &reader.scope;
                let (was, is) = (is_allowed(scope, &before, &key), is_allowed(scope, &after, &key));
                check_words(&world.sessions, scope, &reader.token, &[&after], &page.to_string());
                let said: Vec<_> = page["changes"].as_array().unwrap().iter().map(read).collect();
                for (named, removed) in &said {
                    assert_eq!(*named, key, "{page}");
                    assert!(if *removed { was && !is } else { is }, "{page}");
                }
                // Nobody keeps what they may not see any more without being told.
                assert!(!was || is || !said.is_empty(), "{key:?} left {scope:?} unsaid");
            }
        }
    }
}

/// The words of the session with which a round ends.
const LAST: &str = "the last change";

#[tokio::test]
async fn live_readers_learn_only_of_what_they_may_see() {
    for seed in 1..=rounds(1, 10) {
        let mut world = World::new(seed).await;
        let mut clients = Vec::new();
        for reader in readers(&world) {
            let mut client = LiveClient::connect(&world.server, &reader.token.text).await.unwrap();
            let ready = client.subscribe(json!({"id": 1, "scope": reader.requested.as_str()})).await;
            assert_eq!(ready["type"], "ready", "{ready}");
            clients.push((reader, client));
        }
        let mut states = vec![world.stored().await];
        for _ in 0..STEPS {
            change_at_random(&mut world).await;
            states.push(world.stored().await);
        }
        let owners: std::collections::BTreeSet<String> =
            world.tokens.iter().map(|token| token.user.to_string()).collect();
        for owner in owners {
            let target = target_of(&owner, "shop", "id-last");
            let text = whole(vec![lines::user(LAST)]);
            world.server.storage.ingestion().sync_transcript_lines(&target, text).await.unwrap();
        }
        let states: Vec<&[Session]> = states.iter().map(Vec::as_slice).collect();
        for (reader, mut client) in clients {
            loop {
                let frame = client.next().await;
                assert_eq!(frame["type"], "change", "{frame}");
                let (key, _) = read(&frame);
                let is_own = key.user_id == reader.token.user;
                if key.session_id.as_str() == "id-last" {
                    assert!(is_own || reader.requested == Reach::All, "{frame}");
                    if is_own { break } else { continue }
                }
                // A session that is gone was in the scope, and one that is not gone has been in it since.
                let was = states.iter().any(|stored| is_allowed(&reader.scope, stored, &key));
                assert!(was, "{key:?} was never in {:?}: {frame}", reader.scope);
                check_words(&world.sessions, &reader.scope, &reader.token, &states, &frame.to_string());
            }
        }
    }
}
