//! Archives as Parquet. The first byte of an input chooses the file that the rest replaces.

use std::{fs, sync::LazyLock};

use amplifier_session_core::{ErrorKind, Scope, search::SessionFilter, storage::ImportOptions};
use amplifier_session_parquet::{FILES, ParquetReader, ParquetWriter};

use super::archive::assert_usable;
use crate::{
    Target,
    workplace::{samples, storage, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "parquet",
    seeds: || (0_u8..).zip(&*ARCHIVE).map(|(number, file)| [&[number], &**file].concat()).collect(),
    tokens: &["PAR1", "session_id", "sequence", "ARROW:schema"],
    caught: &["parquet", "arrow"],
    check,
};

/// The files of a sound archive.
static ARCHIVE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let (transcripts, events) = (samples("transcript.jsonl"), samples("events.jsonl"));
    let storage = storage();
    synced(
        &storage,
        &[("metadata.json", b"{}"), ("transcript.jsonl", &transcripts[0]), ("events.jsonl", &events[0])],
    );
    let folder = tempfile::tempdir().unwrap();
    let mut writer = ParquetWriter::new(folder.path());
    wait(storage.export_sessions(&Scope::Everyone, SessionFilter::default(), &mut writer)).unwrap();
    FILES.iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect()
});

fn check(input: &[u8]) {
    let Some((number, content)) = input.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, file) in FILES.iter().zip(&*ARCHIVE) {
        fs::write(folder.path().join(name), file).unwrap();
    }
    let damaged = FILES[usize::from(*number) % FILES.len()];
    fs::write(folder.path().join(damaged), content).unwrap();
    let storage = storage();
    let imported = ParquetReader::open(folder.path())
        .and_then(|mut reader| wait(storage.import_sessions(&mut reader, &ImportOptions::default())));
    match imported {
        Ok(_) => assert_usable(&storage),
        // The rows of one file may not fit those of another, so any of them may be named.
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Validation | ErrorKind::StorageIo), "{error}");
            let said = format!("{error} {error:?}");
            assert!(FILES.iter().any(|name| said.contains(name)), "{said}");
        }
    }
}
