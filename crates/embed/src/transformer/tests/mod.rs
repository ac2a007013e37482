//! Tests with a tiny model, and with real weights if available.

mod real;
mod tiny;

use std::path::PathBuf;

use amplifier_session_testkit::TinyModel;
use tempfile::TempDir;

use super::*;

/// A folder with a model.
struct Folder {
    path: PathBuf,
    _folder: TempDir,
}

impl Folder {
    /// A tiny model in a folder with this name.
    fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        TinyModel::default().write(&path).unwrap();
        Self { path, _folder: folder }
    }

    fn open(&self) -> TransformerEmbedding {
        TransformerEmbedding::open(&self.path).unwrap()
    }

    /// The error message for an unsupported model.
    #[track_caller]
    fn refused(&self) -> String {
        let error = TransformerEmbedding::open(&self.path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding);
        assert_eq!(error.context("folder"), Some(self.path.to_str().unwrap()));
        format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string))
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn documents(model: &TransformerEmbedding, texts: &[&str]) -> Vec<Vec<f32>> {
    model.embed(&owned(texts), EmbeddingPurpose::Document).await.unwrap()
}

async fn query(model: &TransformerEmbedding, text: &str) -> Vec<f32> {
    model.embed(&owned(&[text]), EmbeddingPurpose::Query).await.unwrap().remove(0)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[track_caller]
fn assert_same(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    let furthest = a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(furthest < 1e-5, "differs by {furthest}");
}

/// Checks that a vector has unit length.
#[track_caller]
fn assert_unit(vector: &[f32]) {
    assert!(vector.iter().all(|x| x.is_finite()));
    assert!((dot(vector, vector).sqrt() - 1.0).abs() < 1e-5, "length {}", dot(vector, vector).sqrt());
}
