use super::*;

/// Sources with a home folder whose configuration file contains `text`.
fn home(text: &str) -> (tempfile::TempDir, ConfigSources) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/amplifier-sessions");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
    let sources = ConfigSources { home: Some(home.path().to_owned()), ..ConfigSources::default() };
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
    assert_eq!(read(&sources), ("sqlite:file".to_owned(), SettingOrigin::File { path, line: 1 }));
    let sources = sources.with_variable("AMPLIFIER_SESSIONS_STORE", "sqlite:env");
    let origin = SettingOrigin::Environment("AMPLIFIER_SESSIONS_STORE");
    assert_eq!(read(&sources), ("sqlite:env".to_owned(), origin));
    let sources = sources.with_option("store", "sqlite:typed");
    assert_eq!(read(&sources), ("sqlite:typed".to_owned(), SettingOrigin::CommandLine("--store")));
    let nothing = ConfigSources::default().with_variable("AMPLIFIER_SESSIONS_STORE", " ");
    assert_eq!(read(&nothing).1, SettingOrigin::Default);
}

#[test]
fn the_named_configuration_file_is_read() {
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
    // A relative path is ignored.
    assert_eq!(user(&sources.clone().with_variable("XDG_CONFIG_HOME", "xdg")).as_deref(), Some("ana"));

    let missing = sources.with_file(Some(home.path().join("missing.toml")));
    let error = Configuration::read(&missing).unwrap_err();
    assert!(error.to_string().contains("missing.toml"), "{error}");
    let nowhere = Configuration::read(&ConfigSources::default()).unwrap();
    assert_eq!((nowhere.file(), nowhere.file_exists()), (None, false));
}

#[test]
fn values_are_read_as_their_kind_and_errors_name_the_origin() {
    let (_home, sources) =
        home("redact = 'off'\nprice_per_million_tokens = 0.13\n[cache]\nmax_megabytes = 7");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(read.choice("redact").unwrap(), Some("off"));
    assert_eq!(read.number("price_per_million_tokens").unwrap(), Some(0.13));
    assert_eq!(read.count("cache.max_megabytes").unwrap(), Some(7));
    assert_eq!(read.count("openai.dimensions").unwrap(), None);
    let sources = sources.with_variable("AMPLIFIER_SESSIONS_REDACT", "perhaps");
    let error = Configuration::read(&sources).unwrap().choice("redact").unwrap_err();
    assert!(
        error.to_string().contains("AMPLIFIER_SESSIONS_REDACT: redact must be one of off, mark, mask"),
        "{error}"
    );
    let typed = Configuration::read(&sources.with_option("redact", "mask")).unwrap();
    assert_eq!(typed.choice("redact").unwrap(), Some("mask"));
}

#[test]
fn embedding_providers_see_the_file_as_an_environment() {
    let (_home, sources) = home("[openai]\nmodel = 'from-file'\ndimensions = 7\napi_key = 'hunter2'");
    let sources = sources.with_variable("AZURE_CLIENT_ID", "app");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(read.variable("OPENAI_EMBEDDING_MODEL").as_deref(), Some("from-file"));
    assert_eq!(read.variable("OPENAI_EMBEDDING_DIMENSIONS").as_deref(), Some("7"));
    assert_eq!(read.variable("OPENAI_API_KEY").as_deref(), Some("hunter2"));
    assert_eq!(read.variable("AZURE_CLIENT_ID").as_deref(), Some("app"));
    // A default does not count as set.
    assert_eq!(read.variable("OPENAI_BASE_URL"), None);
}

#[test]
fn no_key_is_shown() {
    let (_home, sources) = home("[openai]\napi_key = 'hunter2'");
    let sources = sources.with_variable("AZURE_OPENAI_API_KEY", "hunter3");
    let read = Configuration::read(&sources).unwrap();
    assert!(!format!("{sources:?} {read:?} {read:#?}").contains("hunter"));
    let shown = read.entries().iter().filter(|entry| entry.setting.is_secret()).filter_map(Entry::shown);
    assert_eq!(shown.collect::<Vec<_>>(), ["set (hidden)"; 2]);
}

#[test]
fn the_cache_is_in_the_folder_for_caches() {
    let (home, sources) = home("");
    let folder = |sources: &ConfigSources| Configuration::read(sources).unwrap().cache_directory().unwrap();
    assert_eq!(folder(&sources), home.path().join(".cache/amplifier-sessions"));
    let xdg = sources.clone().with_variable("XDG_CACHE_HOME", "/var/cache");
    assert_eq!(folder(&xdg), Path::new("/var/cache/amplifier-sessions"));
    let named = xdg.with_variable("AMPLIFIER_SESSIONS_CACHE_DIRECTORY", "~/vectors");
    assert_eq!(folder(&named), home.path().join("vectors"));
}

#[test]
fn lists_are_arrays_in_the_file_and_have_commas_elsewhere() {
    let (_home, sources) =
        home("teams = ['a', 'b c']\nexclude = ['x/{y,z}-*', 'q,r']\norg = 'acme'\nevents = 'summary'");
    let read = Configuration::read(&sources).unwrap();
    assert_eq!(
        (read.list("teams"), read.text("teams")),
        (&["a".to_owned(), "b c".to_owned()][..], Some("a, b c"))
    );
    assert_eq!(read.list("exclude"), ["x/{y,z}-*", "q,r"]);
    assert_eq!((read.text("org"), read.choice("events").unwrap()), (Some("acme"), Some("summary")));
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
#[cfg(feature = "cosmos")]
fn a_backend_gets_its_own_settings_and_the_environment() {
    let (_home, sources) = home(
        "[cosmos]\nendpoint = 'https://a.documents.azure.com/'\nvector_dimensions = 512\nvector_index = 'flat'",
    );
    let sources =
        sources.with_variable("AZURE_CLIENT_ID", "app").with_variable("AMPLIFIER_COSMOS_KEY", "hunter2");
    let read = Configuration::read(&sources).unwrap();
    let url = StoreUrl::parse("cosmos://?vector_index=diskANN", None).unwrap();
    let request = read.open_request(&url);
    assert_eq!(request.environment.get("AZURE_CLIENT_ID"), Some("app"));
    assert_eq!(request.settings.text("cosmos.endpoint"), Some("https://a.documents.azure.com/"));
    assert_eq!(request.settings.count("cosmos.vector_dimensions").unwrap(), Some(512));
    assert_eq!(request.settings.text("cosmos.key"), Some("hunter2"));
    assert_eq!(request.settings.origin("cosmos.vector_index"), &SettingOrigin::StoreUrl);
    assert_eq!(request.settings.text("store"), None);
    assert!(!format!("{read:?} {request:?}").contains("hunter"));
    // The URL of one store does not change the configuration of others.
    assert_eq!(read.text("cosmos.vector_index"), Some("flat"));
}

#[test]
fn settings_of_backends_that_this_build_leaves_out_are_accepted() {
    let (_home, sources) = home("hnsw = true\n[cosmos]\ndatabase = 'd'");
    Configuration::read(&sources).unwrap();
}

#[test]
fn roots_are_those_of_amplifier_and_its_agent_unless_others_are_named() {
    let roots = |sources: &ConfigSources| Configuration::read(sources).unwrap().roots();
    let (folder, sources) = home("");
    let home_of = |name: &str| folder.path().join(name);
    assert_eq!(roots(&sources), [home_of(".amplifier"), home_of(".amplifier-agent")]);
    let moved =
        sources.clone().with_variable("AMPLIFIER_HOME", "~/a").with_variable("AMPLIFIER_AGENT_HOME", "/b:c");
    assert_eq!(roots(&moved), [home_of("a"), PathBuf::from("/b:c")]);
    assert_eq!(Configuration::read(&moved).unwrap().origin("root"), &SettingOrigin::Default);
    let named = moved.with_variable("AMPLIFIER_SESSIONS_ROOT", "/d");
    assert_eq!(roots(&named), [Path::new("/d")]);
    for (text, expected) in [("root = '~/d'", vec!["d"]), ("root = ['~/d', '~/e,f']", vec!["d", "e,f"])] {
        let (folder, sources) = home(text);
        let expected: Vec<PathBuf> = expected.into_iter().map(|name| folder.path().join(name)).collect();
        assert_eq!(roots(&sources), expected, "{text}");
    }
    let wrong = Configuration::read(&home("root = 7").1);
    assert!(wrong.unwrap_err().to_string().contains("root must be a string in quotes, or a list of them"));
}

#[test]
fn a_folder_for_captures_is_absolute() {
    let captures = |value: &str| {
        let sources = home("").1.with_variable("AMPLIFIER_CONTEXT_INTELLIGENCE_BASE_PATH", value);
        Configuration::read(&sources).unwrap().captures()
    };
    assert_eq!(captures("/srv/captures"), Some(PathBuf::from("/srv/captures")));
    assert!(captures("~/captures").unwrap().is_absolute());
    for unset in ["", "captures", "${CAPTURES:}"] {
        assert_eq!(captures(unset), None, "{unset}");
    }
}
