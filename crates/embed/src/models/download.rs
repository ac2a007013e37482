//! Downloading a known model from a hub.

use std::{io::Write as _, path::Path};

use amplifier_session_core::{Error, ErrorField, ErrorKind, Result};
use reqwest::{Client, Response, StatusCode, Url};

use super::{
    Hub, KnownModel,
    copy::{FILES, create},
    manifest::ManifestFile,
    sha256::Hashing,
};
use crate::http::{ClientOptions, client, parse_url, transport_error};

/// How many redirects to follow. A hub redirects once, to its storage of large files.
const REDIRECTS: usize = 5;

/// Downloads the files of `known` into `folder`.
pub(super) async fn fetch(
    known: &KnownModel,
    hub: &Hub,
    folder: &Path,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<Vec<ManifestFile>> {
    let base = parse_url(ErrorField::Hub, hub.endpoint())?;
    // Without TLS anyone could redirect, so redirects are not followed.
    let redirects = if base.scheme() == "https" { REDIRECTS } else { 0 };
    let client = client(&base, &ClientOptions { redirects, ..ClientOptions::default() })?;
    let mut files = Vec::new();
    for file in &FILES {
        let download = Download { client: &client, known, hub, path: file.path };
        match download.response().await? {
            Some(response) => files.push(download.save(response, folder, progress).await?),
            None if file.required => return Err(download.failed("does not exist")),
            None => {}
        }
    }
    Ok(files)
}

impl Hub {
    /// The URL of a file.
    fn file(&self, known: &KnownModel, path: &str) -> String {
        format!("{}/{}/resolve/{}/{path}", self.endpoint(), known.repository, known.revision)
    }

    /// The source of a model, for its manifest.
    pub(super) fn source(&self, known: &KnownModel) -> String {
        format!("{}/{}@{}", self.endpoint(), known.repository, known.revision)
    }
}

/// The download of one file.
struct Download<'a> {
    client: &'a Client,
    known: &'a KnownModel,
    hub: &'a Hub,
    path: &'static str,
}

impl Download<'_> {
    /// The response, before its body is read; `None` if the hub has no such file.
    async fn response(&self) -> Result<Option<Response>> {
        let url: Url = parse_url(ErrorField::Hub, &self.hub.file(self.known, self.path))?;
        let response = self.client.get(url).send().await.map_err(|error| self.cut(error))?;
        match response.status() {
            StatusCode::OK => Ok(Some(response)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.failed(&format!("can't be downloaded: status {}", status.as_u16()))),
        }
    }

    async fn save(
        &self,
        mut response: Response,
        folder: &Path,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<ManifestFile> {
        let unwritten = |source| self.failed("can't be written").with_source(source);
        let mut file = Hashing::new(create(folder, self.path).map_err(unwritten)?);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.cut(error))? {
            file.write_all(&chunk).map_err(unwritten)?;
            progress(chunk.len() as u64);
        }
        let (sha256, bytes) = file.finish();
        match self.known.sha256_of(self.path) {
            Some(expected) if expected != sha256 => {
                Err(self.failed(&format!("has the SHA-256 {sha256} instead of {expected}")))
            }
            _ => Ok(ManifestFile { path: self.path.to_owned(), bytes, sha256 }),
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::new(ErrorKind::Embedding, format!("{} {what}", self.path))
            .with("hub", self.hub.source(self.known))
    }

    /// The error for a failed request or a response that was cut off.
    fn cut(&self, error: reqwest::Error) -> Error {
        transport_error(error).with("file", self.path).with("hub", self.hub.source(self.known))
    }
}

#[cfg(test)]
mod tests;
