//! Addresses of sessions, lines and projects that users type.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    an_address_names_a_session_and_optionally_a_line,
    an_address_distinguishes_a_session_from_its_sub_agents,
    latest_is_the_newest_session_of_the_reader,
    a_session_from_the_future_is_not_latest_without_a_notice,
    ids_may_look_like_addresses,
    short_ids_are_unique_in_the_store,
    sessions_of_other_programs_are_found_by_their_native_ids,
    a_project_is_found_by_a_unique_part,
    a_project_is_found_by_its_folder,
    folders_with_the_same_slug_are_different,
    a_repository_is_found_by_its_address_or_a_part,
    accents_may_be_written_in_two_ways,
];

/// Creates sessions from owner, project, id and folder, each updated a second after the previous one.
async fn put(store: &Store, sessions: &[(&str, &str, &str, &str)]) {
    for (second, (user, project, id, folder)) in sessions.iter().enumerate() {
        let fill = |session: &mut Session| {
            session.updated = time(&format!("2026-01-05T08:00:{second:02}Z"));
            session.working_dir = Some((*folder).to_owned()).filter(|folder| !folder.is_empty());
        };
        store.create(&target_of(user, project, id), fill).await;
    }
}

/// An address is an id, a prefix of one or `latest`, in any case, optionally with the number of a line.
async fn an_address_names_a_session_and_optionally_a_line(store: Store) {
    let sessions = [
        ("ana", "p", "7f3c9a52-11aa", ""),
        ("ana", "p", "ABCDEF-1", ""),
        ("ana", "p", "Mixed-Case", ""),
        ("ana", "p", "mixed-case-longer", ""),
        ("ana", "p", "pqr", ""),
        ("ana", "p", "pqrstu", ""),
        ("ana", "p", "pqx", ""),
        ("ana", "p", "newest", ""),
        ("ben", "p", "of-ben", ""),
    ];
    put(&store, &sessions).await;
    let found = async |address: &str| {
        let found = store.storage.sessions().find_address(&ana(), address).await;
        found.map(|found| (found.session.session_id.to_string(), found.line))
    };
    let message = |sequence| Some(AddressedLine::Message(sequence));
    let event = |sequence| Some(AddressedLine::Event(sequence));
    for (address, id, line) in [
        ("7f3c9a52-11aa", "7f3c9a52-11aa", None),
        ("7F3C9A52-11AA", "7f3c9a52-11aa", None),
        ("7F3", "7f3c9a52-11aa", None),
        ("7f3c9a52#4", "7f3c9a52-11aa", message(4)),
        ("7F3C9A52-11AA#0", "7f3c9a52-11aa", message(0)),
        ("7f3c9a52-11aa_msg_4", "7f3c9a52-11aa", message(4)),
        ("7F3C_MSG_4", "7f3c9a52-11aa", message(4)),
        ("7f3c9a52-11aa_evt_9", "7f3c9a52-11aa", event(9)),
        ("abcdef", "ABCDEF-1", None),
        ("MIXED-CASE", "Mixed-Case", None),
        ("mixed-case", "mixed-case-longer", None),
        ("pqr", "pqr", None),
        ("pqrs", "pqrstu", None),
        ("pqx", "pqx", None),
        ("latest", "newest", None),
        ("Latest#2", "newest", message(2)),
    ] {
        assert_eq!(found(address).await.unwrap(), (id.to_owned(), line), "{address}");
    }
    for address in
        ["", "#4", "x", "x#4", "x_msg_4", "of-ben", "OF-BEN#1", "7f3c9a52-11aa_msg_", "_msg_4", "%", "pqr/.."]
    {
        assert_eq!(kind(found(address).await), ErrorKind::SessionNotFound, "{address:?}");
    }
    for address in ["7f3c9a52#", "7f3c9a52#x", "7f3c9a52#-1", "MIX"] {
        assert_eq!(kind(found(address).await), ErrorKind::Validation, "{address:?}");
    }
    let error = found("pq").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(["pqr", "pqrstu", "pqx"].iter().all(|id| error.to_string().contains(id)), "{error}");
}

/// A common prefix of the ids of sub-agents means their parent session. A unique part of the id of a sub-agent means
/// the sub-agent.
async fn an_address_distinguishes_a_session_from_its_sub_agents(store: Store) {
    let top = "6513270e-269e-4aa1-8bcd-e03c5f1d7a92";
    let [one, two] = [1, 2].map(|n| format!("6513270e-269e-4aa1-8bcd-00000000000{n}_explorer"));
    let below_two = "00000000000000ff-77aa77aa77aa77aa_Bug-hunter";
    put(&store, &[("ana", "p", top, ""), ("ben", "p", "of-ben_hunter", ""), ("ana", "p", "late-one", "")])
        .await;
    for (id, parent) in [(one.as_str(), top), (two.as_str(), top), (below_two, two.as_str())] {
        let parent = Some(SessionId::new(parent).unwrap());
        store.create(&target_of("ana", "p", id), |session| session.parent_id = parent).await;
    }
    let found = async |address: &str| {
        let found = store.storage.sessions().find_session(&ana(), address).await;
        found.map(|session| session.session_id.to_string())
    };
    for (address, id) in [
        ("6513270e", top),
        ("6513270E-269E", top),
        ("6513270e-269e-4aa1-8bcd-0", ""),
        ("8bcd-000000000001", one.as_str()),
        ("8BCD-000000000002", two.as_str()),
        ("77aa77aa", below_two),
        ("hunter", below_two),
        ("bug-", below_two),
        ("8bcd-e03c", top),
        ("explorer", ""),
        ("late", "late-one"),
    ] {
        match id {
            "" => assert_eq!(kind(found(address).await), ErrorKind::Validation, "{address}"),
            id => assert_eq!(found(address).await.unwrap(), id, "{address}"),
        }
    }
    for address in ["bug", "one", "of-ben", "unter"] {
        assert_eq!(kind(found(address).await), ErrorKind::SessionNotFound, "{address}");
    }
    let ids = [top, &one, &two, below_two].map(|id| SessionId::new(id).unwrap());
    let short = store.storage.sessions().short_ids(&ana(), &ids).await.unwrap();
    let short: Vec<&str> = ids.iter().map(|id| short[id].as_str()).collect();
    assert_eq!(short, ["6513270e", "000000000001", "000000000002", "00000000"]);
    for (id, short) in ids.iter().zip(short) {
        assert_eq!(found(short).await.unwrap(), id.as_str(), "{short}");
    }
}

/// An address splits at the last `#` before digits, unless only the whole of it is an id. A session named `latest` does
/// not take the word.
async fn ids_may_look_like_addresses(store: Store) {
    for (n, id) in
        ["notes#7", "notes", "issue#12", "latest", "newest", "daily standup"].into_iter().enumerate()
    {
        store.create(&target(id), |session| session.updated = day(1 + n as u32)).await;
    }
    store.create(&target("newest of all"), |session| session.updated = day(20)).await;
    let find = async |address: &str| {
        let found = store.storage.sessions().find_address(&ana(), address).await?;
        Ok::<_, Error>((found.session.session_id.to_string(), found.line))
    };
    let message = |number| Some(AddressedLine::Message(number));
    for (address, session, line) in [
        ("notes#7", "notes", message(7)),
        ("notes#7#3", "notes#7", message(3)),
        ("issue#12", "issue#12", None),
        ("issue#12#0", "issue#12", message(0)),
        ("daily standup#2", "daily standup", message(2)),
        ("daily", "daily standup", None),
        ("latest", "newest of all", None),
        ("LATEST", "newest of all", None),
    ] {
        assert_eq!(find(address).await.unwrap(), (session.to_owned(), line), "{address}");
    }
    assert_eq!(kind(find("notes#x").await), ErrorKind::Validation);
    assert_eq!(kind(find("nothing#3").await), ErrorKind::SessionNotFound);
}

/// `latest` is the newest session of the reader, also if the reader may see other users' sessions.
async fn latest_is_the_newest_session_of_the_reader(store: Store) {
    let latest = async |scope: &Scope| {
        store
            .storage
            .sessions()
            .find_session(scope, "latest")
            .await
            .map(|session| session.session_id.to_string())
    };
    assert_eq!(kind(latest(&ana()).await), ErrorKind::SessionNotFound);
    put(&store, &[("ana", "p", "a", ""), ("ana", "p", "b", ""), ("ben", "p", "c", "")]).await;
    assert_eq!(latest(&ana()).await.unwrap(), "b");
    let visible = Scope::Visible(Viewer::new(UserId::new("ana").unwrap()));
    assert_eq!(latest(&visible).await.unwrap(), "b");
    assert_eq!(latest(&Scope::Everyone).await.unwrap(), "c");
}

/// A session that changed in the future is not `latest`, unless all did. A notice says so.
async fn a_session_from_the_future_is_not_latest_without_a_notice(store: Store) {
    let latest = async || {
        let found = store.storage.sessions().find_address(&ana(), "latest").await.unwrap();
        (found.session.session_id.to_string(), found.notice)
    };
    let line = |time: &str| vec![lines::user("q").at(time)];
    store.sync(&target("far"), line("2150-01-01T00:00:00Z")).await;
    let notice = "session far changed at 2150-01-01T00:00:00.000000Z, which is in the future";
    assert_eq!(latest().await, ("far".to_owned(), Some(notice.to_owned())));
    store.sync(&target("now"), line("2026-01-05T08:00:00Z")).await;
    store.sync(&target("farther"), line("2199-01-01T00:00:00Z")).await;
    let notice =
        "session farther changed at 2199-01-01T00:00:00.000000Z, which is in the future; `latest` is now";
    assert_eq!(latest().await, ("now".to_owned(), Some(notice.to_owned())));
    // Clocks of several machines may differ by minutes.
    let soon = Timestamp::from_micros(store.storage.now().as_micros() + 300_000_000).to_string();
    store.sync(&target("soon"), line(&soon)).await;
    assert_eq!(latest().await.0, "soon");
    let found = store.storage.sessions().find_address(&ana(), "latest#0").await.unwrap();
    assert_eq!((found.session.session_id.as_str(), found.notice.is_some()), ("soon", true));
}

/// A short id has 8 characters, or more if they are needed to be unique in scope. The short id of a sub-agent may be
/// any part of its id. A short id is an address of its session.
async fn short_ids_are_unique_in_the_store(store: Store) {
    let spawned: Vec<String> =
        (0..30).map(|n| format!("0000000000000000-{n:02}aabbccddee_explorer")).collect();
    let mut sessions: Vec<(&str, &str, &str, &str)> =
        spawned.iter().map(|id| ("ana", "p", id.as_str(), "")).collect();
    sessions.extend([
        ("ana", "p", "3a7c1e90-1f4b", ""),
        ("ana", "p", "abcdefghij-1", ""),
        ("ana", "p", "abcdefghij-12", ""),
        ("ana", "p", "abcdefghix-2", ""),
        ("ana", "p", "tiny", ""),
        ("ben", "p", "3a7c1e90-1f4c", ""),
    ]);
    put(&store, &sessions).await;
    let listed =
        store.storage.sessions().search_sessions(&SessionQuery::new(ana()).with_limit(100)).await.unwrap();
    let ids: Vec<&SessionId> = listed.iter().map(|session| &session.session_id).collect();
    let short = store.storage.sessions().short_ids(&ana(), ids.iter().copied()).await.unwrap();
    let of = |id: &str| short[&SessionId::new(id).unwrap()].clone();
    assert_eq!(of("3a7c1e90-1f4b"), "3a7c1e90");
    assert_eq!(of("abcdefghix-2"), "abcdefghix");
    assert_eq!([of("abcdefghij-1"), of("abcdefghij-12")], ["abcdefghij-1", "abcdefghij-12"]);
    assert_eq!([of("tiny"), of(&spawned[7])], ["tiny", "07aabbcc"]);
    for id in ids {
        assert_eq!(store.storage.sessions().find_session(&ana(), &short[id]).await.unwrap().session_id, *id);
    }
    let both = store
        .storage
        .sessions()
        .short_ids(&Scope::Everyone, [&SessionId::new("3a7c1e90-1f4b").unwrap()])
        .await;
    assert_eq!(both.unwrap().into_values().next().unwrap(), "3a7c1e90-1f4b");
}

/// Ids of other programs have the name of the program before them. Addresses and short ids do without it, unless another
/// session has the same id.
async fn sessions_of_other_programs_are_found_by_their_native_ids(store: Store) {
    let sessions = [
        ("ana", "p", "amplifier-agent:3a7c1e90-1f4b", ""),
        ("ana", "p", "amplifier-agent:5b8d2f10-77aa", ""),
        ("ana", "p", "5b8d2f10-77aa", ""),
        ("ana", "p", "5b8d2f10-99cc", ""),
        ("ana", "p", "amplifier-x", ""),
        ("ana", "p", "locomo:conv-26", ""),
    ];
    put(&store, &sessions).await;
    store.sync(&target("amplifier-agent:new"), vec![lines::user("a pelican").raw()]).await;
    assert_eq!(store.find(&target("amplifier-agent:new"), "pelican").await, [0]);
    let found = async |address: &str| {
        let found = store.storage.sessions().find_address(&ana(), address).await?;
        Ok::<_, Error>((found.session.session_id.to_string(), found.line))
    };
    let message = Some(AddressedLine::Message(4));
    for (address, id, line) in [
        ("3a7c1e90", "amplifier-agent:3a7c1e90-1f4b", None),
        ("3A7C1E90-1F4B", "amplifier-agent:3a7c1e90-1f4b", None),
        ("3a7c1e90#4", "amplifier-agent:3a7c1e90-1f4b", message),
        ("amplifier-agent:3a7c_msg_4", "amplifier-agent:3a7c1e90-1f4b", message),
        ("amplifier-agent:5b", "amplifier-agent:5b8d2f10-77aa", None),
        ("5b8d2f10-77aa", "5b8d2f10-77aa", None),
        ("1f4b", "amplifier-agent:3a7c1e90-1f4b", None),
        ("amplifie", "amplifier-x", None),
        ("locomo", "locomo:conv-26", None),
    ] {
        assert_eq!(found(address).await.unwrap(), (id.to_owned(), line), "{address}");
    }
    assert!(found("5b8d2f10").await.unwrap_err().message().contains("is ambiguous"));
    assert_eq!(found("conv-26").await.unwrap_err().kind(), ErrorKind::SessionNotFound);
    let listed =
        store.storage.sessions().search_sessions(&SessionQuery::new(ana()).with_limit(100)).await.unwrap();
    let ids: Vec<&SessionId> = listed.iter().map(|session| &session.session_id).collect();
    let short = store.storage.sessions().short_ids(&ana(), ids.iter().copied()).await.unwrap();
    assert_eq!(short[&SessionId::new("amplifier-agent:3a7c1e90-1f4b").unwrap()], "3a7c1e90");
    for id in ids {
        assert_eq!(store.storage.sessions().find_session(&ana(), &short[id]).await.unwrap().session_id, *id);
    }
}

/// A project is found by its slug or by a unique part of it, in any case.
async fn a_project_is_found_by_a_unique_part(store: Store) {
    let sessions = [
        ("ana", "-home-ana-shop", "a", ""),
        ("ana", "-home-ana-shop-api", "b", ""),
        ("ana", "-home-ana-Blog", "c", ""),
        ("ben", "-home-ben-secret", "d", ""),
    ];
    put(&store, &sessions).await;
    let found = async |name: &str| {
        store
            .storage
            .sessions()
            .find_project(&ana(), name)
            .await
            .map(|found| found.map(|slug| slug.to_string()))
    };
    for (name, slug) in [
        ("-home-ana-shop", Some("-home-ana-shop")),
        ("shop-api", Some("-home-ana-shop-api")),
        ("blog", Some("-home-ana-Blog")),
        ("secret", None),
        ("x", None),
        ("", None),
    ] {
        assert_eq!(found(name).await.unwrap().as_deref(), slug, "{name:?}");
    }
    let error = found("shop").await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::ProjectSlug)));
    assert!(error.message().contains("-home-ana-shop, -home-ana-shop-api"), "{error}");
    assert!(!error.message().contains("Blog"), "{error}");
}

/// The project of a folder is found by its slug, or else by the sessions that ran in the folder.
async fn a_project_is_found_by_its_folder(store: Store) {
    let sessions = [
        ("ana", "-home-ana-shop", "a", "/home/ana/shop"),
        ("ana", "renamed", "b", "/home/ana/blog/"),
        ("ana", "-home-ana-a-b", "c", "/home/ana/a/b"),
        ("ana", "dashed", "d", "/home/ana/a-b"),
        ("ana", "-home-ana-old", "e", "/moved/away"),
        ("ana", "-home-ana-unsaid", "f", ""),
        ("ben", "-home-ben", "g", "/home/ben"),
    ];
    put(&store, &sessions).await;
    let found = async |folder: &str| {
        let found = store.storage.sessions().project_of_folder(&ana(), folder).await.unwrap();
        found.map(|found| found.slug.to_string())
    };
    assert_eq!(found("/home/ana/shop/").await.as_deref(), Some("-home-ana-shop"));
    assert_eq!(found("/home/ana/blog").await.as_deref(), Some("renamed"));
    assert_eq!(found("/home/ana/a/b").await.as_deref(), Some("-home-ana-a-b"));
    assert_eq!(found("/home/ana/a-b").await.as_deref(), Some("dashed"));
    assert_eq!(found("/home/ana/old").await.as_deref(), Some("-home-ana-old"));
    assert_eq!(found("/home/ana/unsaid").await.as_deref(), Some("-home-ana-unsaid"));
    assert_eq!(found("/home/ben").await, None);
    assert_eq!(found("/home").await, None);
}

/// Folders whose paths have the same slug are told apart by where the sessions ran. Sub-agents ran where their parents
/// did. A session that does not say where it ran belongs to neither.
async fn folders_with_the_same_slug_are_different(store: Store) {
    let sessions = [
        ("ana", "-home-ana-my-app", "dashed", "/home/ana/my-app"),
        ("ana", "-home-ana-my-app", "deep", "/home/ana/my/app/"),
        ("ana", "-home-ana-my-app", "unsaid", ""),
        ("ana", "-home-ana-my-app", "moved", "/elsewhere"),
        ("ana", "work", "shop", "/home/ana/shop"),
        ("ana", "work", "blog", "/home/ana/blog"),
        ("ana", "work", "unsaid too", ""),
        ("ana", "-home-ana-a-b", "only other", "/home/ana/a-b"),
    ];
    put(&store, &sessions).await;
    for (id, parent) in [("agent", "deep"), ("agent of agent", "agent"), ("orphan", "lost")] {
        let parent = Some(SessionId::new(parent).unwrap());
        store.create(&target_of("ana", "-home-ana-my-app", id), |session| session.parent_id = parent).await;
    }
    let found = async |folder: &str| {
        let Some(found) = store.storage.sessions().project_of_folder(&ana(), folder).await.unwrap() else {
            return (Vec::new(), Vec::new());
        };
        let query = SessionQuery::new(ana()).with_filter(found.sessions);
        let sessions = store.storage.sessions().all_sessions(query).await.unwrap();
        let mut ids: Vec<String> = sessions.iter().map(|session| session.session_id.to_string()).collect();
        ids.sort();
        (ids, found.others.into_iter().collect::<Vec<String>>())
    };
    let of = |ids: &[&str], others: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        (owned(ids), owned(others))
    };
    assert_eq!(found("/home/ana/my-app").await, of(&["dashed"], &["/home/ana/my/app"]));
    assert_eq!(
        found("/home/ana/my/app").await,
        of(&["agent", "agent of agent", "deep"], &["/home/ana/my-app"])
    );
    assert_eq!(found("/home/ana/shop").await, of(&["shop"], &["/home/ana/blog"]));
    assert_eq!(found("/home/ana/a/b").await, of(&[], &[]));
    assert_eq!(found("/home/ana/a-b").await, of(&["only other"], &[]));
}

/// A name is the same whether an accent is part of its letter or follows it.
async fn accents_may_be_written_in_two_ways(store: Store) {
    let (composed, decomposed) = ("café", "cafe\u{301}");
    let folder = format!("/home/ana/{decomposed}");
    let slug = format!("-home-ana-{decomposed}");
    put(&store, &[("ana", slug.as_str(), "a", folder.as_str())]).await;
    let target = target_of("ana", &slug, "b");
    let metadata = format!(r#"{{"name":"{decomposed}","tags":["{decomposed}"],"bundle":"{decomposed}"}}"#);
    store.storage.ingestion().sync_session_metadata(&target, RawJson::new(metadata)).await.unwrap();
    for name in [composed, decomposed] {
        let found = store.storage.sessions().find_project(&ana(), name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&target.project_slug), "{name:?}");
        let found =
            store.storage.sessions().project_of_folder(&ana(), &format!("/home/ana/{name}")).await.unwrap();
        assert_eq!(found.map(|found| found.slug).as_ref(), Some(&target.project_slug), "{name:?}");
        let none = SessionFilter::default;
        let of_project = ProjectSlug::new(format!("-home-ana-{name}")).unwrap();
        for (filter, count) in [
            (none().with_project(of_project), 2),
            (none().with_tags([name]), 1),
            (none().with_bundle(name.to_owned()), 1),
        ] {
            let query = SessionQuery::new(ana()).with_filter(filter.clone());
            assert_eq!(
                store.storage.sessions().all_sessions(query).await.unwrap().len(),
                count,
                "{filter:?}"
            );
        }
        let named = SessionQuery::new(ana()).with_text(Some(name.to_owned()));
        assert_eq!(store.storage.sessions().all_sessions(named).await.unwrap().len(), 1, "{name:?}");
    }
    let edit = SessionEdit::default().add_tags([composed]).set_name(decomposed);
    let edited = store.storage.sessions().update_session(&target.key, &edit).await.unwrap();
    assert_eq!((edited.tags, edited.name.as_deref()), (vec![composed.to_owned()], Some(composed)));
    let edited = SessionEdit::default().remove_tags([decomposed]);
    assert_eq!(store.storage.sessions().update_session(&target.key, &edited).await.unwrap().tags, [""; 0]);
}

/// A repository is found by its address in any form, by its last parts, and by a unique part, within the scope.
async fn a_repository_is_found_by_its_address_or_a_part(store: Store) {
    let commit = format!("commit:{}", "0123456789".repeat(4));
    let repositories = [
        ("ana", "github.com/acme/app"),
        ("ana", "github.com/acme/app-web"),
        ("ana", "gitlab.com/shop/Web"),
        ("ana", &commit),
        ("ana", "/home/ana/bakery"),
        ("ben", "github.com/ben/app"),
        ("ben", "github.com/ben/secret"),
    ];
    for (n, (user, repository)) in repositories.into_iter().enumerate() {
        let fill = |session: &mut Session| session.repository = Some(Repository::new(repository).unwrap());
        store.create(&target_of(user, "p", &format!("s{n}")), fill).await;
    }
    store.create(&target_of("ana", "p", "without"), |_| {}).await;
    let found = async |scope: &Scope, name: &str| {
        let found = store.storage.sessions().find_repository(scope, name).await;
        found.map(|found| found.map(|repository| repository.to_string()))
    };
    for (name, expected) in [
        ("github.com/acme/app", Some("github.com/acme/app")),
        ("GitHub.com/Acme/App.git", Some("github.com/acme/app")),
        ("git@github.com:acme/app.git", Some("github.com/acme/app")),
        ("https://token@github.com/acme/app", Some("github.com/acme/app")),
        ("app", Some("github.com/acme/app")),
        ("acme/app", Some("github.com/acme/app")),
        ("acme/app/", Some("github.com/acme/app")),
        ("app-", Some("github.com/acme/app-web")),
        ("web", Some("gitlab.com/shop/Web")),
        ("shop", Some("gitlab.com/shop/Web")),
        ("commit:0123", Some(&*commit)),
        ("Bakery", Some("/home/ana/bakery")),
        ("/home/ana/bakery/", Some("/home/ana/bakery")),
        ("secret", None),
        ("git@github.com:ben/app", None),
        ("/", None),
    ] {
        assert_eq!(found(&ana(), name).await.unwrap().as_deref(), expected, "{name}");
    }
    let several = found(&ana(), "acme").await.unwrap_err();
    assert_eq!((several.kind(), several.field()), (ErrorKind::Validation, Some(ErrorField::Repository)));
    assert!(several.to_string().contains("github.com/acme/app, github.com/acme/app-web"), "{several}");
    assert!(found(&Scope::Everyone, "app").await.unwrap_err().to_string().contains("github.com/ben/app"));
    let ben = scope(&target_of("ben", "p", "s"));
    assert_eq!(found(&ben, "app").await.unwrap().as_deref(), Some("github.com/ben/app"));
}
