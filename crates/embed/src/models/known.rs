//! Models that can be installed by name, and the server that they are downloaded from.

/// A model that `embeddings models install NAME` can download.
///
/// The revision is pinned, so a name stands for the same vectors everywhere. Weights and tokenizer are checked against
/// the hashes here. The hub's small files are trusted on first use; the manifest records their hashes when they are
/// installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// The name to install it by.
    pub name: &'static str,
    /// The repository on the hub.
    pub repository: &'static str,
    /// The commit of the repository.
    pub revision: &'static str,
    /// The licence, as an SPDX expression.
    pub licence: &'static str,
    /// The length of its vectors.
    pub dimensions: usize,
    /// The size of the weights in bytes, which is about the size of the download.
    pub bytes: u64,
    /// Its purpose, in a few words.
    pub about: &'static str,
    /// The SHA-256 hashes of files, if known.
    pub sha256: &'static [(&'static str, &'static str)],
}

/// The models that can be installed by name.
///
/// The hashes of `all-minilm-l6-v2` were computed from its files. The others come from several public projects that pin
/// the same revision and agree; the files were not downloaded for this table.
pub const KNOWN: [KnownModel; 4] = [
    KnownModel {
        name: "all-minilm-l6-v2",
        repository: "sentence-transformers/all-MiniLM-L6-v2",
        revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        licence: "Apache-2.0",
        dimensions: 384,
        bytes: 90_868_376,
        about: "English, the fastest",
        sha256: &[
            ("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        ],
    },
    KnownModel {
        name: "bge-small-en-v1.5",
        repository: "BAAI/bge-small-en-v1.5",
        revision: "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
        licence: "MIT",
        dimensions: 384,
        bytes: 133_466_304,
        about: "English, for questions",
        sha256: &[
            ("model.safetensors", "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad"),
            ("tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"),
        ],
    },
    KnownModel {
        name: "e5-small-v2",
        repository: "intfloat/e5-small-v2",
        revision: "ffb93f3bd4047442299a41ebb6fa998a38507c52",
        licence: "MIT",
        dimensions: 384,
        bytes: 133_466_304,
        about: "English, for questions",
        sha256: &[
            ("model.safetensors", "45bfa60070649aae2244fbc9d508537779b93b6f353c17b0f95ceccb1c5116c1"),
            ("tokenizer.json", "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"),
        ],
    },
    KnownModel {
        name: "multilingual-e5-small",
        repository: "intfloat/multilingual-e5-small",
        revision: "614241f622f53c4eeff9890bdc4f31cfecc418b3",
        licence: "MIT",
        dimensions: 384,
        bytes: 471_000_000,
        about: "a hundred languages, for questions",
        sha256: &[("model.safetensors", "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477")],
    },
];

impl KnownModel {
    /// The model with this name, ignoring case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The hash that `file` must have, if it is known.
    #[must_use]
    pub fn sha256_of(&self, file: &str) -> Option<&'static str> {
        self.sha256.iter().find(|(name, _)| *name == file).map(|(_, hash)| *hash)
    }
}

/// A server with repositories of models, with the same URLs as the Hugging Face hub:
/// `{endpoint}/{repository}/resolve/{revision}/{file}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    endpoint: String,
}

impl Default for Hub {
    /// <https://huggingface.co>.
    fn default() -> Self {
        Self::at("https://huggingface.co")
    }
}

impl Hub {
    /// The hub at `endpoint`, for example a mirror.
    #[must_use]
    pub fn at(endpoint: impl Into<String>) -> Self {
        let endpoint: String = endpoint.into();
        Self { endpoint: endpoint.trim_end_matches('/').to_owned() }
    }

    /// The hub's address.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// The names of all models, for messages.
pub(crate) fn names() -> String {
    KNOWN.map(|known| known.name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        for known in KNOWN {
            super::super::check_name(known.name).unwrap();
            assert_eq!(KnownModel::find(&known.name.to_uppercase()), Some(&known));
            assert!(known.revision.len() == 40 && digits(known.revision));
            assert!(known.sha256_of("model.safetensors").is_some());
            assert!(known.sha256.iter().all(|(_, hash)| hash.len() == 64 && digits(hash)));
        }
        assert_eq!(KnownModel::find("gpt-2"), None);
    }
}
