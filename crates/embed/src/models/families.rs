//! Pooling and prompts. For folders that don't contain them, they are found by the model's name.
//!
//! Most folders of e5 and bge models contain no prompts; only the model cards do. Without the prompts the vectors are
//! worse, and there is no error.

/// How the vectors of a text's tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all vectors.
    Mean,
    /// The vector of the first token, which stands for the whole text.
    Cls,
    /// The greatest value in each dimension.
    Max,
}

impl Pooling {
    /// The name in sentence-transformers' configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
            Self::Max => "max",
        }
    }
}

/// Texts that are put before the embedded ones; may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// The prompt for queries.
    pub query: String,
    /// The prompt for documents.
    pub document: String,
}

/// A family of models with the same pooling and prompts.
pub(super) struct ModelFamily {
    pub(super) pooling: Pooling,
    pub(super) query: &'static str,
    pub(super) document: &'static str,
}

impl ModelFamily {
    pub(super) fn prompts(&self) -> Prompts {
        Prompts { query: self.query.to_owned(), document: self.document.to_owned() }
    }
}

/// <https://huggingface.co/intfloat/e5-small-v2>: "Each input text should start with query or passage".
const E5: ModelFamily = ModelFamily { pooling: Pooling::Mean, query: "query: ", document: "passage: " };
/// <https://huggingface.co/BAAI/bge-small-en-v1.5>: an instruction before queries, none before passages.
const BGE_EN: ModelFamily = ModelFamily {
    pooling: Pooling::Cls,
    query: "Represent this sentence for searching relevant passages: ",
    document: "",
};
/// <https://huggingface.co/BAAI/bge-small-zh-v1.5>.
const BGE_ZH: ModelFamily =
    ModelFamily {
        pooling: Pooling::Cls, query: "为这个句子生成表示以用于检索相关文章：", document: ""
    };

/// The family of a model with this name.
pub(super) fn family(name: &str) -> Option<&'static ModelFamily> {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let has = |word: &str| words.contains(&word);
    match () {
        () if has("e5") => Some(&E5),
        () if has("bge") && has("zh") => Some(&BGE_ZH),
        () if has("bge") && has("en") => Some(&BGE_EN),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_the_name_identifies_the_family() {
        let query = |name| family(name).map(|family| family.query);
        for name in ["e5-small-v2", "multilingual-e5-small", "intfloat/E5-base", "my_e5"] {
            assert_eq!(query(name), Some("query: "), "{name}");
        }
        assert!(query("bge-small-en-v1.5").unwrap().starts_with("Represent"));
        assert!(query("BAAI/bge-base-zh").unwrap().starts_with('为'));
        for name in ["all-minilm-l6-v2", "base5-x", "gte-small", "", "bge-m3"] {
            assert_eq!(query(name), None, "{name}");
        }
    }
}
