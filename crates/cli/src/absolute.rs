//! Absolute paths, for command lines that run in another folder.

use std::path::Path;

use amplifier_session_storage::StoreUrl;

/// The URL of a store, with an absolute path if the store is a file. A relative one is in `folder`.
pub(crate) fn store_url(url: &str, folder: &Path) -> String {
    // A path that begins with the home folder is absolute, whichever folder that is.
    let Ok(parsed) = StoreUrl::parse(url, Some(Path::new("/"))) else { return url.to_owned() };
    let (Some(file), Some((scheme, rest))) = (parsed.file(), url.split_once(':')) else {
        return url.to_owned();
    };
    let parameters =
        file.to_str().and_then(|file| rest.strip_prefix("//").unwrap_or(rest).strip_prefix(file));
    match parameters {
        Some(parameters) if file.is_relative() => {
            format!("{scheme}:{}{parameters}", folder.join(file).display())
        }
        _ => url.to_owned(),
    }
}
