use super::*;

/// Sources with a home whose configuration file says `text`.
fn home(text: &str) -> (tempfile::TempDir, ConfigSources) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/amplifier-sessions");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
    let sources = ConfigSources::default().with_home(Some(home.path().to_owned()));
    (home, sources)
}

#[test]
fn the_command_line_comes_before_the_environment_before_the_file_before_the_default() {
    let (home, sources) = home("store = 'sqlite:file'\n");
    let read = |sources: &ConfigSources| {
        let read = Configuration::read(sources).unwrap();
        (read.text("store").unwrap().to_owned(), read.origin("store").clone())
    };
    let path = home.path().join(".config/amplifier-sessions/config.toml");
    assert_eq!(read(&sources), ("sqlite:file".to_owned(), Origin::File { path, line: 1 }));
    let sources = sources.with_variable("AMPLIFIER_SESSIONS_STORE", "sqlite:env");
    let origin = Origin::Environment("AMPLIFIER_SESSIONS_STORE");
    assert_eq!(read(&sources), ("sqlite:env".to_owned(), origin));
    let sources = sources.with_option("store", "sqlite:typed");
    assert_eq!(read(&sources), ("sqlite:typed".to_owned(), Origin::CommandLine("--store")));
    let nothing = ConfigSources::default().with_variable("AMPLIFIER_SESSIONS_STORE", " ");
    assert_eq!(read(&nothing).1, Origin::Default);
}

#[test]
fn the_file_is_looked_for_where_it_is_named() {
    let (home, sources) = home("user = 'ana'");
    let other = home.path().join("other.toml");
    std::fs::write(&other, "user = 'bob'").unwrap();
    let user = |sources: &ConfigSources| {
        Configuration::read(sources).map(|read| read.text("user").map(str::to_owned)).unwrap()
    };
    assert_eq!(user(&sources).as_deref(), Some("ana"));
    assert_eq!(user(&sources.clone().with_file(Some(other.clone()))).as_deref(), Some("bob"));
    let by_variable = sources.clone().with_variable(FILE_VARIABLE, other.to_str().unwrap());
    assert_eq!(user(&by_variable).as_deref(), Some("bob"));
    let xdg = home.path().join("xdg");
    assert_eq!(user(&sources.clone().with_variable("XDG_CONFIG_HOME", xdg.to_str().unwrap())), None);
    // A relative path is passed over.
    assert_eq!(user(&sources.clone().with_variable("XDG_CONFIG_HOME", "xdg")).as_deref(), Some("ana"));

    let missing = sources.with_file(Some(home.path().join("missing.toml")));
    let error = Configuration::read(&missing).unwrap_err();
    assert!(error.to_string().contains("missing.toml"), "{error}");
    let nowhere = Configuration::read(&ConfigSources::default()).unwrap();
    assert_eq!((nowhere.file(), nowhere.file_exists()), (None, false));
}

#[test]
fn values_are_read_as_what_they_are_and_errors_name_who_said_them() {
    let (_home, sources) =
        home("redact = false\nprice_per_million_tokens = 0.13\n[cache]\nmax_megabytes = 7");
    let read = Configuration::read(&sources).unwrap();
    assert!(!read.switch("redact").unwrap());
    assert_eq!(read.number("price_per_million_tokens").unwrap(), Some(0.13));
    assert_eq!(read.count("cache.max_megabytes").unwrap(), Some(7));
    assert_eq!(read.count("openai.dimensions").unwrap(), None);
    let sources = sources.with_variable("AMPLIFIER_SESSIONS_REDACT", "perhaps");
    let error = Configuration::read(&sources).unwrap().switch("redact").unwrap_err();
    assert!(error.to_string().contains("AMPLIFIER_SESSIONS_REDACT: redact must be true or false"), "{error}");
    let typed = Configuration::read(&sources.with_option("redact", "on")).unwrap();
    assert!(typed.switch("redact").unwrap());
}

#[test]
fn providers_see_the_file_as_an_environment() {
    let (_home, sources) = home("[openai]\nmodel = 'from-file'\ndimensions = 7\napi_key = 'hunter2'");
    let sources = sources.with_variable("AZURE_CLIENT_ID", "app");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(read.variable("OPENAI_EMBEDDING_MODEL").as_deref(), Some("from-file"));
    assert_eq!(read.variable("OPENAI_EMBEDDING_DIMENSIONS").as_deref(), Some("7"));
    assert_eq!(read.variable("OPENAI_API_KEY").as_deref(), Some("hunter2"));
    assert_eq!(read.variable("AZURE_CLIENT_ID").as_deref(), Some("app"));
    // What nobody said is not set.
    assert_eq!(read.variable("OPENAI_BASE_URL"), None);
}

#[test]
fn no_key_is_shown() {
    let (_home, sources) = home("[openai]\napi_key = 'hunter2'");
    let sources = sources.with_variable("AZURE_OPENAI_API_KEY", "hunter3");
    let read = Configuration::read(&sources).unwrap();
    assert!(!format!("{sources:?} {read:?} {read:#?}").contains("hunter"));
    let shown = read.entries().iter().filter(|entry| entry.setting.is_secret()).map(Entry::shown);
    assert_eq!(shown.collect::<Vec<_>>(), [Some("set (hidden)"); 2]);
}

#[test]
fn the_cache_is_where_caches_are() {
    let (home, sources) = home("");
    let folder = |sources: &ConfigSources| Configuration::read(sources).unwrap().cache_directory().unwrap();
    assert_eq!(folder(&sources), home.path().join(".cache/amplifier-sessions"));
    let xdg = sources.clone().with_variable("XDG_CACHE_HOME", "/var/cache");
    assert_eq!(folder(&xdg), Path::new("/var/cache/amplifier-sessions"));
    let named = xdg.with_variable("AMPLIFIER_SESSIONS_CACHE_DIRECTORY", "~/vectors");
    assert_eq!(folder(&named), home.path().join("vectors"));
}

#[test]
fn extensions_are_where_duckdb_has_them_or_where_they_are_said_to_be() {
    let (home, sources) = home("hnsw = true");
    let read = |sources: &ConfigSources| Configuration::read(sources).unwrap();
    assert!(read(&sources).switch("hnsw").unwrap());
    assert_eq!(read(&sources).extension_directory(), None);
    let named = sources.with_variable("AMPLIFIER_SESSIONS_EXTENSION_DIRECTORY", "~/extensions");
    assert_eq!(read(&named).extension_directory(), Some(home.path().join("extensions")));
}

#[test]
fn lists_are_texts_in_the_file_and_stand_between_commas_elsewhere() {
    let (_home, sources) =
        home("teams = ['a', 'b c']\nexclude = ['x/{y,z}-*', 'q,r']\norg = 'acme'\nevents = 'summary'");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(
        (read.list("teams"), read.text("teams")),
        (&["a".to_owned(), "b c".to_owned()][..], Some("a, b c"))
    );
    assert_eq!(read.list("exclude"), ["x/{y,z}-*", "q,r"]);
    assert_eq!(
        (read.text("org"), read.choice("events").unwrap().as_deref()),
        (Some("acme"), Some("summary"))
    );
    let sources = sources
        .with_variable("AMPLIFIER_SESSIONS_TEAMS", "c, d")
        .with_variable("AMPLIFIER_SESSIONS_EXCLUDE", "*/{a,b},c")
        .with_variable("AMPLIFIER_SESSIONS_EVENTS", "most");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(
        (read.list("teams"), read.list("exclude")),
        (&["c".to_owned(), "d".to_owned()][..], &["*/{a,b}".to_owned(), "c".to_owned()][..])
    );
    let error = read.choice("events").unwrap_err();
    assert!(
        error.to_string().contains("AMPLIFIER_SESSIONS_EVENTS: events must be one of full, summary, none"),
        "{error}"
    );
    assert!(
        read.list("store").is_empty()
            && Configuration::read(&ConfigSources::default()).unwrap().list("teams").is_empty()
    );
}

#[test]
fn services_see_the_file_as_an_environment_and_the_key_of_its_own_file() {
    let (home, sources) = home(
        "[cosmos]\nendpoint = 'https://a.documents.azure.com/'\nauth_method = 'key'\nkey_file = '~/key'\nvector_dimensions = 512",
    );
    let sources = sources.with_variable("AZURE_CLIENT_ID", "app");
    let unreadable = Configuration::read(&sources).unwrap().variables().unwrap_err();
    assert!(unreadable.to_string().contains("cosmos.key_file"), "{unreadable}");
    std::fs::write(home.path().join("key"), "hunter2\n").unwrap();
    let read = Configuration::read(&sources).unwrap();
    let variables = read.variables().unwrap();
    let of = |name: &str| variables.get(name).map(str::to_owned);
    assert_eq!(of("AMPLIFIER_COSMOS_ENDPOINT").as_deref(), Some("https://a.documents.azure.com/"));
    assert_eq!(
        (of("AMPLIFIER_COSMOS_KEY").as_deref(), of("AZURE_CLIENT_ID").as_deref()),
        (Some("hunter2"), Some("app"))
    );
    assert_eq!(of("AMPLIFIER_COSMOS_VECTOR_DIMENSIONS").as_deref(), Some("512"));
    // What nobody said is not set, and the environment comes first.
    assert_eq!(of("AMPLIFIER_COSMOS_DATABASE"), None);
    assert!(!format!("{read:?} {variables:?}").contains("hunter"));
    let sources = sources.with_variable("AMPLIFIER_COSMOS_KEY", "other");
    let variables = Configuration::read(&sources).unwrap().variables().unwrap();
    assert_eq!(variables.get("AMPLIFIER_COSMOS_KEY"), Some("other"));
}
