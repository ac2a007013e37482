//! The search index on disk. The first byte of an input chooses the file that the rest replaces; with the highest bit,
//! checksums are corrected, so that the bytes they protect are read too.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use amplifier_session_core::{
    Result, SessionStorage,
    search::{SearchMode, SearchResult},
};
use amplifier_session_sqlite::Sqlite;

use crate::{
    Target,
    workplace::{found, samples, storage_on, synced, wait},
};

const STORE: &str = "sessions.sqlite";
const INDEX: &str = "sessions.sqlite.index";
const MATCHING: u8 = 0x80;
const QUERIES: [(&str, SearchMode); 2] =
    [("what was the order of the basket", SearchMode::FullText), ("checkout total", SearchMode::Semantic)];

pub(super) const TARGET: Target = Target {
    name: "index",
    seeds: || {
        let numbered = || (0_u8..).zip(&INTACT.files).filter(|(_, (path, _))| path.starts_with(INDEX));
        let seed = |number: u8, content: &Vec<u8>| [&[number], &**content].concat();
        let plain = numbered().map(|(number, (_, content))| seed(number, content));
        let ours = numbered().filter(|(_, (path, _))| is_manifest(path) || is_segment(path));
        plain.chain(ours.map(|(number, (_, content))| seed(number | MATCHING, content))).collect()
    },
    tokens: &[
        "\"rows\":0,",
        "\"dimensions\":0",
        "\"keys\":[0,0]",
        "\"format\":",
        "ASVECTOR",
        "\"segments\":[]",
        "\"../",
    ],
    caught: &[],
    check,
};

/// A sound store: its files by their paths in the folder, and what searches find.
struct Intact {
    files: Vec<(PathBuf, Vec<u8>)>,
    answers: Vec<Vec<SearchResult>>,
}

static INTACT: LazyLock<Intact> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(folder.path());
    let transcript = samples("transcript.jsonl")[..4].concat();
    synced(&storage, &[("metadata.json", b"{}"), ("transcript.jsonl", &transcript)]);
    let answers = answers(&storage).unwrap();
    assert!(answers.iter().all(|results| !results.is_empty()));
    drop(storage);
    let mut files = Vec::new();
    let index = folder.path().join(INDEX);
    for dir in [folder.path(), &index, &index.join("text"), &index.join("vectors")] {
        let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| path.is_file()) {
            files.push((path.strip_prefix(folder.path()).unwrap().to_owned(), fs::read(path).unwrap()));
        }
    }
    files.sort();
    Intact { files, answers }
});

fn open(folder: &Path) -> SessionStorage {
    storage_on(Arc::new(wait(Sqlite::open(folder.join(STORE))).unwrap()))
}

fn answers(storage: &SessionStorage) -> Result<Vec<Vec<SearchResult>>> {
    QUERIES.iter().map(|(query, mode)| found(storage, query, *mode)).collect()
}

/// Whatever is in the files, a search gives the right answer. Where checksums match, it may also
/// give a wrong one or an error.
fn check(input: &[u8]) {
    let Some((choice, content)) = input.split_first() else { return };
    let (number, matching) = (usize::from(choice & !MATCHING), choice & MATCHING != 0);
    let of_index = || INTACT.files.iter().filter(|(path, _)| path.starts_with(INDEX));
    let Some((damaged, _)) = INTACT.files.get(number).filter(|(path, _)| path.starts_with(INDEX)) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &INTACT.files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let mut content = content.to_vec();
    if matching && is_segment(damaged) {
        let header = sealed_segment(&mut content);
        for (path, manifest) in of_index().filter(|(path, _)| path.ends_with("vectors.json")) {
            fs::write(folder.path().join(path), with_header(manifest, header)).unwrap();
        }
    } else if matching && is_manifest(damaged) {
        content = sealed_manifest(content.get(CHECKSUM_LINE..).unwrap_or_default());
    }
    fs::write(folder.path().join(damaged), content).unwrap();
    let answers = answers(&open(folder.path()));
    if !matching {
        assert_eq!(answers.unwrap(), INTACT.answers, "{}", damaged.display());
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json") && path.parent() == Some(Path::new(INDEX))
}

const CHECKSUM_LINE: usize = 9;

/// A manifest with this content.
fn sealed_manifest(json: &[u8]) -> Vec<u8> {
    [format!("{:08x}\n", crc32fast::hash(json)).as_bytes(), json].concat()
}

/// Where a segment has the length of its table, the checksums of table and codes, and the end of its header.
const TABLE_BYTES: usize = 24;
const TABLE_CHECKSUM: usize = 32;
const CODES_CHECKSUM: usize = 36;
const HEADER_BYTES: usize = 40;

/// Makes the checksums within a segment match. Returns that of its header.
fn sealed_segment(content: &mut [u8]) -> u32 {
    let Some((header, rest)) = content.split_at_mut_checked(HEADER_BYTES) else { return 0 };
    let length = u64::from_le_bytes(header[TABLE_BYTES..TABLE_CHECKSUM].try_into().unwrap());
    let (table, codes) = rest.split_at(rest.len().min(length as usize));
    header[TABLE_CHECKSUM..CODES_CHECKSUM].copy_from_slice(&crc32fast::hash(table).to_le_bytes());
    header[CODES_CHECKSUM..].copy_from_slice(&crc32fast::hash(codes).to_le_bytes());
    crc32fast::hash(header)
}

/// A manifest whose segments have this checksum.
fn with_header(manifest: &[u8], header: u32) -> Vec<u8> {
    let mut json: serde_json::Value = serde_json::from_slice(&manifest[CHECKSUM_LINE..]).unwrap();
    for segment in json["body"]["segments"].as_array_mut().unwrap() {
        segment["header"] = header.into();
    }
    sealed_manifest(json.to_string().as_bytes())
}
