//! Random users with teams, organisations, tokens and sessions, for the proof of scope.

use std::{collections::BTreeMap, sync::Arc};

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_core::content::Redaction;
use amplifier_session_server::NewToken;
use amplifier_session_testkit::{Random, WordRedactor, lines, prelude::*};

use crate::{Running, client::Request, rows::stream};

/// No name is a part of another word of a response.
pub(crate) const USERS: [&str; 4] = ["person-ax", "person-bx", "person-cx", "person-dx"];
const TEAMS: [&str; 3] = ["team-1", "team-2", "team-3"];
const ORGS: [&str; 2] = ["org-1", "org-2"];
const SESSIONS: usize = 10;

/// A session, with words that are in no other one.
#[derive(Debug, Clone)]
pub(crate) struct KnownSession {
    pub(crate) key: SessionKey,
    /// In everything that is stored of it.
    pub(crate) word: String,
    /// In superseded lines, which are for the owner only.
    pub(crate) superseded: String,
    /// A secret, which only the owner sees.
    pub(crate) secret: String,
}

/// A token, and the caller that it stands for.
#[derive(Debug, Clone)]
pub(crate) struct KnownToken {
    pub(crate) text: String,
    pub(crate) user: UserId,
    pub(crate) viewer: Viewer,
    pub(crate) reach: Reach,
    pub(crate) rights: Vec<AccessRight>,
}

impl KnownToken {
    /// What a request that reads `requested` may see. `None` if it must be refused.
    pub(crate) fn scope(&self, requested: Reach) -> Option<Scope> {
        (requested <= self.reach).then(|| match requested {
            Reach::Own => Scope::User(self.user.clone()),
            Reach::Visible => Scope::Visible(self.viewer.clone()),
            Reach::All => Scope::Everyone,
        })
    }
}

/// A server with random users and sessions.
pub(crate) struct World {
    pub(crate) server: Running,
    pub(crate) random: Random,
    pub(crate) sessions: Vec<KnownSession>,
    pub(crate) tokens: Vec<KnownToken>,
    /// Streams of other stores, by the id of the session in them. Each is of one of the users.
    streams: BTreeMap<String, String>,
    /// Archives of other stores, likewise.
    archives: BTreeMap<String, String>,
}

impl World {
    /// The world of a seed.
    pub(crate) async fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let sessions: Vec<KnownSession> = (0..SESSIONS).map(|number| known(&mut random, number)).collect();
        let secrets: Vec<&str> = sessions.iter().map(|session| session.secret.as_str()).collect();
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        let storage = storage.with_redactor(Redaction::Off, Arc::new(WordRedactor::new(secrets)));
        for session in &sessions {
            store(&storage, session, &sharing(&mut random)).await;
        }
        let mut tokens = Vec::new();
        let server = Running::with(storage.clone(), |settings| {
            // The test asks faster than any client may.
            (settings.limits.requests, settings.limits.request_burst) = (1_000_000, 1_000_000);
            for name in USERS {
                for new in new_tokens(&mut random, name) {
                    let text = settings.tokens.create(&new, storage.now()).unwrap().text().to_owned();
                    let viewer = Viewer::new(new.user.clone()).with_teams(&new.teams);
                    let viewer = viewer.with_org(new.org.clone());
                    let (user, reach, rights) = (new.user, new.reach, new.rights);
                    tokens.push(KnownToken { text, user, viewer, reach, rights });
                }
            }
        })
        .await;
        let (streams, archives) = streams(&mut random, &sessions).await;
        Self { server, random, sessions, tokens, streams, archives }
    }

    /// The stream of another store, of a session with this id.
    pub(crate) fn stream(&self, id: &str) -> String {
        self.streams.get(id).cloned().unwrap_or_default()
    }

    /// The archive of another store with a session with this id.
    pub(crate) fn archive(&self, id: &str) -> String {
        self.archives.get(id).cloned().unwrap_or_default()
    }

    /// The sessions as they are stored now.
    pub(crate) async fn stored(&self) -> Vec<Session> {
        let query = SessionQuery::new(Scope::Everyone).with_limit(100);
        self.server.storage.sessions().all_sessions(query).await.unwrap()
    }

    /// A request with a token.
    pub(crate) fn request(&self, token: &KnownToken, method: &str, path: &str) -> Request {
        let request = Request::new(self.server.address, method, path);
        request.header("authorization", &format!("Bearer {}", token.text))
    }

    /// Shares a session with others at random.
    pub(crate) async fn share_at_random(&mut self, key: &SessionKey) {
        let sharing = sharing(&mut self.random);
        self.server.storage.sessions().share_session(key, &sharing).await.unwrap();
    }
}

/// Two users may have sessions with the same id.
fn known(random: &mut Random, number: usize) -> KnownSession {
    let id = if number < 2 { "id-0x".to_owned() } else { format!("id-{number}x") };
    let owner = if number < 2 { USERS[number] } else { *random.one(&USERS) };
    KnownSession {
        key: SessionKey::new(user(owner), SessionId::new(id).unwrap()),
        word: format!("word{number}x"),
        superseded: format!("superseded{number}x"),
        secret: format!("hunter{number}hunter"),
    }
}

async fn store(storage: &SessionStorage, session: &KnownSession, sharing: &Sharing) {
    let KnownSession { key, word, superseded, secret } = session;
    let target = IngestTarget {
        key: key.clone(),
        host_id: HostId::new(format!("host-{word}")).unwrap(),
        project_slug: ProjectSlug::new(format!("project-{word}")).unwrap(),
    };
    let question = || lines::user(&format!("why is the pool of {word} exhausted with {secret}"));
    let before = vec![question(), lines::assistant(&format!("the pool was {superseded}"))];
    let after = vec![
        question(),
        lines::tool_call("write_file", json!({"file_path": format!("/srv/{word}.rs")})),
        lines::tool(&format!("pool = {word}")),
        lines::thinking(&format!("the pool of {word}"), &format!("the pool of {word} is small: {secret}")),
    ];
    let ingestion = storage.ingestion();
    for lines in [before, after] {
        ingestion.sync_transcript_lines(&target, whole(lines)).await.unwrap();
    }
    let event =
        |text: &str| lines::hook_event("tool:error").data(json!({"error": format!("{text}: {word}")}));
    for text in [superseded.as_str(), secret.as_str()] {
        let lines = SyncLines::whole(vec![event(text).raw()]);
        ingestion.sync_event_lines(&target, lines).await.unwrap();
    }
    let edit = SessionEdit::default().set_description(format!("about {word}").as_str()).set_tags([word]);
    storage.sessions().update_session(key, &edit).await.unwrap();
    storage.sessions().share_session(key, sharing).await.unwrap();
}

/// A stream and an archive for the id of each session, which belongs to any user in the other store.
async fn streams(
    random: &mut Random,
    sessions: &[KnownSession],
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let other = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let (mut streams, mut archives) = (BTreeMap::new(), BTreeMap::new());
    for KnownSession { key, .. } in sessions {
        let target = target_of(random.one::<&str>(&USERS), "shop", key.session_id.as_str());
        let lines = whole(vec![lines::user("why is the pool empty")]);
        other.ingestion().sync_transcript_lines(&target, lines).await.unwrap();
        let stream = String::from_utf8(stream(&other, &target).await).unwrap();
        streams.insert(key.session_id.to_string(), stream);
        archives.insert(key.session_id.to_string(), archive(&other, &target).await);
    }
    (streams, archives)
}

async fn archive(storage: &SessionStorage, target: &IngestTarget) -> String {
    let mut bytes = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut bytes);
    let scope = Scope::User(target.key.user_id.clone());
    let filter = SessionFilter::default().with_session(target.key.session_id.clone());
    storage.archive().export_sessions(&scope, filter, &mut writer).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

fn sharing(random: &mut Random) -> Sharing {
    match random.below(5) {
        0 => Sharing::private(),
        1 => Sharing::teams([*random.one(&TEAMS)]),
        2 => Sharing::teams([*random.one(&TEAMS), *random.one(&TEAMS)]),
        3 => Sharing::org(*random.one(&ORGS)),
        _ => Sharing::public(),
    }
}

/// The tokens of a user: each reach with all rights, one that only reads, and one that does everything else.
fn new_tokens(random: &mut Random, name: &str) -> Vec<NewToken> {
    let teams: Vec<String> =
        TEAMS.iter().filter(|_| random.below(2) == 0).map(|team| (*team).to_owned()).collect();
    let org = [None, Some(ORGS[0]), Some(ORGS[1])][random.below(3)].map(str::to_owned);
    let without_read = vec![AccessRight::Write, AccessRight::Delete, AccessRight::Admin];
    let reaches = [Reach::Own, Reach::Visible, Reach::All];
    let kinds = [
        (Reach::Own, AccessRight::ALL.to_vec()),
        (Reach::Visible, AccessRight::ALL.to_vec()),
        (Reach::All, AccessRight::ALL.to_vec()),
        (*random.one(&reaches), vec![AccessRight::Read]),
        (*random.one(&reaches), without_read),
    ];
    let new = |(reach, rights)| NewToken {
        teams: teams.clone(),
        org: org.clone(),
        reach,
        rights,
        ..NewToken::new(user(name))
    };
    kinds.into_iter().map(new).collect()
}
