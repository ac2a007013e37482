use amplifier_session_core::{ErrorField, ErrorKind};

use super::*;

fn nothing(_: &str) -> Option<String> {
    None
}

fn refused(name: &str) -> Error {
    provider_from_env(name, nothing, Some(&InstalledModels::at("/nowhere"))).unwrap_err()
}

#[test]
fn names_that_need_no_configuration() {
    assert!(provider("local").unwrap().unwrap().is_local());
    assert!(provider("none").unwrap().is_none());
    assert!(provider_from_env("local", nothing, None).unwrap().is_some());
    for name in PROVIDERS {
        check_provider(name).unwrap();
    }
    let error = provider("openai").unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Embedding)));
    assert!(error.to_string().contains("needs a configuration"), "{error}");
}

#[test]
fn services_are_configured_from_the_environment() {
    let env = |name: &str| match name {
        "OPENAI_BASE_URL" | "AZURE_OPENAI_ENDPOINT" => Some("http://localhost:1".to_owned()),
        "AZURE_OPENAI_API_KEY" => Some("made-up".to_owned()),
        _ => None,
    };
    let services = [("openai", cfg!(feature = "openai")), ("azure-openai", cfg!(feature = "azure-openai"))];
    for (name, built_in) in services {
        match provider_from_env(name, env, None) {
            Ok(configured) => {
                let Configured { provider, cache_namespace, cache_size } = configured.unwrap();
                assert!(built_in && provider.space().dimensions == 3072);
                assert_eq!(cache_namespace, if name == "openai" { "localhost:1" } else { "openai" });
                assert_eq!(cache_size, 1_000);
            }
            Err(error) => assert!(!built_in && error.kind() == ErrorKind::Unsupported, "{error}"),
        }
    }
}

#[test]
fn an_unknown_name_is_refused_and_the_known_names_are_listed() {
    for name in ["", "Local", "openai2", "none:x", "LOCAL:x", "local:", "cloud"] {
        for error in [provider(name).unwrap_err(), refused(name)] {
            assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Embedding)));
            for known in PROVIDERS {
                assert!(error.to_string().contains(known), "{error}");
            }
        }
    }
}

#[test]
fn errors_about_missing_models_say_what_to_do() {
    let refused = |name: &str| {
        let error = refused(name);
        assert_eq!(error.kind(), ErrorKind::Validation, "{error}");
        error.to_string()
    };
    assert!(refused("local:e5-small-v2").contains("`embeddings models install e5-small-v2`"));
    let unknown = refused("local:my-model");
    assert!(unknown.contains("\"my-model\"") && unknown.contains("bge-small-en-v1.5"), "{unknown}");
    assert!(refused("local:/no/such/folder").contains("/no/such/folder"));
    assert!(refused("local:a b").contains("letters"));
    let error = provider_from_env("local:my-model", nothing, None).unwrap_err();
    assert!(error.to_string().contains("XDG_DATA_HOME"), "{error}");
}

#[cfg(not(feature = "local-transformer"))]
#[test]
fn without_the_feature_a_model_is_unsupported() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("local:{}", folder.path().display());
    let error = provider_from_env(&name, nothing, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("feature local-transformer"), "{error}");
}
