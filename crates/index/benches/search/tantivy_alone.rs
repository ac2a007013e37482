//! Searches with tantivy alone, a yardstick. The benchmark of the library uses this file too.

use std::path::Path;

use tantivy::{
    Index, Searcher, Term,
    collector::TopDocs,
    query::{BooleanQuery, Occur, Query, TermQuery},
    schema::{Field, IndexRecordOption},
};

/// The files of a text index, opened with tantivy alone.
pub(crate) struct TantivyAlone {
    searcher: Searcher,
    text: Field,
    _copy: tempfile::TempDir,
}

impl TantivyAlone {
    /// A copy of the text index in a folder.
    pub(crate) fn open(dir: &Path) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let manifest = std::fs::read_to_string(dir.join("text.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest[9..]).unwrap();
        std::fs::write(copy.path().join("meta.json"), manifest["body"]["meta"].as_str().unwrap()).unwrap();
        for entry in std::fs::read_dir(dir.join("text")).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let index = Index::open_in_dir(copy.path()).unwrap();
        let text = index.schema().get_field("text").unwrap();
        let searcher = index.reader().unwrap().searcher();
        Self { searcher, text, _copy: copy }
    }

    pub(crate) fn search(&self, terms: &[String], limit: usize) {
        let clause = |term: &String| {
            let term = Term::from_field_text(self.text, term);
            (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>)
        };
        let query = BooleanQuery::new(terms.iter().map(clause).collect());
        self.searcher.search(&query, &TopDocs::with_limit(limit).order_by_score()).unwrap();
    }
}
