//! What taking in sessions costs at the least: parsing and inserting lines, and indexing texts, each with the library
//! alone and on one thread.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use amplifier_session_storage::{
    content::MessageLine,
    model::{RawJson, SessionSource},
    text::Analyzer,
};
use rusqlite::{Connection, params};
use serde_json::Value;
use tantivy::{
    Index, IndexWriter, TantivyDocument,
    schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};

/// The files `name` of all sessions below `root`, in order.
pub(crate) fn files(root: &Path, name: &str) -> Vec<PathBuf> {
    let folders = |path: &Path| {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let projects = folders(&root.join("projects"));
    let sessions = projects.iter().flat_map(|project| folders(&project.join("sessions")));
    sessions.map(|session| session.join(name)).filter(|file| file.exists()).collect()
}

/// Reads and parses every line and inserts it as it is, in one transaction a file.
pub(crate) fn parse_and_insert(root: &Path, folder: &Path) -> Duration {
    let start = Instant::now();
    let mut connection = Connection::open(folder.join("yardstick.sqlite")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "NORMAL").unwrap();
    let table = "CREATE TABLE lines (file INTEGER, sequence INTEGER, raw TEXT, PRIMARY KEY (file, sequence))";
    connection.execute(table, []).unwrap();
    let all = [files(root, "transcript.jsonl"), files(root, "events.jsonl")].concat();
    for (number, file) in all.iter().enumerate() {
        let text = fs::read_to_string(file).unwrap();
        let transaction = connection.transaction().unwrap();
        let mut insert = transaction
            .prepare_cached("INSERT INTO lines (file, sequence, raw) VALUES (?1, ?2, ?3)")
            .unwrap();
        for (sequence, line) in text.lines().enumerate() {
            let parsed: Value = serde_json::from_str(line).unwrap();
            assert!(parsed.is_object());
            insert.execute(params![number as i64, sequence as i64, line]).unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }
    start.elapsed()
}

/// Indexes the texts of all messages with tantivy: one field, the analysis of this library, nothing stored. The texts
/// are read before the clock starts.
pub(crate) fn index_texts(root: &Path, folder: &Path) -> Duration {
    let texts = texts(root);
    let start = Instant::now();
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let index = Index::create_in_dir(folder, schema.build()).unwrap();
    index.tokenizers().register("words", TextAnalyzer::builder(Words::default()).build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 50_000_000).unwrap();
    for one in texts {
        let mut document = TantivyDocument::default();
        document.add_text(text, one);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    writer.wait_merging_threads().unwrap();
    start.elapsed()
}

fn texts(root: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for file in files(root, "transcript.jsonl") {
        for line in fs::read_to_string(file).unwrap().lines() {
            let line = MessageLine::parse(&RawJson::from(line), SessionSource::default()).unwrap();
            texts.extend(line.texts().into_iter().map(|text| text.text));
        }
    }
    texts
}

/// The analysis of this library, as tantivy wants it.
#[derive(Clone, Default)]
struct Words(Analyzer);

struct Stream(std::vec::IntoIter<Token>, Token);

impl Tokenizer for Words {
    type TokenStream<'a> = Stream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream {
        let mut found = Vec::new();
        let mut tokens = self.0.tokens(text);
        while tokens.advance() {
            let position = found.len();
            found.push(Token { position, text: tokens.term().to_owned(), ..Token::default() });
        }
        Stream(found.into_iter(), Token::default())
    }
}

impl TokenStream for Stream {
    fn advance(&mut self) -> bool {
        let Some(token) = self.0.next() else { return false };
        self.1 = token;
        true
    }

    fn token(&self) -> &Token {
        &self.1
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.1
    }
}

/// Lists all folders below `root`, and reads the metadata of all files.
pub(crate) fn walk(root: &Path) -> Duration {
    let start = Instant::now();
    let (mut folders, mut bytes) = (vec![root.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                bytes += fs::metadata(entry.path()).unwrap().len();
            }
        }
    }
    assert!(bytes > 0);
    start.elapsed()
}
