//! A redactor with known secrets.

use amplifier_session_core::{
    Result,
    content::{Certainty, Masked, Redactor, SecretSpan},
};

/// Masks given words, wherever they occur. Each has the rule `word`.
#[derive(Debug, Clone)]
pub struct WordRedactor(Vec<String>);

impl WordRedactor {
    /// Masks these words.
    #[must_use]
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self(words.into_iter().map(str::to_owned).collect())
    }
}

impl Redactor for WordRedactor {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        let secrets = self.find(text)?.len();
        let mask =
            |text: String, word: &String| text.replace(word.as_str(), &"*".repeat(word.chars().count()));
        Ok(Masked { text: self.0.iter().fold(text.to_owned(), mask).into(), secrets })
    }

    fn find(&self, text: &str) -> Result<Vec<SecretSpan>> {
        let of_word = |word: &String| {
            let spans = text.match_indices(word.as_str()).map(|(start, found)| start..start + found.len());
            spans
                .map(|span| SecretSpan { rule: "word".to_owned(), certainty: Certainty::Certain, span })
                .collect::<Vec<_>>()
        };
        let mut found: Vec<SecretSpan> = self.0.iter().flat_map(of_word).collect();
        found.sort_by_key(|secret| secret.span.start);
        Ok(found)
    }
}
