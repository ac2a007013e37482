use amplifier_session_core::{ErrorField, ErrorKind};
use amplifier_session_testkit::{TinyModel, write_json};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A folder to install into, and a folder with a model to install.
struct Place {
    models: InstalledModels,
    source: PathBuf,
    _folder: TempDir,
}

fn place(name: &str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("downloads").join(name);
    TinyModel::default().write(&source).unwrap();
    let models = InstalledModels::at(folder.path().join("data/models"));
    Place { models, source, _folder: folder }
}

impl Place {
    #[track_caller]
    fn refused(&self, name: Option<&str>) -> Error {
        let error = self.models.install_from(&self.source, name).unwrap_err();
        // No partial files remain.
        let left = fs::read_dir(self.models.folder()).map_or(0, |entries| entries.count());
        assert_eq!(left, self.models.list().unwrap().len(), "{error}");
        error
    }
}

#[test]
fn a_model_is_copied_listed_found_and_verified() {
    let place = place("my-model");
    write_json(&place.source.join("1_Pooling/config.json"), &json!({ "pooling_mode_cls_token": true }))
        .unwrap();
    fs::write(place.source.join("pytorch_model.bin"), "of no use").unwrap();
    assert!(place.models.list().unwrap().is_empty());

    let installed = place.models.install_from(&place.source, None).unwrap();
    assert_eq!((installed.name.as_str(), installed.dimensions), ("my-model", Some(8)));
    assert_eq!(installed.folder, place.models.folder().join("my-model"));
    assert_eq!(installed.source.as_deref(), Some(place.source.to_str().unwrap()));
    assert!(installed.bytes > 1000);
    assert!(installed.folder.join("1_Pooling/config.json").exists());
    assert!(!installed.folder.join("pytorch_model.bin").exists());
    assert_eq!(place.models.list().unwrap(), std::slice::from_ref(&installed));
    assert_eq!(place.models.find("MY-Model").unwrap(), installed);

    let verified = place.models.verify("my-model").unwrap();
    assert_eq!((verified.files, verified.problems), (4, vec![]));
}

#[test]
fn a_name_can_be_chosen_and_used_once() {
    let place = place("model");
    assert_eq!(place.models.install_from(&place.source, Some("mine")).unwrap().name, "mine");
    let error = place.refused(Some("MINE"));
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(error.to_string().contains("already installed"), "{error}");
    for bad in ["", "../up", "a/b", ".hidden", "a b", &"x".repeat(101)] {
        assert_eq!(place.refused(Some(bad)).field(), Some(ErrorField::Model), "{bad:?}");
    }
}

#[test]
fn an_incomplete_model_is_not_installed() {
    type Break = fn(&Path);
    let breaks: [(&str, Break); 6] = [
        ("model.safetensors is missing", |folder| fs::remove_file(folder.join("model.safetensors")).unwrap()),
        ("pytorch_model.bin is not supported", |folder| {
            fs::rename(folder.join("model.safetensors"), folder.join("pytorch_model.bin")).unwrap();
        }),
        ("tokenizer.json is missing", |folder| fs::remove_file(folder.join("tokenizer.json")).unwrap()),
        ("tokenizer.json is invalid", |folder| {
            fs::write(folder.join("tokenizer.json"), "{\"version\": ").unwrap();
        }),
        ("bytes instead of", |folder| cut(&folder.join("model.safetensors"), -1)),
        ("config.json is missing", |folder| fs::remove_file(folder.join("config.json")).unwrap()),
    ];
    for (expected, make_broken) in breaks {
        let place = place("model");
        make_broken(&place.source);
        let error = place.refused(None);
        assert_eq!(error.kind(), ErrorKind::Embedding);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Truncates a file to a length; a negative one is counted from its end.
fn cut(file: &Path, length: i64) {
    let bytes = fs::read(file).unwrap();
    let length = if length < 0 { bytes.len() as i64 + length } else { length };
    fs::write(file, &bytes[..usize::try_from(length).unwrap()]).unwrap();
}

#[test]
fn errors_about_weights_say_what_is_wrong() {
    let refused = |change: &dyn Fn(&Path)| {
        let place = place("model");
        change(&place.source.join("model.safetensors"));
        place.refused(None).to_string()
    };
    assert!(refused(&|file| cut(file, 0)).contains("is truncated"));
    assert!(refused(&|file| cut(file, 100)).contains("is truncated"));
    assert!(refused(&|file| fs::write(file, "<!DOCTYPE html><html>").unwrap()).contains("can't be read"));
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    assert!(refused(&|file| fs::write(file, header("[1]")).unwrap()).contains("no safetensors header"));
    assert!(refused(&|file| fs::write(file, header("{}")).unwrap()).contains("no tensor"));
    let other =
        r#"{"bert.embeddings.word_embeddings.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,0]}}"#;
    assert!(refused(&|file| fs::write(file, header(other)).unwrap()).contains("[2, 3]"));
}

#[test]
fn a_name_that_loses_a_models_prompts_is_refused() {
    let place = place("e5-small-v2");
    let error = place.refused(Some("mine"));
    assert!(error.to_string().contains("prompts"), "{error}");
    place.models.install_from(&place.source, Some("my-e5")).unwrap();
}

#[test]
fn verifying_finds_changed_files() {
    let place = place("model");
    let folder = place.models.install_from(&place.source, None).unwrap().folder;
    let weights = folder.join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, &bytes).unwrap();
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    cut(&folder.join("config.json"), 10);

    let problems = place.models.verify("model").unwrap().problems;
    let problems: Vec<(&str, &str)> =
        problems.iter().map(|problem| (problem.file.as_str(), problem.what.as_str())).collect();
    let [(_, config), rest @ ..] = &problems[..] else { panic!("{problems:?}") };
    assert!(config.starts_with("has 10 bytes instead of "), "{config}");
    let expected =
        [("tokenizer.json", "is missing"), ("model.safetensors", "has changed since it was installed")];
    assert_eq!(rest, expected);
    // It is still listed, so that users can see and remove it.
    assert_eq!(place.models.list().unwrap()[0].dimensions, None);
}

#[test]
fn a_model_without_manifest_cannot_be_verified() {
    let place = place("model");
    TinyModel::default().write(&place.models.folder().join("by-hand")).unwrap();
    let listed = place.models.list().unwrap();
    assert_eq!((listed[0].source.as_ref(), listed[0].dimensions), (None, Some(8)));
    assert!(place.models.verify("by-hand").unwrap_err().to_string().contains("manifest.json is missing"));
}
