//! Fetching a known model from a hub.

use std::io::Write as _;

use amplifier_session_core::{Error, ErrorKind, Result};
use reqwest::{Client, Response, StatusCode, Url};

use super::{
    KnownModel,
    copy::{FILES, create},
    hub::Hub,
    installed::Begun,
    manifest::ManifestFile,
    sha256::Hashing,
};
use crate::http::{ClientOptions, client, parse_url, transport_error};

/// How often a hub may send us on: it does once, to where it keeps large files.
const REDIRECTS: usize = 5;

/// Fetches the files of `known` into the folder that is begun; says what was fetched.
pub(super) async fn fetch(
    known: &KnownModel,
    hub: &Hub,
    begun: &Begun,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<Vec<ManifestFile>> {
    let base = parse_url("hub", hub.endpoint())?;
    // Nobody is sent from a server without TLS to somewhere else: what comes back would be anybody's.
    let redirects = if base.scheme() == "https" { REDIRECTS } else { 0 };
    let client = client(&base, &ClientOptions { redirects, ..ClientOptions::default() })?;
    let mut files = Vec::new();
    for file in &FILES {
        let download = Download { client: &client, known, hub, path: file.path };
        match download.response().await? {
            Some(response) => files.push(download.save(response, begun, progress).await?),
            None if file.required => return Err(download.failed("is not there")),
            None => {}
        }
    }
    Ok(files)
}

impl Hub {
    /// The address of a file.
    fn file(&self, known: &KnownModel, path: &str) -> String {
        format!("{}/{}/resolve/{}/{path}", self.endpoint(), known.repository, known.revision)
    }

    /// What stands in a manifest.
    pub(super) fn source(&self, known: &KnownModel) -> String {
        format!("{}/{}@{}", self.endpoint(), known.repository, known.revision)
    }
}

/// One file.
struct Download<'a> {
    client: &'a Client,
    known: &'a KnownModel,
    hub: &'a Hub,
    path: &'static str,
}

impl Download<'_> {
    /// The answer, whose body is still to come; none when the hub has no such file.
    async fn response(&self) -> Result<Option<Response>> {
        let url: Url = parse_url("hub", &self.hub.file(self.known, self.path))?;
        let response = self.client.get(url).send().await.map_err(|error| self.cut(error))?;
        match response.status() {
            StatusCode::OK => Ok(Some(response)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(self.failed(&format!("is refused with status {}", status.as_u16()))),
        }
    }

    async fn save(
        &self,
        mut response: Response,
        begun: &Begun,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<ManifestFile> {
        let unwritten = |source| self.failed("can't be written").with_source(source);
        let mut file = Hashing::new(create(begun.folder(), self.path).map_err(unwritten)?);
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

    /// An error on the way.
    fn cut(&self, error: reqwest::Error) -> Error {
        transport_error(error).with("file", self.path).with("hub", self.hub.source(self.known))
    }
}

#[cfg(test)]
mod tests;
