//! The proof of scope: whatever comes back from any route, with any kind of token, may be seen by the caller.
//!
//! Each session of a random world has words that no other one has, so a response shows which sessions it is about. A
//! route that [`cases`] does not know fails the proof. For readers who follow changes, see `scope_of_changes`.

use std::collections::BTreeMap;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_testkit::prelude::*;

use crate::{
    cases::{RouteCase, agent_cases, cases},
    client::{Reply, Request},
    world::{KnownSession, KnownToken, World},
};

const REACHES: [Reach; 3] = [Reach::Own, Reach::Visible, Reach::All];
/// The id of no session.
const NOBODYS: &str = "id-nobody";

/// A route as the description of the server has it, which is made from the table of routes.
#[derive(Debug)]
struct DescribedRoute {
    name: String,
    /// The rights of which it needs one. None for a route for everyone.
    rights: Vec<AccessRight>,
    has_scope: bool,
    is_about_session: bool,
}

impl DescribedRoute {
    fn is_open(&self) -> bool {
        self.rights.is_empty()
    }

    fn allows(&self, token: &KnownToken) -> bool {
        self.rights.iter().any(|right| token.rights.contains(right))
    }

    /// Whether it changes nothing.
    fn reads(&self) -> bool {
        let reads = [AccessRight::Read, AccessRight::Admin];
        self.is_open() || self.rights.iter().any(|right| reads.contains(right))
    }
}

async fn described_routes(world: &World) -> Vec<DescribedRoute> {
    let document = Request::new(world.server.address, "GET", "/openapi.json").send().await.ok();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let needs = operation["description"].as_str().unwrap_or_default();
            let needed = needs.strip_prefix("Needs the right to ").unwrap_or_default();
            let needed = needed.split(['.', ',']).next().unwrap();
            let words = needed.split(" or to ").filter(|word| !word.is_empty());
            let right = |word: &str| AccessRight::ALL.into_iter().find(|right| right.as_str() == word);
            let rights = words.map(|word| right(word).unwrap()).collect();
            let in_query = operation["parameters"]
                .as_array()
                .is_some_and(|all| all.iter().any(|parameter| parameter["name"] == "scope"));
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let rights: Vec<AccessRight> = rights;
            let is_operation = path.starts_with("/v1/operations/") && rights == [AccessRight::Read];
            routes.push(DescribedRoute {
                name: operation["operationId"].as_str().unwrap().to_owned(),
                rights,
                has_scope: in_query || is_operation || schema["properties"].get("scope").is_some(),
                is_about_session: path.contains("{id}"),
            });
        }
    }
    routes
}

/// Sends a case, with a scope if there is one.
async fn sent(world: &World, token: &KnownToken, case: &RouteCase, scope: Option<Reach>) -> Reply {
    let mut path = case.path.clone();
    let mut body = case.body.clone();
    if let Some(scope) = scope {
        match &mut body {
            Some((_, text)) => {
                let mut object: Value = serde_json::from_str(text).unwrap();
                // That of an operation is in its request.
                let object_of_scope =
                    if object.get("request").is_some() { &mut object["request"] } else { &mut object };
                object_of_scope["scope"] = scope.as_str().into();
                *text = object.to_string();
            }
            None => {
                path.push(if path.contains('?') { '&' } else { '?' });
                path.push_str(&format!("scope={}", scope.as_str()));
            }
        }
    }
    // Agents must say that they read both.
    let request = world.request(token, case.method, &path);
    let request = request.header("accept", "application/json, text/event-stream");
    match body {
        Some((content_type, text)) => request.body(content_type, text).send().await,
        None => request.send().await,
    }
}

/// What is in the store when a request is sent.
struct Oracle<'a> {
    known: &'a [KnownSession],
    stored: Vec<Session>,
}

impl Oracle<'_> {
    async fn of(world: &World) -> Oracle<'_> {
        Oracle { known: &world.sessions, stored: world.stored().await }
    }

    fn is_allowed(&self, scope: &Scope, key: &SessionKey) -> bool {
        self.stored.iter().any(|session| session.key() == *key && scope.allows(session))
    }

    /// Fails if the text says something about a session that the caller may not see. Without a scope, it may see nothing.
    fn check(&self, token: &KnownToken, scope: Option<&Scope>, asked: &str, text: &str) {
        let allowed = |key: &SessionKey| scope.is_some_and(|scope| self.is_allowed(scope, key));
        for KnownSession { key, word, superseded, secret } in self.known {
            // What a change removed may be in its answer.
            let is_own = scope.is_some() && key.user_id == token.user;
            let leaks = |word: &str| text.contains(word) && !asked.contains(word);
            assert!(is_own || allowed(key) || !leaks(word), "{word} leaks to {token:?}: {asked}: {text}");
            for private in [superseded, secret] {
                assert!(is_own || !leaks(private), "{private} leaks to {token:?}: {asked}: {text}");
            }
            let id = key.session_id.as_str();
            let may_name =
                self.stored.iter().any(|one| one.session_id == key.session_id && allowed(&one.key()));
            assert!(is_own || may_name || !leaks(id), "{id} leaks to {token:?}: {asked}: {text}");
            let user = key.user_id.as_str();
            // Who may read everyone's sessions may know whose store it is, whatever the request asks for.
            let may_know = key.user_id == token.user
                || (scope.is_some() && token.reach == Reach::All)
                || self.stored.iter().any(|one| one.user_id == key.user_id && allowed(&one.key()));
            assert!(may_know || !leaks(user), "{user} leaks to {token:?}: {asked}: {text}");
        }
    }
}

/// A problem without the id of its request, which is the only part that may differ.
fn without_instance(reply: &Reply) -> Value {
    let mut problem = reply.json();
    problem["instance"].take();
    problem
}

/// Reads one route with one token, in each scope and about each of the ids.
async fn read(world: &World, oracle: &Oracle<'_>, route: &DescribedRoute, token: &KnownToken, ids: &[&str]) {
    let scopes: Vec<Option<Reach>> = if route.has_scope { REACHES.map(Some).to_vec() } else { vec![None] };
    let mut of_nobody = BTreeMap::new();
    for id in ids {
        for (number, case) in cases(world, &route.name, id).unwrap().iter().enumerate() {
            for scope in &scopes {
                let reply = sent(world, token, case, *scope).await;
                let (asked, text) = (case.text(), String::from_utf8_lossy(&reply.body).into_owned());
                let has_right = route.allows(token);
                let may_see = token.scope(scope.unwrap_or_default()).filter(|_| has_right);
                oracle.check(token, may_see.as_ref(), &asked, &text);
                let Some(may_see) = may_see else {
                    assert_eq!(reply.status, if route.is_open() { 200 } else { 403 }, "{asked}: {text}");
                    continue;
                };
                if !route.is_about_session {
                    continue;
                }
                let mut named = oracle.stored.iter().filter(|one| one.session_id.as_str() == *id);
                if !named.any(|one| may_see.allows(one)) {
                    // Sessions of others and of nobody are the same.
                    assert_eq!(reply.status, 404, "{asked}: {text}");
                    let problem = without_instance(&reply);
                    let first = of_nobody.entry((number, *scope)).or_insert_with(|| problem.clone());
                    assert_eq!(*first, problem, "{asked}");
                }
            }
        }
    }
}

/// Some ids: of sessions, and of nobody.
fn some_ids(world: &mut World, count: usize) -> Vec<String> {
    let mut ids = vec![NOBODYS.to_owned(), world.sessions[0].key.session_id.to_string()];
    for _ in 0..count {
        ids.push(world.sessions[world.random.below(world.sessions.len())].key.session_id.to_string());
    }
    ids
}

async fn read_everything(world: &mut World, routes: &[&DescribedRoute], tokens: &[KnownToken]) {
    for token in tokens {
        for route in routes {
            let ids = some_ids(world, 1);
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            // A list needs no id of nobody.
            let ids = if route.is_about_session { &ids[..] } else { &ids[1..] };
            read(world, &Oracle::of(world).await, route, token, ids).await;
        }
    }
}

/// Changes one route's share of the world with one token, and checks that only own sessions change.
async fn change(world: &World, route: &DescribedRoute, token: &KnownToken, id: &str) {
    for case in cases(world, &route.name, id).unwrap() {
        let oracle = Oracle::of(world).await;
        let reply = sent(world, token, &case, None).await;
        let (asked, text) = (case.text(), String::from_utf8_lossy(&reply.body).into_owned());
        let has_right = route.allows(token);
        let own = Scope::User(token.user.clone());
        oracle.check(token, has_right.then_some(&own), &asked, &text);
        assert!(has_right || reply.status == 403, "{asked}: {text}");
        let others = |sessions: &[Session]| -> Vec<Session> {
            sessions.iter().filter(|session| session.user_id != token.user).cloned().collect()
        };
        let now = world.stored().await;
        assert_eq!(others(&oracle.stored), others(&now), "{token:?} changed others: {asked}: {text}");
        if !has_right {
            assert_eq!(oracle.stored.len(), now.len(), "{asked}");
        }
    }
}

async fn prove(seed: u64) {
    let mut world = World::new(seed).await;
    let routes = described_routes(&world).await;
    for route in &routes {
        assert!(cases(&world, &route.name, NOBODYS).is_some(), "the route {} has no case", route.name);
    }
    let (reading, changing): (Vec<_>, Vec<_>) = routes.iter().partition(|route| route.reads());
    let tokens = world.tokens.clone();
    read_everything(&mut world, &reading, &tokens).await;
    // What is shared otherwise is read otherwise, from the next request on.
    for number in 0..world.sessions.len() {
        let key = world.sessions[number].key.clone();
        world.share_at_random(&key).await;
        let token = world.random.one(&tokens).clone();
        let about_session: Vec<_> = reading.iter().copied().filter(|one| one.is_about_session).collect();
        let oracle = Oracle::of(&world).await;
        for route in about_session {
            read(&world, &oracle, route, &token, &[NOBODYS, key.session_id.as_str()]).await;
        }
    }
    for token in &tokens {
        for route in &changing {
            for id in some_ids(&mut world, 1) {
                change(&world, route, token, &id).await;
            }
        }
    }
    let some: Vec<KnownToken> = (0..5).map(|_| world.random.one(&tokens).clone()).collect();
    read_everything(&mut world, &reading, &some).await;
}

#[tokio::test]
async fn whatever_comes_back_may_be_seen() {
    for seed in 1..=rounds(1, 25) {
        prove(seed).await;
    }
}

/// The proof would also pass if nothing came back.
#[tokio::test]
async fn what_may_be_seen_comes_back() {
    let world = World::new(1).await;
    let stored = world.stored().await;
    for token in world.tokens.iter().filter(|token| token.rights.contains(&AccessRight::Read)) {
        let scope = token.scope(token.reach).unwrap();
        let path = format!("/v1/sessions?limit=1000&scope={}", token.reach.as_str());
        let listed = world.request(token, "GET", &path).send().await.ok();
        let allowed = stored.iter().filter(|session| scope.allows(session)).count();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), allowed);
        let path = format!("/v1/search?q=pool&limit=200&full&scope={}", token.reach.as_str());
        let found = world.request(token, "GET", &path).send().await.ok().to_string();
        for session in &world.sessions {
            let is_allowed = stored.iter().any(|one| one.key() == session.key && scope.allows(one));
            assert_eq!(found.contains(&session.word), is_allowed, "{}", session.word);
            assert_eq!(found.contains(&session.secret), is_allowed && session.key.user_id == token.user);
        }
    }
}

/// Agents name the scope in the arguments of a tool.
#[tokio::test]
async fn agents_learn_only_of_what_they_may_see() {
    for seed in 1..=rounds(1, 25) {
        let mut world = World::new(seed).await;
        let tokens = world.tokens.clone();
        for token in tokens.iter().filter(|token| token.rights.contains(&AccessRight::Read)) {
            let ids = some_ids(&mut world, 1);
            let oracle = Oracle::of(&world).await;
            for requested in REACHES {
                let may_see = token.scope(requested);
                for id in &ids {
                    for case in agent_cases(id, Some(requested.as_str())) {
                        let reply = sent(&world, token, &case, None).await;
                        assert_eq!(reply.status, 200, "{}", case.text());
                        let text = String::from_utf8_lossy(&reply.body).into_owned();
                        oracle.check(token, may_see.as_ref(), &case.text(), &text);
                        // Agents see no secrets, not even those of their user.
                        let has_secret = world.sessions.iter().any(|one| text.contains(&one.secret));
                        assert!(!has_secret, "{}: {text}", case.text());
                        // A token for own sessions has no such parameter.
                        if may_see.is_none() || token.reach == Reach::Own {
                            assert!(text.contains("error: scope: "), "{}: {text}", case.text());
                        }
                    }
                }
            }
        }
    }
}
