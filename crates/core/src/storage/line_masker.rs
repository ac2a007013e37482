//! Masks lines before they are stored.

use std::sync::Arc;

use super::at_rest::SecretDecisions;
use crate::{
    Result, blocking,
    content::{Certainty, IgnoredSecrets, Redactor, mask_line},
    model::{Digest, MetadataFile, RawJson, SupersededReason},
};

/// Longer lines are searched on a separate thread, so that they don't block other tasks.
const LONG: usize = 4 * 1024;

/// Computes the digests of stored lines. Their secrets may be masked.
#[derive(Debug, Clone, Default)]
pub struct LineDigester(pub(super) LineMasker);

impl LineDigester {
    /// The digest of the stored form of `line`.
    #[must_use]
    pub fn digest(&self, line: &[u8]) -> Digest {
        self.0.digest(line)
    }

    /// A line or a metadata file as it is stored: with its secrets masked, or unchanged if masking fails.
    #[must_use]
    pub fn stored(&self, raw: RawJson) -> RawJson {
        self.0.mask_now(raw.clone()).map_or(raw, |(masked, _)| masked)
    }
}

/// Masks lines before they are stored: all, if secrets are masked in the store, and those that a person has purged.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineMasker {
    /// If all lines are masked.
    redactor: Option<Arc<dyn Redactor>>,
    /// If some lines are purged.
    purger: Option<Arc<dyn Redactor>>,
    judged: Arc<SecretDecisions>,
}

impl LineMasker {
    pub(super) fn new(
        redactor: Option<&Arc<dyn Redactor>>,
        masks_all: bool,
        judged: Arc<SecretDecisions>,
    ) -> Self {
        let purger = redactor.filter(|_| !judged.purged.is_empty()).cloned();
        Self { redactor: redactor.filter(|_| masks_all).cloned(), purger, judged }
    }

    /// Whether secrets are masked in all or some lines.
    pub(super) fn is_on(&self) -> bool {
        self.redactor.is_some() || self.purger.is_some()
    }

    /// The line to store, and the number of secrets that were masked in it.
    ///
    /// # Errors
    ///
    /// Errors of the redactor. The line must not be stored then.
    pub(super) async fn mask(&self, line: RawJson) -> Result<(RawJson, usize)> {
        if !self.is_on() || line.as_bytes().len() < LONG {
            return self.mask_now(line);
        }
        let masker = self.clone();
        blocking(move || masker.mask_now(line)).await?
    }

    /// As [`Self::mask`], on this thread.
    pub(super) fn mask_now(&self, line: RawJson) -> Result<(RawJson, usize)> {
        if let Some(purger) = self.purger_of(&line) {
            return purged(purger, line, 0);
        }
        let Some(redactor) = &self.redactor else { return Ok((line, 0)) };
        let masked = mask_line(redactor.as_ref(), &line, Certainty::Likely, &self.judged.ignored)?;
        let (line, count) = masked.unwrap_or((line, 0));
        match self.purger_of(&line) {
            // It was purged when it was masked already.
            Some(purger) => purged(purger, line, count),
            None => Ok((line, count)),
        }
    }

    /// The redactor for texts that belong to the line; `None` if their secrets are not masked.
    pub(super) fn redactor_of(&self, line: &RawJson) -> Option<&dyn Redactor> {
        self.redactor.as_deref().or_else(|| self.purger_of(line))
    }

    /// The redactor for a line that is purged: it masks all secrets.
    fn purger_of(&self, line: &RawJson) -> Option<&dyn Redactor> {
        let purger = self.purger.as_ref()?;
        self.judged.purged.contains(&Digest::of(line.as_bytes())).then_some(purger.as_ref())
    }

    /// The stored form of a line that can't be read: in text that is not JSON, secrets may also stand outside strings.
    ///
    /// # Errors
    ///
    /// As [`Self::mask`].
    pub(super) fn mask_unreadable(&self, line: RawJson) -> Result<(RawJson, usize)> {
        let Some(redactor) = self.redactor_of(&line) else { return Ok((line, 0)) };
        let (line, in_strings) = self.mask_now(line)?;
        let text = line.to_text();
        let masked = redactor.mask(&text)?;
        match masked.secrets {
            0 => Ok((line, in_strings)),
            count => Ok((RawJson::new(masked.text.into_owned().into_bytes()), in_strings + count)),
        }
    }

    /// As [`Self::mask_now`], for a superseded line.
    pub(super) fn mask_superseded(
        &self,
        line: RawJson,
        reason: SupersededReason,
    ) -> Result<(RawJson, usize)> {
        match reason {
            SupersededReason::Unreadable => self.mask_unreadable(line),
            _ => self.mask_now(line),
        }
    }

    /// Masks secrets in a text that is not JSON.
    pub(super) fn mask_text(&self, text: Option<String>) -> Result<Option<String>> {
        match (&self.redactor, text) {
            (Some(redactor), Some(text)) => Ok(Some(redactor.mask(&text)?.text.into_owned())),
            (_, text) => Ok(text),
        }
    }

    /// Masks secrets in metadata files.
    pub(super) fn mask_files(&self, files: Vec<MetadataFile>) -> Result<Vec<MetadataFile>> {
        let masked =
            |file: MetadataFile| Ok(MetadataFile { raw: self.mask_now(file.raw)?.0, name: file.name });
        files.into_iter().map(masked).collect()
    }

    /// The digest of the stored form of a line.
    pub(super) fn digest(&self, line: &[u8]) -> Digest {
        if !self.is_on() {
            return Digest::of(line);
        }
        // A line that can't be masked is not stored, so no stored digest may match its own.
        self.mask_now(RawJson::new(line))
            .map_or_else(|_| Digest::of(line), |(masked, _)| Digest::of(masked.as_bytes()))
    }
}

/// The line with all its secrets masked, even those that are only possible.
fn purged(redactor: &dyn Redactor, line: RawJson, count: usize) -> Result<(RawJson, usize)> {
    let masked = mask_line(redactor, &line, Certainty::Possible, &IgnoredSecrets::default())?;
    Ok(masked.map_or((line, count), |(masked, more)| (masked, count + more)))
}
