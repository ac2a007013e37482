//! Downloads from a hub on this machine.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use amplifier_session_testkit::{TinyModel, write_json};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::models::{InstalledModels, sha256::of_file};

/// The hub's answer to a request for a file.
#[derive(Clone)]
enum Answer {
    Body(Vec<u8>),
    Status(u16),
    /// Half of the announced bytes, and then nothing.
    Half(Vec<u8>),
}

/// A hub that has one model, and records requests.
struct FakeHub {
    hub: Hub,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeHub {
    fn new(answers: BTreeMap<String, Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub = Hub::at(format!("http://{}/", listener.local_addr().unwrap()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        // Ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = serve(stream.unwrap(), &answers, &noted);
            }
        });
        Self { hub, asked }
    }
}

fn serve(
    mut stream: TcpStream,
    answers: &BTreeMap<String, Answer>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = answers.get(&path).cloned().unwrap_or(Answer::Status(404));
    asked.lock().unwrap().push(path);
    let (status, length, body) = match &answer {
        Answer::Body(body) => (200, body.len(), &body[..]),
        Answer::Half(body) => (200, body.len(), &body[..body.len() / 2]),
        Answer::Status(status) => (*status, 0, &[][..]),
    };
    write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(body)
}

/// A folder to install into, a known model, and the hub's files of it.
struct Place {
    models: InstalledModels,
    known: KnownModel,
    answers: BTreeMap<String, Answer>,
    _folder: TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiny");
    TinyModel::default().write(&source).unwrap();
    write_json(&source.join("1_Pooling/config.json"), &json!({ "pooling_mode": "cls" })).unwrap();
    let weights: &'static str = of_file(&source.join("model.safetensors")).unwrap().leak();
    let known = KnownModel {
        name: "tiny",
        repository: "example/Tiny",
        revision: "0123abcd",
        licence: "MIT",
        dimensions: 8,
        bytes: 1,
        about: "",
        sha256: vec![("model.safetensors", weights)].leak(),
    };
    let answers = FILES.iter().filter_map(|file| {
        let body = fs::read(source.join(file.path)).ok()?;
        Some((address(file.path), Answer::Body(body)))
    });
    let answers = answers.collect();
    Place { models: InstalledModels::at(folder.path().join("models")), known, answers, _folder: folder }
}

fn address(file: &str) -> String {
    format!("/example/Tiny/resolve/0123abcd/{file}")
}

impl Place {
    /// The error with which downloading fails; it leaves nothing behind.
    async fn refused(&self) -> Error {
        let fake = FakeHub::new(self.answers.clone());
        let error = self.models.fetch(&self.known, &fake.hub, &|_| {}).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding);
        assert_eq!(fs::read_dir(self.models.folder()).unwrap().count(), 0, "{error}");
        error
    }
}

#[tokio::test]
async fn a_model_is_downloaded_checked_and_installed() {
    let place = place();
    let fake = FakeHub::new(place.answers.clone());
    let bytes = AtomicU64::new(0);
    let count = |more| {
        bytes.fetch_add(more, Ordering::Relaxed);
    };
    let installed = place.models.fetch(&place.known, &fake.hub, &count).await.unwrap();
    assert_eq!((installed.name.as_str(), installed.dimensions), ("tiny", Some(8)));
    assert_eq!(installed.source, Some(format!("{}/example/Tiny@0123abcd", fake.hub.endpoint())));
    assert_eq!(installed.bytes, bytes.load(Ordering::Relaxed));
    let verified = place.models.verify("tiny").unwrap();
    assert_eq!((verified.files, verified.problems), (4, vec![]));
    // Each file is requested once, at the known revision.
    let asked = fake.asked.lock().unwrap().clone();
    assert_eq!(asked, FILES.iter().map(|file| address(file.path)).collect::<Vec<_>>());
}

#[tokio::test]
async fn weights_with_another_hash_are_refused() {
    let mut place = place();
    place.answers.insert(address("model.safetensors"), Answer::Body(b"something else".to_vec()));
    let error = place.refused().await;
    assert!(error.to_string().starts_with("model.safetensors has the SHA-256 "), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn an_interrupted_download_leaves_nothing_and_is_retryable() {
    let mut place = place();
    let file = address("model.safetensors");
    let Some(Answer::Body(body)) = place.answers.remove(&file) else { panic!("no weights") };
    place.answers.insert(file, Answer::Half(body));
    let error = place.refused().await;
    assert!(error.is_retryable());
    assert_eq!(error.context("file"), Some("model.safetensors"));
}

#[tokio::test]
async fn errors_name_the_file_that_the_hub_lacks_or_refuses() {
    let mut missing = place();
    missing.answers.remove(&address("tokenizer.json"));
    assert!(missing.refused().await.to_string().starts_with("tokenizer.json does not exist"));
    let mut refusing = place();
    refusing.answers.insert(address("config.json"), Answer::Status(503));
    assert!(refusing.refused().await.to_string().starts_with("config.json can't be downloaded: status 503"));
}

#[tokio::test]
async fn an_unreachable_hub_is_an_error() {
    let place = place();
    // Reserves a port without listening there.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    let hub = Hub::at(format!("http://{address}"));
    let error = place.models.fetch(&place.known, &hub, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let error = place.models.fetch(&place.known, &Hub::at("ftp://x"), &|_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
}

#[tokio::test]
async fn unknown_and_installed_names_are_refused_without_a_request() {
    let place = place();
    let fake = FakeHub::new(place.answers.clone());
    let error = place.models.install("gpt-2", &fake.hub, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("choose one of all-minilm-l6-v2"), "{error}");
    TinyModel::default().write(&place.models.folder().join("e5-small-v2")).unwrap();
    let error = place.models.install("E5-small-v2", &fake.hub, &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("already installed"), "{error}");
    assert!(fake.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn known_hashes_apply_to_any_hub() {
    // A hub that has different files under the name of a known model.
    let known = KnownModel::find("all-minilm-l6-v2").unwrap();
    let mut place = place();
    let base = format!("/{}/resolve/{}/", known.repository, known.revision);
    place.answers =
        place.answers.into_iter().map(|(path, answer)| (path.replace(&address(""), &base), answer)).collect();
    let fake = FakeHub::new(place.answers.clone());
    let error = place.models.install(known.name, &fake.hub, &|_| {}).await.unwrap_err();
    assert!(error.to_string().starts_with("tokenizer.json has the SHA-256 "), "{error}");
    assert!(place.models.list().unwrap().is_empty());
}
